"""A network on a board: nodes, wires between them, a patch panel, host ports and the board's time, behind one bus."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, DomainRenamer, Module, Mux, ResetInserter, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_boards.bridge import BusSignature, RunSignature
from bentpipe_boards.ddr3 import Ask, Ddr3Fifos, Ddr3Signature
from bentpipe_boards.frames import LineReceiver, LineSender, MacSignature
from bentpipe_boards.host_port import HostPort
from bentpipe_boards.sdram import SdramFifos, SdramSignature
from bentpipe_boards.ticks import Ticks
from bentpipe_boards.wire import STAMP_BITS, Inputs, LongWire, Wire
from bentpipe_hdl.cell import NARROW, NEVER, TIME_BITS, CellSignature, earlier
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_sim.board.windows import FRAME_COUNTERS, HOST_PORT, WINDOW_BITS, board_registers, ports_of

__all__ = ["Core", "line_members", "memory_members"]

_RESET = 16
"""Clocks for which a part is reset."""


class _NearTime(wiring.Component):
    """The time as a node and its wires have it: a clock later, in registers of their own, which lie near them.

    Synthesis merges registers that are equal; these differ by their reset. The present tick is the one that followed
    before, so only one time is led across the device.

    Members
    -------
    tick, following : In
        ``following`` does not change in the two clocks before ``tick``.
    near_tick, near_now, near_following : Out
    """

    tick: In(1)
    following: In(TIME_BITS)
    near_tick: Out(1)
    near_now: Out(TIME_BITS)
    near_following: Out(TIME_BITS)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [self.near_tick.eq(self.tick), self.near_following.eq(self.following)]
        with m.If(self.tick):
            m.d.sync += self.near_now.eq(self.near_following)
        return m


class _NearBus(wiring.Component):
    """The bus, likewise. What is read comes back at once.

    Members
    -------
    far, near : In(CsrSignature), Out(CsrSignature)
    """

    far: In(CsrSignature())
    near: Out(CsrSignature())

    def elaborate(self, platform):
        m = Module()
        for name in ("addr", "w_data", "w_en", "r_en"):
            m.d.sync += getattr(self.near, name).eq(getattr(self.far, name))
        m.d.comb += self.far.r_data.eq(self.near.r_data)
        return m


class Core(wiring.Component):
    """The nodes of a plan and what joins them.

    Each output of a node leads to a wire of its own. The patch panel says which wire leads to each input: its registers
    are written while no time passes.

    Parameters
    ----------
    plan : Plan
    memory : SdramTimes or None
        Times of the board's SDRAM, if the plan has wires in it.
    pin_clocks : int
        As for :class:`~bentpipe_boards.sdram.SdramFifos`.
    parts_domain : str
        Clock domain of the nodes, the wires and the registers between them. On a device it has the clock of ``sync``
        and no reset. Each part has a reset of its own, which begins when ``sync`` is reset or the register ``reset``
        is written. With two resets a flip-flop has a look-up table before it, at the end of the longest path.

    Members
    -------
    bus : In(BusSignature)
    run : In(RunSignature)
    dropped : In(16)
        The bridge's count.
    chip : Out(SdramSignature)
        Pins of the memory chip, if the plan has wires in the SDRAM.
    memory : Out(Ddr3Signature)
        Streams to the memory and back, if the plan has wires in a DDR3 memory. No reset of the board's own clears it.
    line_in, line_out : In(MacSignature), Out(MacSignature)
        Frames from Ethernet and for it, if the plan has VLANs.
    own_in, own_out : Out(MacSignature), In(MacSignature)
        Those without a tag among them, for the board's own Ethernet and from it.
    """

    def __init__(self, plan, memory=None, pin_clocks=0, *, parts_domain="sync"):
        self.plan, self._memory, self._pin_clocks, self._parts_domain = plan, memory, pin_clocks, parts_domain
        self.registers = board_registers(plan)
        members = {"bus": In(BusSignature()), "run": In(RunSignature()), "dropped": In(16)}
        super().__init__(members | memory_members(plan) | line_members(plan))

    def elaborate(self, platform):
        m = Module()
        plan = self.plan
        csr_bus = self._csr_bus = CsrSignature().flip().create()
        csr = CsrMap(m, csr_bus, self.registers)
        parts = 4 + 6 * len(plan.nodes) + plan.faces  # at most; each is reset a clock after the one before
        resets = Signal(range(_RESET + parts + 1), init=_RESET + parts)
        with m.If(resets != 0):
            m.d.sync += resets.eq(resets - 1)
        with csr.written("reset"):
            m.d.sync += resets.eq(_RESET + parts)
        self._last_reset = Signal(reset_less=True, init=1)
        m.d[self._parts_domain] += self._last_reset.eq(resets > parts)

        ticks = self._ticks = self._time(m, csr)
        free = self._pace(m, csr, csr_bus)

        nodes = [shape.component(NARROW) for shape in plan.nodes]
        times = [self._near_time(m, k) for k in range(len(nodes))]
        windows = {0: csr_bus}
        hosts = {}
        for k, (shape, node) in enumerate(zip(plan.nodes, nodes, strict=True)):
            m.submodules[f"{shape.kind}{k}"] = self._resettable(m, node)
            # Two clocks behind the wires, whose words come to it through two registers
            tick, now = Signal(name=f"tick{k}"), Signal(TIME_BITS, name=f"now{k}")
            m.d[self._parts_domain] += [tick.eq(times[k].near_tick), now.eq(times[k].near_now)]
            m.d[self._parts_domain] += [node.time.tick.eq(tick), node.time.now.eq(now)]
            windows[1 + k] = node.csr
            if shape.kind == "nic":
                host = hosts[k] = HostPort(node, plan)
                m.submodules[f"host{k}"] = self._resettable(m, host)
                m.d.comb += host.now.eq(node.time.now)
                windows[HOST_PORT + 1 + k] = host.csr

        wires = self._wires(m, nodes, times, csr)
        self._memory_of(m, wires, csr)
        self._inputs(m, nodes, times, wires, csr)
        self._read_later(m, csr, "check", [wire.check for wire in wires])
        self._read_later(m, csr, "faults", [Cat(wire.lost, wire.late) for wire in wires])
        csr.status("dropped", self.dropped)

        event, idle, still = Signal(), Signal(), Signal(len(nodes))
        m.d[self._parts_domain] += [
            event.eq(Cat(host.event for host in hosts.values()).any()),
            still.eq(Cat(node.status.idle for node in nodes)),
            idle.eq(still.all() & ~Cat(host.waits for host in hosts.values()).any() & (resets == 0)),
        ]
        dues, behind = [], iter(wires)
        for k, (shape, node) in enumerate(zip(plan.nodes, nodes, strict=True)):
            due = Signal(TIME_BITS, name=f"due{k}")  # a node's own is the end of a long path
            m.d[self._parts_domain] += due.eq(node.status.due)
            # Beside those of its wires: the first of what lies together is found there
            dues += [due, *(next(behind).due for _ in range(ports_of(shape)))]
        due = _first(m, dues, self._parts_domain)
        m.d.comb += [ticks.event.eq(event), ticks.idle.eq(idle), ticks.due.eq(due)]
        csr.status("state", Cat(ticks.run.running, event, idle, free))
        self._line(m, csr, hosts)

        words = plan.description
        m.submodules.description = rom = memory.Memory(shape=32, depth=len(words), init=words)
        get = rom.read_port(domain="sync")

        def described(index):
            m.d.comb += get.addr.eq(index)
            return get.data

        csr.read_table("description", described)
        csr.finish()
        self._bus(m, windows)
        return m

    def _time(self, m, csr):
        """Make the generator of ticks and its registers; return it."""
        ticks = Ticks(paced=self.plan.is_paced)
        m.submodules.ticks = self._resettable(m, ticks)
        wiring.connect(m, wiring.flipped(self.run), ticks.run)
        m.d.comb += [
            ticks.clocks.eq(csr.register("clocks")),
            ticks.skips.eq(csr.register("skips")),
            ticks.halts.eq(csr.register("halts")),
        ]
        return ticks

    def _pace(self, m, csr, csr_bus):
        """Make the registers of real time; return whether time runs freely. A board in stepped time has none."""
        if not self.plan.is_paced:
            return Const(0, 1)
        ticks, free = self._ticks, Signal()
        m.d.comb += [ticks.pace.eq(csr.register("pace")), ticks.free.eq(free)]
        with csr.written("pace"):
            m.d.comb += ticks.restart.eq(1)
        # The host ports leave their interfaces to Ethernet from the first free-running time on, up to a reset
        self._carries = Signal()
        with csr.written("free"):
            m.d.sync += [free.eq(csr_bus.w_data[0]), self._carries.eq(self._carries | csr_bus.w_data[0])]
        with csr.written("reset"):
            m.d.sync += [free.eq(0), self._carries.eq(0)]
        for name, value in (("lag", "now"), ("greatest_lag", "most"), ("late_ticks", "late")):
            csr.status(name, getattr(ticks.lag, value))
        return free

    def _line(self, m, csr, hosts):
        """Join the host ports with the Ethernet line, if they have VLANs."""
        if not self.plan.vlans:
            return
        ports = list(hosts.values())
        receiver, sender = LineReceiver(), LineSender(streams=1 + len(ports))
        m.submodules.line_receiver = self._resettable(m, receiver)
        m.submodules.line_sender = self._resettable(m, sender)
        wiring.connect(m, wiring.flipped(self.line_in), receiver.line)
        wiring.connect(m, receiver.own, wiring.flipped(self.own_in))
        wiring.connect(m, wiring.flipped(self.own_out), sender.i[0])
        wiring.connect(m, sender.o, wiring.flipped(self.line_out))
        sdus, carries = receiver.sdus, Signal()
        m.d[self._parts_domain] += [
            carries.eq(self._carries),
            sdus.has_vlan.eq(Cat(port.sdus.has_vlan for port in ports).any()),
            sdus.has_room.eq(Cat(port.sdus.has_room for port in ports).any()),
        ]
        for k, port in enumerate(ports):
            wiring.connect(m, port.frames, sender.i[1 + k])
            m.d.comb += port.carries.eq(carries)
            for name in ("vid", "asks", "valid", "word", "ends", "length"):
                m.d.comb += getattr(port.sdus, name).eq(getattr(sdus, name))
        for name in FRAME_COUNTERS:
            csr.status(name, getattr(receiver, f"count_{name}"))

    def _resettable(self, m, part):
        """Return a part with a reset of its own, a clock later than that of the part before.

        One signal for all would drive some ten thousand flip-flops, across the whole device. Synthesis would merge
        equal registers, but it does not merge a chain. All are in reset from the device's configuration on.
        """
        reset = Signal(reset_less=True, init=1, name="part_reset")
        m.d[self._parts_domain] += reset.eq(self._last_reset)
        self._last_reset = reset
        return DomainRenamer(self._parts_domain)(ResetInserter(reset)(part))

    def _near_time(self, m, k):
        time = _NearTime()
        m.submodules[f"time{k}"] = self._resettable(m, time)
        m.d.comb += [
            time.tick.eq(self._ticks.time.tick),
            time.following.eq(self._ticks.following),
        ]
        return time

    def _read_later(self, m, csr, name, values):
        """Make a table of words from all over the device readable, through a register."""

        def read(index):
            word = Signal(32, name=f"{name}_word")
            m.d[self._parts_domain] += word.eq(Array(values)[index] if values else 0)
            return word

        csr.read_table(name, read)

    def _wires(self, m, nodes, times, csr):
        """Return the wire behind each output."""
        settings, wires = csr.registers("wire"), []
        for k, (shape, node, time) in enumerate(zip(self.plan.nodes, nodes, times, strict=True)):
            ports, given = ports_of(shape), node.o.signature.create(path=(f"out{k}",))
            end = Signal(TIME_BITS, name=f"end{k}")
            m.d[self._parts_domain] += [
                *(getattr(given, name).eq(getattr(node.o, name)) for name in node.o.signature.members),
                end.eq(node.o_end if hasattr(node, "o_end") else 0),
            ]
            port = Signal(range(ports), name=f"given{k}")
            if ports > 1:
                held = Signal.like(port, name=f"held{k}")
                with m.If(given.valid & given.soc):
                    m.d[self._parts_domain] += held.eq(given.port)
                    m.d.comb += port.eq(given.port)
                with m.Else():
                    m.d.comb += port.eq(held)
            for p in range(ports):
                face = len(wires)
                if not self.plan.wires[face]:
                    wires.append(_NoWire())
                    continue
                wire = (LongWire if face in self.plan.sdram else Wire)(cells=self.plan.wires[face])
                m.submodules[f"wire{face}"] = self._resettable(m, wire)
                wires.append(wire)
                m.d.comb += [
                    wire.i.valid.eq(given.valid & (port == p)),
                    wire.i.soc.eq(given.soc),
                    wire.i.word.eq(given.word),
                    wire.i.hec_error.eq(given.hec_error),
                    wire.end.eq(end),
                    wire.tick.eq(time.near_tick),
                    wire.now.eq(time.near_now),
                    wire.following.eq(time.near_following),
                    Cat(wire.delay, wire.sends).eq(settings[face]),
                ]
        return wires

    def _memory_of(self, m, wires, csr):
        """Join the long wires to the memory behind them."""
        faces = self.plan.sdram
        if not faces:
            return
        cells = self.plan.sdram_cells
        if self.plan.ddr3:
            fifos = Ddr3Fifos(fifos=len(faces), records=cells)
            m.submodules.ddr3 = self._resettable(m, fifos)
            wiring.connect(m, fifos.request, wiring.flipped(self.memory.request))
            wiring.connect(m, wiring.flipped(self.memory.answer), fifos.answer)
            self._ask(m, csr, fifos.ready)
        else:
            fifos = SdramFifos(self._memory, fifos=len(faces), records=cells, pin_clocks=self._pin_clocks)
            m.submodules.sdram = self._resettable(m, fifos)
            wiring.connect(m, wiring.flipped(self.chip), fifos.chip)
        for k, face in enumerate(faces):
            wiring.connect(m, wires[face].fifo, fifos.fifo[k])
        holds = Signal()
        m.d[self._parts_domain] += holds.eq(Cat(wires[face].holds for face in faces).any())
        m.d.comb += self._ticks.holds.eq(holds)

    def _ask(self, m, csr, ready):
        """Make the registers by which software reaches those of the DDR3 memory's controller."""
        ask, value = self.memory.ask, self.memory.value
        address, lost, near_ready = csr.register("memory_address"), Signal(), Signal()
        m.d.sync += near_ready.eq(ready)
        with m.If(ask.ready):
            m.d.sync += ask.valid.eq(0)
        for name, kind in (("memory_write", Ask.WRITE), ("memory_read", Ask.READ), ("memory_wait", Ask.WAIT)):
            with csr.written(name):
                with m.If(ask.valid & ~ask.ready):
                    m.d.sync += lost.eq(1)
                with m.Else():
                    m.d.sync += [ask.valid.eq(1), ask.kind.eq(kind), ask.word.eq(self._csr_bus.w_data)]
                    m.d.sync += ask.addr.eq(self._csr_bus.w_data if kind == Ask.READ else address)
        csr.status("memory_state", Cat(near_ready, lost))
        csr.status("memory_level", value.valid)
        csr.status("memory_value", value.word)
        # The word has been read when the next one comes
        reads = Signal(6)
        asked = self._csr_bus.r_en & (self._csr_bus.addr == self.registers["memory_value"].addr)
        m.d.sync += reads.eq(Cat(asked, reads))
        m.d.comb += value.ready.eq(reads[5])

    def _inputs(self, m, nodes, times, wires, csr):
        """Connect the wires to the inputs that the patch panel names."""
        patch = csr.registers("patch")
        taken = [[] for _ in wires]

        def of(number, name):
            return Array([Const(0, 1), *(getattr(wire, name) for wire in wires)])[number]

        for k, (shape, node, time) in enumerate(zip(self.plan.nodes, nodes, times, strict=True)):
            ports, base = ports_of(shape), self.plan.bases[k]
            leads = patch[base : base + ports]
            inputs = Inputs(ports=ports)
            m.submodules[f"inputs{k}"] = self._resettable(m, inputs)
            m.d[self._parts_domain] += [
                inputs.offers.eq(Cat(of(number, "offers") for number in leads)),
                inputs.more.eq(Cat(of(number, "more") for number in leads)),
                inputs.stamps.eq(Cat(of(number, "stamp") for number in leads)),
            ]
            m.d.comb += [inputs.following.eq(time.near_following[:STAMP_BITS]), inputs.tick.eq(time.near_tick)]
            takes, number = Signal(name=f"takes{k}"), Signal(8, name=f"number{k}")
            source = Signal(len(wires), name=f"source{k}")  # a bit for each wire: no look-up is before the node
            port = Signal(range(ports), name=f"port{k}")
            m.d[self._parts_domain] += [
                takes.eq(inputs.takes),
                number.eq(Array(leads)[inputs.port] if ports > 1 else leads[0]),
            ]
            with m.If(time.near_tick):
                m.d[self._parts_domain] += [
                    source.eq(Cat(number == face + 1 for face in range(len(wires)))),
                    port.eq(inputs.port),
                ]
            for face, these in enumerate(taken):
                these.append(takes & (number == face + 1))
            m.d[self._parts_domain] += [
                node.i.valid.eq(_of(source, wires, "valid")),
                node.i.soc.eq(_of(source, wires, "soc")),
                node.i.word.eq(_of(source, wires, "word")),
                node.i.hec_error.eq(_of(source, wires, "hec_error")),
                node.i.port.eq(port),
            ]
        for wire, these in zip(wires, taken, strict=True):
            m.d[self._parts_domain] += wire.take.eq(Cat(these).any())

    def _bus(self, m, windows):
        """Connect the bus to all windows: with a register before all of them, one before each, and one after them."""
        bus = self.bus
        addr, w_data, w_en, r_en = Signal(len(bus.addr)), Signal(32), Signal(), Signal()
        m.d[self._parts_domain] += [addr.eq(bus.addr), w_data.eq(bus.w_data), w_en.eq(bus.w_en), r_en.eq(bus.r_en)]
        window, asked = addr[WINDOW_BITS:], Signal(8)
        with m.If(r_en):
            m.d[self._parts_domain] += asked.eq(window)
        buses = {}
        for k, each in windows.items():
            near = _NearBus()
            # The board's own is written while parts are reset
            m.submodules[f"bus{k}"] = self._resettable(m, near) if k else near
            wiring.connect(m, near.near, each)
            buses[k] = near.far
            m.d.comb += [
                near.far.addr.eq(addr),
                near.far.w_data.eq(w_data),
                near.far.w_en.eq(w_en & (window == k)),
                near.far.r_en.eq(r_en & (window == k)),
            ]
        with m.Switch(asked):
            for k, each in buses.items():
                with m.Case(k):
                    m.d[self._parts_domain] += bus.r_data.eq(each.r_data)
            with m.Default():
                m.d[self._parts_domain] += bus.r_data.eq(0)


