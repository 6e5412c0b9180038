"""Synthetic channels, against vectors of the models that they follow."""

import itertools
import math
import statistics

import pytest

from bentpipe.channels import (
    EXCEEDANCE,
    Grid,
    LogNormal,
    Rain,
    handover_gaps,
    low_orbit_pass,
    rain_fade,
    reconfiguration_grid,
)
from bentpipe.cli import main
from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from unit.experiment.test_parse import TEXT


def test_the_fit_of_rain_is_that_of_the_recommendations_example():
    fit = LogNormal.fitted(EXCEEDANCE, 4.9095)
    assert (fit.sigma, fit.m, fit.offset_db) == pytest.approx((1.77862, -3.79361, 0.42643), abs=1e-5)


def test_rain_is_exceeded_as_long_as_the_distribution_says():
    """Over ten years by the minute: shares of the time are those of the log-normal distribution less its offset."""
    attenuation = rain_fade(3650 * 86400, 600, seed=3).columns["_attenuation_db"]
    fit = LogNormal.fitted(EXCEEDANCE, 4.9095)
    for db in (0.1, 0.6334, 1.3946):
        wanted = 1 - statistics.NormalDist(fit.m, fit.sigma).cdf(math.log(db + fit.offset_db))
        assert sum(each > db for each in attenuation) / len(attenuation) == pytest.approx(wanted, rel=0.15)
    assert sum(each == 0 for each in attenuation) / len(attenuation) == pytest.approx(0.951, abs=0.01)


def test_rain_forgets_as_fast_as_it_should():
    """After 600 s the correlation is 0.88692; attenuations so great that nothing of the process is cut off."""
    exceedance = {percent: 1e6 * db for percent, db in EXCEEDANCE.items()}
    fade = rain_fade(2e7, 600, seed=4, rain=Rain(exceedance, 99.99)).columns["_attenuation_db"]
    fit = LogNormal.fitted(exceedance, 99.99)
    state = [math.log(each + fit.offset_db) for each in fade]
    assert statistics.correlation(state[1:], state[:-1]) == pytest.approx(0.88692, abs=0.01)


def test_errors_follow_the_fade():
    columns = rain_fade(3e6, 60, seed=2, clear_db=10).columns
    rows = [*zip(columns["_attenuation_db"], columns["ber"], columns["outage"], strict=True)]
    assert rows[[a for a, _, _ in rows].index(0)][1] == pytest.approx(3.8721e-6, rel=1e-4)  # Q(sqrt(20))
    assert all(out == (ber == 1e-3) for _, ber, out in rows) and any(out for _, _, out in rows)
    assert all((fade > 3.21) == out for fade, _, out in rows if abs(fade - 3.21) > 0.01)  # 6.79 dB: 1e-3


@pytest.mark.parametrize(
    ("km", "top", "ranges", "above_25", "above_10"),
    [
        (550, 90, [550.00, 702.35, 1031.91], 269.3, 476.5),
        (550, 40, [812.07, 921.67], 213.7, 447.9),
        (1200, 90, [1200.00, 1264.69, 1441.27, 1694.66, 1995.16], 557.3, 875.3),
        (1200, 40, [1692.81, 1738.59, 1869.08, 2067.93], 428.2, 802.3),
    ],
)
def test_a_pass(km, top, ranges, above_25, above_10):
    for least, seconds in ((25, above_25), (10, above_10)):
        columns = low_orbit_pass(km, top, least_deg=least, step_s=0.05).columns
        assert columns["time"][-1] == pytest.approx(seconds, abs=0.1)
        middle = columns["time"][-1] / 2
        for number, wanted in enumerate(ranges):
            row = min(range(len(columns["time"])), key=lambda k: abs(columns["time"][k] - middle - 60 * number))
            assert columns["_range_km"][row] == pytest.approx(wanted, abs=0.3)
            assert columns["delay"][row] * 299_792.458 / 2 == pytest.approx(columns["_range_km"][row], abs=1e-3)
        assert columns["_elevation_deg"][0] == pytest.approx(least, abs=1e-3)
    rates = low_orbit_pass(km, top, rate_bps=10**8).columns["rate"]
    assert max(rates) == pytest.approx(10**8, rel=1e-3) and rates[0] < max(rates)


def test_gaps_of_hand_overs():
    columns = handover_gaps(1000, 100, gap_s=(0.1, 0.2), seed=5).columns
    begins = [t for t, out in zip(columns["time"], columns["outage"], strict=True) if out]
    ends = [t for t, out in zip(columns["time"], columns["outage"], strict=True) if not out][1:]
    assert len(begins) == 10 and all(0.1 <= b - a <= 0.2 for a, b in zip(begins, ends, strict=True))
    assert [b - a for a, b in itertools.pairwise(begins)] == pytest.approx([100] * 9)


def test_the_grid_of_a_constellation():
    columns = reconfiguration_grid(150_000, Grid(rate_bps=10**7), seed=6).columns
    assert columns["time"][:4] == [0, 0.14, 15, 15.14] and columns["outage"][:4] == [True, False, True, False]
    rtt = columns["_rtt"][::2]
    assert statistics.median(rtt) == pytest.approx(0.05, abs=0.001)
    step = statistics.fmean(abs(b - a) for a, b in itertools.pairwise(rtt))
    assert step == pytest.approx(0.0067, rel=0.05)
    assert statistics.median(columns["rate"]) == pytest.approx(10**7, rel=0.05)


def test_what_makes_no_series():
    for make in (
        lambda: rain_fade(0), lambda: rain_fade(1e9, 0.001), lambda: rain_fade(9, rain=Rain({1.0: 2.0})),
        lambda: rain_fade(9, rain=Rain(beta=0)), lambda: low_orbit_pass(1), lambda: low_orbit_pass(550, 20),
        lambda: handover_gaps(9, 1, gap_s=(1, 2)), lambda: reconfiguration_grid(9, Grid(gap_s=20)),
    ):  # fmt: skip
        with pytest.raises(BentpipeError):
            make()


@pytest.mark.parametrize("kind", ["rain", "pass", "handover", "grid"])
def test_a_series_of_the_command_drives_a_line_and_is_the_same_again(tmp_path, capsys, kind):
    file, again = tmp_path / "series.csv", tmp_path / "again.csv"
    for each in (file, again):
        assert main(["profile", kind, str(each)]) == 0
    assert file.read_bytes() == again.read_bytes() and file.read_text().startswith("# synthetic: ")
    assert "rows; " in capsys.readouterr().out
    assert main(["profile", kind, str(file)]) == 2
    assert "already exists" in capsys.readouterr().err
    text = TEXT[: TEXT.index("[[published]]")] + '\n[[profile]]\nfile = "series.csv"\nline = "wan"\n'
    (tmp_path / "two.toml").write_text(text)
    (profile,) = load(str(tmp_path / "two.toml")).profiles
    assert len(profile.times_ps) > 10
