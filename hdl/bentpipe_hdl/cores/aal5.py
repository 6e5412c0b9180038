"""AAL5 between packets and cells, both as AXI4-Stream: a segmenter that needs no length beforehand, and the network
interface's reassembler behind a stream of cells."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, enum, memory, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.aal5.crc32 import INIT, crc32_word, swapped
from bentpipe_hdl.aal5.reassembler import Reassembler, Verdict
from bentpipe_hdl.adapters import AxiStreamSignature, AxiStreamToCells, check_cells
from bentpipe_hdl.arrival import Arrival
from bentpipe_hdl.cell import CLOCKS_A_TICK, NARROW, WORDS_A_CELL, TimeSignature
from bentpipe_hdl.registers import check_vcs
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["MOST_CELLS", "Aal5Reassembler", "Aal5Segmenter", "PduSink", "PduSource"]

MOST_OCTETS = 65535
"""Octets of the largest PDU: its length field has 16 bits."""

MOST_CELLS = 1366
"""Cells of the largest PDU."""


class PduSink(wiring.Signature):
    """PDUs to be sent, as packets of AXI4-Stream, as their source sees it.

    Members
    -------
    tvalid : Out(1)
        A word is there.
    tready : In(1)
        The word is taken at the clock's edge.
    tdata : Out(32)
        Four octets, the first in bits 7 to 0.
    tkeep : Out(4)
        Octets that count, from bit 0 on without a gap; all in each word but the last.
    tlast : Out(1)
        The word is the PDU's last.
    tdest : Out(32)
        Cell header of the PDU's VC, with the first word: ``gfc<<28 | vpi<<20 | vci<<4 | pti<<1 | clp``. The lowest bit
        of ``pti`` is ignored.
    tuser : Out(17)
        With the last word: UU in bits 7 to 0, CPI in bits 15 to 8; bit 16 aborts the PDU.
    """

    def __init__(self):
        super().__init__(
            {
                "tvalid": Out(1),
                "tready": In(1),
                "tdata": Out(NARROW),
                "tkeep": Out(4),
                "tlast": Out(1),
                "tdest": Out(32),
                "tuser": Out(17),
            }
        )


class _Mode(enum.Enum, shape=2):
    DATA = 0
    DRAIN = 1
    PAD = 2


class Aal5Segmenter(wiring.Component):
    """Makes AAL5 cells of packets: padding, trailer, CRC-32, and the last cell's mark.

    PDUs go one after the other. The length is counted, and need not be known before the PDU's end. A PDU is aborted if
    its source asks for it, if it has more than 65535 octets, or if a word that is not its last lacks octets: its last
    cell then has the length 0, by which a receiver knows it. A packet without an octet is dropped.

    Parameters
    ----------
    cells : int
        That can wait, a power of two from 2 to 1024.

    Members
    -------
    i : In(PduSink)
    o : Out(AxiStreamSignature)
        ``tuser`` is 0.
    aborted : Out(32)
        PDUs aborted, and packets without an octet; wraps.

    Notes
    -----
    Handshake: AXI4-Stream on both sides. ``i_tready`` depends on no input. Once ``o_tvalid`` is high in the first word
    of a cell, it stays high to the last one.

    Latency: 13 clocks from the first word of a cell's payload to its header, if no word has to wait. Throughput: 12
    words in 13 clocks.

    Source: I.363.5 clause 9.2.1 (CPCS-PDU, abort), I.361 clause 2.2 (header).
    """

    def __init__(self, *, cells=2):
        check_cells(cells)
        self._cells = cells
        super().__init__({"i": In(PduSink()), "o": Out(AxiStreamSignature()), "aborted": Out(32)})

    def elaborate(self, platform):
        m = Module()
        bits = (self._cells - 1).bit_length()
        m.submodules.words = words = memory.Memory(shape=NARROW, depth=16 * self._cells, init=[])
        put, get = words.write_port(), words.read_port(domain="comb")
        write, read, level, step = Signal(bits), Signal(bits), Signal(range(self._cells + 1)), Signal(4)
        whole, gone = Signal(), Signal()
        m.d.sync += [write.eq(write + whole), read.eq(read + gone), level.eq(level + whole - gone)]
        m.d.comb += [
            get.addr.eq(Cat(step, read)),
            self.o.tvalid.eq(level != 0),
            self.o.tdata.eq(get.data),
            self.o.tlast.eq(step == WORDS_A_CELL - 1),
            gone.eq(self.o.tvalid & self.o.tready & self.o.tlast),
        ]
        with m.If(self.o.tvalid & self.o.tready):
            m.d.sync += step.eq(Mux(self.o.tlast, 0, step + 1))
        self._fill(m, put, write, level != self._cells, whole)
        return m

    def _fill(self, m, put, row, has_room, whole):
        """Write a cell's payload, in places 1 to 12, and its header behind it, when it is known whether it is last."""
        i, mode, place = self.i, Signal(_Mode), Signal(4, init=1)
        crc, length, header, last_header = Signal(32, init=INIT), Signal(16), Signal(32), Signal(32)
        uu_cpi, aborts, begun, closing = Signal(16), Signal(), Signal(), Signal()
        is_header = place == WORDS_A_CELL
        octets, word, takes, writes = Signal(3), Signal(32), Signal(), Signal()
        m.d.comb += [
            i.tready.eq(has_room & ((mode == _Mode.DRAIN) | ((mode == _Mode.DATA) & ~is_header))),
            takes.eq(i.tvalid & i.tready),
            octets.eq(sum(i.tkeep[1:], i.tkeep[0])),
            put.addr.eq(Cat(Mux(is_header, 0, place), row)),
            put.data.eq(word),
            put.en.eq(writes),
            whole.eq(has_room & is_header),
            last_header.eq(header | closing << 1),
        ]
        kept = Cat(Mux(bit, i.tdata.word_select(k, 8), 0) for k, bit in enumerate(i.tkeep))
        contiguous = Cat(~i.tkeep[0] & i.tkeep[1:].any(), ~i.tkeep[1] & i.tkeep[2:].any(), ~i.tkeep[2] & i.tkeep[3])
        wrong, long = Signal(), Signal()
        m.d.comb += [
            wrong.eq(contiguous.any() | (~i.tlast & ~i.tkeep.all())),
            long.eq(length + octets > MOST_OCTETS),
        ]
        with m.If(is_header):
            m.d.comb += [word.eq(last_header), writes.eq(has_room)]
            with m.If(has_room):
                m.d.sync += place.eq(1)
                with m.If(closing):
                    m.d.sync += [crc.eq(INIT), length.eq(0), begun.eq(0), closing.eq(0), mode.eq(_Mode.DATA)]
                    m.d.sync += [self.aborted.eq(self.aborted + aborts), aborts.eq(0)]
        with m.Elif((mode == _Mode.DATA) & takes):
            with m.If(~begun & i.tlast & ~i.tkeep.any()):
                m.d.sync += self.aborted.eq(self.aborted + 1)
            with m.Else():
                m.d.comb += [word.eq(kept), writes.eq(1)]
                m.d.sync += [begun.eq(1), length.eq(length + octets), uu_cpi.eq(i.tuser)]
                m.d.sync += aborts.eq(wrong | long | (i.tlast & i.tuser[16]))
                with m.If(~begun):
                    m.d.sync += header.eq(i.tdest & ~Const(1 << 1, 32))
                with m.If(i.tlast):
                    m.d.sync += mode.eq(_Mode.PAD)
                with m.Elif(wrong | long):
                    m.d.sync += mode.eq(_Mode.DRAIN)
        with m.Elif((mode == _Mode.DRAIN) & takes & i.tlast):
            m.d.sync += [mode.eq(_Mode.PAD), uu_cpi.eq(i.tuser)]
        with m.Elif(mode == _Mode.PAD):
            m.d.comb += writes.eq(has_room)
            trailer = Cat(uu_cpi, Mux(aborts, 0, Cat(length[8:], length[:8])))
            with m.If((place == WORDS_A_CELL - 2) & has_room):
                m.d.comb += word.eq(trailer)
                m.d.sync += closing.eq(1)
            with m.Elif(closing):
                m.d.comb += word.eq(swapped(~crc))
        with m.If(writes & ~is_header):
            m.d.sync += [place.eq(place + 1), crc.eq(crc32_word(crc, word))]


