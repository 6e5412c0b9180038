"""Marks of registers that nearly always have one value."""

from amaranth.hdl import Value

__all__ = ["steady"]


def steady(signal, value=0):
    """Mark a register as one that has this value in nearly all clocks at which its node works; gives the register.

    It changes nothing in hardware. The simulation makes a second, shorter body of the node for the clocks at whose
    beginning all marked registers have their values, and folds them into it as constants: so it pays for strobes and
    for states that last, and costs for a register that often differs.
    """
    Value.cast(signal).attrs["bentpipe_steady"] = value
    return signal
