"""Means over seeds and their intervals."""

import math
import random

import pytest

from bentpipe.results.statistics import mean_of, t_quantile

TABLE = {  # Student's distribution, two-sided 95 % and 99 %: any book's table
    1: (12.7062, 63.6567),
    2: (4.3027, 9.9248),
    3: (3.1824, 5.8409),
    4: (2.7764, 4.6041),
    9: (2.2622, 3.2498),
    19: (2.0930, 2.8609),
    30: (2.0423, 2.7500),
    100: (1.9840, 2.6259),
    120: (1.9799, 2.6174),
}


@pytest.mark.parametrize("freedom", TABLE)
def test_students_distribution_is_that_of_the_tables(freedom):
    found = [t_quantile(p, freedom) for p in (0.975, 0.995)]
    assert found == pytest.approx(TABLE[freedom], rel=2e-5)


def test_sum_and_expansion_meet():
    assert t_quantile(0.995, 101) == pytest.approx((t_quantile(0.995, 100) + t_quantile(0.995, 102)) / 2, rel=1e-5)


def test_mean_sigma_and_interval():
    found = mean_of([1.0, 2.0, 3.0, 6.0])
    assert (found.count, found.mean, found.least, found.most) == (4, 3.0, 1.0, 6.0)
    assert found.sigma == pytest.approx(math.sqrt(14 / 3))
    assert found.half == pytest.approx(3.18245 * math.sqrt(14 / 3) / 2, rel=1e-5)


def test_one_value_has_no_interval():
    found = mean_of([5.0])
    assert (found.count, found.mean, found.sigma, found.half) == (1, 5.0, None, None)


def test_the_interval_has_the_mean_in_95_of_100_cases():
    rng, hits = random.Random(7), 0
    for _ in range(2000):
        found = mean_of([rng.gauss(3, 2) for _ in range(4)])
        assert found.half is not None
        hits += abs(found.mean - 3) <= found.half
    assert 1870 <= hits <= 1930
