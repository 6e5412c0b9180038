"""SONET's terminal with an octet line and cells as packets of AXI4-Stream."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.adapters import AxiStreamSignature
from bentpipe_hdl.cores.packets import PacketsToWide, WideToPackets
from bentpipe_hdl.csr import CsrSignature
from bentpipe_hdl.sonet.control import TERMINAL
from bentpipe_hdl.sonet.deframer import Deframer
from bentpipe_hdl.sonet.framer import Framer, FramerForce
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.terminal import SonetTerminal

__all__ = ["SonetDeframer", "SonetFramer", "SonetPort"]


class SonetPort(wiring.Component):
    """One end of an STS-3c or STS-12c line that carries cells: framing, pointers, overhead, alarms, cell delineation.

    The line is parallel, as a serialiser and a clock recovery have it: one octet or word in each clock with ``enable``.
    It need not be aligned to octets; the receiver finds the frame at any bit.

    Parameters
    ----------
    n : int
        3 or 12.
    octets : int
        Octets a clock: 1; with ``n`` = 12 also 2 or 4.
    cells : int
        Received cells that can wait, a power of two from 2 to 1024.

    Members
    -------
    enable : In(1)
        The line's word clock: a word goes and comes in this clock. All but registers and streams stands still while it
        is low. Tie it high if the clock is the line's: 19.44 MHz for an octet of STS-3c, 77.76 MHz of STS-12c.
    line_out : Out(8 * octets), line_in : In(8 * octets)
        The line. Its first octet is in bits 7 to 0; bit 7 of an octet is its first.
    signal : In(1)
        The line's receiver sees a signal; low means LOS. Tie it high if there is no such output.
    i : In(AxiStreamSignature)
        Cells to be sent. ``tdest`` and ``tuser`` are ignored. The HEC is made here; idle cells fill the gaps.
    o : Out(AxiStreamSignature)
        Cells received, without idle and unassigned ones. ``tuser`` marks a cell whose header could not be corrected: to
        be discarded.
    csr : In(CsrSignature)
        The registers: ``bentpipe rtl sonet-terminal --registers``.
    irq : Out(1)
        An alarm has changed whose bit is set in ``interrupt_mask``.
    dropped : Out(32)
        Packets of ``i`` dropped, because they have not 13 words; wraps.
    lost : Out(32)
        Received cells dropped, because ``cells`` cells wait for ``o_tready``; wraps.

    Notes
    -----
    Handshake: AXI4-Stream for cells; a line cannot be stopped, so that received cells are lost if ``o_tready`` stays
    low. The line has no handshake but ``enable``.

    Latency: a cell leaves one to two cell times after its last word was taken; a received cell's first word is there 26
    clocks after the word with its last octet.

    Source: GR-253 clauses 3 and 6.2.1 (frames, pointers, alarms), I.432.1 clauses 4.3 and 7.3 (cells, HEC).
    """

    def __init__(self, *, n=3, octets=1, cells=4):
        self._geometry = _geometry(n, octets)
        self._cells = cells
        self.registers = TERMINAL
        super().__init__(
            {
                "enable": In(1, init=1),
                "line_out": Out(8 * octets),
                "line_in": In(8 * octets),
                "signal": In(1, init=1),
                "i": In(AxiStreamSignature()),
                "o": Out(AxiStreamSignature()),
                "csr": In(CsrSignature()),
                "irq": Out(1),
                "dropped": Out(32),
                "lost": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.terminal = terminal = SonetTerminal(self._geometry)
        m.submodules.entry = entry = PacketsToWide()
        m.submodules.exit = exit_ = WideToPackets(cells=self._cells)
        wiring.connect(m, wiring.flipped(self.i), entry.i)
        wiring.connect(m, exit_.o, wiring.flipped(self.o))
        wiring.connect(m, wiring.flipped(self.csr), terminal.csr)
        m.d.comb += [
            terminal.enable.eq(self.enable),
            terminal.line_in.eq(self.line_in),
            terminal.signal.eq(self.signal),
            self.line_out.eq(terminal.line_out),
            self.irq.eq(terminal.irq),
            terminal.tx_cell.eq(entry.cell),
            terminal.tx_valid.eq(entry.valid),
            entry.ready.eq(terminal.tx_ready & self.enable),
            exit_.cell.eq(terminal.rx_cell),
            exit_.valid.eq(terminal.rx_valid & self.enable),
            exit_.hec_error.eq(terminal.rx_hec_error),
            self.dropped.eq(entry.dropped),
            self.lost.eq(exit_.lost),
        ]
        return m


class SonetFramer(wiring.Component):
    """Maps cells into an SPE, the SPE by its pointer into STS-3c or STS-12c frames, and scrambles them.

    B1, B2 and B3 of the first frame are 0. Alarms and error counts of the other direction are given to ``rdi_l``,
    ``rdi_p``, ``rei_l`` and ``rei_p``; the core ``sonet-terminal`` does that by itself.

    Parameters
    ----------
    n : int
        3 or 12.
    octets : int
        Octets a clock: 1; with ``n`` = 12 also 2 or 4.

    Members
    -------
    i : In(AxiStreamSignature)
        Cells to be sent. ``tdest`` and ``tuser`` are ignored. The HEC is made here; idle cells fill the gaps.
    dropped : Out(32)
        Packets of ``i`` dropped, because they have not 13 words; wraps.
    faults : In(FramerForce)
        Errors on purpose, as long as a bit is set.
    … : as of :class:`~bentpipe_hdl.sonet.framer.Framer`

    Notes
    -----
    Handshake: AXI4-Stream for cells. The line has none: a word in each clock. Requests of the pointer are held until
    ``served``.

    Latency: the first word of a frame is on ``line`` one clock after reset. A cell leaves one to two cell times after
    its last word was taken.

    Source: GR-253 clause 3 (frames, pointers, BIP), I.432.1 clauses 4.3 and 7.3 (cells).
    """

    documented_by = (Framer,)

    def __init__(self, *, n=3, octets=1):
        self._framer = Framer(_geometry(n, octets))
        self._same = {**self._framer.signature.members}
        for name in ("cell", "valid", "ready", "force"):
            del self._same[name]
        own = {"i": In(AxiStreamSignature()), "dropped": Out(32), "faults": In(FramerForce)}
        super().__init__({**own, **self._same})

    def elaborate(self, platform):
        m = Module()
        m.submodules.framer = framer = self._framer
        m.submodules.entry = entry = PacketsToWide()
        wiring.connect(m, wiring.flipped(self.i), entry.i)
        m.d.comb += [
            framer.cell.eq(entry.cell),
            framer.valid.eq(entry.valid),
            entry.ready.eq(framer.ready),
            self.dropped.eq(entry.dropped),
            framer.force.eq(self.faults),
        ]
        _join(m, self, framer, self._same)
        return m


class SonetDeframer(wiring.Component):
    """Finds STS-3c or STS-12c frames at any bit, checks parities, follows the pointer, and takes the cells out.

    Parameters
    ----------
    n : int
        3 or 12.
    octets : int
        Octets a clock: 1; with ``n`` = 12 also 2 or 4.
    cells : int
        Received cells that can wait, a power of two from 2 to 1024.

    Members
    -------
    o : Out(AxiStreamSignature)
        Cells received, without idle and unassigned ones. ``tuser`` marks a cell whose header could not be corrected: to
        be discarded.
    lost : Out(32)
        Received cells dropped, because ``cells`` cells wait for ``o_tready``; wraps.
    corrected : Out(1)
        Strobe: a cell's header had a bit error, and was corrected.
    … : as of :class:`~bentpipe_hdl.sonet.deframer.Deframer`

    Notes
    -----
    Handshake: none at the line: a word is taken in each clock. AXI4-Stream for cells; they are lost if ``o_tready``
    stays low.

    Latency: overhead is in ``received`` with its strobe, at the end of its row. A cell's first word is there 26 clocks
    after the word with its last octet.

    Source: GR-253 clauses 3 and 6.2.1 (frames, pointers, BIP, alarms), I.432.1 clause 4.3 (cells).
    """

    documented_by = (Deframer,)

    def __init__(self, *, n=3, octets=1, cells=4):
        self._deframer, self._cells = Deframer(_geometry(n, octets)), cells
        self._same = {**self._deframer.signature.members}
        for name in ("cell", "valid", "hec_error", "corrected"):
            del self._same[name]
        own = {"o": Out(AxiStreamSignature()), "lost": Out(32), "corrected": Out(1)}
        super().__init__({**own, **self._same})

    def elaborate(self, platform):
        m = Module()
        m.submodules.deframer = deframer = self._deframer
        m.submodules.exit = exit_ = WideToPackets(cells=self._cells)
        wiring.connect(m, exit_.o, wiring.flipped(self.o))
        m.d.comb += [
            exit_.cell.eq(deframer.cell),
            exit_.valid.eq(deframer.valid),
            exit_.hec_error.eq(deframer.hec_error),
            self.lost.eq(exit_.lost),
            self.corrected.eq(deframer.valid & deframer.corrected),
        ]
        _join(m, self, deframer, self._same)
        return m


def _geometry(n, octets):
    if n not in (3, 12) or octets not in ((1,) if n == 3 else (1, 2, 4)):
        raise ValueError(f"n and octets must be 3 and 1, or 12 and 1, 2 or 4, not {n!r} and {octets!r}")
    return Geometry(n, octets)


def _join(m, outer, inner, members):
    """Connect these ports of a component to those of the same name of the one around it."""
    for name, member in members.items():
        there, here = getattr(inner, name), getattr(outer, name)
        m.d.comb += there.eq(here) if member.flow is In else here.eq(there)
