"""The generic cell rate algorithm GCRA(I, L) in virtual scheduling form (I.371; TM 4.1), exact to 2**-16 ticks.

Of a bucket is kept ``E = TAT - L``, the earliest time at which the next cell conforms: a cell at ``t`` conforms if
``t >= E``, and then ``E`` becomes ``max(t - L, E) + I``, which is ``TAT = max(t, TAT) + I``. So whoever polices and
whoever shapes by the same contract do the same sum, and a change of ``L`` leaves the time of the next cell as it is.

A cell that does not conform is at most ``I`` early, ever: an ``E`` that seems further ahead is past, from before the
time wrapped, or was left by a contract with a longer ``I``, and holds nobody up.
"""

from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from ..cell import FRACTION_BITS, TIME_BITS

__all__ = ["Due", "Sizes", "gcra"]


@dataclass(frozen=True)
class Sizes:
    """Bits of a bucket's times, all with fraction bits.

    Members
    -------
    fraction : int
    time : int
        Of ``E`` and the present tick: ticks modulo 2**48.
    increment : int
        Of ``I``: below 2**24 ticks, 3 s.
    limit : int
        Of ``L``: below 2**32 ticks, 760 s.
    """

    fraction: int = FRACTION_BITS
    time: int = TIME_BITS + FRACTION_BITS
    increment: int = 24 + FRACTION_BITS
    limit: int = 32 + FRACTION_BITS

    @property
    def ticks(self) -> int:
        """Bits of the present tick."""
        return self.time - self.fraction


class Due(NamedTuple):
    """A bucket's verdict on a cell that arrives now.

    Members
    -------
    early : Value
        The cell does not conform. Narrow: valid a clock after its sources.
    after : Value
        The new ``E`` if the cell conforms. Narrow: valid two clocks after its sources.
    """

    early: Value
    after: Value


def gcra(m, slot, name, sizes, *, now, earliest, started, increment, limit):
    """Build a bucket's sum.

    Parameters
    ----------
    m : Module
    slot : TickSchedule
    name : str
    sizes : Sizes
    now : Value
        The present tick.
    earliest, started : Value
        ``E``, and whether it is there: the first cell conforms.
    increment, limit : Value
        ``I`` and ``L``.

    Returns
    -------
    Due
    """
    instant = Cat(Const(0, sizes.fraction), now)
    behind, start, after = (Signal(sizes.time, name=f"{name}_{part}") for part in ("behind", "start", "after"))
    m.d.comb += [behind.eq(instant - earliest), start.eq(instant - limit)]
    early = slot.pipe(started & (~behind < increment), f"{name}_early")  # it is 1 to I early
    behind, start = slot.pipe(behind, f"{name}_behind_held"), slot.pipe(start, f"{name}_start_held")
    anew, full, less = (
        slot.pipe(value, f"{name}_{part}")
        for part, value in (
            ("anew", ~started | (behind > limit)),
            ("full", (start + increment)[: sizes.time]),
            ("less", (earliest + increment)[: sizes.time]),
        )
    )
    m.d.comb += after.eq(Mux(anew, full, less))
    return Due(early, after)
