"""Content of a received test cell, on both datapaths."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import WORDS_A_CELL, CellSignature
from bentpipe_hdl.tick_schedule import TickSchedule

from .cells import CRC16_BITS, PRESET, STAMP_BITS
from .crc16 import crc16_holds, crc16_word

__all__ = ["TestCellReceiver"]


class TestCellReceiver(wiring.Component):
    """The receiver of test cells: it keeps a cell's content for the tick after its arrival.

    Parameters
    ----------
    slot : TickSchedule
    width : int

    Members
    -------
    i : In(CellSignature)
    now : In
        The time stamp of the present tick.
    takes : In
        With the commit: the tick's cell is a test cell for this node.
    valid, good, number, stamp, came : Out
        In the next tick: one came; its CRC-16 holds; what it holds; the time stamp of the tick in which it came.
        Narrow: ``valid`` and ``came`` from clock 0 on, the others from clock 2 on, to the commit.
    """

    __test__ = False

    def __init__(self, slot: TickSchedule, *, width: int):
        self._slot = slot
        super().__init__(
            {
                "i": In(CellSignature(width)),
                "now": In(STAMP_BITS),
                "takes": In(1),
                "valid": Out(1),
                "good": Out(1),
                "number": Out(32),
                "stamp": Out(STAMP_BITS),
                "came": Out(STAMP_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        slot.with_commit(self.takes)
        with m.If(slot.commit):
            m.d.sync += self.valid.eq(self.takes)
        with m.If(self.takes):
            m.d.sync += self.came.eq(self.now)
        (self._wide if slot.wide else self._narrow)(m, slot)
        return m

    def _wide(self, m, slot):
        payload = self.i.payload
        with m.If(self.takes):
            m.d.sync += [
                self.good.eq(crc16_holds(payload)),
                self.number.eq(_value(payload[:32])),
                self.stamp.eq(_value(payload[32:64])),
            ]

    def _narrow(self, m, slot):
        """Take the words: the last one comes in clock 0 of the next tick at the latest, the second of the next cell
        in clock 1."""
        left, crc, after = Signal(4), Signal(CRC16_BITS), Signal(CRC16_BITS)
        good, number, stamp, word = Signal(), Signal(32), Signal(STAMP_BITS), self.i.word
        m.d.comb += after.eq(crc16_word(crc, word))
        with m.If(self.i.valid & self.i.soc):
            m.d.sync += [left.eq(WORDS_A_CELL - 1), crc.eq(PRESET)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), crc.eq(after)]
            with m.If(left == 12):
                m.d.sync += number.eq(_value(word))
            with m.If(left == 11):
                m.d.sync += stamp.eq(_value(word))
            with m.If(left == 1):
                m.d.sync += good.eq(after == 0)
        with m.If(slot.clock(1)):
            m.d.sync += [self.good.eq(good), self.number.eq(number), self.stamp.eq(stamp)]
        for held in (self.good, self.number, self.stamp):
            slot.clocks.holds(held, 2)


def _value(word):
    """Return a value of 32 bits whose top octet comes first."""
    return Cat(word[24:32], word[16:24], word[8:16], word[:8])
