"""Histograms as the switch has them: bins of equal width, or four to each doubling."""

from __future__ import annotations

import math

__all__ = ["bin_of"]

BINS = 64


def bin_of(value: int, *, width: int, logarithmic: bool) -> int:
    """The bin, 0 to 63, in which a value falls. Up to four widths bins are one width wide; logarithmic ones have then
    the lower bounds 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 … widths."""
    units = value // width
    if logarithmic and units >= 4:
        octave = int(math.log2(units) + 1e-12)
        while 2**octave > units:
            octave -= 1
        quarter = int((units - 2**octave) / (2**octave / 4))
        return min(4 * (octave - 1) + quarter, BINS - 1)
    return min(units, BINS - 1)
