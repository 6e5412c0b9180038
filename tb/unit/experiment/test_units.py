"""Quantities with units."""

import json
import re
from pathlib import Path

import pytest

from bentpipe_hdl.ticks import cell_period
from bentpipe_hdl.units import (
    LINE_RATES,
    MAX_RATE_BPS,
    MIN_RATE_BPS,
    TICK_PS,
    format_size,
    format_time,
    parse_rate,
    parse_size,
    parse_time,
    rate_names,
)

VECTORS = Path(__file__).parents[2] / "vectors"


@pytest.mark.parametrize(
    ("text", "ps"),
    [
        ("267 ms", 267_000_000_000),
        ("62us", 62_000_000),
        ("2 min", 120_000_000_000_000),
        ("0.1 ns", 100),
        (1.5, 1_500_000_000_000),
        (0, 0),
        ("1e-3 s", 1_000_000_000),
        (0.1, 100_000_000_000),
    ],
)
def test_times_are_exact_picoseconds(text, ps):
    assert parse_time(text) == ps


@pytest.mark.parametrize(
    ("text", "octets"), [("10 MiB", 10 * 2**20), ("1 GB", 10**9), ("800 kB", 800_000), (9180, 9180), ("64 KiB", 65536)]
)
def test_sizes_know_decimal_and_binary_units(text, octets):
    assert parse_size(text) == octets


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("OC-3c", 149_760_000),
        ("oc3", 149_760_000),
        ("OC-12c", 599_040_000),
        ("DS-3", 40_704_000),
        ("taxi", 98_148_000),
        ("ds3 direct", 44_209_694),
        ("E3", 33_920_000),
        ("TAXI-140", 137_407_407),
        ("e1", 1_920_000),
        ("T1", 1_536_000),
        ("70 Mb/s", 70_000_000),
        (MAX_RATE_BPS, MAX_RATE_BPS),
    ],
)
def test_rates_have_names_and_units(text, bps):
    assert parse_rate(text) == bps


@pytest.mark.parametrize(
    ("name", "vector"), [("DS-3", "DS3 PLCP"), ("DS-3 direct", "DS3 direct"), ("OC-3c", "OC-3c MTU9180")]
)
def test_named_rates_are_those_of_the_vectors(name, vector):
    row = json.loads((VECTORS / "rates.json").read_text())[vector]
    assert LINE_RATES[name] == pytest.approx(424 * row["cells_per_s"], abs=1)


@pytest.mark.parametrize("name", LINE_RATES)
def test_an_editor_takes_the_names_as_a_file_does(name):
    for text in (name, name.lower(), name.replace("-", "").replace(" ", "")):
        assert parse_rate(text) == LINE_RATES[name]
        assert re.search(rate_names(), text), text
    assert not re.search(rate_names(), f"{name}x") and not re.search(rate_names(), f"x{name}")


def test_frames_of_125_us_carry_whole_octets():
    """G.832's E3 has 530 octets for cells, G.804's E1 30 and DS1 24; PLCP 12 cells."""
    for name, octets in (("E3", 530), ("E1", 30), ("T1", 24), ("DS-3", 12 * 53)):
        assert LINE_RATES[name] == octets * 8 * 8000
    assert LINE_RATES["TAXI-140"] == round(140e6 * 53 / 54)


def test_the_highest_rate_is_one_cell_a_tick():
    assert MAX_RATE_BPS == 53 * 8 * 10**12 / TICK_PS == 2_396_160_000


def test_the_lowest_rate_has_a_period_by_any_clock():
    assert cell_period(parse_rate(MIN_RATE_BPS), -1000) < 1 << 40 <= cell_period(MIN_RATE_BPS, -1000) * 143 / 142


@pytest.mark.parametrize("value", [0, -1, "0 Mb/s", "-5 Mb/s", MAX_RATE_BPS + 1, "3 Gb/s"])
def test_impossible_rates_are_refused(value):
    with pytest.raises(ValueError, match="impossible rate"):
        parse_rate(value)


@pytest.mark.parametrize("value", ["fast", "5 parsecs", True, [1], float("inf"), float("nan"), "1e999999999 s", None])
def test_what_is_no_quantity_is_refused(value):
    for parse in (parse_time, parse_size, parse_rate):
        with pytest.raises(ValueError):
            parse(value)


def test_formats_choose_the_unit():
    assert format_time(267_000_000_000) == "267 ms"
    assert format_time(0) == "0 s"
    assert format_size(10 * 2**20) == "10 MiB"
    assert format_size(10**9) == "1 GB"
    for octets in (999, 1001, 65507, 52429, 2**30 - 1):
        assert parse_size(format_size(octets)) == octets
