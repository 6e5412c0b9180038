"""Parts for cell headers, each with ports of its own: header error control, GCRA, look-up."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import CLOCKS_A_TICK, NARROW, TIME_BITS, WIDE, CellHeader, TimeSignature, check_width
from bentpipe_hdl.csr import CsrMap, CsrSignature
from bentpipe_hdl.hec import HecReceiver, hec
from bentpipe_hdl.lookup import Lookup
from bentpipe_hdl.lookup_table import lookup_registers
from bentpipe_hdl.registers import RegisterMap, check_vcs
from bentpipe_hdl.switch.options.police.control import OPTIONS
from bentpipe_hdl.switch.options.police.policer import CONTRACT, POLICED, Policer
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["GcraPolicer", "HeaderErrorControl", "HeaderLookup"]


class HeaderErrorControl(wiring.Component):
    """Makes the HEC octet of headers to be sent, and checks and corrects received headers.

    Received headers are corrected in correction mode only; each header with an error leads to detection mode, each good
    one back.

    Members
    -------
    tx_header : In(32)
        A header to be sent: ``gfc<<28 | vpi<<20 | vci<<4 | pti<<1 | clp``.
    tx_hec : Out(8)
        Its HEC octet, in the same clock.
    rx_valid : In(1)
        A received header is there.
    rx_octets : In(40)
        The received header with its HEC octet, the first octet in bits 39 to 32.
    rx_start : In(1)
        The receiver goes to correction mode.
    rx_header : Out(32)
        The received header, corrected if it has been.
    rx_accept : Out(1)
        The cell is good, or corrected.
    rx_corrected : Out(1)
        One bit of the header was wrong.
    rx_discard : Out(1)
        The cell is to be dropped.

    Notes
    -----
    Handshake: none; a header in each clock with ``rx_valid``.

    Latency: none. All outputs are combinational and belong to this clock's inputs; the mode changes at the clock's
    edge.

    Source: I.432.1 clause 4.3.2 and figure 4.
    """

    tx_header: In(32)
    tx_hec: Out(8)
    rx_valid: In(1)
    rx_octets: In(40)
    rx_start: In(1)
    rx_header: Out(32)
    rx_accept: Out(1)
    rx_corrected: Out(1)
    rx_discard: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = HecReceiver()
        m.d.comb += [
            self.tx_hec.eq(hec(self.tx_header)),
            receiver.check.eq(self.rx_valid),
            # The syndrome of what was received is that of its error: the code is linear, but for the coset
            receiver.syndrome.eq(hec(self.rx_octets[8:]) ^ self.rx_octets[:8]),
            receiver.start.eq(self.rx_start),
            self.rx_header.eq((self.rx_octets ^ receiver.flip)[8:]),
            self.rx_accept.eq(receiver.accept),
            self.rx_corrected.eq(receiver.correct),
            self.rx_discard.eq(receiver.discard),
        ]
        with m.If(~receiver.correct):
            m.d.comb += self.rx_header.eq(self.rx_octets[8:])
        return m


class _Turn:
    """A tick of a part's own: it begins with a request, and the answer is there when it ends."""

    def __init__(self, m, component, width, commit):
        self._wide = width == WIDE
        self.time = time = TimeSignature().create()
        self.slot = TickSchedule(m, time, width, commit=commit)
        left = Signal(range(CLOCKS_A_TICK))
        ready = left == 0
        m.d.comb += [component.ready.eq(ready), time.tick.eq(component.valid & ready)]
        if not self._wide:
            with m.If(time.tick):
                m.d.sync += left.eq(CLOCKS_A_TICK - 1)
            with m.Elif(~ready):
                m.d.sync += left.eq(left - 1)

    def hold(self, value, name):
        """Return ``value`` as it was with the request (narrow)."""
        return self.slot.hold(value, self.time.tick, name, since=1)


