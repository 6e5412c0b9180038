"""The network interface: AAL5 both ways, in RTL; the host's side is PDUs."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..aal5.crc32 import CrcTables
from ..aal5.reassembler import COUNTERS, Reassembler, Verdict
from ..aal5.segmenter import Segmenter
from ..arrival import Arrival
from ..cell import TIME_BITS, WIDE, check_width, earlier, earliest, node_members
from ..credits.cells import RM
from ..csr import CsrMap, CsrSignature
from ..lookup import Lookup
from ..slot import Slot
from ..steady import decides, settled
from ..traffic.pacer import Pacer
from .control import nic_registers
from .credits import COUNTERS as CREDIT_COUNTERS
from .credits import NicCredits
from .oam import COUNTERS as OAM_COUNTERS
from .oam import OamPlace, is_f5, place_members

__all__ = ["Nic"]


class Nic(wiring.Component):
    """An ATM network interface with AAL5 segmentation and reassembly.

    **Transmit.** The host posts a PDU of 1 to 65535 octets for a VC; a VC has one PDU at a time, any number of VCs have
    theirs interleaved cell by cell. The VC whose cell is due first gets the line (:class:`~..traffic.tournament`);
    after each cell its due time moves on by its ``TX_PERIOD`` from ``max(due, now - TOLERANCE)``, the virtual
    scheduling of GCRA (I.371); with a sustained rate the cell waits until ``TX_SUSTAINED`` and ``TX_BURST`` let it go,
    too. VCs without a rate of their own get the line's period and so share it in turn. The
    NIC fetches 48 octets when it has chosen the VC of its next cell, a tick or more ahead; it pads, and adds the
    trailer. A tick sends a cell or takes a post: a post waits for one cell at most, which costs the line a tick only
    if it has less than two ticks a cell.

    **Receive.** Cells of known VCs go to the host with their place in the PDU. The PDU's last cell brings the verdict
    :class:`~..aal5.reassembler.Verdict`. Cells that are no user cells (OAM, RM), of unknown VCs, with a bad HEC, or
    beyond ``RX_LIMIT`` are counted and dropped; with ``oam`` F5 cells of known VCs go to the host instead. No error of
    a VC touches another. With ``RX_TIMEOUT`` set, a PDU whose last cell has not come so many ticks after its first is
    given up (the optional reassembly timer): ``TIMEOUT``, at the latest a quarter of the time-out (or ``vcs`` ticks)
    later, in a tick in which no cell comes. Cells of it that come after that are taken for another PDU.

    **Single cells.** With ``oam`` the host may post a VC a cell of 48 octets with a PTI of its own, whether the VC has
    a PDU or not, one at a time. It goes as the VC's next cell, but for one that was fetched already, and is paced as
    any other; between two cells of a PDU it leaves that as it is (OAM cells count in the VC's traffic, I.610 and
    I.371).

    **Set-up.** Writing a VC's ``TX_HEADER`` or ``RX_LIMIT`` sets it up: whatever it was before, its next PDU may go at
    once, and the next cell is the first of a PDU; one that was half assembled is forgotten without a verdict. To be
    done while no PDU is being sent on the VC. Counters go on.

    **Time** is compared modulo half its range. After 2**48 ticks of silence a line may seem busy, for the length of
    the longest period (3 s) at most.

    Parameters
    ----------
    width : int
        Datapath, 416 or 32 bits.
    vcs : int
        Number of VCs each way, a power of two, 2 to 4096.
    sustained : int
        1: VCs may have a sustained rate beside the peak one, and a burst (dual leaky bucket, TM 4.1). 0: none has.
    frames : int
        1: the line has slots in frames (:class:`~..traffic.pacer.FramedLine`). 0: it takes cells at an even rate.
    credits : int
        1: VCs may have to wait for credit of their switch (:class:`.credits.NicCredits`). 0: none has.
    oam : int
        1: the host sends single cells, and gets the OAM cells of its VCs (:class:`.oam.OamPlace`). 0: it doesn't.

    Members
    -------
    i, o, time, status, csr
        The faces of a node; a cell decided on in tick T goes out in tick T+1.
    o_end : Out
        With a cell in ``o`` (narrow: with its header): the tick in which its last bit leaves, by the line's clock.
    post_valid, post_vc, post_length, post_uu, post_cpi : In
        A PDU to send; to be held until ``post_taken``, which comes with the end of a tick. A post for a busy VC or
        of length 0 is taken, counted in ``TX_REFUSED`` and forgotten.
    fetch, fetch_vc : Out
        Give the next 48 octets of this VC's PDU. One clock. At 32 bits the next fetch may come while the words of
        the cell before are still being taken: the host keeps two cells' octets in order.
    block : In(384)
        At 416 bits: those octets, from the clock after ``fetch`` on. Octets beyond the PDU's end are ignored.
    word, word_next : In(32), Out(1)
        At 32 bits: those octets as 12 words, the next after each clock with ``word_next``; the first has to be there in
        the tick after ``fetch``.
    done, done_vc : Out
        The last cell of this VC's PDU has been chosen for the line; the VC can be posted to again.
    rx_valid, rx_vc, rx_index : Out
        48 octets (416 bits), or one word of 12 (32 bits), of cell ``rx_index`` of a PDU of VC ``rx_vc``.
    rx_payload : Out(384), or rx_word : Out(32)
    rx_last, rx_status, rx_length, rx_uu, rx_cpi, rx_efci : Out
        With the PDU's last cell (its last word), or alone where that was dropped or the PDU given up: verdict, length
        field, UU, CPI.
    post_single, cell_pti, fetch_single, done_single : In, In, Out, Out
        With ``oam``: the post is a single cell (its length means nothing); ``fetch`` asks for its 48 octets, and its
        PTI is to be there with them, until the next ``fetch``; ``done`` is of it.
    oam_full, oam_vc, oam_pti, oam_tick, oam_payload, oam_at, oam_word, oam_take
        With ``oam``: an OAM cell that came, as of :class:`.oam.OamPlace`.

    Notes
    -----
    Counters wrap at 2**32. After reset the tables are cleared for ``8 * vcs`` clocks (``idle`` is low), cells and posts
    have to wait. Clauses: I.363.5, I.371, I.361.
    """

    def __init__(self, *, width=WIDE, vcs=64, sustained=0, credits=0, frames=0, oam=0):
        check_width(width)
        self.width, self.vcs, self.sustained, self.credits, self.frames = width, vcs, sustained, credits, frames
        self.oam = oam
        self.registers = nic_registers(vcs=vcs, sustained=sustained, credits=credits, frames=frames, oam=oam)
        host = {
            "post_valid": In(1),
            "post_vc": In(range(vcs)),
            "post_length": In(16),
            "post_uu": In(8),
            "post_cpi": In(8),
            "post_taken": Out(1),
            "fetch": Out(1),
            "fetch_vc": Out(range(vcs)),
            "done": Out(1),
            "done_vc": Out(range(vcs)),
            "rx_valid": Out(1),
            "rx_vc": Out(range(vcs)),
            "rx_index": Out(11),
            "rx_last": Out(1),
            "rx_status": Out(Verdict),
            "rx_length": Out(16),
            "rx_uu": Out(8),
            "rx_cpi": Out(8),
            "rx_efci": Out(1),
        }
        if width == WIDE:
            host |= {"block": In(384), "rx_payload": Out(384)}
        else:
            host |= {"word": In(32), "word_next": Out(1), "rx_word": Out(32)}
        if oam:
            host |= {"post_single": In(1), "cell_pti": In(3), "fetch_single": Out(1), "done_single": Out(1)}
            host |= {f"oam_{name}": member for name, member in place_members(width, vcs).items()}
        super().__init__({**node_members(width, 1), "o_end": Out(TIME_BITS), "csr": In(CsrSignature()), **host})

    def elaborate(self, platform):
        m = Module()
        slot = Slot(m, self.time, self.width, commit=11)
        csr = CsrMap(m, self.csr, self.registers)
        vcs, tables = self.vcs, CrcTables() if slot.wide else None
        with_credits, with_oam = bool(self.credits), bool(self.oam)
        m.submodules.pacer = pacer = self.pacer = Pacer(
            slot, vcs=vcs, sustained=bool(self.sustained), credits=with_credits, framed=bool(self.frames),
            singles=with_oam,
        )  # fmt: skip
        m.submodules.segmenter = tx = Segmenter(
            slot, width=self.width, vcs=vcs, tables=tables, messages=with_credits, singles=with_oam
        )
        m.submodules.reassembler = rx = self.reassembler = Reassembler(slot, width=self.width, vcs=vcs, tables=tables)

        if tables:
            tables.add_to(m)

        clear_bits = (vcs - 1).bit_length() + 4  # clearing after reset: 8 * vcs clocks
        clear = settled(Signal(clear_bits), 1 << (clear_bits - 1))
        clearing = Signal()
        m.d.comb += clearing.eq(~clear[-1])
        with m.If(clearing):
            m.d.sync += clear.eq(clear + 1)
        for part in (pacer, tx, rx):
            wiring.connect(m, wiring.flipped(self.time), part.time)
            m.d.comb += [part.clearing.eq(clearing), part.clear.eq(clear)]

        # Transmit
        refused = Signal(32)
        m.d.comb += [
            pacer.tolerance.eq(csr.setting("tolerance")),
            Cat(pacer.period_index, pacer.period, pacer.period_en).eq(Cat(csr.table("tx_period"))),
            Cat(tx.header_index, tx.header, tx.header_en).eq(Cat(csr.table("tx_header"))),
            pacer.set_up_vc.eq(tx.header_index),
            pacer.set_up.eq(tx.header_en),
            pacer.post.eq(self.post_valid),
            pacer.post_vc.eq(self.post_vc),
            pacer.post_fits.eq(self.post_length != 0),
            pacer.last.eq(tx.last),
            tx.vc.eq(pacer.vc),
            tx.sends.eq(pacer.sends),
            tx.changes.eq(pacer.changes),
            tx.length.eq(self.post_length),
            tx.uu.eq(self.post_uu),
            tx.cpi.eq(self.post_cpi),
            self.o_end.eq(pacer.end),
            self.fetch.eq(pacer.fetch),
            self.fetch_vc.eq(pacer.fetch_vc),
            self.done.eq(tx.done),
            self.done_vc.eq(tx.done_vc),
        ]
        if self.frames:
            m.d.comb += [pacer.length.eq(csr.setting("line_slot")), pacer.cycle.eq(csr.setting("line_cycle"))]
        else:
            m.d.comb += pacer.line_period.eq(csr.setting("line_period"))
        if self.sustained:
            m.d.comb += [
                Cat(pacer.rate_index, pacer.rate, pacer.rate_en).eq(Cat(csr.table("tx_sustained"))),
                Cat(pacer.burst_index, pacer.burst, pacer.burst_en).eq(Cat(csr.table("tx_burst"))),
            ]
        m.d.sync += self.post_taken.eq(0)
        with m.If(slot.commit), m.If(pacer.posts):
            m.d.sync += self.post_taken.eq(1)
            with m.If(~pacer.accepts):
                m.d.sync += refused.eq(refused + 1)
        wiring.connect(m, tx.o, wiring.flipped(self.o))
        if slot.wide:
            m.d.comb += tx.block.eq(self.block)
        else:
            m.d.comb += [tx.word.eq(self.word), self.word_next.eq(tx.word_next)]
        csr.status("tx_refused", refused)
        csr.counts("tx_cells", tx.count_index, tx.count)

        decides(pacer.sends, 0)
        decides(tx.last, 2, seldom=1)

        # Receive
        wiring.connect(m, wiring.flipped(self.i), rx.i)
        arrival = Arrival(m, slot, self.i)
        lookup = Lookup(m, slot, csr, vcs=vcs, ports=1, nni=csr.setting("nni"))
        arrives = arrival.there & ~clearing
        with slot.only(arrives):
            known, vc = lookup.find(arrival.header, Signal(0))
            m.d.comb += [rx.known.eq(slot.settle(known, "rx_found")), rx.vc.eq(slot.settle(vc, "rx_found_vc"))]
        credits, due = None, [rx.due, pacer.due, *([pacer.slot_due] if self.frames else [])]
        if with_credits:
            credits = self._credits(m, slot, csr, pacer, tx, clear)
            m.d.comb += [
                credits.clearing.eq(clearing),
                credits.there.eq(arrives),
                credits.known.eq(rx.known & ~arrival.hec_error),
                credits.arriving.eq(rx.vc),
                credits.rm.eq(arrival.header.pti == RM),
            ]
            due.append(credits.due)
        place = self._oam(m, slot, csr, pacer, tx, rx, arrival, arrives) if with_oam else None
        elsewhere = [part.takes for part in (credits, place) if part is not None]
        m.d.comb += [
            rx.arrives.eq(reduce(lambda left, takes: left & ~takes, elsewhere, arrives)),
            rx.header.eq(arrival.header),
            rx.bad.eq(arrival.hec_error),
            rx.timeout.eq(csr.setting("rx_timeout")),
            Cat(rx.limit_index, rx.limit, rx.limit_en).eq(Cat(csr.table("rx_limit"))),
        ]
        for name in rx.o.signature.members:
            m.d.comb += getattr(self, f"rx_{name}").eq(getattr(rx.o, name))
        for name in COUNTERS:
            csr.status(f"rx_{name}", getattr(rx, name))
        csr.counts("rx_cells", rx.cells_index, rx.cells)
        csr.counts("rx_pdus", rx.pdus_index, rx.pdus)
        csr.finish()

        busy = [clearing, tx.busy, rx.busy, *([place.busy] if place is not None else []), self.i.valid]
        m.d.comb += [
            self.status.idle.eq(~(clearing if slot.wide else reduce(or_, busy))),
            self.status.due.eq(reduce(earlier, due) if slot.wide else earliest(*due)),
        ]
        return slot.checked(m)

    def _oam(self, m, slot, csr, pacer, tx, rx, arrival, arrives):
        """Single cells of the host's, and the place for OAM cells that come."""
        place = m.submodules.oam = OamPlace(slot, width=self.width, vcs=self.vcs)
        wiring.connect(m, wiring.flipped(self.i), place.i)
        m.d.comb += [
            pacer.post_single.eq(self.post_single),
            tx.single.eq(pacer.single),
            tx.pti.eq(self.cell_pti),
            self.fetch_single.eq(pacer.fetch_single),
            self.done_single.eq(tx.done_single),
            place.now.eq(self.time.now),
            place.takes.eq(arrives & rx.known & ~arrival.hec_error & is_f5(arrival.header)),
            place.header.eq(arrival.header),
            place.of.eq(rx.vc),
            place.take.eq(self.oam_take),
        ]
        for name, member in place_members(self.width, self.vcs).items():
            if member.flow is Out:
                m.d.comb += getattr(self, f"oam_{name}").eq(getattr(place, name))
        if not slot.wide:
            m.d.comb += place.at.eq(self.oam_at)
        for name in OAM_COUNTERS:
            csr.status(name, getattr(place, name))
        return place

    def _credits(self, m, slot, csr, pacer, tx, clear):
        """The part that keeps the VCs' credit, but for what it is told of arrivals."""
        credits = m.submodules.credits = NicCredits(slot, width=self.width, vcs=self.vcs)
        wiring.connect(m, wiring.flipped(self.i), credits.i)
        m.d.comb += [
            credits.now.eq(self.time.now),
            credits.clear.eq(clear),
            credits.step.eq(csr.setting("credit_step")),
            credits.last.eq(csr.setting("credit_last")),
            Cat(credits.share_vc, credits.share, credits.share_en).eq(Cat(csr.table("tx_share"))),
            credits.vc.eq(pacer.vc),
            credits.sent.eq(tx.sent),
            credits.sends.eq(pacer.sends),
            credits.ends.eq(pacer.emptied if self.oam else tx.last),
            credits.posts.eq(pacer.posts),
            credits.accepts.eq(pacer.accepts),
            credits.looked.eq(pacer.looked),
            credits.spoke.eq(pacer.spoke),
            *(getattr(pacer, n).eq(getattr(credits, n)) for n in ("looks", "look_vc", "speaks", "speak_vc")),
            *(getattr(pacer, n).eq(getattr(credits, n)) for n in ("may", "waits", "wakes")),
            tx.spoke.eq(pacer.spoke),
            tx.message.eq(credits.message),
        ]
        index, entry, written = csr.table("rx_back")
        m.d.comb += [
            credits.back_vc.eq(index),
            credits.back.vc.eq(entry),
            credits.back.takes.eq(entry[12]),
            credits.back_en.eq(written),
        ]
        for name in CREDIT_COUNTERS:
            csr.status(f"credit_{name}", getattr(credits, name))
        csr.counts("tx_freed", credits.freed_of, credits.freed)
        return credits
