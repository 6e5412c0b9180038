"""Hurst parameters of the long-range dependent sources over 2**20 intervals: ``python -m soak.hurst`` (``make soak``).

Each is estimated by local Whittle and by wavelets. Fractional Gaussian noise must be within 0.02 of what was asked for,
M/Pareto within 0.05. The seeds are fixed.

The number of sessions has its Hurst parameter in the limit of long times alone. So it is estimated from the lowest
n**0.6 frequencies, and from octave 8 on. At H = 0.6 a series of this length does not reach that limit: there local
Whittle must be within 0.05 of the value that follows from the exact spectrum. Whittle with that spectrum, whose
parameter is H, must be within 0.05 of H everywhere. Frequencies and bands follow from theory: with m frequencies the
standard deviation of local Whittle is 1 / (2 sqrt(m)), here 0.008.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from bentpipe.apps.count_source import CountSource
from bentpipe.apps.fgn import FractionalNoise
from bentpipe.apps.mpareto import Sessions
from bentpipe.apps.settings import FlowRequest
from models.hurst import local_whittle, periodogram, power_law, sessions_spectrum, wavelet, whittle

INTERVALS = 2**20
MS = 10**9


def noise(hurst: float, seed: int) -> CountSource:
    values = {"block": 500, "interval": MS, "mean": 400.0, "sigma": 40.0, "hurst": hurst, "reach": INTERVALS}
    return FractionalNoise(FlowRequest("udp", values, seed=seed))


def sessions(hurst: float, seed: int) -> CountSource:
    values = {"block": 500, "interval": MS, "sessions": 4.0, "hurst": hurst, "least": 1}
    return Sessions(FlowRequest("udp", values, seed=seed))


SOURCES = {"fgn": (noise, 0.02, (0.6, 0.7, 0.8, 0.9), 0.7, 3), "mpareto": (sessions, 0.05, (0.7, 0.8, 0.9), 0.6, 8)}
"""How each is made, how far its estimates may be off, values; exponent of the frequencies and first octave."""


def estimates(name: str, hurst: float, counts: np.ndarray) -> Iterator[tuple[str, float, float, float]]:
    """Yield how it is estimated, the estimate, what it should be, and the band."""
    _, most, values, exponent, first = SOURCES[name]
    if hurst in values:
        yield "local Whittle", local_whittle(counts, exponent), hurst, most
        yield "wavelets", wavelet(counts, first), hurst, most
    else:
        expected = power_law(sessions_spectrum(len(counts), hurst), exponent)
        yield "local Whittle", local_whittle(counts, exponent), expected, most
    if name == "mpareto":
        found = whittle(periodogram(counts), lambda h: sessions_spectrum(len(counts), h))
        yield "Whittle with the exact spectrum", found, hurst, most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    outside = 0
    for name, (make, *_) in SOURCES.items():
        for hurst in (0.6, 0.7, 0.8, 0.9):
            app = make(hurst, given.seed)
            counts = np.array([app.count_of_next() for _ in range(INTERVALS)], dtype=float)
            for how, found, expected, most in estimates(name, hurst, counts):
                wrong = abs(found - expected) > most
                outside += wrong
                message = "  OUTSIDE" if wrong else ""
                print(f"{name}, H {hurst}: {how}: {found:.4f} ({expected:.4g} within {most}){message}", flush=True)
    print(f"{outside} outside")
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
