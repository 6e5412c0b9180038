"""The formulas against cells that are served one by one, and against each other."""

import itertools
import random

import pytest

from models.queueing import (
    geo_d_1_k_found,
    geo_d_1_k_loss,
    geo_d_1_k_wait,
    geo_d_1_wait,
    md_1_k_loss,
    nd_d_1_k_loss,
    nd_d_1_k_loss_by_enumeration,
    nd_d_1_wait,
    nd_d_1_wait_by_enumeration,
)


def test_geo_d_1_with_many_places_is_that_with_all():
    assert geo_d_1_k_wait(0.2, 4, 60) == pytest.approx(geo_d_1_wait(0.2, 4), rel=1e-6)
    assert geo_d_1_k_loss(0.2, 4, 60) < 1e-9


@pytest.mark.parametrize(("load", "places"), [(0.225, 3), (0.4, 2), (0.1, 1)])
def test_geo_d_1_k_by_serving_cells(load, places):
    rng, ends, wait, lost, cells, found = random.Random(1), [], 0, 0, 0, 0
    for slot in range(400_000):
        if rng.random() < load:
            cells += 1
            ends = [end for end in ends if end > slot]
            waits = max(0, ends[-1] - slot) if ends else 0
            waiting = len([end for end in ends if end - 4 >= slot])  # not begun before this slot
            found += waiting
            if waiting >= places:
                lost += 1
            else:
                ends.append(slot + waits + 4)
                wait += waits
    assert lost / cells == pytest.approx(geo_d_1_k_loss(load, 4, places), rel=0.05)
    assert found / cells == pytest.approx(geo_d_1_k_found(load, 4, places), rel=0.05)
    assert wait / (cells - lost) == pytest.approx(geo_d_1_k_wait(load, 4, places), rel=0.03)


@pytest.mark.parametrize(("sources", "period", "service"), [(2, 5, 2), (3, 7, 2), (4, 6, 1), (3, 9, 3)])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_nd_d_1_by_all_choices_of_slots(sources, period, service, rounds):
    by_all = nd_d_1_wait_by_enumeration(sources, period, service, rounds)
    assert nd_d_1_wait(sources, period, service, rounds) == pytest.approx(float(by_all), abs=1e-9)


def test_many_sources_are_nearly_a_poisson_process():
    """N*D/D/1 of many sources comes near M/D/1 from below."""
    md1 = 0.5 * 4 / (2 * 0.5)
    few, many = nd_d_1_wait(4, 32, 4), nd_d_1_wait(12, 96, 4)
    assert few < many < md1


@pytest.mark.parametrize(
    ("sources", "period", "service", "places"), [(3, 6, 2, 1), (4, 7, 3, 1), (4, 7, 3, 2), (5, 5, 4, 2)]
)
@pytest.mark.parametrize("through", [0, 1])
def test_losses_of_nd_d_1_k_by_all_choices_of_slots(sources, period, service, places, through):
    by_all = nd_d_1_k_loss_by_enumeration(sources, period, service, places, through)
    assert nd_d_1_k_loss(sources, period, service, places, through) == pytest.approx(float(by_all), abs=1e-12)


@pytest.mark.parametrize(("rho", "places"), [(0.6, 2), (0.6, 6), (0.9, 4)])
def test_with_many_slots_a_service_geo_d_1_k_is_m_d_1_k(rho, places):
    exact = md_1_k_loss(rho, places)
    off = [geo_d_1_k_loss(rho / slots, slots, places) / exact - 1 for slots in (8, 16, 32, 64)]
    assert all(abs(more) < 0.6 * abs(less) for less, more in itertools.pairwise(off)) and abs(off[-1]) < 0.08
