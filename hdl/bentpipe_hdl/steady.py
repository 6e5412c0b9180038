"""Marks of registers that have one value in most clocks, or for a long time, and of what decides about a clock.

They change nothing in hardware. The simulation makes shorter bodies of a node for the clocks at whose beginning marked
registers have their values, and folds them into these as constants: one body for when all are steady, and one for when
at least all that are settled are. So a mark pays for strobes and for states that last, and costs for a register that
differs more often than it says.
"""

from amaranth.hdl import Value

__all__ = ["decides", "settled", "steady"]


def decides(signal, turn, seldom=None):
    """Mark one bit on which most of what a clock does depends, like whether a cell leaves: the simulation asks it first
    (of several, those with the least ``turn``), and has a body for each answer; that for the one which is ``seldom``
    given, 0 or 1, is a function of its own. Gives the bit. So a mark pays where much is under the bit in different
    places, and costs a copy of all else."""
    signal.attrs["bentpipe_decides"] = f"{turn}" if seldom is None else f"{turn} {seldom}"
    return signal


def steady(signal, value=0):
    """Mark a register as one that has this value in most clocks in which its node works, like a strobe that comes in
    every frame; gives the register."""
    Value.cast(signal).attrs["bentpipe_steady"] = value
    return signal


def settled(signal, value=0):
    """Mark a register as one that has this value for a long time, like the state of an alarm; gives the register."""
    Value.cast(signal).attrs["bentpipe_settled"] = value
    return signal
