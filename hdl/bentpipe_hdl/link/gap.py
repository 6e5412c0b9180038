"""Random gaps between bit errors: geometric, at any rate from 1e-3 to 1e-15, exact to one part in 2**16.

The number of good bits before the next error at a bit error rate p is ``floor(log2(U) / log2(1 - p))`` with U
uniform in (0, 1). ``-log2(U)`` comes from the position of the leading one of 48 random bits and a table of log2(1 +
f) with linear interpolation; a multiplication and a shift by settings give the gap.
"""

import math

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["GAP_BITS", "Gap", "scale_of", "xorshift"]

GAP_BITS = 56
INDEX_BITS = 8
LOG_BITS = 16

TABLE = [round((1 << LOG_BITS) * math.log2(1 + i / 256)) for i in range(257)]


def scale_of(rate):
    """``(mantissa, shift)`` of a bit error rate: the gap is ``(e * mantissa << 16) >> shift``, with ``e`` the
    16-fraction-bit value of ``-log2(U)`` (in Python, for whoever writes the settings).

    Raises
    ------
    ValueError
        The rate is not between 1e-15 and 1e-3.
    """
    if not 1e-15 <= rate <= 1e-3:
        raise ValueError(f"a bit error rate must be from 1e-15 to 1e-3, not {rate!r}")
    scale = -math.log(2) / math.log1p(-rate)
    mantissa, exponent = math.frexp(scale)  # scale = mantissa * 2**exponent, 0.5 <= mantissa < 1
    return min(round(mantissa * (1 << 24)), (1 << 24) - 1), LOG_BITS + 16 + 24 - exponent


def xorshift(state):
    """The next state of Marsaglia's xorshift64 (13, 7, 17), as a value."""
    a = state ^ Cat(Const(0, 13), state[:51])
    b = a ^ a[7:]
    return b ^ Cat(Const(0, 17), b[:47])


class Gap(wiring.Component):
    """One gap from one random state. Combinational; ``mantissa`` and ``shift`` as of :func:`scale_of`.

    Members
    -------
    state : In(64)
        Its upper 48 bits are used; all zeros there count as one.
    mantissa : In(24)
    shift : In(6)
    gap : Out(56)
        Good bits before the next error; the largest value where it would be more.
    """

    state: In(64)
    mantissa: In(24)
    shift: In(6)
    gap: Out(GAP_BITS)

    def elaborate(self, platform):
        m = Module()
        value = Signal(64)
        m.d.comb += value.eq(Cat(Const(0, 15), ~self.state[16:].any(), self.state[16:]))
        zeros = []
        for k in (32, 16, 8, 4, 2, 1):  # move the leading one to the top, counting
            none = Signal(name=f"none{k}")
            moved = Signal(64, name=f"moved{k}")
            m.d.comb += [none.eq(value[64 - k :] == 0), moved.eq(Mux(none, Cat(Const(0, k), value[: 64 - k]), value))]
            value = moved
            zeros.insert(0, none)
        leading = Cat(*zeros)
        slopes = data.StructLayout({"log": LOG_BITS + 1, "rise": 9})
        init = [{"log": TABLE[i], "rise": TABLE[i + 1] - TABLE[i]} for i in range(256)]
        m.submodules.table = table = memory.Memory(shape=slopes, depth=256, init=init)
        port = table.read_port(domain="comb")
        log = Signal(LOG_BITS + 1)
        exponent = Signal(23)
        product = Signal(64)
        m.d.comb += [
            port.addr.eq(value[55:63]),
            log.eq(port.data.log + ((port.data.rise * value[47:55]) >> 8)),
            exponent.eq(((leading + 1) << LOG_BITS) - log),
            product.eq(exponent * self.mantissa << 16),
        ]
        shifted = Signal(64)
        m.d.comb += [
            shifted.eq(product >> self.shift),
            self.gap.eq(Mux(shifted[GAP_BITS:].any(), Const(-1, GAP_BITS), shifted)),
        ]
        return m
