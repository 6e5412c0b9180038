"""The common part of both datapaths of a link: the cell of the tick and the receiver's header check."""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.hdl import Module, Signal, Value

from bentpipe_hdl.cell import CellHeader
from bentpipe_hdl.hec import UNCORRECTABLE, HecReceiver
from bentpipe_hdl.link.errors import LinkErrors
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["CELL_BITS", "ERRORS_A_CELL", "Datapath", "Offer"]

ERRORS_A_CELL = 8
"""Most bit errors that one cell gets. At 1e-3, the highest rate, one cell in 10**9 would have more."""

CELL_BITS = 424


@dataclass(frozen=True)
class Offer:
    """A cell that a plugin makes: it leaves in a tick in which no cell arrives.

    Members
    -------
    there : Value
        It is there, from the tick's first clock on.
    header, bad : Value
        Its header, and whether the receiver could not correct it.
    payload : Value
        At 416 bits.
    word : Callable
        At 32 bits: the word of its payload with this number, in the same clock.
    leaves : Signal
        It leaves: high with the tick's commit.
    """

    there: Value
    header: Value
    bad: Value
    payload: Value
    word: Callable[[Value], Value]
    leaves: Signal


class Datapath:
    """The way of a cell through a link. Its subclasses hit it by errors when they are made, and send it.

    Members
    -------
    link : Link
    m, slot, errors
        The link's.
    taken : Value
        A cell is taken in, with the commit.
    comes : Value
        A cell arrives with the tick.
    sent_header, sent_hec_error : Value
        Its header as it was sent into the link, and whether its HEC was bad.
    header : CellHeader
        As the receiver takes it.
    fixed, bad, hit : Value
        Its header was corrected, or is bad; it has bit errors.
    later : Value or None
        Ticks by which it arrives later than its delay says, if a plugin has set it.
    offer : Offer or None
        A cell that a plugin makes.
    carried : Value
        A cell is taken in, or a plugin's cell leaves, with the commit.
    """

    later = None

    def __init__(self, link, m: Module, slot: TickSchedule, errors: LinkErrors, offer: Offer | None = None):
        self.link, self.m, self.slot, self.errors, self.offer = link, m, slot, errors, offer
        self.damage()
        self.carried = self.taken
        if offer is not None:
            m.d.comb += offer.leaves.eq(slot.commit & offer.there & ~self.comes)
            self.carried = self.taken | offer.leaves

    def damage(self):
        """Hit the cell by bit errors, and check its header."""
        raise NotImplementedError

    def send(self, gone, memory_of_cells, lost, works):
        """Send the cell unless it is ``gone``; return when the link is idle, and its due tick.

        ``memory_of_cells`` is what holds cells for the delay, or None; ``lost`` counts cells that find it full;
        ``works`` is high while plugins have work.
        """
        raise NotImplementedError

    def check(self, hit, header_flips, syndrome, header, hec_error):
        """Check the header as the receiver does, given its errors and their syndrome; return it as the receiver takes
        it."""
        m, taken, checked = self.m, self.taken, Signal(CellHeader, name="checked")
        m.submodules.receiver = receiver = self.receiver = HecReceiver()
        m.d.comb += [receiver.check.eq(taken), checked.eq(header)]
        with m.If(hit):
            m.d.comb += [
                receiver.syndrome.eq(syndrome),
                checked.eq(header.as_value() ^ header_flips),
            ]
            with m.If(receiver.correct):
                m.d.comb += checked.eq(header.as_value() ^ header_flips ^ receiver.flip[8:])
        with m.If(hec_error):
            m.d.comb += receiver.syndrome.eq(UNCORRECTABLE)
        self.fixed, self.bad, self.hit = receiver.correct, receiver.discard, hit
        return checked
