"""Distributions: their means and quantiles by formula, and how experiments write them."""

from __future__ import annotations

import math
from statistics import correlation, fmean, pvariance
from typing import Any

import pytest

from bentpipe.apps.draws import Distribution, RandomStream
from bentpipe.apps.settings import DRAWN, OCTETS, AppSetting

SETTING = AppSetting("response", OCTETS, None, "", DRAWN)


def drawn(distribution: Distribution, count: int = 40_000) -> list[int]:
    draws = RandomStream(7, 7)
    return sorted(draws.draw(distribution) for _ in range(count))


def test_a_constant() -> None:
    assert set(drawn(Distribution("constant", 5), 100)) == {5}


def test_uniform_numbers_have_their_bounds() -> None:
    assert set(drawn(Distribution("uniform", 3, 6.0), 1000)) == {3, 4, 5, 6}


def test_the_exponential_distribution() -> None:
    found = drawn(Distribution("exponential", 10**6))
    assert fmean(found) == pytest.approx(10**6, rel=0.02)
    assert found[len(found) // 2] == pytest.approx(math.log(2) * 10**6, rel=0.03)


@pytest.mark.parametrize("sigma", [0.2, 1.0])
def test_the_lognormal_distribution(sigma: float) -> None:
    """The mean is what is given; the median lies below it by exp(sigma ** 2 / 2)."""
    found = drawn(Distribution("lognormal", 10**6, sigma))
    assert fmean(found) == pytest.approx(10**6, rel=0.03)
    assert found[len(found) // 2] == pytest.approx(10**6 * math.exp(-sigma * sigma / 2), rel=0.03)
    high = math.exp(math.log(10**6) - sigma * sigma / 2 + 1.6449 * sigma)
    assert found[len(found) * 95 // 100] == pytest.approx(high, rel=0.04)


def test_paretos_distribution() -> None:
    """P(X > x) = (min / x) ** shape."""
    found = drawn(Distribution("pareto", 1000, 1.2))
    assert found[0] >= 1000
    for part in (0.5, 0.9, 0.99):
        assert found[int(part * len(found))] == pytest.approx(1000 * (1 - part) ** (-1 / 1.2), rel=0.08)


def test_the_gamma_distribution() -> None:
    """Mean and variance are shape * scale and shape * scale ** 2."""
    found = drawn(Distribution("gamma", 1000, 3.0))
    assert fmean(found) == pytest.approx(3000, rel=0.02)
    assert pvariance(found) == pytest.approx(3 * 1000**2, rel=0.04)


def test_frames_of_mpeg_video() -> None:
    """Groups of IBBPBBPBBPBB: I frames have the mean, P frames half, B frames a quarter; scenes scale them together."""
    draws, given = RandomStream(7, 7), Distribution("mpeg", 100_000, 20.0)
    groups = [[draws.draw(given) for _ in range(12)] for _ in range(8000)]
    for place, share in ((0, 1.0), (1, 0.25), (3, 0.5), (11, 0.25)):
        assert fmean(group[place] for group in groups) == pytest.approx(share * 100_000, rel=0.06)
    first, beside = ([group[place] for group in groups] for place in (0, 1))
    assert correlation(first, beside) > 0.7


def test_what_is_below_the_least_is_the_least() -> None:
    found = drawn(Distribution("exponential", 1000, least=500))
    assert found[0] == 500 and sum(x == 500 for x in found) / len(found) == pytest.approx(1 - math.exp(-0.5), rel=0.05)


def test_what_is_above_the_most_is_the_most() -> None:
    found = drawn(Distribution("pareto", 1000, 1.2, 5000))
    assert found[-1] == 5000
    assert sum(x == 5000 for x in found) / len(found) == pytest.approx(0.2**1.2, rel=0.05)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("10 kB", Distribution("constant", 10_000)),
        (["1 kB", "2 kB"], Distribution("uniform", 1000, 2000.0)),
        ({"distribution": "exponential", "mean": "10 kB"}, Distribution("exponential", 10_000)),
        ({"distribution": "lognormal", "mean": 500, "sigma": 2}, Distribution("lognormal", 500, 2.0)),
        ({"distribution": "pareto", "min": "1 kB", "shape": 1.2, "most": "1 MB"},
         Distribution("pareto", 1000, 1.2, 10**6)),
    ],
)  # fmt: skip
def test_how_a_distribution_is_written(written: Any, meant: Distribution) -> None:
    assert SETTING.read(written) == meant


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"mean": 3}, "a distribution is missing; known: constant,"),
        ({"distribution": "paretto"}, "unknown distribution 'paretto'"),
        ({"distribution": "pareto", "min": 3}, "pareto needs min and shape"),
        ({"distribution": "pareto", "min": 3, "mean": 3}, "pareto has no parameter 'mean'"),
        ({"distribution": "pareto", "min": 3, "shape": 0}, "shape must be more than 0"),
        ({"distribution": "pareto", "min": 30, "shape": 1, "most": 3}, "most must be at least 30"),
        ({"distribution": "exponential", "mean": "3 ms"}, "unknown unit of size 'ms'"),
        ([2, 1], "lower bound above upper bound"),
        ("0 B", "out of range"),
    ],
)
def test_what_is_wrong_with_a_distribution(written: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SETTING.read(written)
