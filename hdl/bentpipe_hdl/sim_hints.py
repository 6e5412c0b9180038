"""Marks of registers that have one value in most clocks, or for a long time, and of what decides about a clock.

They change nothing in hardware. The simulation makes shorter bodies of a node for the clocks at whose beginning marked
registers have their values, and folds them into these as constants: one body for when all are steady, and one for when
at least all that are settled are. So a mark pays for strobes and for states that last, and costs for a register that
differs more often than it says.
"""

from amaranth.hdl import Value

__all__ = ["decides", "settled", "steady"]


def decides(signal, turn, seldom=None):
    """Mark a bit on which most of the work of a clock depends, such as whether a cell leaves; return the bit.

    The native engine branches on it first (of several, on the one with the least ``turn``), and has a body for each
    value. ``seldom`` is the rare value, 0 or 1: its body is a function of its own. A mark pays where much work in
    different places depends on the bit. It costs a copy of all other work.
    """
    signal.attrs["bentpipe_decides"] = f"{turn}" if seldom is None else f"{turn} {seldom}"
    return signal


def steady(signal, value=0):
    """Mark a register that has this value in most clocks in which its node works, such as a frame strobe; return it."""
    Value.cast(signal).attrs["bentpipe_steady"] = value
    return signal


def settled(signal, value=0):
    """Mark a register that has this value for a long time, such as the state of an alarm; return it."""
    Value.cast(signal).attrs["bentpipe_settled"] = value
    return signal
