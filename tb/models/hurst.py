"""The Hurst parameter of a series: by local Whittle, and by wavelets."""

from __future__ import annotations

import numpy as np

__all__ = ["local_whittle", "wavelet"]

_DB3 = np.array([
    0.33267055295008261599, 0.80689150931109257649, 0.45987750211849157009,
    -0.13501102001025458869, -0.08544127388202666169, 0.03522629188570953660,
])  # fmt: skip
"""Daubechies' filter with three vanishing moments (Ten Lectures on Wavelets, table 6.1)."""


def local_whittle(series: np.ndarray, exponent: float = 0.7) -> float:
    """By the periodogram at the first n**exponent frequencies (Robinson 1995)."""
    n = len(series)
    m = int(n**exponent)
    periodogram = np.abs(np.fft.rfft(series - series.mean())[1 : m + 1]) ** 2
    frequencies = 2 * np.pi * np.arange(1, m + 1) / n

    def objective(h: float) -> float:
        return np.log(np.mean(frequencies ** (2 * h - 1) * periodogram)) - (2 * h - 1) * np.mean(np.log(frequencies))

    low, high = 0.01, 0.999
    ratio = (5**0.5 - 1) / 2
    while high - low > 1e-6:  # golden section
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, two) if objective(one) < objective(two) else (one, high)
    return (low + high) / 2


def wavelet(series: np.ndarray, first: int = 3) -> float:
    """By the energy of details, octave by octave from ``first`` on (Abry and Veitch 1998).

    The slope of its logarithm is 2 H - 1; octaves with 32 coefficients or more are weighed by their number.
    """
    detail = _DB3[::-1] * (-1.0) ** np.arange(len(_DB3))
    approximation, octave = np.asarray(series, dtype=float), 0
    points = []
    while len(approximation) >= 64 + len(_DB3):
        octave += 1
        details = np.convolve(approximation, detail, "valid")[::2]
        approximation = np.convolve(approximation, _DB3, "valid")[::2]
        if octave >= first and len(details) >= 32:
            bias = -1 / (len(details) * np.log(2))  # of the logarithm of a mean of squares
            points.append((octave, np.log2(np.mean(details**2)) - bias, len(details)))
    j, y, weight = np.array(points).T
    mean = np.average(j, weights=weight)
    slope = np.sum(weight * (j - mean) * y) / np.sum(weight * (j - mean) ** 2)
    return float((slope + 1) / 2)
