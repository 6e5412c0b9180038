"""Adapters between a node at 32 bits and the buses of other designs: AXI4-Stream for cells, Wishbone and AXI4-Lite for
registers.

:class:`Adapted` is a node with adapters around it. The adapters can be used alone, too.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from .cell import NARROW, WORDS_A_CELL, CellSignature
from .csr import CsrSignature
from .registers import ADDR_BITS

__all__ = [
    "Adapted", "AxiLiteSignature", "AxiLiteToCsr", "AxiStreamSignature", "AxiStreamToCells", "CellsToAxiStream",
    "WishboneSignature", "WishboneToCsr", "check_cells",
]  # fmt: skip

READ_CLOCKS = 4
"""Clocks from the one with ``r_en`` to that in which a node's ``r_data`` is there."""
OKAY, SLVERR = 0b00, 0b10
"""AXI's responses."""


class AxiStreamSignature(wiring.Signature):
    """AXI4-Stream with a cell as a packet of 13 words: the header, then the payload with its first octet in TDATA[7:0].

    Members
    -------
    tvalid : Out(1)
        A word is there; it stays until it is taken.
    tready : In(1)
        The word is taken at the clock's edge.
    tdata : Out(32)
        The word. The header is a number: ``gfc<<28 | vpi<<20 | vci<<4 | pti<<1 | clp``.
    tkeep : Out(4)
        All ones; that of an input is ignored.
    tlast : Out(1)
        The word is the cell's last, the thirteenth.
    tdest : Out
        The port, of a node with several.
    tuser : Out(1)
        The header check found an error.
    """

    def __init__(self, ports=1):
        self.ports = ports
        super().__init__(
            {
                "tvalid": Out(1),
                "tready": In(1),
                "tdata": Out(NARROW),
                "tkeep": Out(NARROW // 8, init=(1 << NARROW // 8) - 1),
                "tlast": Out(1),
                "tdest": Out(range(max(2, ports))),
                "tuser": Out(1),
            }
        )


class WishboneSignature(wiring.Signature):
    """Wishbone B4, classic cycles, with addresses of words of 32 bits, as its initiator has it.

    Members
    -------
    adr : Out(20)
        Address of a word.
    dat_w : Out(32)
        Data to be written.
    dat_r : In(32)
        Data read, with ``ack``.
    sel : Out(4)
        Octets; all ones for a write.
    we : Out(1)
        Write.
    cyc, stb : Out(1)
        A cycle; both stay high until ``ack`` or ``err``.
    ack : In(1)
        The cycle ends.
    err : In(1)
        The cycle ends and did nothing: a write of some octets of a word.
    """

    def __init__(self):
        super().__init__(
            {
                "adr": Out(ADDR_BITS),
                "dat_w": Out(32),
                "dat_r": In(32),
                "sel": Out(4),
                "we": Out(1),
                "cyc": Out(1),
                "stb": Out(1),
                "ack": In(1),
                "err": In(1),
            }
        )


class AxiLiteSignature(wiring.Signature):
    """AXI4-Lite with 32 bits of data and addresses of octets, as its initiator has it. AWPROT and ARPROT are left out.

    Members
    -------
    awvalid, awready, awaddr : Out(1), In(1), Out(22)
        Address of a write, of an octet; taken together with its data.
    wvalid, wready, wdata, wstrb : Out(1), In(1), Out(32), Out(4)
        Data of a write; ``wstrb`` is all ones.
    bvalid, bready, bresp : In(1), Out(1), In(2)
        Response of a write: OKAY, or SLVERR of some octets of a word.
    arvalid, arready, araddr : Out(1), In(1), Out(22)
        Address of a read, of an octet.
    rvalid, rready, rdata, rresp : In(1), Out(1), In(32), In(2)
        Data read; the response is OKAY.
    """

    def __init__(self):
        address, response = ADDR_BITS + 2, 2
        super().__init__(
            {
                **{"awvalid": Out(1), "awready": In(1), "awaddr": Out(address)},
                **{"wvalid": Out(1), "wready": In(1), "wdata": Out(32), "wstrb": Out(4)},
                **{"bvalid": In(1), "bready": Out(1), "bresp": In(response)},
                **{"arvalid": Out(1), "arready": In(1), "araddr": Out(address)},
                **{"rvalid": In(1), "rready": Out(1), "rdata": In(32), "rresp": In(response)},
            }
        )


class CellsToAxiStream(wiring.Component):
    """Cells that leave a node, as packets.

    A node's output knows no back-pressure. A cell that finds less room than it needs is dropped whole, and counted.

    Parameters
    ----------
    ports : int
        Of the node.
    cells : int
        That can wait, a power of two from 2 on.

    Members
    -------
    i : In(CellSignature)
    o : Out(AxiStreamSignature)
    lost : Out(32)
        Cells dropped; wraps.
    """

    def __init__(self, *, ports=1, cells=4):
        check_cells(cells)
        self._ports, self._cells = ports, cells
        super().__init__({"i": In(CellSignature(NARROW, ports)), "o": Out(AxiStreamSignature(ports)), "lost": Out(32)})

    def elaborate(self, platform):
        m = Module()
        port_bits = len(self.o.tdest)
        m.submodules.words = words = memory.Memory(shape=NARROW + port_bits + 1, depth=16 * self._cells, init=[])
        put, get = words.write_port(), words.read_port(domain="comb")
        bits = (self._cells - 1).bit_length()
        write, read, level = Signal(bits), Signal(bits), Signal(range(self._cells + 1))
        place, step, keeps = Signal(4), Signal(4), Signal()
        starts, is_kept = Signal(), Signal()
        m.d.comb += [
            starts.eq(self.i.valid & self.i.soc),
            is_kept.eq(Mux(starts, level != self._cells, keeps)),
            put.addr.eq(Cat(Mux(starts, 0, place), write)),
            put.data.eq(Cat(self.i.word, self.i.hec_error, self.i.port)),
            put.en.eq(self.i.valid & is_kept),
        ]
        with m.If(self.i.valid):
            m.d.sync += place.eq(Mux(starts, 1, place + 1))
        with m.If(starts):
            m.d.sync += [keeps.eq(is_kept), self.lost.eq(self.lost + ~is_kept)]
        whole, gone = Signal(), Signal()
        m.d.comb += [
            whole.eq(self.i.valid & ~starts & keeps & (place == WORDS_A_CELL - 1)),
            gone.eq(self.o.tvalid & self.o.tready & self.o.tlast),
        ]
        m.d.sync += [write.eq(write + whole), read.eq(read + gone), level.eq(level + whole - gone)]

        # The header's word has what is of the whole cell
        error, port = Signal(), Signal(port_bits)
        first = get.data[NARROW], get.data[NARROW + 1 :]
        is_first = step == 0
        m.d.comb += [
            get.addr.eq(Cat(step, read)),
            self.o.tvalid.eq(level != 0),
            self.o.tdata.eq(get.data[:NARROW]),
            self.o.tlast.eq(step == WORDS_A_CELL - 1),
            self.o.tuser.eq(Mux(is_first, first[0], error)),
            self.o.tdest.eq(Mux(is_first, first[1], port)),
        ]
        with m.If(self.o.tvalid & self.o.tready):
            m.d.sync += step.eq(Mux(self.o.tlast, 0, step + 1))
            with m.If(is_first):
                m.d.sync += [error.eq(first[0]), port.eq(first[1])]
        return m


class AxiStreamToCells(wiring.Component):
    """Packets to cells that enter a node, one a tick at most.

    A packet of another length than 13 words is dropped and counted. A cell is given once the whole of it is there.

    Parameters
    ----------
    ports, cells : int
        As for :class:`CellsToAxiStream`.

    Members
    -------
    i : In(AxiStreamSignature)
        ``tkeep`` is not looked at; ``tdest`` and ``tuser`` are those of the packet's first word.
    tick : In(1)
        The node's.
    o : Out(CellSignature)
    dropped : Out(32)
        Packets dropped; wraps.
    """

    def __init__(self, *, ports=1, cells=4):
        check_cells(cells)
        self._ports, self._cells = ports, cells
        super().__init__(
            {
                "i": In(AxiStreamSignature(ports)),
                "tick": In(1),
                "o": Out(CellSignature(NARROW, ports)),
                "dropped": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        port_bits = len(self.i.tdest)
        m.submodules.words = words = memory.Memory(shape=NARROW + port_bits + 1, depth=16 * self._cells, init=[])
        put, get = words.write_port(), words.read_port(domain="comb")
        bits = (self._cells - 1).bit_length()
        write, read, level = Signal(bits), Signal(bits), Signal(range(self._cells + 1))
        place, is_long, takes = Signal(4), Signal(), Signal()
        m.d.comb += [
            self.i.tready.eq(level != self._cells),
            takes.eq(self.i.tvalid & self.i.tready),
            put.addr.eq(Cat(place, write)),
            put.data.eq(Cat(self.i.tdata, self.i.tuser, self.i.tdest)),
            put.en.eq(takes & ~is_long),
        ]
        whole, gives = Signal(), Signal()
        with m.If(takes):
            is_last = place == WORDS_A_CELL - 1
            m.d.sync += place.eq(place + 1)
            with m.If(is_last & ~self.i.tlast):
                m.d.sync += is_long.eq(1)
            with m.If(self.i.tlast):
                m.d.sync += [place.eq(0), is_long.eq(0)]
                m.d.comb += whole.eq(is_last & ~is_long)
                m.d.sync += self.dropped.eq(self.dropped + ~whole)
        m.d.sync += [write.eq(write + whole), read.eq(read + gives), level.eq(level + whole - gives)]

        # Out: the header in the tick's second clock
        step, going = Signal(4), Signal()
        m.d.comb += [get.addr.eq(Cat(step, read)), gives.eq(going & (step == WORDS_A_CELL - 1))]
        with m.If(self.tick & (level != 0) & (~going | (gives & (level > 1)))):
            m.d.sync += [going.eq(1), step.eq(0)]
        with m.Elif(going):
            m.d.sync += [step.eq(step + 1), going.eq(~gives)]
        m.d.comb += [
            self.o.valid.eq(going),
            self.o.soc.eq(going & (step == 0)),
            self.o.word.eq(get.data[:NARROW]),
            self.o.hec_error.eq(get.data[NARROW]),
            self.o.port.eq(get.data[NARROW + 1 :]),
        ]
        return m


class WishboneToCsr(wiring.Component):
    """Wishbone to a node's registers: a write takes two clocks, a read six. A write of some octets of a word only
    ends with ``err`` and does nothing.

    Members
    -------
    bus : In(WishboneSignature)
    csr : Out(CsrSignature)
    """

    def __init__(self):
        super().__init__({"bus": In(WishboneSignature()), "csr": Out(CsrSignature())})

    def elaborate(self, platform):
        m = Module()
        bus, csr, left = self.bus, self.csr, Signal(range(READ_CLOCKS + 1))
        asks, whole = bus.cyc & bus.stb & ~bus.ack & ~bus.err, bus.sel.all()
        m.d.comb += [csr.addr.eq(bus.adr), csr.w_data.eq(bus.dat_w), bus.dat_r.eq(csr.r_data)]
        m.d.sync += [bus.ack.eq(0), bus.err.eq(0)]
        with m.FSM():
            with m.State("IDLE"), m.If(asks):
                with m.If(bus.we):
                    m.d.comb += csr.w_en.eq(whole)
                    m.d.sync += [bus.ack.eq(whole), bus.err.eq(~whole)]
                with m.Else():
                    m.d.comb += csr.r_en.eq(1)
                    m.d.sync += left.eq(READ_CLOCKS - 1)
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += left.eq(left - 1)
                with m.If(~(bus.cyc & bus.stb)):  # given up
                    m.next = "IDLE"
                with m.Elif(left == 0):
                    m.d.sync += bus.ack.eq(1)
                    m.next = "IDLE"
        return m


class AxiLiteToCsr(wiring.Component):
    """AXI4-Lite to a node's registers, one access after the other. A write of some octets of a word only is answered by
    SLVERR and does nothing.

    Members
    -------
    bus : In(AxiLiteSignature)
    csr : Out(CsrSignature)
    """

    def __init__(self):
        super().__init__({"bus": In(AxiLiteSignature()), "csr": Out(CsrSignature())})

    def elaborate(self, platform):
        m = Module()
        bus, csr, left, was_read = self.bus, self.csr, Signal(range(READ_CLOCKS + 1)), Signal()
        m.d.comb += [csr.w_data.eq(bus.wdata), bus.rresp.eq(OKAY), csr.addr.eq(bus.awaddr[2:])]
        with m.FSM():
            with m.State("IDLE"):
                # Reads and writes in turn, if there are both
                writes = bus.awvalid & bus.wvalid & (was_read | ~bus.arvalid)
                with m.If(writes):
                    whole = bus.wstrb.all()
                    m.d.comb += [bus.awready.eq(1), bus.wready.eq(1), csr.w_en.eq(whole)]
                    m.d.sync += [bus.bvalid.eq(1), bus.bresp.eq(Mux(whole, OKAY, SLVERR)), was_read.eq(0)]
                    m.next = "WRITTEN"
                with m.Elif(bus.arvalid):
                    m.d.comb += [bus.arready.eq(1), csr.addr.eq(bus.araddr[2:]), csr.r_en.eq(1)]
                    m.d.sync += [left.eq(READ_CLOCKS - 1), was_read.eq(1)]
                    m.next = "READ"
            with m.State("WRITTEN"), m.If(bus.bready):
                m.d.sync += bus.bvalid.eq(0)
                m.next = "IDLE"
            with m.State("READ"):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.d.sync += [bus.rvalid.eq(1), bus.rdata.eq(csr.r_data)]
                    m.next = "DONE"
            with m.State("DONE"), m.If(bus.rready):
                m.d.sync += bus.rvalid.eq(0)
                m.next = "IDLE"
        return m


_BUSES = {"wishbone": (WishboneSignature, WishboneToCsr), "axi-lite": (AxiLiteSignature, AxiLiteToCsr)}


class Adapted(wiring.Component):
    """A node at 32 bits with other buses.

    Parameters
    ----------
    node : component
    bus : str, optional
        ``wishbone`` or ``axi-lite``: what is ``csr`` then. Default: as the node has it.
    axi_stream : bool
        Cells enter and leave as packets of AXI4-Stream.

    Members
    -------
    i : In(AxiStreamSignature)
        With ``axi_stream``: cells that come in, one a tick at most.
    o : Out(AxiStreamSignature)
        With ``axi_stream``: cells that go out.
    dropped : Out(32)
        With ``axi_stream``: packets dropped, because they have not 13 words; wraps.
    lost : Out(32)
        With ``axi_stream``: cells of the node dropped, because four wait for ``o_tready``; wraps.
    csr : In
        The registers, by the bus that is chosen.
    … : as the node has it

    Raises
    ------
    ValueError
        The node has not 32 bits, or no cells in and out.
    """

    def __init__(self, node, *, bus=None, axi_stream=False):
        if bus is not None and bus not in _BUSES:
            raise ValueError(f"bus must be {' or '.join(_BUSES)}, not {bus!r}")
        if axi_stream and ("i" not in node.signature.members or getattr(node, "width", None) != NARROW):
            raise ValueError("only nodes with cells of 32 bits in and out have adapters to AXI4-Stream")
        self._node, self._bus, self._axi_stream = node, bus, axi_stream
        self.registers = getattr(node, "registers", None)
        members = dict(node.signature.members.items())
        if bus:
            members["csr"] = In(_BUSES[bus][0]())
        if axi_stream:
            stream = AxiStreamSignature(node.i.signature.ports)
            members |= {"i": In(stream), "o": Out(stream), "dropped": Out(32), "lost": Out(32)}
        super().__init__(members)

    @property
    def adapts(self):
        """The node, whose description is that of the whole."""
        return self._node

    @property
    def documented_by(self):
        """Classes that describe ports of the node."""
        return (type(self._node), *getattr(self._node, "documented_by", ()))

    def elaborate(self, platform):
        m = Module()
        node, adapted = self._node, set()
        m.submodules.node = node
        if self._bus:
            m.submodules.bus = bus = _BUSES[self._bus][1]()
            wiring.connect(m, wiring.flipped(self.csr), bus.bus)
            wiring.connect(m, bus.csr, node.csr)
            adapted.add("csr")
        if self._axi_stream:
            ports = node.i.signature.ports
            m.submodules.entry = entry = AxiStreamToCells(ports=ports)
            m.submodules.exit = exit_ = CellsToAxiStream(ports=ports)
            wiring.connect(m, wiring.flipped(self.i), entry.i)
            wiring.connect(m, entry.o, node.i)
            wiring.connect(m, node.o, exit_.i)
            wiring.connect(m, exit_.o, wiring.flipped(self.o))
            m.d.comb += [entry.tick.eq(node.time.tick), self.dropped.eq(entry.dropped), self.lost.eq(exit_.lost)]
            adapted |= {"i", "o"}
        for name, member in node.signature.members.items():
            outer, inner = getattr(self, name), getattr(node, name)
            if name in adapted:
                continue
            if member.is_signature:
                wiring.connect(m, wiring.flipped(outer), inner)
            else:
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        return m


def check_cells(cells):
    """Raise ValueError unless ``cells`` is a number of cells that an adapter's memory can have."""
    if cells not in [1 << k for k in range(1, 11)]:
        raise ValueError(f"cells must be a power of two from 2 to 1024, not {cells!r}")
