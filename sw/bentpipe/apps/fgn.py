"""Blocks whose numbers per interval are fractional Gaussian noise: long-range dependent."""

from __future__ import annotations

from typing import Any, Final, final

from bentpipe.apps.app import Fact
from bentpipe.apps.blocks import BLOCK, LATE_BLOCKS, blocks_fit
from bentpipe.apps.count_source import CountSource
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.settings import OCTETS, SPAN, ApplicationSpec, AppSetting, Column, FlowRequest, Problem, Report
from bentpipe.declarations import REQUIRED
from bentpipe_hdl.units import COUNT, NUMBER

__all__ = ["APPLICATION", "HURST", "FractionalNoise", "check_interval", "paths"]

HURST: Final = NUMBER.within(0.5, 0.99, name="Hurst parameter")
PER_INTERVAL: Final = NUMBER.within(0.0, 1e6, name="blocks")
_LEAST_GAP_PS: Final = 100_000


def paths(length: int, hurst: float, draws: RandomStream) -> tuple[list[float], list[float]]:
    """Return two independent paths of fractional Gaussian noise, of mean 0 and variance 1.

    They are exact, by circulant embedding (Davies and Harte 1987).

    Parameters
    ----------
    length : int
        A power of two.
    """
    import numpy

    np: Any = numpy
    k, twice = np.arange(length + 1, dtype=float), 2.0 * hurst
    covariance = (np.abs(k + 1) ** twice - 2 * k**twice + np.abs(k - 1) ** twice) / 2
    eigenvalues = np.fft.fft(np.concatenate([covariance, covariance[length - 1 : 0 : -1]])).real
    noise = np.array([draws.gauss() for _ in range(4 * length)])
    mixed = noise[: 2 * length] + 1j * noise[2 * length :]
    found = np.fft.fft(np.sqrt(np.maximum(eigenvalues, 0.0) / (2 * length)) * mixed)[:length]
    return found.real.tolist(), found.imag.tolist()


@final
class FractionalNoise(CountSource):
    """In each interval ``mean + sigma x`` blocks, rounded; none where that is below 0. x is fractional Gaussian noise.

    Members
    -------
    mean, sigma : float
        Of the blocks in an interval.
    hurst : float
    reach : int
        Intervals of a path, a power of two: one path follows another, and those are independent.
    """

    def __init__(self, given: FlowRequest) -> None:
        v = given.values
        super().__init__("fgn", v["block"], v["interval"], given.size, given.duration_ps)
        self.mean: float = v["mean"]
        self.sigma: float = v["sigma"]
        self.hurst: float = v["hurst"]
        self.reach: int = v["reach"]
        self.draws = RandomStream(given.seed, given.number)
        self.path: list[float] = []
        self.other: list[float] = []
        self.at = 0
        self.intervals = 0
        self.clipped = 0

    def count_of_next(self) -> int:
        if self.at == len(self.path):
            self.at = 0
            if self.other:
                self.path, self.other = self.other, []
            else:
                self.path, self.other = paths(self.reach, self.hurst, self.draws)
        count = int(self.mean + self.sigma * self.path[self.at] + 0.5 + 1e6) - 10**6  # rounded, below 0, too
        self.at += 1
        self.intervals += 1
        if count < 0:
            self.clipped += 1
            return 0
        return count

    def facts(self, now_ps: int) -> dict[str, Fact]:
        facts = super().facts(now_ps)
        facts["intervals"] = self.intervals
        facts["intervals_clipped"] = self.clipped
        return facts


def check_interval(given: FlowRequest, most: float) -> Problem:
    """Return a problem unless so many blocks fit an interval, at least 0.1 us apart."""
    interval = given.values["interval"]
    if most * _LEAST_GAP_PS > interval:
        return "interval", f"{most:.0f} blocks may be in an interval: they need {most / 1e4:.3g} ms at least"
    return blocks_fit(given)


def _check(given: FlowRequest) -> Problem:
    v = given.values
    if v["reach"] & (v["reach"] - 1):
        return "reach", f"{v['reach']} is no power of two"
    if v["mean"] + 2 * v["sigma"] < 0.5:
        return "mean", "hardly any interval would have a block: give a larger mean, or a longer interval"
    return check_interval(given, v["mean"] + 6 * v["sigma"])


APPLICATION: Final = ApplicationSpec(
    "fgn",
    "blocks whose numbers per interval are fractional Gaussian noise (long-range dependent)",
    (
        AppSetting("block", OCTETS, REQUIRED, "octets a block", word=BLOCK[0], also=BLOCK[1]),
        AppSetting("interval", SPAN, REQUIRED, "time for which the number of blocks is drawn", unit="s"),
        AppSetting("mean", PER_INTERVAL, REQUIRED, "blocks in an interval, in the mean"),
        AppSetting("sigma", PER_INTERVAL, REQUIRED, "standard deviation of the blocks in an interval"),
        AppSetting("hurst", HURST, 0.8, "Hurst parameter"),
        AppSetting(
            "reach",
            COUNT.within(2, 2**20),
            2**16,
            "intervals over which there is dependence, a power of two: then comes another, independent path",
        ),
    ),
    FractionalNoise,
    _check,
    report=Report(
        LATE_BLOCKS.title,
        (
            *LATE_BLOCKS.columns,
            Column("intervals", "", "intervals that began"),
            Column("intervals_clipped", "", "of these, intervals in which fewer blocks than none were drawn"),
        ),
        LATE_BLOCKS.shown_with,
    ),
)
