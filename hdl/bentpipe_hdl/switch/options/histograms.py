"""Histograms as software sees them."""

from typing import Final

BIN_BITS: Final = 6
BINS: Final = 1 << BIN_BITS
OCTAVE_BITS: Final = 2
SHIFT_BITS: Final = 5
