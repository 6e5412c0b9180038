"""The registers that every link has, and why it takes a cell out. No Amaranth."""

from __future__ import annotations

from typing import Final

from bentpipe_hdl.bit_errors import GAP_BITS
from bentpipe_hdl.registers import Register

__all__ = ["CORE_REGISTERS", "GONE"]

GONE: Final = ("listed", "outage", "burst", "pattern")
"""Why a link takes a cell out."""

CORE_REGISTERS: Final = (
        Register(
            "delay", 0x0001, "from in to out, 1 and more (2 and more with a delay memory)", unit="ticks", reset=1
        ),
        Register("error_enable", 0x0002, "bit errors on", width=1),
        Register("error_mantissa", 0x0003, "scale of the gaps between errors", width=24),
        Register("error_shift", 0x0004, "scale of the gaps, binary places", width=6),
        Register("gap", 0x0010, "good bits before the next error", "wo", GAP_BITS, unit="bits"),
        Register("seed", 0x0012, "state of the generator, not 0", "wo", 64, reset=1),
        Register("cells", 0x0080, "that came in", "ro", unit="cells"),
        Register("errored", 0x0081, "with bit errors", "ro", unit="cells"),
        Register("corrected", 0x0082, "headers corrected", "ro", unit="cells"),
        Register("rejected", 0x0083, "headers with an error that was not corrected", "ro", unit="cells"),
        Register("error_bits", 0x0084, "inverted", "ro", unit="bits"),
        Register("lost", 0x0085, "that found the delay memory full", "ro", unit="cells"),
)  # fmt: skip
