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
            "delay", 0x0001, "delay of a cell, 1 and more (2 and more with a delay memory)", unit="ticks", reset=1
        ),
        Register("error_enable", 0x0002, "bit errors enabled", width=1),
        Register("error_mantissa", 0x0003, "scale of the gaps between errors", width=24),
        Register("error_shift", 0x0004, "scale of the gaps between errors, binary places", width=6),
        Register("gap", 0x0010, "bits without errors before the next error", "wo", GAP_BITS, unit="bits"),
        Register("seed", 0x0012, "state of the generator, not 0", "wo", 64, reset=1),
        Register("cells", 0x0080, "cells received", "ro", unit="cells"),
        Register("errored", 0x0081, "cells with bit errors", "ro", unit="cells"),
        Register("corrected", 0x0082, "cells whose header was corrected", "ro", unit="cells"),
        Register("rejected", 0x0083, "cells whose header had an error that was not corrected", "ro", unit="cells"),
        Register("error_bits", 0x0084, "bits inverted", "ro", unit="bits"),
        Register("lost", 0x0085, "cells that found the delay memory full", "ro", unit="cells"),
)  # fmt: skip
