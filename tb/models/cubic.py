"""CUBIC's window by the formulas of RFC 9438, in segments and seconds; written from the RFC."""

from __future__ import annotations

import math

__all__ = ["BETA", "C", "cubic_k", "reduced", "w_cubic", "w_max_after"]

C = 0.4
"""Section 5.1."""
BETA = 0.7
"""Section 4.6."""


def w_max_after(cwnd: float, before: float, fast_convergence: bool = True) -> float:
    """W_max after a loss at ``cwnd``, where it was ``before`` (section 4.7)."""
    return cwnd * (1 + BETA) / 2 if fast_convergence and cwnd < before else cwnd


def reduced(window: float) -> float:
    """Return the factor on a window after a loss (section 4.6)."""
    return max(BETA * window, 2.0)


def cubic_k(w_max: float, cwnd_epoch: float) -> float:
    """Seconds until the window is W_max again (figure 2)."""
    return math.cbrt((w_max - cwnd_epoch) / C)


def w_cubic(t: float, w_max: float, cwnd_epoch: float) -> float:
    """The window ``t`` seconds after the congestion avoidance stage began with ``cwnd_epoch`` (figure 1)."""
    return C * (t - cubic_k(w_max, cwnd_epoch)) ** 3 + w_max