class PduEnd(data.Struct):
    """The end of a PDU: length field, UU, CPI, verdict, EFCI of the last cell."""

    length: 16
    uu: 8
    cpi: 8
    status: Verdict
    efci: 1


_END = ("length", "uu", "cpi", "status", "efci")


class PduSource(wiring.Signature):
    """PDUs received, as AXI4-Stream whose packets interleave by TID, as their source sees it.

    Members
    -------
    tvalid : Out(1)
        A word is there.
    tready : In(1)
        The word is taken at the clock's edge.
    tdata : Out(32)
        Four octets of the CPCS-PDU, padding and trailer included, the first in bits 7 to 0.
    tkeep : Out(4)
        All ones; 0 in the last word of a PDU whose last cell was dropped, which has no octets.
    tlast : Out(1)
        The word is its VC's last of the PDU; ``tuser`` has the verdict.
    tid : Out
        The VC. Words of different VCs interleave cell by cell.
    tuser : Out(PduEnd)
        With ``tlast``: the PDU's end. The first ``length`` octets of the packet are the PDU, if ``status`` is OK.
    """

    def __init__(self, vcs):
        super().__init__(
            {
                "tvalid": Out(1),
                "tready": In(1),
                "tdata": Out(NARROW),
                "tkeep": Out(4),
                "tlast": Out(1),
                "tid": Out(range(vcs)),
                "tuser": Out(PduEnd),
            }
        )


_ROOM = 64
"""Words of the reassembler's output that can wait."""

_UNDER_WAY = 3 * WORDS_A_CELL
"""Words that cells which have begun can still make: the latency is two ticks and a few clocks."""


