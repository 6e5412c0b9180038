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
    "gamma": ("scale", "shape"),
    "mpeg": ("mean", "scene"),
}
"""The parameters of each; ``sigma``, ``shape`` and ``scene`` are plain numbers, the others quantities."""

_UNBOUNDED: Final = ("exponential", "lognormal", "pareto", "gamma", "mpeg")
_LEAST: Final = ("exponential", "lognormal", "gamma", "mpeg")
_SHARES: Final[dict[str, float]] = {"I": 1.0, "P": 0.5, "B": 0.25}
"""Mean size of a frame, of that of an I frame."""
_GROUP: Final = "IBBPBBPBBPBB"
_SCENE_SIGMA: Final = 0.5
_FRAME_SIGMA: Final = 0.2


@final
@dataclass(frozen=True)
class Distribution:
    """The probability distribution of a quantity.

    Parameters
    ----------
    name : str
        One of :data:`DISTRIBUTIONS`.
    first : int
        First parameter: ``value``, ``min``, ``mean`` or ``scale``, at least 1. The mean is the arithmetic one; that of
        ``mpeg`` is the mean of an I frame.
    second : float
        Second parameter: ``max``; ``sigma``, the standard deviation of the logarithm; ``shape``, the exponent of
        Pareto's tail, whose mean is infinite at 1 and below, or of the gamma distribution, whose mean is scale * shape;
        ``scene``, the mean length of a scene in frames.
    most : int
        Upper limit: a greater value counts as this; 0: no limit.
    least : int
        Lower limit: a smaller value counts as this.
    """

    name: str
    first: int
    second: float = 0.0
    most: int = 0
    least: int = 0

    def __post_init__(self) -> None:
        name, first, second, most = self.name, self.first, self.second, self.most
        if name not in DISTRIBUTIONS:
            raise ValueError(f"a distribution must be one of {', '.join(DISTRIBUTIONS)}, not {name!r}")
        if first < 1:
            raise ValueError(f"{DISTRIBUTIONS[name][0]} must be at least 1, not {first!r}")
        if name == "uniform" and second < first:
            raise ValueError("lower bound above upper bound")
        bound = 1e6 if name == "mpeg" else 100.0
        if len(DISTRIBUTIONS[name]) > 1 and name != "uniform" and not 0.0 < second <= bound:
            raise ValueError(f"{DISTRIBUTIONS[name][1]} must be more than 0 and at most {bound:g}, not {second!r}")
        if most and (most < max(first, self.least) or name not in _UNBOUNDED):
            raise ValueError(f"most must be at least {max(first, self.least)}, and goes with {', '.join(_UNBOUNDED)}")
        if self.least and name not in _LEAST:
            raise ValueError(f"least goes with {', '.join(_LEAST)}")

    def lowest(self) -> int:
        """Return the least value of the distribution."""
        return self.first if self.name in ("constant", "uniform", "pareto") else max(1, self.least)


@final
class RandomStream:
    """The random numbers of one flow, or of a part of it: they depend on the experiment's seed, the flow's number and
    the part's (-1: none), and nothing else."""

    def __init__(self, seed: int, flow: int, part: int = -1) -> None:
        self._random = random.Random(f"{seed} {flow}" if part < 0 else f"{seed} {flow} {part}")
        self._frame: int = 0  # of MPEG video: the number of the next frame, those left of its scene, the scene's size
        self._scene_left: int = 0
        self._scene: float = 1.0

    def uniform(self, low: int, high: int) -> int:
        """Return a whole number from low to high, both included, each as likely."""
        return low + int(self._random.random() * (high - low + 1))

    def share(self) -> float:
        """Return a uniform number from 0 to 1, without 1."""
        return self._random.random()

    def exponential(self, mean: int) -> int:
        """Return an exponentially distributed number with this mean, rounded up: 1 at least."""
        return 1 - int(mean * math.log(1.0 - self._random.random()))

    def geometric(self, mean: int) -> int:
        """Return a geometrically distributed number with this mean: 1 at least."""
        if mean <= 1:
            return 1
        return 1 + int(math.log(1.0 - self._random.random()) / math.log1p(-1.0 / mean))

    def poisson(self, mean: float) -> int:
        """Return a Poisson distributed number with this mean."""
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
        """Return a normally distributed number: mean 0, variance 1."""
        return self._random.gauss(0.0, 1.0)

    def draw(self, distribution: Distribution) -> int:
        """Return a number of this distribution: 1 at least."""
        name = distribution.name
        if name == "constant":
            return distribution.first
        if name == "uniform":
            return self.uniform(distribution.first, int(distribution.second))
        if name == "exponential":
            drawn = self.exponential(distribution.first)
        elif name == "lognormal":
            drawn = max(1, round(self._lognormal(float(distribution.first), distribution.second)))
        elif name == "gamma":
            drawn = max(1, round(self._random.gammavariate(distribution.second, float(distribution.first))))
        elif name == "mpeg":
            drawn = self._frame_size(distribution)
        else:
            drawn = int(distribution.first * (1.0 - self._random.random()) ** (-1.0 / distribution.second))
        if drawn < distribution.least:
            return distribution.least
        return distribution.most if distribution.most and drawn > distribution.most else drawn

    def _lognormal(self, mean: float, sigma: float) -> float:
        return math.exp(math.log(mean) - sigma * sigma / 2.0 + sigma * self._random.gauss(0.0, 1.0))

    def _frame_size(self, distribution: Distribution) -> int:
        """Return the octets of the next frame of MPEG video.

        They are lognormal about the mean of the frame's type. A scene of geometric length scales all its frames
        together (after Krunz and Hughes, "A traffic model for MPEG-coded VBR streams", 1995).
        """
        if self._scene_left == 0:
            self._scene_left = self.exponential(round(distribution.second))
            self._scene = self._lognormal(1.0, _SCENE_SIGMA)
        self._scene_left -= 1
        share = _SHARES[_GROUP[self._frame % len(_GROUP)]]
        self._frame += 1
        return max(1, round(self._lognormal(distribution.first * share * self._scene, _FRAME_SIGMA)))
