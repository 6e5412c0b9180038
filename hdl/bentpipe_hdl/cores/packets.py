"""Cells as packets of AXI4-Stream with back-pressure, for cores that have their own streams: a store of whole cells,
and cells of 416 bits from and to packets."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.adapters import AxiStreamSignature, check_cells
from bentpipe_hdl.cell import NARROW, WIDE, WORDS_A_CELL

__all__ = ["CellStore", "PacketsToWide", "WideToPackets"]


class CellStore(wiring.Component):
    """A first-in-first-out store of whole cells: a cell is given once all 13 words of it are there.

    Parameters
    ----------
    ports : int
        Values of ``tdest``.
    cells : int
        That can wait, a power of two from 2 to 1024.

    Members
    -------
    i : In(AxiStreamSignature)
        ``tdest`` and ``tuser`` are those of the packet's first word.
    o : Out(AxiStreamSignature)
        While ``tvalid`` is high in the first word of a cell, it stays high to the last one.
    forget : In(1)
        The words of a packet so far are forgotten, and those of this clock.
    level : Out
        Whole cells in the store, that of which words are being read included.
    dropped : Out(32)
        Packets dropped, because they have not 13 words; wraps.

    Notes
    -----
    Handshake: AXI4-Stream on both sides. ``i_tready`` depends on no input: it is low while ``cells`` cells wait.

    Latency: a clock from a cell's last word in to its first word out. Throughput: a word a clock.

    Source: I.361 clause 2 (cell), AMBA IHI 0051A clause 2 (stream).
    """

    def __init__(self, *, ports=1, cells=4):
        check_cells(cells)
        self._ports, self._cells = ports, cells
        stream = AxiStreamSignature(ports)
        super().__init__(
            {
                "i": In(stream),
                "o": Out(stream),
                "forget": In(1),
                "level": Out(range(cells + 1)),
                "dropped": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits, port_bits = (self._cells - 1).bit_length(), len(self.i.tdest)
        m.submodules.words = words = memory.Memory(shape=NARROW, depth=16 * self._cells, init=[])
        m.submodules.marks = marks = memory.Memory(shape=1 + port_bits, depth=self._cells, init=[])
        write, read, place, step = Signal(bits), Signal(bits), Signal(4), Signal(4)
        put, get = words.write_port(), words.read_port(domain="comb")
        mark, marked = marks.write_port(), marks.read_port(domain="comb")
        takes, is_long, whole, gone = Signal(), Signal(), Signal(), Signal()
        is_last = place == WORDS_A_CELL - 1
        m.d.comb += [
            self.i.tready.eq(self.level != self._cells),
            takes.eq(self.i.tvalid & self.i.tready),
            put.addr.eq(Cat(place, write)),
            put.data.eq(self.i.tdata),
            put.en.eq(takes & ~is_long),
            mark.addr.eq(write),
            mark.data.eq(Cat(self.i.tuser, self.i.tdest)),
            mark.en.eq(takes & ~is_long & (place == 0)),
            whole.eq(takes & self.i.tlast & is_last & ~is_long & ~self.forget),
        ]
        with m.If(self.forget):
            m.d.sync += [place.eq(0), is_long.eq(0)]
        with m.Elif(takes):
            m.d.sync += place.eq(place + 1)
            with m.If(is_last):
                m.d.sync += is_long.eq(1)
            with m.If(self.i.tlast):
                m.d.sync += [place.eq(0), is_long.eq(0), self.dropped.eq(self.dropped + ~whole)]
        m.d.comb += [
            get.addr.eq(Cat(step, read)),
            marked.addr.eq(read),
            self.o.tvalid.eq(self.level != 0),
            self.o.tdata.eq(get.data),
            self.o.tlast.eq(step == WORDS_A_CELL - 1),
            Cat(self.o.tuser, self.o.tdest).eq(marked.data),
            gone.eq(self.o.tvalid & self.o.tready & self.o.tlast),
        ]
        with m.If(self.o.tvalid & self.o.tready):
            m.d.sync += step.eq(Mux(self.o.tlast, 0, step + 1))
        m.d.sync += [write.eq(write + whole), read.eq(read + gone), self.level.eq(self.level + whole - gone)]
        return m


class PacketsToWide(wiring.Component):
    """Packets of 13 words to cells of 416 bits with a handshake, as a framer takes them.

    Members
    -------
    i : In(AxiStreamSignature)
        ``tdest`` and ``tuser`` are ignored.
    cell : Out(416), valid : Out(1), ready : In(1)
        A cell: payload octet ``k`` in bits ``8k``, the header in the top 32 bits. It stays until ``ready``.
    dropped : Out(32)
        Packets dropped, because they have not 13 words; wraps.
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(AxiStreamSignature()),
                "cell": Out(WIDE),
                "valid": Out(1),
                "ready": In(1),
                "dropped": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        place, is_long, takes = Signal(4), Signal(), Signal()
        is_last = place == WORDS_A_CELL - 1
        m.d.comb += [self.i.tready.eq(~self.valid), takes.eq(self.i.tvalid & self.i.tready)]
        with m.If(self.ready):
            m.d.sync += self.valid.eq(0)
        with m.If(takes):
            m.d.sync += place.eq(place + 1)
            with m.If(place == 0):
                m.d.sync += self.cell[WIDE - NARROW :].eq(self.i.tdata)
            with m.Else():
                m.d.sync += self.cell[: WIDE - NARROW].eq(Cat(self.cell[NARROW : WIDE - NARROW], self.i.tdata))
            with m.If(is_last):
                m.d.sync += is_long.eq(1)
            with m.If(self.i.tlast):
                m.d.sync += [place.eq(0), is_long.eq(0)]
                with m.If(is_last & ~is_long):
                    m.d.sync += self.valid.eq(1)
                with m.Else():
                    m.d.sync += self.dropped.eq(self.dropped + 1)
        return m