class Aal5Reassembler(wiring.Component):
    """Reassembles the cells of several VCs into PDUs, and gives a verdict with each: correct, or the error.

    A cell's VC is the number in ``tdest`` of its packet: that of a port, or what a look-up (core ``lookup``) found.
    After reset it is busy for ``8 * vcs`` clocks. OAM and RM cells are counted and dropped, cells with ``tuser``
    (header error) as well. A PDU of more than ``limit`` cells loses those beyond, and ends as OVERLENGTH. It has no
    reassembly timer; the core ``nic`` has one.

    Parameters
    ----------
    vcs : int
        A power of two, 2 to 4096.
    limit : int
        Most cells of a PDU, 1 to 1366.

    Members
    -------
    i : In(AxiStreamSignature)
        ``tdest`` is the VC.
    o : Out(PduSource)
    oam : Out(32)
        OAM and RM cells dropped; wraps.
    hec : Out(32)
        Cells dropped for their header's error; wraps.
    over : Out(32)
        Cells dropped that were beyond their PDU's limit; wraps.
    dropped : Out(32)
        Packets dropped, because they have not 13 words; wraps.

    Notes
    -----
    Handshake: AXI4-Stream on both sides. ``i_tready`` depends on no input. While ``o_tready`` is low, cells wait at the
    input; none is lost.

    Latency: 18 to 30 clocks from a cell's last word in to its first word out, if nothing has to wait. Throughput: a
    cell in 13 clocks.

    Source: I.363.5 clause 9.2 (CPCS-PDU, errors, abort).
    """

    def __init__(self, *, vcs=16, limit=MOST_CELLS):
        check_vcs(vcs)
        if not 1 <= limit <= MOST_CELLS:
            raise ValueError(f"limit must be 1 to {MOST_CELLS} cells, not {limit!r}")
        self.vcs, self._limit = vcs, limit
        counters = {name: Out(32) for name in ("oam", "hec", "over", "dropped")}
        super().__init__({"i": In(AxiStreamSignature(vcs)), "o": Out(PduSource(vcs)), **counters})

    def elaborate(self, platform):
        m, time = Module(), TimeSignature().create()
        slot = TickSchedule(m, time, NARROW, commit=11)
        m.submodules.entry = entry = AxiStreamToCells(ports=self.vcs)
        m.submodules.reassembler = rx = Reassembler(slot, width=NARROW, vcs=self.vcs)
        wiring.connect(m, wiring.flipped(self.i), entry.i)
        wiring.connect(m, time, rx.time)
        arrival = Arrival(m, slot, entry.o)
        clear_bits = (self.vcs - 1).bit_length() + 4
        clear = Signal(clear_bits)  # its upper bit is set once all tables are cleared
        clearing = ~clear[-1]
        with m.If(clearing):
            m.d.sync += clear.eq(clear + 1)
        m.d.comb += [
            *(getattr(rx.i, name).eq(getattr(entry.o, name)) for name in rx.i.signature.members if name != "port"),
            rx.arrives.eq(arrival.there),
            rx.header.eq(arrival.header),
            rx.bad.eq(arrival.hec_error),
            rx.known.eq(1),
            rx.vc.eq(arrival.port),
            rx.clearing.eq(clearing),
            rx.clear.eq(clear),
            rx.limit_index.eq(clear),
            rx.limit.eq(self._limit),
            rx.limit_en.eq(clearing),
            self.dropped.eq(entry.dropped),
            *(getattr(self, name).eq(getattr(rx, name)) for name in ("oam", "hec", "over")),
        ]

        # Ticks of its own, as long as what they can bring has room
        row = data.StructLayout({"word": NARROW, "has_octets": 1, "last": 1, "vc": range(self.vcs), "end": PduEnd})
        m.submodules.waiting = waiting = SyncFIFO(width=row.size, depth=_ROOM)
        left = Signal(range(CLOCKS_A_TICK))
        m.d.comb += [
            time.tick.eq((left == 0) & ~clearing & (waiting.level <= _ROOM - _UNDER_WAY)),
            entry.tick.eq(time.tick),
        ]
        with m.If(time.tick):
            m.d.sync += [left.eq(CLOCKS_A_TICK - 1), time.now.eq(time.now + 1)]
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)

        came, given = data.View(row, waiting.w_data), data.View(row, waiting.r_data)
        m.d.comb += [
            waiting.w_en.eq(rx.o.valid | rx.o.last),
            came.word.eq(rx.o.word),
            came.has_octets.eq(rx.o.valid),
            came.last.eq(rx.o.last),
            came.vc.eq(rx.o.vc),
            *(came.end[name].eq(getattr(rx.o, name)) for name in _END),
            self.o.tvalid.eq(waiting.r_rdy),
            waiting.r_en.eq(self.o.tready),
            self.o.tdata.eq(given.word),
            self.o.tkeep.eq(given.has_octets.replicate(4)),
            self.o.tlast.eq(given.last),
            self.o.tid.eq(given.vc),
            self.o.tuser.eq(given.end),
        ]
        return slot.checked(m)