class _NoWire:
    """An output without a wire, as the inputs see it: no cell comes from it."""

    def __init__(self):
        self.o = CellSignature(NARROW).create()
        self.offers, self.more, self.stamp = Const(0, 1), Const(0, 1), Const(0, STAMP_BITS)
        self.due, self.check = Const(NEVER, TIME_BITS), Const(0, 32)
        self.lost, self.late = Const(0, 16), Const(0, 16)
        self.take = Signal()


def memory_members(plan):
    """Return the members of a board's core that lead to the memory of long wires, if the plan has some."""
    if not plan.sdram:
        return {}
    return {"memory": Out(Ddr3Signature())} if plan.ddr3 else {"chip": Out(SdramSignature())}


def line_members(plan):
    """Return the members of a board's core that carry the frames of an Ethernet line, if the plan has VLANs."""
    if not plan.vlans:
        return {}
    return {
        "line_in": In(MacSignature()),
        "line_out": Out(MacSignature()),
        "own_in": Out(MacSignature()),
        "own_out": In(MacSignature()),
    }


def _of(source, wires, name):
    """Return a member of the stream of the wire whose bit is set; 0: none is."""
    values = [getattr(wire.o, name) for wire in wires]
    return reduce(or_, (Mux(source[face], value, 0) for face, value in enumerate(values)), Const(0, 1))


def _first(m, dues, domain):
    """Return the earliest of due ticks, some clocks later: a tree of registers."""
    while len(dues) > 1:
        above = []
        for k in range(0, len(dues) - 1, 2):
            first = Signal(TIME_BITS, name="first_due")
            m.d[domain] += first.eq(earlier(dues[k], dues[k + 1]))
            above.append(first)
        if len(dues) % 2:
            last = Signal(TIME_BITS, name="last_due")
            m.d[domain] += last.eq(dues[-1])
            above.append(last)
        dues = above
    return dues[0]
