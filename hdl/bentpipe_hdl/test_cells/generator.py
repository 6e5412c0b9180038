"""A source of test cells: it sends on one VC, as the pacer lets it, until it is stopped."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import NEVER, TIME_BITS, WIDE, WORDS_A_CELL, due_tick
from bentpipe_hdl.tick_schedule import TickSchedule

from .cells import STAMP_BITS, STAMP_FACTOR, STAMP_SHIFT, TYPE, UNUSED
from .crc16 import crc16_of

__all__ = ["COUNT_BITS", "TestCellGenerator", "stamp_clock"]

COUNT_BITS = 40
"""Width of counters of test cells, enough for an hour of OC-192c. They wrap."""


def stamp_clock(slot: TickSchedule, now):
    """Return the time stamp of the present tick. Narrow: from clock 2 on."""
    product = slot.product(now, Const(STAMP_FACTOR, 32), "stamp")
    stamp = Signal(STAMP_BITS, name="stamp")
    slot.m.d.comb += stamp.eq(slot.pipe(product[STAMP_SHIFT : STAMP_SHIFT + STAMP_BITS], "stamp_now"))
    return stamp


def _octets(value):
    """Return a 32-bit value in the order of transmission: its top octet in the low bits."""
    return Cat(value[24:32], value[16:24], value[8:16], value[0:8])


class TestCellGenerator(wiring.Component):
    """The generator of test cells: it posts its VC to the pacer without end, and makes a cell each time the VC is
    chosen.

    A write of the setting ``run`` starts it anew: what it sends ends with one more cell, then the VC is posted again,
    and the numbers begin with ``first``. A VC on which something else is sent refuses the post: the generator does not
    run then.

    Parameters
    ----------
    slot : TickSchedule
    width, vcs : int

    Members
    -------
    now, stamp : In
        The present tick, and its time stamp (narrow: from clock 2 on).
    asked : In
        In the clock in which software writes ``run``.
    run, of, first, count : In
        It is to send; on which VC; the first cell's number; how many cells, 0: without end.
    post, vc : Out
        Its post waits for the pacer; its VC.
    taken, accepted : In
        The pacer takes the tick's post; and accepts it.
    tick_vc, sends : In
        The tick's VC, which sends. Narrow: from clock 1 on.
    active : Out
        The tick's VC is the generator's. Narrow: from clock 1 on.
    last : Out
        The VC's next cell is the last one.
    block : Out(384), or next : In(1), word : Out(32)
        Octets of the cell that is sent; at 32 bits in the next tick, another word after each clock with ``next``.
    sent : Out
        Cells sent since reset.
    running : Out
    due, busy : Out
        It has something to post; low at 416 bits.
    """

    __test__ = False  # no test of pytest

    def __init__(self, slot: TickSchedule, *, width: int, vcs: int):
        self._slot = slot
        vc = range(vcs)
        super().__init__(
            {
                "now": In(TIME_BITS),
                "stamp": In(STAMP_BITS),
                "asked": In(1),
                "run": In(1),
                "of": In(vc),
                "first": In(32),
                "count": In(32),
                "post": Out(1),
                "vc": Out(vc),
                "taken": In(1),
                "accepted": In(1),
                "tick_vc": In(vc),
                "sends": In(1),
                "active": Out(1),
                "last": Out(1),
                **({"block": Out(384)} if width == WIDE else {"next": In(1), "word": Out(32)}),
                "sent": Out(COUNT_BITS),
                "running": Out(1),
                "due": Out(TIME_BITS),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        asked, waits, stopping, at_once = Signal(), Signal(), Signal(), Signal(TIME_BITS)
        number, left, sending = Signal(32), Signal(32), Signal()
        m.d.comb += [
            self.active.eq((self.running | self.post) & (self.tick_vc == self.vc)),
            self.last.eq(stopping | (left == 1)),
        ]
        with m.If(slot.commit):
            with m.If(self.sends & self.active):
                m.d.comb += sending.eq(1)
                m.d.sync += [self.sent.eq(self.sent + 1), number.eq(number + 1), left.eq(Mux(left == 0, 0, left - 1))]
                with m.If(self.last):
                    m.d.sync += self.running.eq(0)
            with m.If(self.post & self.taken):
                m.d.sync += [self.post.eq(0), self.running.eq(self.accepted)]
            with m.Elif(waits & ~self.running & ~self.post):
                m.d.sync += [
                    waits.eq(0),
                    self.post.eq(1),
                    self.vc.eq(self.of),
                    number.eq(self.first),
                    left.eq(self.count),
                    stopping.eq(0),
                ]
            with m.If(asked):
                m.d.sync += [asked.eq(0), stopping.eq(1), waits.eq(self.run)]
        with m.If(self.asked):
            m.d.sync += asked.eq(1)
        pending = asked | waits & ~self.running | self.post
        with m.If(self.asked | slot.commit & (pending | self.running)):
            m.d.sync += at_once.eq(due_tick(self.now))
        m.d.comb += self.due.eq(Mux(pending, at_once, NEVER))
        if slot.wide:
            with slot.gate_when(self.sends & self.active):
                m.d.comb += self.block.eq(Cat(*_words(number, self.stamp, crc16_of(number, self.stamp))))
        else:
            m.d.comb += self.busy.eq(pending)
            self._narrow(m, slot, sending, number)
        return m

    def _narrow(self, m, slot, sending, number):
        """Send the cell that is decided on in the next tick, from clock 1 on to clock 12."""
        next_number, next_stamp = Signal(32), Signal(STAMP_BITS)
        with m.If(sending):
            m.d.sync += [next_number.eq(number), next_stamp.eq(self.stamp)]
        out_number, out_stamp, crc, place = Signal(32), Signal(STAMP_BITS), Signal(16), Signal(range(WORDS_A_CELL - 1))
        with m.If(slot.clock(0)):
            m.d.sync += [
                out_number.eq(next_number),
                out_stamp.eq(next_stamp),
                crc.eq(crc16_of(next_number, next_stamp)),
            ]
        with m.If(self.next):
            m.d.sync += place.eq(Mux(place == WORDS_A_CELL - 2, 0, place + 1))
        m.d.comb += self.word.eq(Array(_words(out_number, out_stamp, crc))[place])


def _words(number, stamp, crc):
    """Return the twelve words of a payload."""
    unused = Const(int.from_bytes(bytes([UNUSED] * 4), "little"), 32)
    return [_octets(number), _octets(stamp), *[unused] * 9, Cat(Const(UNUSED, 8), Const(TYPE, 8), crc[8:], crc[:8])]
