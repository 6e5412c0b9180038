"""The Hurst parameter of a series: by local Whittle, by wavelets, by Whittle with the spectrum of M/Pareto."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["local_whittle", "periodogram", "power_law", "sessions_spectrum", "wavelet", "whittle"]

_DB3 = np.array([
    0.33267055295008261599, 0.80689150931109257649, 0.45987750211849157009,
    -0.13501102001025458869, -0.08544127388202666169, 0.03522629188570953660,
])  # fmt: skip
"""Daubechies' filter with three vanishing moments (Ten Lectures on Wavelets, table 6.1)."""


def local_whittle(series: np.ndarray, exponent: float = 0.7) -> float:
    """By the periodogram at the first n**exponent frequencies (Robinson 1995)."""
    return power_law(periodogram(series), exponent)


def power_law(energy: np.ndarray, exponent: float) -> float:
    """Local Whittle of a periodogram; of a spectrum, what the estimate is in the mean of many."""
    frequencies = _frequencies(2 * len(energy))
    return whittle(energy, lambda h: frequencies ** (1 - 2 * h), exponent)


def whittle(energy: np.ndarray, spectrum: Callable[[float], np.ndarray], exponent: float = 0.8) -> float:
    """By a spectrum that is known but for H and a factor, at the first n**exponent frequencies."""
    m = int((2 * len(energy)) ** exponent)

    def objective(h: float) -> float:
        density = spectrum(h)[:m]
        return np.log(np.mean(energy[:m] / density)) + np.mean(np.log(density))

    low, high = 0.01, 0.999
    ratio = (5**0.5 - 1) / 2
    while high - low > 1e-6:  # golden section
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, two) if objective(one) < objective(two) else (one, high)
    return (low + high) / 2


def periodogram(series: np.ndarray) -> np.ndarray:
    """Return the energy at each frequency but 0."""
    return np.abs(np.fft.rfft(series - series.mean())[1:]) ** 2


def _frequencies(n: int) -> np.ndarray:
    return 2 * np.pi * np.arange(1, n // 2 + 1) / n


def sessions_spectrum(n: int, hurst: float, least: int = 1) -> np.ndarray:
    """The spectral density of M/Pareto at the frequencies of n intervals, but for a factor.

    A session of t intervals has the energy (1 - cos w t) / (1 - cos w) at a frequency w, and sessions are independent.
    P(t >= i) is (least / i)**(3 - 2 H) from ``least`` on. Lengths that differ by n look alike at these frequencies, so
    their probabilities are summed up: by the formula of Euler and Maclaurin behind the first 8 of them.
    """
    shape, first = 3 - 2 * hurst, 8
    residue = np.arange(1, n + 2, dtype=float)  # P(t >= i) of i and of i + n, i + 2 n, ...
    above = np.zeros(n + 1)
    for k in range(first):
        above += np.minimum(1.0, least / (residue + k * n)) ** shape
    rest = residue + first * n
    tail = rest / (n * (shape - 1)) + 0.5 + shape * n / (12 * rest)
    above += (least / rest) ** shape * tail
    lengths = np.roll(above[:-1] - above[1:], 1)
    cosine = np.fft.rfft(lengths).real[1:]
    return (lengths.sum() - cosine) / (1 - np.cos(_frequencies(n)))


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
