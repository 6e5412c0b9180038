"""Random numbers of applications."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Final, final

__all__ = ["DISTRIBUTIONS", "Distribution", "RandomStream"]

DISTRIBUTIONS: Final[dict[str, tuple[str, ...]]] = {
    "constant": ("value",),
    "uniform": ("min", "max"),
    "exponential": ("mean",),
    "lognormal": ("mean", "sigma"),
    "pareto": ("min", "shape"),
}
"""The parameters of each; ``sigma`` and ``shape`` are plain numbers, the others quantities."""

_UNBOUNDED: Final = ("exponential", "lognormal", "pareto")


@final
@dataclass(frozen=True)
class Distribution:
    """How a quantity is drawn.

    Parameters
    ----------
    name : str
        One of :data:`DISTRIBUTIONS`.
    first : int
        Its first parameter: ``value``, ``min`` or ``mean``, at least 1. The mean is the arithmetic one.
    second : float
        Its second: ``max``; ``sigma``, the standard deviation of the logarithm; ``shape``, the exponent of Pareto's
        tail, whose mean is infinite at 1 and below.
    most : int
        What is drawn above this counts as this; 0: as it is.
    """

    name: str
    first: int
    second: float = 0.0
    most: int = 0

    def __post_init__(self) -> None:
        name, first, second, most = self.name, self.first, self.second, self.most
        if name not in DISTRIBUTIONS:
            raise ValueError(f"a distribution must be one of {', '.join(DISTRIBUTIONS)}, not {name!r}")
        if first < 1:
            raise ValueError(f"{DISTRIBUTIONS[name][0]} must be at least 1, not {first!r}")
        if name == "uniform" and second < first:
            raise ValueError("lower bound above upper bound")
        if name in ("lognormal", "pareto") and not 0.0 < second <= 100.0:
            raise ValueError(f"{DISTRIBUTIONS[name][1]} must be more than 0 and at most 100, not {second!r}")
        if most and (most < first or name not in _UNBOUNDED):
            raise ValueError(f"most must be at least {first}, and goes with {', '.join(_UNBOUNDED)}")


@final
class RandomStream:
    """The random numbers of one flow, or of a part of it: they depend on the experiment's seed, the flow's number and
    the part's (-1: none), and nothing else."""

    def __init__(self, seed: int, flow: int, part: int = -1) -> None:
        self._random = random.Random(f"{seed} {flow}" if part < 0 else f"{seed} {flow} {part}")

    def uniform(self, low: int, high: int) -> int:
        """A whole number from low to high, both included, each as likely."""
        return low + int(self._random.random() * (high - low + 1))

    def share(self) -> float:
        """From 0 to 1, without 1."""
        return self._random.random()

    def exponential(self, mean: int) -> int:
        """Exponentially distributed with this mean, rounded up: 1 at least."""
        return 1 - int(mean * math.log(1.0 - self._random.random()))

    def geometric(self, mean: int) -> int:
        """Geometrically distributed with this mean: 1 at least."""
        if mean <= 1:
            return 1
        return 1 + int(math.log(1.0 - self._random.random()) / math.log1p(-1.0 / mean))

    def poisson(self, mean: float) -> int:
        """Poisson distributed with this mean."""
        count = 0
        while mean > 0.0:  # a sum of parts whose exponentials are numbers
            part = mean if mean < 16.0 else 16.0
            mean -= part
            left, product = math.exp(-part), self._random.random()
            while product > left:
                count += 1
                product *= self._random.random()
        return count

    def gauss(self) -> float:
        """Normally distributed: mean 0, variance 1."""
        return self._random.gauss(0.0, 1.0)

    def draw(self, distribution: Distribution) -> int:
        """A number of this distribution: 1 at least."""
        name = distribution.name
        if name == "constant":
            return distribution.first
        if name == "uniform":
            return self.uniform(distribution.first, int(distribution.second))
        if name == "exponential":
            drawn = self.exponential(distribution.first)
        elif name == "lognormal":
            sigma = distribution.second
            mu = math.log(distribution.first) - sigma * sigma / 2.0
            drawn = max(1, round(math.exp(mu + sigma * self._random.gauss(0.0, 1.0))))
        else:
            drawn = int(distribution.first * (1.0 - self._random.random()) ** (-1.0 / distribution.second))
        return distribution.most if distribution.most and drawn > distribution.most else drawn
