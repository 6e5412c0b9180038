"""A serial line, 8N1, as octets."""

from fractions import Fraction

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["Uart"]


class Uart(wiring.Component):
    """A UART: octets of 8 bits, no parity, one stop bit.

    Parameters
    ----------
    divisor : int or Fraction
        Clocks a bit, 4 and more. Where it is no integer, edges are off by less than a clock, and bits have the right
        length on average.

    Members
    -------
    pin_rx, pin_tx : In(1), Out(1)
    rx, rx_valid : Out(8), Out(1)
        An octet that came. One without a stop bit (a break, noise) is dropped.
    tx, tx_valid, tx_ready : In(8), In(1), Out(1)
    """

    def __init__(self, *, divisor):
        if divisor < 4:
            raise ValueError(f"divisor must be 4 or more, not {divisor!r}")
        self.divisor = Fraction(divisor)
        super().__init__(
            {
                "pin_rx": In(1, init=1),
                "pin_tx": Out(1, init=1),
                "rx": Out(8),
                "rx_valid": Out(1),
                "tx": In(8),
                "tx_valid": In(1),
                "tx_ready": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.pin_rx, line, init=1)
        bit, clock = self.divisor.numerator, self.divisor.denominator  # in a unit of which both are whole
        bits, timer, shift = Signal(4), Signal(range(2 * bit)), Signal(8)
        m.d.sync += self.rx_valid.eq(0)
        with m.FSM(name="receive"):
            with m.State("IDLE"), m.If(~line):  # the middle of bit 0 is 1.5 bits away
                m.d.sync += [bits.eq(0), timer.eq(bit + bit // 2 - clock)]
                m.next = "BITS"
            with m.State("BITS"):
                m.d.sync += timer.eq(timer - clock)
                with m.If(timer < clock):
                    m.d.sync += [timer.eq(timer + (bit - clock)), bits.eq(bits + 1)]
                    with m.If(bits == 8):
                        m.d.sync += [self.rx.eq(shift), self.rx_valid.eq(line)]
                        m.next = "STOP"
                    with m.Else():
                        m.d.sync += shift.eq(Cat(shift[1:], line))
            with m.State("STOP"), m.If(line):
                m.next = "IDLE"
        left, wait, out = Signal(4), Signal(range(bit)), Signal(9, init=0x1FF)
        m.d.comb += [self.tx_ready.eq(left == 0)]
        m.d.sync += self.pin_tx.eq(out[0])
        with m.If(left == 0), m.If(self.tx_valid):
            m.d.sync += [out.eq(Cat(Const(0, 1), self.tx)), left.eq(10), wait.eq(bit - clock)]
        with m.Elif(wait >= clock):
            m.d.sync += wait.eq(wait - clock)
        with m.Else():
            m.d.sync += [wait.eq(wait + (bit - clock)), left.eq(left - 1), out.eq(Cat(out[1:], Const(1, 1)))]
        return m
