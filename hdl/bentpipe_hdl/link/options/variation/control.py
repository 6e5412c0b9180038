"""Cell delay variation as software sees it: a table of the quantile function of its distribution."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from bentpipe_hdl.bit_errors import ErrorStart
from bentpipe_hdl.link.options.base import LinkOption
from bentpipe_hdl.link.options.faults.control import LOSS_ONE
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import NUMBER, SHARE, TIME, Settings, wrong
from bentpipe_hdl.ticks import TICK_PS, round_ticks

__all__ = ["OPTION", "POINTS", "ReorderSettings", "VariationSettings"]

POINTS: Final = 256
"""Rows of the table: the probabilities between two of them are equal."""

_LEAST: Final = 1 / (4 * POINTS)
"""Instead of the probabilities 0 and 1, whose quantiles may be infinite: this one and the rest."""


_WEIGHT: Final = NUMBER.within(0.0, 1e15, name="weight")


class VariationSettings(Settings):
    """Additional delay of each cell: independent random times."""

    distribution: Literal["uniform", "normal", "exponential", "pareto", "histogram"] = Field(
        description="distribution: uniform (0 to twice the mean), normal (not below 0), exponential, pareto, histogram"
    )
    mean_ps: Annotated[int, TIME.within(0, "500 ms")] | None = Field(
        default=None, description="mean of the additional delay; not of a histogram, which has its own"
    )
    deviation_ps: Annotated[int, TIME.within(0, "500 ms")] | None = Field(
        default=None, description="standard deviation, of the normal distribution"
    )
    shape: Annotated[float, NUMBER.within(1.01, 100.0, name="shape")] | None = Field(
        default=None, description="shape of the Pareto distribution, above 1"
    )

    file: str | None = Field(default=None, description="CSV file of a histogram, with the columns `delay` and `weight`")
    histogram: tuple[tuple[Annotated[int, TIME.within(0, "500 ms")], Annotated[float, _WEIGHT]], ...] | None = Field(
        default=None, description="histogram, instead of `file`: delays and weights"
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for key, kind in (("deviation", "normal"), ("shape", "pareto")):
            given = getattr(self, "deviation_ps" if key == "deviation" else key)
            if (self.distribution == kind) != (given is not None):
                raise wrong(f"{key!r} goes with distribution = {kind!r}, which needs it", key)
        drawn = self.distribution == "histogram"
        if (self.mean_ps is None) != drawn:
            raise wrong("a histogram has a mean of its own" if drawn else "the distribution needs its mean", "mean")
        if drawn != ((self.file is None) != (self.histogram is None)) or (self.file and self.histogram):
            raise wrong("give either 'file' or 'histogram' with distribution = 'histogram', and neither without it")
        if self.histogram is not None and not sum(weight for _, weight in self.histogram):
            raise wrong("a histogram has a weight above 0", "histogram")
        return self

    def quantiles(self) -> list[float]:
        """Return the times in ps that are exceeded with probabilities from 1 to 0, ``POINTS`` steps."""
        return [max(0.0, self._quantile()(min(max(k / POINTS, _LEAST), 1 - _LEAST))) for k in range(POINTS + 1)]

    def _quantile(self) -> Callable[[float], float]:
        if self.distribution == "histogram":
            return _steps(self.histogram or ((0, 1.0),))
        mean = float(self.mean_ps or 0)
        if self.distribution == "uniform":
            return lambda p: 2 * mean * (0 if p <= _LEAST else 1 if p >= 1 - _LEAST else p)
        if self.distribution == "exponential":
            return lambda p: 0.0 if p <= _LEAST else -mean * math.log(1 - p)
        if self.shape is not None:
            shape, scale = self.shape, mean * (self.shape - 1) / self.shape
            return lambda p: scale * (1 if p <= _LEAST else 1 - p) ** (-1 / shape)
        deviation = float(self.deviation_ps or 0)
        return NormalDist(mean, deviation).inv_cdf if deviation else lambda _: mean


def _steps(histogram: Sequence[tuple[int, float]]) -> Callable[[float], float]:
    """Return the quantiles of a histogram: the least delay that a share of the weights does not exceed."""
    rows = sorted((delay, weight) for delay, weight in histogram if weight > 0)
    shares = [*accumulate(weight for _, weight in rows)]

    def quantile(share: float) -> float:
        share = 0.0 if share <= _LEAST else 1.0 if share >= 1 - _LEAST else share
        return float(rows[min(bisect_left(shares, share * shares[-1] * (1 - 1e-12)), len(rows) - 1)][0])

    return quantile


class ReorderSettings(Settings):
    """Cells that overtake: a share of them takes a shorter time."""

    share: Annotated[float, SHARE] = Field(description="share of the cells that overtake others")
    by_ps: Annotated[int, TIME.within(0, "500 ms")] = Field(description="time by which their delay is shorter")


def table_of(settings: Any) -> list[tuple[int, int]]:
    """Return the rows of the table for ``LinkSettings``: ticks at a probability, and how many more at the next."""
    variation, reorder = settings.variation, settings.reorder
    by = 0 if reorder is None else round_ticks(reorder.by_ps)
    times = [0.0] * (POINTS + 1) if variation is None else variation.quantiles()
    ticks = [by + round(time / TICK_PS) for time in times]
    return [(low, high - low) for low, high in pairwise(ticks)]


class Variation(LinkOption):
    """Random additional delays of cells."""

    name = "variation"
    place = 3
    needs = ("path",)

    def registers(self) -> tuple[Register, ...]:
        return (
            Register("variation_enable", 0x0048, "random additional delay enabled", width=1),
            Register("variation_early", 0x0049, "share of cells without additional delay, 1 / 2**31", most=LOSS_ONE),
            Register("variation_seed", 0x004A, "state of its generator, not 0", "wo", 64, reset=1),
            Register("variation_cells", 0x0092, "cells without additional delay", "ro", unit="cells"),
            Register(
                "variation", 0x30000,
                "quantiles of the additional delay: ticks at k / 256; bits 24 to 47: difference to the next one",
                "wo", 48, POINTS,
            ),
        )  # fmt: skip

    def seed(self, csr: Registers, start: ErrorStart) -> None:
        csr.variation_seed = start.other("variation").state

    def refuse(self, settings: Any) -> None:
        if settings.varies:
            raise ValueError("this link is built without delay variation")

    def apply(self, csr: Registers, settings: Any) -> None:
        csr.variation_enable = int(settings.varies)
        csr.variation_early = round(settings.reorder.share * LOSS_ONE) if settings.reorder is not None else 0

    def begin(self, csr: Registers, settings: Any, start: ErrorStart) -> None:
        rows: Sequence[tuple[int, int]] = table_of(settings) if settings.varies else ()
        for number, (low, rise) in enumerate(rows):
            csr.variation[number] = low | rise << 24

    def counters(self, csr: Registers) -> dict[str, Any]:
        return {"early": csr.variation_cells}


OPTION: Final = Variation()
