"""Hints for the simulator: registers that almost always have one value, and bits on which to branch first.

They have no effect on hardware.

The native engine makes shorter bodies of a node, in which marked registers are constants: one for clocks at whose
beginning all marked registers have their values, and one for those at which at least all of :func:`rarely_changes` do.
So a mark saves time for strobes and for states that last, and costs time for a register that often has another value.
"""

from amaranth.hdl import Value

__all__ = ["branch_first", "rarely_changes", "usually"]


def branch_first(signal, turn, seldom=None):
    """Mark a bit on which most of the work of a clock depends, such as whether a cell leaves; return the bit.

    The native engine branches on it first (of several, on the one with the least ``turn``), and has a body for each
    value. ``seldom`` is the rare value, 0 or 1: its body is a function of its own. A mark pays where much work in
    different places depends on the bit. It costs a copy of all other work.
    """
    signal.attrs["bentpipe_decides"] = f"{turn}" if seldom is None else f"{turn} {seldom}"
    return signal


def usually(signal, value=0):
    """Mark a register that has this value in most clocks in which its node works, such as a frame strobe; return it."""
    Value.cast(signal).attrs["bentpipe_steady"] = value
    return signal


def rarely_changes(signal, value=0):
    """Mark a register that has this value for a long time, such as the state of an alarm; return it."""
    Value.cast(signal).attrs["bentpipe_settled"] = value
    return signal
