"""Figures beside theory: the estimator, and what the catalogue says that theory predicts."""

from __future__ import annotations

import random

import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.document.catalogue import catalogue, find, read_document
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.results.theory import beside_theory, ratio
from models.queueing import geo_d_1_k_found, geo_d_1_k_loss, geo_d_1_k_wait, geo_d_1_wait, nd_d_1_wait
from models.red import balanced


def test_the_interval_has_the_ratio_in_99_of_100_runs() -> None:
    rng, hits = random.Random(4), 0
    for _ in range(1000):
        batches = []
        for _ in range(20):
            cells = rng.randrange(50, 150)
            batches.append((sum(rng.expovariate(0.2) for _ in range(cells)), cells))
        found = ratio(batches)
        assert found is not None
        hits += abs(found.value - 5) <= found.half
    assert 975 <= hits <= 998


def test_the_first_interval_is_left_out_and_what_begins_later_was_nothing() -> None:
    times = list(range(0, 1300, 100))
    per = [0, 5, *(5 + 10 * k for k in range(1, 12))]
    growth = ([0, *times[2:]], [0, *(4 * k for k in range(1, 12))])
    (row,) = beside_theory(
        [{"growth": "a.x", "per": "a.y", "predicted": 4.1, "scale": 10.0}], {"a.x": growth, "a.y": (times, per)}
    )
    assert (row["ours"], row["half"], row["batches"], row["holds"]) == (4.0, 0.0, 11, False)


def test_too_few_batches_make_no_figure() -> None:
    series = {"a.x": ([0, 1, 2], [0, 1, 2]), "a.y": ([0, 1, 2], [0, 1, 2])}
    (row,) = beside_theory([{"growth": "a.x", "per": "a.y", "predicted": 1, "scale": 1}], series)
    assert (row["ours"], row["half"], row["holds"]) == (None, None, None)


ROUNDS = 20
PREDICTED = {
    "theory-geo-d-1": lambda: [1 + 4 * geo_d_1_wait(0.2, 4), geo_d_1_k_found(0.2, 4, 60)],
    "theory-geo-d-1-k": lambda: [geo_d_1_k_loss(0.225, 4, 3), 1 + 4 * geo_d_1_k_wait(0.225, 4, 3)],
    "theory-red": lambda: [*(5 + 10 * balanced(16, wait=wait) / 0.2 for wait in (True, False)), 1 / 16, 1 / 16],
    "theory-nd-d-1": lambda: [1 + nd_d_1_wait(6, 120, 16, ROUNDS) - nd_d_1_wait(6, 120, 1, ROUNDS)],
}


@pytest.mark.parametrize("name", PREDICTED)
def test_what_the_catalogue_predicts_is_what_theory_does(name: str) -> None:
    document, _ = read_document(catalogue()[name])
    assert [row["predicted"] for row in document["theory"]] == pytest.approx(PREDICTED[name](), rel=2e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"growth": "lan:2.delays"}, "no flow, switch or port is called 'lan:2'"),
        ({"per": "lan:1"}, "'lan:1' alone is no series"),
    ],
)
def test_a_series_that_can_not_be_there_is_refused(change: dict[str, str], message: str) -> None:
    document, text = read_document(find("theory-geo-d-1"))
    document["theory"][0] |= change
    with pytest.raises(ConfigError, match=message):
        parse_experiment(document, Source("x.toml", text))