class WideToPackets(wiring.Component):
    """Cells of 416 bits without back-pressure to packets of 13 words, as a deframer gives them.

    Parameters
    ----------
    cells : int
        That can wait, a power of two from 2 to 1024.

    Members
    -------
    cell : In(416), valid : In(1), hec_error : In(1)
        A cell, for one clock; at most one in 13 clocks.
    o : Out(AxiStreamSignature)
        ``tuser`` is ``hec_error``.
    lost : Out(32)
        Cells dropped, because ``cells`` cells wait already; wraps.
    """

    def __init__(self, *, cells=4):
        self._cells = cells
        super().__init__(
            {
                "cell": In(WIDE),
                "valid": In(1),
                "hec_error": In(1),
                "o": Out(AxiStreamSignature()),
                "lost": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = CellStore(cells=self._cells)
        words, left, error = Signal(WIDE), Signal(4), Signal()
        wiring.connect(m, store.o, wiring.flipped(self.o))
        m.d.comb += [
            store.i.tvalid.eq(left != 0),
            store.i.tdata.eq(words[:NARROW]),
            store.i.tlast.eq(left == 1),
            store.i.tuser.eq(error),
        ]
        with m.If(left != 0):
            m.d.sync += [left.eq(left - 1), words.eq(Cat(words[NARROW:], Const(0, NARROW)))]
        with m.If(self.valid):
            # A cell that has begun has its place: the level can only sink meanwhile
            free = (store.level + (left != 0)) < self._cells
            with m.If(free & (left <= 1)):
                m.d.sync += [left.eq(WORDS_A_CELL), error.eq(self.hec_error)]
                m.d.sync += words.eq(Cat(self.cell[WIDE - NARROW :], self.cell[: WIDE - NARROW]))
            with m.Else():
                m.d.sync += self.lost.eq(self.lost + 1)
        return m
