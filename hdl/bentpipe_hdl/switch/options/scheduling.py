"""FIFO, weights and priorities as software sees them."""

from typing import Final

PRIORITIES: Final = 4
WEIGHT_BITS: Final = 8
