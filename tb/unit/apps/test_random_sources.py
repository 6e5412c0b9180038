"""Markov-modulated cells, fractional Gaussian noise, M/Pareto sessions: means, variances, dependence as in theory.

Bounds are four standard deviations or more of what is estimated; the seeds are fixed. ``make soak`` has longer series.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from bentpipe.apps.count_source import CountSource
from bentpipe.apps.draws import RandomStream
from bentpipe.apps.fgn import FractionalNoise, paths
from bentpipe.apps.markov import Markov
from bentpipe.apps.mpareto import Sessions, mean_length
from bentpipe.apps.settings import FlowRequest
from bentpipe.cli import main
from models.hurst import local_whittle, sessions_spectrum, wavelet

OC3 = 149_760_000
MS = 10**9


def slots_of(app: Markov, slots: int) -> np.ndarray:
    """Return which of the first slots have a cell."""
    found = np.zeros(slots)
    due = app.begin(0)
    while app.slot < slots:
        assert due == app.slot_ps()
        found[app.slot] += 1
        due = app.after(due)
    assert found.max() <= 1
    return found


@pytest.mark.parametrize(("loads", "slots"), [((1.0, 0.0), (10, 15)), ((0.6, 0.1), (40, 20)), ((0.0, 0.5), (1, 7))])
def test_markov_modulated_cells_have_the_mean_and_covariance_of_their_chain(loads, slots):
    cells = slots_of(Markov(OC3, loads, slots, RandomStream(5, 1)), 200_000)
    first, second = (each / sum(slots) for each in slots)
    mean = first * loads[0] + second * loads[1]
    stays = 1 - 1 / slots[0] - 1 / slots[1]  # the second eigenvalue of the chain
    assert cells.mean() == pytest.approx(mean, abs=0.012)
    for lag in (1, 2, 5, 20):
        expected = first * second * (loads[0] - loads[1]) ** 2 * stays**lag
        found = np.mean((cells[lag:] - mean) * (cells[:-lag] - mean))
        assert found == pytest.approx(expected, abs=0.008)


def test_the_first_state_of_a_markov_modulated_source_is_drawn():
    first = [slots_of(Markov(OC3, (1.0, 0.0), (100, 300), RandomStream(1, k)), 1)[0] for k in range(400)]
    assert np.mean(first) == pytest.approx(0.25, abs=0.09)


def test_poisson_and_geometric_numbers_have_their_means_and_variances():
    draws = RandomStream(2, 3)
    for mean in (0.3, 7.0, 55.0):
        found = [draws.poisson(mean) for _ in range(4000)]
        assert np.mean(found) == pytest.approx(mean, abs=4.5 * math.sqrt(mean / 4000))
        assert np.var(found) == pytest.approx(mean, rel=0.12)
    found = Counter(draws.geometric(4) for _ in range(8000))
    for k in (1, 2, 5):
        assert found[k] / 8000 == pytest.approx(0.75 ** (k - 1) / 4, abs=0.02)
    assert {draws.geometric(1) for _ in range(10)} == {1}


def request(seed: int, number: int, **values: float) -> FlowRequest:
    return FlowRequest("udp", {"block": 500, "interval": MS} | values, seed=seed, number=number)


def noise(mean: float, sigma: float, hurst: float, reach: int, *stream: int) -> FractionalNoise:
    return FractionalNoise(request(*stream, mean=mean, sigma=sigma, hurst=hurst, reach=reach))


def sessions(count: float, hurst: float, least: int, *stream: int) -> Sessions:
    return Sessions(request(*stream, sessions=count, hurst=hurst, least=least))


def counts_of(app: CountSource, intervals: int) -> np.ndarray:
    """Blocks due in each of the first intervals."""
    found = np.zeros(intervals)
    due, before = app.begin(0), -1
    while due < intervals * app.interval_ps:
        assert due > before
        before = due
        found[due // app.interval_ps] += 1
        due = app.after(due)
    return found


def test_paths_of_noise_have_its_covariance():
    """Mean over many short paths, in each of which the first value is multiplied with others."""
    draws = RandomStream(7, 1)
    made = np.array([path for _ in range(800) for path in paths(128, 0.8, draws)])
    for k, expected in ((0, 1.0), (1, 0.5157), (10, 0.1912), (100, 0.0761)):
        found = np.mean(made[:, : 128 - k] * made[:, k:])
        assert found == pytest.approx(expected, abs=0.04)
    assert np.mean(made[::2] * made[1::2]) == pytest.approx(0, abs=0.02)  # of a pair of paths


@pytest.mark.parametrize("hurst", [0.6, 0.9])
def test_noise_has_its_mean_deviation_and_hurst_parameter(hurst):
    app = noise(40.0, 6.0, hurst, 2**13, 11, 4)
    counts = counts_of(app, 2**13)
    assert counts.mean() == pytest.approx(40, abs=4 * 6 * 2 ** (13 * (hurst - 1)))
    assert counts.std() == pytest.approx(6, rel=0.15)
    assert app.facts(0)["intervals_clipped"] == 0
    assert local_whittle(counts) == pytest.approx(hurst, abs=0.07)
    assert wavelet(counts) == pytest.approx(hurst, abs=0.07)


def test_noise_below_0_is_counted_and_a_second_path_follows():
    app = noise(1.0, 2.0, 0.7, 256, 11, 4)
    counts = counts_of(app, 1000)
    facts = app.facts(0)
    assert 0.1 < facts["intervals_clipped"] / facts["intervals"] < 0.4  # normal: P(x < -0.75) = 0.227
    assert not np.array_equal(counts[:256], counts[256:512])


def test_the_mean_length_of_a_session_is_the_sum_of_its_tail():
    for least, shape in ((1, 1.4), (5, 1.8)):
        tail = sum(min(1.0, (least / i) ** shape) for i in range(1, 200_001))
        rest = least**shape * 200_000.5 ** (1 - shape) / (shape - 1)
        assert mean_length(least, shape) == pytest.approx(tail + rest, rel=1e-6)


def test_sessions_under_way_are_poisson_from_the_beginning_on():
    begun = [sessions(8.0, 0.8, 3, 3, k) for k in range(1500)]
    for interval in range(3):
        found = [app.count_of_next() for app in begun]
        assert np.mean(found) == pytest.approx(8, abs=0.3), interval
        assert np.var(found) == pytest.approx(8, rel=0.16), interval


def test_sessions_are_as_dependent_as_their_lengths_say():
    """The covariance is that of lambda E(tau - k)+; it ends with many sessions, so the series need not be long."""
    shape, least = 1.8, 2
    series = [counts_of(sessions(30.0, 0.6, least, 9, k), 3000) for k in range(4)]
    rate = 30.0 / mean_length(least, shape)
    for lag in (1, 5, 20):
        beyond = np.minimum(1.0, (least / np.arange(lag + 1.0, 400_000)) ** shape).sum()
        found = np.mean([np.mean((x[lag:] - 30) * (x[:-lag] - 30)) for x in series])
        assert found == pytest.approx(rate * beyond, rel=0.25)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("flow.0.reach=1000", "--set flow.0.reach: 1000 is no power of two"),
        ("flow.0.hurst=0.4", "--set flow.0.hurst: 0.4 is out of range 0.5 to 0.99"),
        ("flow.0.sigma=4000", "--set flow.0.interval"),
        ("flow.0.mean=0", "--set flow.0.mean: hardly any interval would have a block"),
    ],
)
def test_settings_that_make_no_sense_are_a_line(setting, message, tmp_path, capsys):
    file = tmp_path / "x.toml"
    file.write_text(
        '[experiment]\nid = "x"\ntitle = "x"\nduration = "1 ms"\n[network.switches.lan]\n[network.hosts]\n'
        'a = { port = "lan:0" }\nb = { port = "lan:1" }\n[[flow]]\nsource = "a"\nsink = "b"\napp = "fgn"\n'
        'protocol = "udp"\nblock = "200 B"\ninterval = "1 ms"\nmean = 10\nsigma = 0.1\n'
    )
    more = [] if "interval" not in message else ["--set", "flow.0.interval=1 ms"]
    assert main(["show", str(file), "--set", setting, *more]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("hurst", "least"), [(0.6, 1), (0.8, 3)])
def test_the_exact_spectrum_of_sessions_is_the_sum_over_their_lengths(hurst, least):
    """Return the source as the soak of Hurst parameters uses it."""
    lengths = np.arange(1, 300_001)
    longer = np.minimum(1, least / lengths) ** (3 - 2 * hurst)
    share = np.append(longer[:-1] - longer[1:], longer[-1])
    found = sessions_spectrum(256, hurst, least)
    for k in (1, 2, 10, 128):
        w = 2 * np.pi * k / 256
        energy = (share * (1 - np.cos(w * lengths))).sum() / (1 - np.cos(w))
        assert found[k - 1] == pytest.approx(energy, rel=1e-4)
