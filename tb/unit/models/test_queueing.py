"""The formulas against cells that are served one by one, and against each other."""

import itertools
import json
import math
import random
from math import comb
from pathlib import Path

import numpy as np
import pytest

from models import queueing
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


VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "queueing.json").read_text())["models"]

OF_VECTORS = {
    "M/D/1, cells in the system at most": lambda rho, most: queueing.md_1_k_loss(rho, most - 1),
    "Poisson batches": lambda rho, k: one_state(queueing.poisson_batch(rho), k),
    "binomial batches": lambda n, rho, k: one_state(
        np.array([comb(n, i) * (rho / n) ** i * (1 - rho / n) ** (n - i) for i in range(n + 1)]), k
    ),
    "frames at once": lambda b, rho, k: one_state(np.eye(b + 1)[0] * (1 - rho / b) + np.eye(b + 1)[b] * rho / b, k),
    "Geo/D/1/K": lambda p, s, k: queueing.markov_d_1_k_loss((p, p), (2, 3), s, k),
    "N*D/D/1/K, steady": queueing.periodic_loss,
    "N*D/D/1, work above x": queueing.nd_d_1_work_above,
    "D-MMPP(2)": lambda one, two, p12, p21, k: queueing.mmpp_loss((one, two), (p12, p21), k),
    "on-off inputs": queueing.on_off_loss,
}
LARGEST = {"N*D/D/1/K, steady": 700, "Geo/D/1/K": 30, "on-off inputs": 13_000, "N*D/D/1, work above x": 1e9}
"""Vectors whose parameters have a larger product take longer."""


def one_state(batch, places):
    return queueing.batch_loss([batch], np.ones((1, 1)), places)


@pytest.mark.parametrize("model", OF_VECTORS)
def test_losses_are_those_of_other_programs(model):
    """Each figure of the vectors was found by two methods, neither of which is ours."""
    rows = [
        row
        for row in VECTORS[model]["rows"]
        if math.prod(each for each in row[:-1] if each > 1) <= LARGEST.get(model, 5000)
    ]
    assert len(rows) >= 4
    for *parameters, expected in rows:
        found = OF_VECTORS[model](*parameters)
        if model.startswith("M/D/1") and found < 1e-7:  # a least-squares solution: digits of 1
            continue
        assert found == pytest.approx(expected, rel=2e-6, abs=1e-15), parameters


@pytest.mark.parametrize("places", [1, 2, 5])
def test_cells_of_a_modulated_source_by_serving_them(places):
    loads, slots, service = (0.9, 0.05), (30, 60), 3
    draw = random.Random(places)
    state = wait = came = lost = 0
    for _ in range(150_000):
        if draw.random() < loads[state]:
            came += 1
            if wait >= service * places:
                lost += 1
            else:
                wait += service
        wait = max(wait - 1, 0)
        if draw.random() < 1 / slots[state]:
            state = 1 - state
    assert lost / came == pytest.approx(queueing.markov_d_1_k_loss(loads, slots, service, places), rel=0.05)
