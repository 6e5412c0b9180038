"""The virtual-clock scheduler: of a port's VCs, the one with the least virtual clock sends next."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from bentpipe_hdl.cell import FRACTION_BITS, TIME_BITS
from bentpipe_hdl.switch.core.round_robin import round_members
from bentpipe_hdl.switch.core.vc_table import ARRIVAL, DEPARTURE
from bentpipe_hdl.switch.options.virtual_clock.control import AHEAD_BITS, PERIOD_BITS
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["VirtualClock"]

KEY_BITS = TIME_BITS + FRACTION_BITS

SERVED, JOINED = DEPARTURE + 1, ARRIVAL + 2
"""Narrow: the clocks in which the nodes beside the ways of the VC that is served and of that which joins are read."""

COMMITTED = 12
"""Narrow: the clock after the commit."""

SINGLY = 6
"""Narrow: up to so many levels are played one a clock, more of them two."""


class VirtualClock(wiring.Component):
    """The virtual clock: the VC with the least clock is served (Zhang, SIGCOMM 1990); clocks advance as cells become
    first.

    Whenever a VC has a new first cell, its clock becomes ``max(clock, now) + period``: when it begins to have cells,
    and when a cell leaves and there are more. A clock that is ``2**AHEAD_BITS`` ticks ahead gets no further ahead. Of
    equal clocks that of the lower VC goes first. A VC stays at its port as long as it has cells. Times are compared
    modulo half their range.

    A binary tree for each port has the VCs' clocks, and the least of two nodes in the node above. A tick changes two
    leaves at most: that of the VC that is served, then that of the VC that joins. On the narrow datapath a level is
    played a clock, or two where there are more than ``SINGLY``, for the one VC from the clock after the commit on, for
    the other one a clock behind it, which takes what the first has changed beside its way from there; with 6 and with
    12 levels the roots are there in clock 6 of the next tick.

    Members
    -------
    busy, port, vc, serve, join, join_vc, join_port, rejoin, rejoin_port, changes, begins, still_busy
        As for :class:`~bentpipe_hdl.switch.core.round_robin.RoundRobin`; the VC that is served stays at
        its port, whatever ``rejoin_port`` is.
    now : In
    period_vc, period, period_en : In
        Software writes the ticks a cell of a VC, with 16 fraction bits.
    clearing, clear : In
        After reset: entry ``clear`` of all tables is to be cleared.
    """

    def __init__(self, slot: TickSchedule, *, vcs: int, ports: int):
        self._slot, self._vcs, self._ports = slot, vcs, ports
        self.levels = (vcs - 1).bit_length()
        self._port_bits = (ports - 1).bit_length()
        self.clears = vcs << self._port_bits
        vc = range(vcs)
        self.Entry = data.StructLayout({"key": KEY_BITS, "vc": self.levels, "valid": 1})
        super().__init__(
            {
                **round_members(vcs, ports),
                "now": In(TIME_BITS),
                "period_vc": In(vc),
                "period": In(PERIOD_BITS),
                "period_en": In(1),
                "clearing": In(1),
                "clear": In(range(self.clears)),
            }
        )

    def attach(self, m, csr, path):
        """Connect the service periods, the present tick, and the clearing after reset."""
        index, period, written = csr.write_port("service_period")
        m.d.comb += [
            self.now.eq(path.now),
            self.period_vc.eq(index),
            self.period.eq(period),
            self.period_en.eq(written),
            self.clearing.eq(path.core.vc_table.clearing),
            self.clear.eq(path.core.vc_table.clear),
        ]

    def elaborate(self, platform):
        m = Module()
        slot, ports, levels = self._slot.within(m), self._ports, self.levels
        slot.with_commit(self.serve, self.join, self.rejoin)
        self.roots = roots = Array(Signal(self.Entry, name=f"root{p}") for p in range(ports))
        periods = slot.store("periods", PERIOD_BITS, self._vcs)
        periods.write(self.period_vc, self.period, self.period_en)
        clocks = slot.store("clocks", KEY_BITS, self._vcs, block=True)

        served, joining = Signal(self.Entry), Signal(self.Entry)
        root, kept = Signal(self.Entry), Signal(KEY_BITS)
        with slot.gate_when(self.serve):
            m.d.comb += [root.eq(roots[self.port]), self.vc.eq(root.vc)]
            period = periods.read(self.vc, at=DEPARTURE, to="served_period")
            key = self._stamped(m, slot, "served", slot.pipe(root.key, "served_clock"), period)
            m.d.comb += [served.key.eq(key), served.vc.eq(self.vc), served.valid.eq(self.rejoin)]
        with slot.gate_when(self.join):
            m.d.comb += kept.eq(clocks.read(self.join_vc, at=ARRIVAL, to="joining_clock"))
            period = periods.read(self.join_vc, at=ARRIVAL, to="joining_period")
            key = self._stamped(m, slot, "joining", kept, period)
            m.d.comb += [joining.key.eq(key), joining.vc.eq(self.join_vc), joining.valid.eq(1)]
        first = (self.clearing, self.clear[:levels], 0)
        clocks.write(self.join_vc, joining.key, self.join, clear=first)
        clocks.write(self.vc, served.key, self.rejoin)

        # Level k has 2 ** k nodes; the root is above level 1
        self.nodes = nodes = [
            slot.store(f"level{k}", self.Entry, 1 << (k + self._port_bits), apart=True) for k in range(1, levels + 1)
        ]
        ways = (
            ("served", self.serve, SERVED, self.vc, self.port, served),
            ("joining", self.join, JOINED, self.join_vc, self.join_port, joining),
        )
        beside = []
        for name, strobe, at, vc, port, _ in ways:
            with slot.gate_when(strobe):
                beside.append([
                    store.read(self._node(vc, port, k) ^ 1, at=at, to=f"{name}_beside{k}")
                    for k, store in enumerate(nodes, 1)
                ])  # fmt: skip
        (self._wide if slot.wide else self._narrow)(m, slot, ways, beside)

        # Which ports have VCs
        counts = self.counts = [Signal(levels + 1, name=f"count{p}") for p in range(ports)]
        leaves, joined, last = Signal(ports), Signal(ports), Signal(ports)
        with m.If(self.serve), m.If(~self.rejoin):
            m.d.comb += leaves.eq(1 << self.port)
        with m.If(self.join):
            m.d.comb += joined.eq(1 << self.join_port)
        m.d.comb += self.changes.eq(self.serve | self.join)
        with m.If(slot.commit), m.If(self.changes):
            for p, count in enumerate(counts):
                m.d.comb += last[p].eq(count == 1)
                with m.If(joined[p] & ~leaves[p]):
                    m.d.sync += count.eq(count + 1)
                with m.Elif(leaves[p] & ~joined[p]):
                    m.d.sync += count.eq(count - 1)
            stays = self.busy & ~(leaves & last)
            m.d.comb += [self.still_busy.eq(stays | joined), self.begins.eq(joined & ~stays)]
            m.d.sync += self.busy.eq(self.still_busy)
        return m

    def _node(self, vc, port, level):
        """Return the address of the node of a level on the path from a VC's leaf to the root."""
        return Cat(vc[self.levels - level :], port[: self._port_bits])

    def _stamped(self, m, slot, name, clock, period):
        """Return the next clock of a VC, for a new first cell of its queue."""
        ahead, base = Signal(KEY_BITS, name=f"{name}_ahead"), Signal(KEY_BITS, name=f"{name}_base")
        now = Cat(Const(0, FRACTION_BITS), self.now)
        m.d.comb += [ahead.eq(clock - now), base.eq(clock)]
        with m.If(ahead[-1]):
            m.d.comb += base.eq(now)
        with m.Elif(ahead[FRACTION_BITS + AHEAD_BITS :].any()):
            m.d.comb += base.eq(now + (1 << (FRACTION_BITS + AHEAD_BITS)))
        return slot.pipe((slot.pipe(base, f"{name}_from") + period)[:KEY_BITS], f"{name}_stamp")

    def _winner(self, current, opponent, right):
        """Return the node with the lesser clock; of equal clocks, the left node's.

        ``right``: the current node is on the right.
        """
        less = Mux(right, (current.key - opponent.key)[KEY_BITS - 1], ~(opponent.key - current.key)[KEY_BITS - 1])
        stays = current.valid & (~opponent.valid | less)
        return Mux(stays, current.as_value(), opponent.as_value())

    def _wide(self, m, slot, ways, beside):
        changed = None  # the first way's nodes, as they are then
        for (name, strobe, _, vc, port, entry), opponents in zip(ways, beside, strict=True):
            current, mine = entry, []
            for k in range(self.levels, 0, -1):
                store, node = self.nodes[k - 1], self._node(vc, port, k)
                clear = (self.clearing, self.clear[: len(node)], 0) if changed is None else None
                store.write(node, current, strobe, clear=clear)
                mine.insert(0, (node, current))
                opponent, winner = (Signal(self.Entry, name=f"{name}_{n}{k}") for n in ("opponent", "winner"))
                with m.If(strobe):
                    m.d.comb += opponent.eq(opponents[k - 1])
                    if changed is not None:
                        there, then = changed[k - 1]
                        with m.If(self.serve & (there == node ^ 1)):
                            m.d.comb += opponent.eq(then)
                    m.d.comb += winner.eq(self._winner(current, opponent, node[0]))
                current = winner
            with m.If(strobe):
                m.d.sync += self.roots[port].eq(current)
            changed = mine
        with m.If(self.clearing):
            m.d.sync += [root.eq(0) for root in self.roots]

    def _stays(self, current, opponent, right):
        """Return whether :meth:`_winner` chooses the current node, computed by one subtraction."""
        less = ~(Cat(Const(0, 1), opponent.key) - Cat(right, current.key))[KEY_BITS]
        return current.valid & (~opponent.valid | less)

    def _narrow(self, m, slot, ways, beside):
        lanes = 1 if self.levels <= SINGLY else 2  # levels that are played in a clock
        steps = -(-self.levels // lanes)
        writes = [[] for _ in range(self.levels)]
        served_here, first = Signal(), None
        with m.If(slot.commit):
            m.d.sync += served_here.eq(self.serve)
        for way, ((name, strobe, _, vc, port, entry), opponents) in enumerate(zip(ways, beside, strict=True)):
            plays = [Signal(name=f"{name}_plays{step}") for step in range(steps)]
            path = Signal(self.levels + lanes, name=f"{name}_path")  # of the VC's node from the lane's level on
            path_port = Signal.like(port, name=f"{name}_path_port")
            current, after = (Signal(self.Entry, name=f"{name}_{n}") for n in ("current", "after"))
            starts = strobe
            if way:  # a clock behind
                starts = Signal(name=f"{name}_starts")
                m.d.sync += starts.eq(strobe)
            turns = [starts, *plays]
            for step, (last, now) in enumerate(zip(turns, plays, strict=False)):
                m.d.sync += now.eq(last)
                slot.clocks.strobe(now, COMMITTED + way + step)
            with m.If(Cat(plays).any()):
                m.d.sync += current.eq(after)
            with m.If(Cat(plays, starts).any()):
                m.d.sync += path.eq(path >> lanes)
            with m.If(strobe):
                m.d.sync += [path.eq(Cat(Const(0, way * lanes), vc)), path_port.eq(port), current.eq(entry)]

            # The nodes beside the way, a clock before they are played; what the first way makes of them is played then
            against = []
            for lane in range(lanes):
                opponent = Signal(self.Entry, name=f"{name}_opponent{lane}")
                for step, node in enumerate(opponents[::-1][lane::lanes]):
                    slot.clocks.needs(node, COMMITTED - 1 + way + step, "the clock before it is played")
                nodes = zip(turns, opponents[::-1][lane::lanes], strict=False)
                m.d.sync += opponent.eq(reduce(or_, (Mux(turn, node.as_value(), 0) for turn, node in nodes)))
                if first is not None:
                    there, at_port, changed = first
                    beside_it = there[lane : self.levels] ^ 1 == path[lanes + lane :]
                    with m.If(served_here & beside_it & (at_port == path_port)):
                        m.d.sync += opponent.eq(changed[lane])
                against.append(opponent)

            # Each lane's node, and which of it and the nodes beside goes on
            here, stays = [current], [self._stays(current, against[0], path[0])]
            winner = Mux(stays[0], current.as_value(), against[0].as_value())
            if lanes == 2:
                between = Signal(self.Entry, name=f"{name}_between")
                m.d.comb += between.eq(winner)
                here.append(between)
                goes_on = Mux(stays[0], *(self._stays(one, against[1], path[1]) for one in (current, against[0])))
                winner = Mux(goes_on, between.as_value(), against[1].as_value())
            m.d.comb += after.eq(winner)
            with m.If(plays[-1]):
                m.d.sync += self.roots[path_port].eq(after)
            for k in range(self.levels, 0, -1):
                step, lane = divmod(self.levels - k, lanes)
                node = Cat(path[lane : lane + k], path_port[: self._port_bits])
                writes[k - 1].append((plays[step], node, here[lane]))
            first = path, path_port, here
            for register in (path, path_port, current, *against):
                slot.clocks.holds(register, 0)
        for store, ((en, node, value), *others) in zip(self.nodes, writes, strict=True):
            store.write(node, value, en, others=others, clear=(self.clearing, self.clear[: len(node)], 0))
        with m.If(self.clearing):
            m.d.sync += [root.eq(0) for root in self.roots]
        for root in self.roots:
            slot.clocks.holds(root, steps)
