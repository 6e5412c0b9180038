"""Random bit errors as software sets them up: the scale of the gaps between them, the first gap, the generator's state.

The gaps themselves are drawn in RTL (:mod:`bentpipe_hdl.link.gap`).
"""

from __future__ import annotations

import hashlib
import math
import random

__all__ = ["GAP_BITS", "LOG_BITS", "MAX_BER", "MIN_BER", "ErrorStart", "scale_of", "scale_of_length"]

GAP_BITS = 56
LOG_BITS = 16

MIN_BER, MAX_BER = 1e-15, 1e-3


def scale_of(rate: float) -> tuple[int, int]:
    """Return ``(mantissa, shift)`` of a bit error rate.

    The gap is ``(e * mantissa << 16) >> shift``, with ``e`` the value of ``-log2(U)`` with 16 fraction bits.

    Raises
    ------
    ValueError
        The rate is not between 1e-15 and 1e-3.
    """
    if not MIN_BER <= rate <= MAX_BER:
        raise ValueError(f"a bit error rate must be from 1e-15 to 1e-3, not {rate!r}")
    return _scale(rate)


def scale_of_length(mean: float) -> tuple[int, int]:
    """Return ``(mantissa, shift)`` of states that last 1 and the gap.

    It is as :func:`scale_of`, for a ``mean`` of 1 or more.
    """
    return (0, 0) if mean <= 1 else _scale(1 / mean)


def _scale(rate: float) -> tuple[int, int]:
    scale = -math.log(2) / math.log1p(-rate)
    mantissa, exponent = math.frexp(scale)  # scale = mantissa * 2**exponent, 0.5 <= mantissa < 1
    return min(round(mantissa * (1 << 24)), (1 << 24) - 1), LOG_BITS + 16 + 24 - exponent


class ErrorStart:
    """The start of a line's random bit errors, from a seed and the line's name; the same for any kind of line."""

    def __init__(self, seed: int, name: str):
        self._seed, self._name = seed, name
        digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        self._draw = random.Random(digest)
        self.state = int.from_bytes(digest[:8], "little") or 1

    def other(self, what: str) -> ErrorStart:
        """Return the start of another random process of the line."""
        return ErrorStart(self._seed, f"{self._name}/{what}")

    def gap(self, rate: float) -> int:
        """Return the number of good bits before the first error."""
        if rate >= 1:
            return 0
        return min(int(math.log(1.0 - self._draw.random()) / math.log1p(-rate)), (1 << GAP_BITS) - 1)
