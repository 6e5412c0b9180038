"""UTOPIA level 2 (af-phy-0039.000): the ATM layer's and the PHY's side, 8 and 16 bits, with cells as packets of
AXI4-Stream.

Both directions have one clock here, the component's. Outputs change after its rising edge, inputs are sampled at it.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.adapters import AxiStreamSignature
from bentpipe_hdl.cell import NARROW, WORDS_A_CELL
from bentpipe_hdl.cores.packets import CellStore
from bentpipe_hdl.hec import hec

__all__ = ["MOST_PHYS", "NULL_ADDRESS", "UtopiaAtm", "UtopiaPhy"]

NULL_ADDRESS = 31
"""The address that no PHY has."""

MOST_PHYS = 31


def _parity(value):
    """Return the odd parity of ``value``: the bit that makes the number of ones odd."""
    return ~value.xor()


class _Counter:
    """The place in a cell: a word of 32 bits and a part of that, with the HEC (or UDF1 and UDF2) behind the header."""

    def __init__(self, m, bits, name):
        self._m, self.parts = m, NARROW // bits
        self.word, self.part = Signal(4, name=f"{name}_word"), Signal(3, name=f"{name}_part")
        self.is_header = self.word == 0
        self.is_udf = self.is_header & (self.part == self.parts)
        self.ends_word = self.part == Mux(self.is_header, self.parts, self.parts - 1)
        self.is_first = self.is_header & (self.part == 0)
        self.is_last = (self.word == WORDS_A_CELL - 1) & (self.part == self.parts - 1)

    def next(self):
        """Return the statements that go to the next place."""
        return [
            self.part.eq(Mux(self.ends_word, 0, self.part + 1)),
            self.word.eq(Mux(self.is_last, 0, self.word + self.ends_word)),
        ]


class _Sender(wiring.Component):
    """The words of a store's cells as they are on the bus; the next one in the clock after ``pull``.

    Members
    -------
    i : In(AxiStreamSignature)
        Once ``tvalid`` is high for a cell it stays so.
    pull : In(1)
    data : Out(bits), soc, last, valid : Out(1)
    """

    def __init__(self, bits, ports):
        self._bits = bits
        members = {name: Out(1) for name in ("soc", "last", "valid")}
        super().__init__({"i": In(AxiStreamSignature(ports)), "pull": In(1), "data": Out(bits), **members})

    def elaborate(self, platform):
        m = Module()
        at, i = _Counter(m, self._bits, "sent"), self.i
        octets = [i.tdata.word_select(k, 8) for k in range(4)]
        step = self._bits // 8
        with m.If(at.is_header):
            for part in range(at.parts):
                with m.If(at.part == part):
                    m.d.comb += self.data.eq(i.tdata[NARROW - self._bits * (part + 1) :])
            with m.If(at.is_udf):
                m.d.comb += self.data.eq(hec(i.tdata) << (self._bits - 8))
        with m.Else():
            for part in range(at.parts):
                with m.If(at.part == part):
                    m.d.comb += self.data.eq(Cat(reversed(octets[step * part : step * (part + 1)])))
        m.d.comb += [
            self.valid.eq(i.tvalid),
            self.soc.eq(i.tvalid & at.is_first),
            self.last.eq(at.is_last),
            i.tready.eq(self.pull & at.ends_word),
        ]
        with m.If(self.pull & i.tvalid):
            m.d.sync += at.next()
        return m


class _Receiver(wiring.Component):
    """Makes packets of the words of a bus. A cell with wrong parity, or with a start of cell where there should be
    none, is dropped; so are words without one.

    Members
    -------
    take : In(1), data : In(bits), soc, prty : In(1)
    o : Out(AxiStreamSignature)
        The store behind it has room for a cell whenever one begins.
    forget : Out(1)
        What ``o`` had of a cell is to be forgotten.
    begun : Out(1)
        A cell has begun and not ended.
    errors : Out(32)
    """

    def __init__(self, bits, ports, *, parity):
        self._bits, self._parity = bits, parity
        super().__init__(
            {
                "take": In(1),
                "data": In(bits),
                "soc": In(1),
                "prty": In(1),
                "o": Out(AxiStreamSignature(ports)),
                "forget": Out(1),
                "begun": Out(1),
                "errors": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        at, bits = _Counter(m, self._bits, "received"), self._bits
        word, full = Signal(NARROW - bits), Signal(NARROW)
        octets = Cat(reversed([self.data.word_select(k, 8) for k in range(bits // 8)]))
        held = Signal(NARROW)  # the header, while the UDF goes by
        broken, wrong, restart, ours = Signal(), Signal(), Signal(), Signal()  # broken: the rest of a cell is dropped
        m.d.comb += [
            full.eq(Mux(at.is_header, Cat(self.data, word), Cat(word, octets))),
            self.begun.eq(~at.is_first),
            ours.eq(self.take & ~wrong & self.begun & ~self.soc),
            restart.eq(self.take & ~wrong & self.soc),
            self.forget.eq(wrong | restart),
            self.o.tvalid.eq(ours & at.ends_word),
            self.o.tdata.eq(Mux(at.is_header, held, full)),
            self.o.tlast.eq(at.word == WORDS_A_CELL - 1),
        ]
        if self._parity:
            m.d.comb += wrong.eq(self.take & (self.prty != _parity(self.data)))
        with m.If(self.take & at.is_header):
            m.d.sync += word.eq(Cat(self.data, word))
        with m.If(ours):
            m.d.sync += at.next()
            with m.If(~at.is_header):
                m.d.sync += word.eq(Cat(word, octets)[bits:])
            with m.Elif(at.part == at.parts - 1):
                m.d.sync += held.eq(full)
        with m.If(restart):
            m.d.sync += [at.word.eq(0), at.part.eq(1), broken.eq(0), word.eq(self.data)]
            m.d.sync += self.errors.eq(self.errors + self.begun)
        with m.Elif(wrong | (self.take & ~self.begun)):
            m.d.sync += [at.word.eq(0), at.part.eq(0), broken.eq(1)]
            m.d.sync += self.errors.eq(self.errors + (self.begun | self.soc | ~broken))
        return m


def _check(bits, phys=1):
    if bits not in (8, 16):
        raise ValueError(f"bits must be 8 or 16, not {bits!r}")
    if not 1 <= phys <= MOST_PHYS:
        raise ValueError(f"phys must be 1 to {MOST_PHYS}, not {phys!r}")


class UtopiaAtm(wiring.Component):
    """The ATM layer's side of UTOPIA level 2: it polls PHYs, and moves cells to and from them.

    Cells are moved whole: TxEnb* and RxEnb* stay low from a cell's first word to its last. Cells are sent in their
    order; one whose PHY has no room holds up those behind it. PHYs are asked for received cells in turn. The HEC is
    sent in UDF1, UDF2 is 0; what is received there is ignored.

    Parameters
    ----------
    bits : int
        8 or 16, of the data buses.
    phys : int
        Addresses of PHYs are 0 to ``phys - 1``, 31 at most.
    cells : int
        That can wait in each direction, a power of two from 2 to 1024.
    parity : bool
        1: received cells with wrong parity are dropped. 0: parity is not checked.

    Members
    -------
    i : In(AxiStreamSignature)
        Cells to be sent; ``tdest`` is the PHY's address.
    o : Out(AxiStreamSignature)
        Cells received; ``tdest`` is the PHY's address.
    tx_addr : Out(5), rx_addr : Out(5)
        TxAddr and RxAddr: each second clock of polling has the null address, 31.
    tx_data : Out(bits), tx_soc : Out(1), tx_prty : Out(1)
        TxData, TxSOC, TxPrty (odd): valid while ``tx_enb_n`` is low.
    tx_enb_n : Out(1), rx_enb_n : Out(1)
        TxEnb*, RxEnb*.
    tx_clav : In(1), rx_clav : In(1)
        TxClav, RxClav: the polled PHY's answer, in the clock after its address. Ignored otherwise.
    rx_data : In(bits), rx_soc : In(1), rx_prty : In(1)
        RxData, RxSOC, RxPrty (odd): sampled in the clock after one with ``rx_enb_n`` low.
    dropped : Out(32)
        Packets dropped, because they have not 13 words or no PHY has their address; wraps.
    errors : Out(32)
        Received cells dropped for parity, or because RxSOC was not where it should be; wraps.

    Notes
    -----
    Handshake: AXI4-Stream for cells; cell-level handshake with one TxClav and one RxClav on the bus. A PHY is asked
    for a cell only if there is room for it.

    Latency: 5 clocks from a cell's last word to its first one on the bus. Throughput: a cell in 57 clocks at 8 bits, in
    31 at 16, towards a PHY that has room; from one of ``phys`` with a cell, too, and 3 clocks more for each PHY that is
    asked before.

    Source: af-phy-0039.000 clauses 3 and 4.2; af-phy-0017 for the cell's format.
    """

    def __init__(self, *, bits=8, phys=1, cells=4, parity=1):
        _check(bits, phys)
        self._bits, self._phys, self._cells, self._checks = bits, phys, cells, parity
        stream = AxiStreamSignature(phys)
        super().__init__(
            {
                "i": In(stream),
                "o": Out(stream),
                "tx_addr": Out(5, init=NULL_ADDRESS),
                "tx_data": Out(bits),
                "tx_soc": Out(1),
                "tx_prty": Out(1),
                "tx_enb_n": Out(1, init=1),
                "tx_clav": In(1),
                "rx_addr": Out(5, init=NULL_ADDRESS),
                "rx_data": In(bits),
                "rx_soc": In(1),
                "rx_prty": In(1),
                "rx_enb_n": Out(1, init=1),
                "rx_clav": In(1),
                "dropped": Out(32),
                "errors": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._send(m)
        self._receive(m)
        return m

    def _send(self, m):
        m.submodules.outgoing = store = CellStore(ports=self._phys, cells=self._cells)
        m.submodules.sender = sender = _Sender(self._bits, self._phys)
        nobody = Signal(32)
        wiring.connect(m, wiring.flipped(self.i), store.i)
        m.d.comb += self.dropped.eq(store.dropped + nobody)
        for name in ("tvalid", "tdata", "tlast"):
            m.d.comb += getattr(sender.i, name).eq(getattr(store.o, name))
        to = store.o.tdest
        m.d.comb += store.o.tready.eq(sender.i.tready)
        m.d.sync += [self.tx_addr.eq(NULL_ADDRESS), self.tx_enb_n.eq(1), self.tx_soc.eq(0)]
        with m.FSM(name="send"):
            with m.State("POLL"), m.If(store.o.tvalid):
                with m.If(to < self._phys):
                    m.d.sync += self.tx_addr.eq(to)
                    m.next = "ASK"
                with m.Else():
                    m.d.sync += nobody.eq(nobody + 1)
                    m.next = "SKIP"
            with m.State("ASK"):
                m.next = "HEAR"
            with m.State("HEAR"):
                with m.If(self.tx_clav):
                    m.d.sync += self.tx_addr.eq(to)
                    m.next = "SELECT"
                with m.Else():
                    m.next = "POLL"
            with m.State("SELECT"):
                m.d.comb += sender.pull.eq(1)
                m.d.sync += [
                    self.tx_enb_n.eq(0),
                    self.tx_data.eq(sender.data),
                    self.tx_soc.eq(sender.soc),
                    self.tx_prty.eq(_parity(sender.data)),
                ]
                with m.If(sender.last):
                    m.next = "END"
            with m.State("END"):
                m.next = "POLL"
            with m.State("SKIP"):
                m.d.comb += store.o.tready.eq(1)
                with m.If(store.o.tlast):
                    m.next = "POLL"

    def _receive(self, m):
        m.submodules.incoming = store = CellStore(ports=self._phys, cells=self._cells)
        m.submodules.receiver = receiver = _Receiver(self._bits, self._phys, parity=self._checks)
        wiring.connect(m, store.o, wiring.flipped(self.o))
        phy, chosen, reading, left = Signal(range(self._phys)), Signal(range(self._phys)), Signal(), Signal(6)
        words = WORDS_A_CELL * NARROW // self._bits + 1
        m.d.comb += [
            receiver.take.eq(reading),
            receiver.data.eq(self.rx_data),
            receiver.soc.eq(self.rx_soc),
            receiver.prty.eq(self.rx_prty),
            store.i.tvalid.eq(receiver.o.tvalid),
            store.i.tdata.eq(receiver.o.tdata),
            store.i.tlast.eq(receiver.o.tlast),
            store.i.tdest.eq(chosen),
            store.forget.eq(receiver.forget),
            self.errors.eq(receiver.errors),
        ]
        m.d.sync += [self.rx_addr.eq(NULL_ADDRESS), self.rx_enb_n.eq(1), reading.eq(~self.rx_enb_n)]
        with m.FSM(name="receive"):
            with m.State("POLL"), m.If(~reading & (store.level != self._cells)):
                m.d.sync += self.rx_addr.eq(phy)
                m.next = "ASK"
            with m.State("ASK"):
                m.next = "HEAR"
            with m.State("HEAR"):
                m.d.sync += phy.eq(Mux(phy == self._phys - 1, 0, phy + 1))
                with m.If(self.rx_clav):
                    m.d.sync += [self.rx_addr.eq(phy), chosen.eq(phy), left.eq(words)]
                    m.next = "SELECT"
                with m.Else():
                    m.next = "POLL"
            with m.State("SELECT"):
                m.d.sync += [self.rx_enb_n.eq(0), left.eq(left - 1)]
                with m.If(left == 1):
                    m.next = "END"
            with m.State("END"):
                m.next = "POLL"


class UtopiaPhy(wiring.Component):
    """A PHY's side of UTOPIA level 2, with one address.

    It answers polls of its address, takes cells while the ATM layer has selected it with TxEnb* and gives cells with
    RxEnb*. The ATM layer may stop in the middle of a cell and go on later. Cells follow each other without a gap if it
    keeps the enable low. Several PHYs share a bus: a driver's value counts while its ``oe`` is high. The HEC is sent in
    UDF1, UDF2 is 0; what is received there is ignored.

    Parameters
    ----------
    bits : int
        8 or 16, of the data buses.
    cells : int
        That can wait in each direction, a power of two from 2 to 1024.
    parity : bool
        1: cells with wrong TxPrty are dropped. 0: parity is not checked.

    Members
    -------
    i : In(AxiStreamSignature)
        Cells for the ATM layer. ``tdest`` and ``tuser`` are ignored.
    o : Out(AxiStreamSignature)
        Cells of the ATM layer.
    address : In(5)
        The PHY's address, 0 to 30; constant.
    tx_addr : In(5), rx_addr : In(5)
        TxAddr and RxAddr.
    tx_data : In(bits), tx_soc : In(1), tx_prty : In(1)
        TxData, TxSOC, TxPrty (odd).
    tx_enb_n : In(1), rx_enb_n : In(1)
        TxEnb*, RxEnb*.
    tx_clav : Out(1)
        TxClav, in the clock after the address: there is room for a cell, beside the one that has begun.
    rx_clav : Out(1)
        RxClav, in the clock after the address: a whole cell is there, beside the one that has begun.
    tx_clav_oe : Out(1), rx_clav_oe : Out(1)
        TxClav or RxClav is driven.
    rx_data : Out(bits), rx_soc : Out(1), rx_prty : Out(1)
        RxData, RxSOC, RxPrty (odd), in the clock after one with ``rx_enb_n`` low. Data is 0 if there is no cell.
    rx_oe : Out(1)
        RxData, RxSOC and RxPrty are driven.
    dropped : Out(32)
        Packets of ``i`` dropped, because they have not 13 words; wraps.
    errors : Out(32)
        Cells of the ATM layer dropped for parity, TxSOC in the wrong place, or want of room; wraps.

    Notes
    -----
    Handshake: AXI4-Stream for cells; cell-level handshake on the bus. A cell that is sent without room for it is
    dropped and counted.

    Latency: a clock from a cell's last word on the bus to the first word of its packet; 2 clocks from a packet's last
    word to RxClav. Throughput: a word on the bus in each clock.

    Source: af-phy-0039.000 clauses 3 and 4.2; af-phy-0017 for the cell's format.
    """

    def __init__(self, *, bits=8, cells=4, parity=1):
        _check(bits)
        self._bits, self._cells, self._checks = bits, cells, parity
        super().__init__(
            {
                "i": In(AxiStreamSignature()),
                "o": Out(AxiStreamSignature()),
                "address": In(5),
                "tx_addr": In(5),
                "tx_data": In(bits),
                "tx_soc": In(1),
                "tx_prty": In(1),
                "tx_enb_n": In(1, init=1),
                "tx_clav": Out(1),
                "tx_clav_oe": Out(1),
                "rx_addr": In(5),
                "rx_enb_n": In(1, init=1),
                "rx_clav": Out(1),
                "rx_clav_oe": Out(1),
                "rx_data": Out(bits),
                "rx_soc": Out(1),
                "rx_prty": Out(1),
                "rx_oe": Out(1),
                "dropped": Out(32),
                "errors": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._take(m)
        self._give(m)
        return m

    def _selected(self, m, enable_n, address, name):
        """Return whether the bus's word of this clock is this PHY's: it was addressed in the last clock in which the
        enable was high."""
        was_off, addressed, before = Signal(init=1), Signal(), Signal()
        now = Signal(name=f"{name}_selected")
        m.d.sync += [was_off.eq(enable_n), addressed.eq(address == self.address), before.eq(now)]
        m.d.comb += now.eq(Mux(was_off, addressed, before))
        return now & ~enable_n

    def _take(self, m):
        m.submodules.incoming = store = CellStore(cells=self._cells)
        m.submodules.receiver = receiver = _Receiver(self._bits, 1, parity=self._checks)
        wiring.connect(m, store.o, wiring.flipped(self.o))
        takes = self._selected(m, self.tx_enb_n, self.tx_addr, "tx")
        full, overrun, overruns = store.level == self._cells, Signal(), Signal(32)
        starts = takes & self.tx_soc
        m.d.comb += [
            receiver.take.eq(takes & ~overrun),
            receiver.data.eq(self.tx_data),
            receiver.soc.eq(self.tx_soc),
            receiver.prty.eq(self.tx_prty),
            store.i.tvalid.eq(receiver.o.tvalid),
            store.i.tdata.eq(receiver.o.tdata),
            store.i.tlast.eq(receiver.o.tlast),
            store.forget.eq(receiver.forget),
            self.errors.eq(receiver.errors + overruns),
        ]
        is_over = Signal()  # the cell under way has no room
        m.d.comb += overrun.eq(Mux(starts & ~receiver.begun, full, is_over))
        with m.If(starts & ~receiver.begun):
            m.d.sync += [is_over.eq(full), overruns.eq(overruns + full)]
        here = self.tx_addr == self.address
        m.d.sync += [
            self.tx_clav_oe.eq(here),
            self.tx_clav.eq(here & (store.level + (receiver.begun | (receiver.take & self.tx_soc)) < self._cells)),
        ]

    def _give(self, m):
        m.submodules.outgoing = store = CellStore(cells=self._cells)
        m.submodules.sender = sender = _Sender(self._bits, 1)
        wiring.connect(m, wiring.flipped(self.i), store.i)
        m.d.comb += self.dropped.eq(store.dropped)
        for name in ("tvalid", "tdata", "tlast"):
            m.d.comb += getattr(sender.i, name).eq(getattr(store.o, name))
        m.d.comb += [
            store.o.tready.eq(sender.i.tready),
            sender.pull.eq(self._selected(m, self.rx_enb_n, self.rx_addr, "rx")),
        ]
        data = Signal(self._bits)
        begun = Signal()
        with m.If(sender.valid):
            m.d.comb += data.eq(sender.data)
            with m.If(sender.pull):
                m.d.sync += begun.eq(~sender.last)
        m.d.sync += [
            self.rx_oe.eq(sender.pull),
            self.rx_data.eq(Mux(sender.pull, data, 0)),
            self.rx_soc.eq(sender.pull & sender.soc),
            self.rx_prty.eq(Mux(sender.pull, _parity(data), 0)),
        ]
        here = self.rx_addr == self.address
        starts = sender.pull & sender.soc
        m.d.sync += [
            self.rx_clav_oe.eq(here),
            self.rx_clav.eq(here & (store.level > (begun | starts))),
        ]
