"""GCRA: the vectors, the equivalence of its two forms, burst lengths, paced lines."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.gcra import LeakyBucket, Pacer, VirtualScheduling, back_to_back

GCRA = json.loads((Path(__file__).parents[2] / "vectors" / "gcra.json").read_text())["vectors"]

gaps = st.lists(st.fractions(0, 20, max_denominator=8), max_size=60)
sizes = st.fractions(0, 20, max_denominator=8)


@pytest.mark.parametrize("form", [VirtualScheduling, LeakyBucket])
@pytest.mark.parametrize("vector", GCRA, ids=lambda v: v["name"])
def test_vectors(form, vector):
    gcra = form(Fraction(vector["I"]), Fraction(vector["L"]))
    assert [int(gcra.conforms(Fraction(t))) for t in vector["times"]] == vector["conform"]


@given(sizes, sizes, gaps)
def test_both_forms_agree(increment, limit, gaps):
    time, a, b = Fraction(0), VirtualScheduling(increment, limit), LeakyBucket(increment, limit)
    for gap in gaps:
        time += gap
        assert a.conforms(time) == b.conforms(time)


@given(st.fractions(Fraction(9, 8), 20, max_denominator=8), sizes)
def test_burst_back_to_back(increment, limit):
    gcra = VirtualScheduling(increment, limit)
    burst = 0
    while burst < 1000 and gcra.conforms(burst):
        burst += 1
    assert burst == min(1000, back_to_back(increment, limit))


@given(st.fractions(1, 20, max_denominator=16), gaps)
def test_what_a_pacer_sends_conforms(period, gaps):
    pacer, gcra, time = Pacer(period), VirtualScheduling(period, 0), Fraction(0)
    for gap in gaps:
        time += gap
        if pacer.ready(time):
            pacer.sent(time)
            assert gcra.conforms(time)


@pytest.mark.parametrize(("tolerance", "cells"), [(1, 1001), (0, 917)])
def test_a_saturated_line_polled_at_whole_units(tolerance, cells):
    """With period 2.75 the cell due at 2750 is number 1000, counted from 0. Without tolerance each cell is late
    by a fraction of a unit that is never made up: one in 3 units."""
    pacer = Pacer(Fraction(11, 4), tolerance)
    sent = 0
    for now in range(2750):
        if pacer.ready(now):
            pacer.sent(now)
            sent += 1
    assert sent == cells
