"""Random gaps between bit errors: geometric, at any rate from 1e-3 to 1e-15, exact to one part in 2**16.

The number of good bits before the next error at a bit error rate p is ``floor(log2(U) / log2(1 - p))`` with U
uniform in (0, 1). ``-log2(U)`` comes from the position of the leading one of 48 random bits and a table of log2(1 +
f) with linear interpolation; a multiplication and a shift by settings give the gap.
"""

import math

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..bit_errors import GAP_BITS, LOG_BITS
from ..tick_schedule import FACTOR_BITS

__all__ = ["Gap", "inject", "xorshift"]

INDEX_BITS = 8

TABLE = [round((1 << LOG_BITS) * math.log2(1 + i / 256)) for i in range(257)]


def xorshift(state):
    """Return the next state of Marsaglia's xorshift64 (13, 7, 17), as a value."""
    a = state ^ Cat(Const(0, 13), state[:51])
    b = a ^ a[7:]
    return b ^ Cat(Const(0, 17), b[:47])


def inject(m, bits, errors, *, gap, state, mantissa, shift, one, draws, flips, count):
    """Build an injector: random errors in ``bits`` bits of a line, all in one clock.

    Parameters
    ----------
    m : Module
    bits, errors : int
        Of the line that pass in the clock; most of them that are hit.
    gap, state : Value
        Good bits before the next error, less than ``bits``; the generator's state.
    mantissa, shift : Value
        The scale, as for :class:`Gap`.
    one : callable
        ``one(place)`` is the mask of the bit that comes ``place`` bits after the first.
    draws : Value
        There are errors to be drawn in this clock.
    flips, count : Value
        Bits that are inverted anyhow, and how many.

    Returns
    -------
    flips, count, gap, state : Value
        The bits to be inverted, how many; gap and state for the bits behind these.
    """
    for k in range(errors):
        m.submodules[f"gap{k}"] = unit = Gap()
        fresh, following = Signal(64, name=f"fresh{k}"), Signal(GAP_BITS + 1, name=f"following{k}")
        after, after_state = Signal(GAP_BITS, name=f"gap_after{k}"), Signal(64, name=f"state_after{k}")
        marked, counted = Signal(len(flips), name=f"flips{k}"), Signal(4, name=f"count{k}")
        again = Signal(name=f"again{k}")
        m.d.comb += [after.eq(gap), after_state.eq(state), marked.eq(flips), counted.eq(count)]
        with m.If(draws):
            m.d.comb += [
                fresh.eq(xorshift(state)),
                unit.state.eq(fresh),
                unit.mantissa.eq(mantissa),
                unit.shift.eq(shift),
                following.eq(gap + 1 + unit.gap),
                after.eq(Mux(following[-1], Const(-1, GAP_BITS), following)),
                after_state.eq(fresh),
                marked.eq(flips ^ one(gap[: (bits - 1).bit_length()])),
                counted.eq(count + 1),
                again.eq(after < bits),
            ]
        gap, state, flips, count, draws = after, after_state, marked, counted, again
    return flips, count, Mux(draws, 0, gap - bits), state


class Gap(wiring.Component):
    """One gap from one random state. ``mantissa`` and ``shift`` as for :func:`~bentpipe_hdl.bit_errors.scale_of`.

    Parameters
    ----------
    pipelined : bool
        A gap a clock, ``LATENCY`` clocks after its state, for an FPGA; else combinational.

    Members
    -------
    state : In(64)
        Its upper 48 bits are used; all zeros there count as one.
    mantissa : In(24)
    shift : In(6)
        The scale; to be constant while gaps are on their way.
    gap : Out(56)
        Good bits before the next error; the largest value where it would be more.
    """

    LATENCY = 8

    state: In(64)
    mantissa: In(24)
    shift: In(6)
    gap: Out(GAP_BITS)

    def __init__(self, *, pipelined=False):
        self.pipelined = pipelined
        super().__init__()

    def elaborate(self, platform):
        m = Module()

        def step(value, name):
            if not self.pipelined:
                return value
            held = Signal.like(value, name=name)
            m.d.sync += held.eq(value)
            return held

        value = Signal(64)
        m.d.comb += value.eq(Cat(Const(0, 15), ~self.state[16:].any(), self.state[16:]))
        leading, halves = Const(0, 0), ((32, 16, 8), (4, 2, 1))
        if self.pipelined:
            value, leading = (
                step(each, name) for each, name in zip(self._whole_octets(m), ("value8", "leading8"), strict=True)
            )
            halves = halves[1:]
        for half in halves:  # move the leading one to the top, counting
            for k in half:
                none = Signal(name=f"none{k}")
                moved = Signal(64, name=f"moved{k}")
                m.d.comb += [
                    none.eq(value[64 - k :] == 0),
                    moved.eq(Mux(none, Cat(Const(0, k), value[: 64 - k]), value)),
                ]
                value = moved
                leading = Cat(none, leading)
            value, leading = step(value, f"value{half[-1]}"), step(leading, f"leading{half[-1]}")
        slopes = data.StructLayout({"log": LOG_BITS + 1, "rise": 9})
        init = [{"log": TABLE[i], "rise": TABLE[i + 1] - TABLE[i]} for i in range(256)]
        m.submodules.table = table = memory.Memory(shape=slopes, depth=256, init=init)
        port = table.read_port(domain="comb")
        m.d.comb += port.addr.eq(value[55:63])
        slope, along = step(port.data, "slope"), step(value[47:55], "along")
        leading = step(leading, "leading")
        rise, least = step((slope.rise * along) >> 8, "rise"), step(slope.log, "least")
        leading = step(leading, "leading_held")
        log = Signal(LOG_BITS + 1)
        exponent = Signal(23)
        m.d.comb += [
            log.eq(least + rise),
            exponent.eq(((leading + 1) << LOG_BITS) - log),
        ]
        product = Signal(64)
        m.d.comb += product.eq(self._times_mantissa(step(exponent, "exponent_held"), step) << 16)
        shifted = Signal(64)
        m.d.comb += shifted.eq(step(product, "product_held") >> self.shift)
        gap = Mux(shifted[GAP_BITS:].any(), Const(-1, GAP_BITS), shifted)[:GAP_BITS]
        m.d.comb += self.gap.eq(step(gap, "gap_held"))
        return m

    def _whole_octets(self, m):
        """Return the value with its leading one in the highest octet, and by how many octets it has moved; on a device
        in half of the time that one step after the other takes."""
        count, moved = Signal(3, name="zeros"), Signal(64, name="moved8")
        m.d.comb += [count.eq(6), moved.eq(1 << 63)]
        for k in reversed(range(6)):
            with m.If(self.state[56 - 8 * k : 64 - 8 * k].any()):
                m.d.comb += count.eq(k)
        with m.Switch(count):
            for k in range(6):
                with m.Case(k):
                    m.d.comb += moved.eq(Cat(Const(0, 16 + 8 * k), self.state[16 : 64 - 8 * k]))
        return moved, count

    def _times_mantissa(self, exponent, step):
        """Return the product; on a device, what its multipliers make each, and the sum a clock later."""
        if not self.pipelined:
            return exponent * self.mantissa
        low, high = (
            [
                step(factor * self.mantissa[i : i + FACTOR_BITS], f"product{i}_{k}") << i + k
                for k, factor in ((0, exponent[:FACTOR_BITS]), (FACTOR_BITS, exponent[FACTOR_BITS:]))
            ]
            for i in (0, FACTOR_BITS)
        )
        return (low[0] + low[1]) + (high[0] + high[1])