class HeaderLookup(wiring.Component):
    """Finds the number of a VC by port, VPI and VCI.

    Two hashed memories hold any set of ``vcs`` entries. Software computes where they go
    (:func:`bentpipe_hdl.lookup_table.lookup_table`) and may change them while headers are looked up.

    Parameters
    ----------
    width : int
        416: an answer in the same clock. 32: after 5 clocks, from block memories.
    vcs : int
        A power of two, 2 to 4096.
    ports : int
        1 to 16.

    Members
    -------
    valid : In(1)
        A header is there to be looked up.
    ready : Out(1)
        The header is taken at the clock's edge.
    header : In(CellHeader)
        The header: ``gfc<<28 | vpi<<20 | vci<<4 | pti<<1 | clp``.
    port : In
        The port that it came in by.
    nni : In(ports)
        A bit a port: its headers have 12 bits of VPI and no GFC. To be constant.
    done : Out(1)
        The answer is there.
    known : Out(1)
        With ``done``: the header is of a VC in the table.
    vc : Out
        With ``done`` and ``known``: the VC's number.
    csr : In(CsrSignature)
        The table: ``bentpipe rtl lookup --registers``.

    Notes
    -----
    Handshake: ``valid`` and ``ready``; an answer can not be stopped. ``ready`` is low for 12 clocks after a request at
    32 bits, and always high at 416.

    Latency: none at 416 bits; at 32 bits 6 clocks from the request to ``done``.

    Source: I.361 clause 2.2 (UNI and NNI header).
    """

    ANSWER = 6

    def __init__(self, *, width=NARROW, vcs=64, ports=1):
        check_width(width)
        check_vcs(vcs)
        if not 1 <= ports <= 16:
            raise ValueError(f"ports must be 1 to 16, not {ports!r}")
        self.width, self.vcs, self.ports = width, vcs, ports
        self.registers = RegisterMap("lookup", "", 1, {}, lookup_registers(vcs))
        super().__init__(
            {
                "valid": In(1),
                "ready": Out(1),
                "header": In(CellHeader),
                "port": In(range(max(2, ports))),
                "nni": In(ports),
                "done": Out(1),
                "known": Out(1),
                "vc": Out(range(vcs)),
                "csr": In(CsrSignature()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        turn = _Turn(m, self, self.width, commit=self.ANSWER)
        slot, csr = turn.slot, CsrMap(m, self.csr, self.registers)
        table = Lookup(m, slot, csr, vcs=self.vcs, ports=self.ports, nni=self.nni)
        header = CellHeader(turn.hold(self.header.as_value(), "held_header"))
        port = turn.hold(self.port, "held_port")
        known, vc = table.find(header, port[: (self.ports - 1).bit_length()])
        m.d.comb += [self.known.eq(known), self.vc.eq(vc), self.done.eq(slot.commit)]
        csr.finish()
        return slot.checked(m)


class GcraPolicer(wiring.Component):
    """Holds the cells of VCs to contracts of two buckets, GCRA(I, L) each: discards or tags cells that come early.

    A bucket is of all cells of a VC, or of those with CLP = 0. The registers have what each does with a cell that does
    not conform. Times have 16 fraction bits: a rate is met to 2**-16 of ``now``'s unit.

    Parameters
    ----------
    width : int
        416: an answer in the same clock. 32: after 12 clocks, from block memories.
    vcs : int
        A power of two, 2 to 4096.

    Members
    -------
    now : In(48)
        The present time in any unit, modulo 2**48; I and L are in the same unit.
    valid : In(1)
        A cell is there.
    ready : Out(1)
        The cell is taken at the clock's edge.
    vc : In
        Its VC.
    clp : In(1)
        Its CLP bit.
    user : In(1)
        It is a user cell: the upper bit of its PTI is 0.
    last : In(1)
        The lowest bit of its PTI is 1: it ends an AAL5 frame.
    done : Out(1)
        The answer is there.
    discard : Out(1)
        With ``done``: the cell is to be discarded.
    new_clp : Out(1)
        With ``done``: the CLP bit that it goes on with.
    csr : In(CsrSignature)
        Contracts, and counters of tagged cells: ``bentpipe rtl gcra --registers``.

    Notes
    -----
    Handshake: ``valid`` and ``ready``; an answer can not be stopped. After reset ``ready`` is low for ``vcs`` clocks,
    while tables are cleared; at 32 bits for 12 clocks after each cell.

    Latency: none at 416 bits; at 32 bits 11 clocks from the cell to ``done``.

    Source: I.371 (GCRA in its virtual scheduling form), TM 4.1 clause 5.3 (UPC).
    """

    def __init__(self, *, width=NARROW, vcs=64):
        check_width(width)
        check_vcs(vcs)
        self.width, self.vcs = width, vcs
        (police,) = OPTIONS
        of_police = police.registers(vcs=vcs, cells=1, ports=1)
        self.registers = RegisterMap("gcra", "", 1, {}, of_police)
        super().__init__(
            {
                "now": In(TIME_BITS),
                "valid": In(1),
                "ready": Out(1),
                "vc": In(range(vcs)),
                "clp": In(1),
                "user": In(1),
                "last": In(1),
                "done": Out(1),
                "discard": Out(1),
                "new_clp": Out(1),
                "csr": In(CsrSignature()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        clear = Signal((self.vcs - 1).bit_length() + 1)
        clearing = ~clear[-1]
        with m.If(clearing):
            m.d.sync += clear.eq(clear + 1)
        turn = _Turn(m, self, self.width, commit=11)
        slot, csr = turn.slot, CsrMap(m, self.csr, self.registers)
        m.submodules.policer = policer = Policer(slot, vcs=self.vcs)
        states = slot.store("states", POLICED.shape, self.vcs, block=True)
        vc = turn.hold(self.vc, "held_vc")
        m.d.comb += [
            Cat(policer.rate_index, policer.rate, policer.rate_en).eq(Cat(csr.write_port("police_rate"))),
            Cat(policer.limit_index, policer.limit, policer.limit_en).eq(Cat(csr.write_port("police_limit"))),
            policer.now.eq(turn.hold(self.now, "held_now")),
            policer.arrives.eq(slot.commit if self.width == WIDE else 1),
            policer.vc.eq(vc),
            *(getattr(policer, name).eq(turn.hold(getattr(self, name), f"held_{name}")) for name in _OF_CELL),
            policer.state.eq(states.read(vc, at=CONTRACT, to="state")),
            policer.seen.eq(slot.commit),
            policer.clearing.eq(clearing),
            policer.clear.eq(clear),
            self.discard.eq(policer.discard),
            self.new_clp.eq(policer.new_clp),
            self.done.eq(slot.commit),
        ]
        states.write(vc, policer.new_state, slot.commit, clear=(clearing, clear, 0))
        with m.If(clearing):
            m.d.comb += [self.ready.eq(0), turn.time.tick.eq(0)]
        csr.read_port("upc_tagged", policer.tagged_index, policer.tagged)
        csr.finish()
        return slot.checked(m)


_OF_CELL = ("clp", "user", "last")
