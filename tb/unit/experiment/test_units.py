"""Quantities with units."""

import pytest

from bentpipe_hdl.units import (
    MAX_RATE_BPS,
    TICK_PS,
    format_size,
    format_time,
    parse_rate,
    parse_size,
    parse_time,
)


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
        ("70 Mb/s", 70_000_000),
        (MAX_RATE_BPS, MAX_RATE_BPS),
    ],
)
def test_rates_have_names_and_units(text, bps):
    assert parse_rate(text) == bps


def test_the_highest_rate_is_one_cell_a_tick():
    assert MAX_RATE_BPS == 53 * 8 * 10**12 / TICK_PS == 2_396_160_000


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
