"""Hurst parameters of the long-range dependent sources over 2**20 intervals: ``python -m soak.hurst`` (``make soak``).

Each is estimated by local Whittle and by wavelets. Fractional Gaussian noise must be within 0.02 of what was asked for,
M/Pareto within 0.05. The seeds are fixed.

The number of sessions has its Hurst parameter in the limit of long times alone. So it is estimated from the lowest
n**0.6 frequencies, and from octave 8 on. At H = 0.6 a series of this length does not reach that limit.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from bentpipe.apps.count_source import CountSource
from bentpipe.apps.fgn import FractionalNoise
from bentpipe.apps.mpareto import Sessions
from bentpipe.apps.settings import FlowRequest
from models.hurst import local_whittle, wavelet

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    outside = 0
    for name, (make, most, values, exponent, first) in SOURCES.items():
        for hurst in values:
            app = make(hurst, given.seed)
            counts = np.array([app.count_of_next() for _ in range(INTERVALS)], dtype=float)
            for how, found in (
                ("local Whittle", local_whittle(counts, exponent)),
                ("wavelets", wavelet(counts, first)),
            ):
                wrong = abs(found - hurst) > most
                outside += wrong
                said = "  OUTSIDE" if wrong else ""
                print(f"{name}, H {hurst}: {how}: {found:.4f} (within {most}){said}", flush=True)
    print(f"{outside} outside")
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
