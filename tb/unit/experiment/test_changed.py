"""Settings that were changed in a run, as curves over time."""

from __future__ import annotations

from typing import Any

import pytest

from bentpipe.plots.figures import figures
from bentpipe.plots.style import styled
from bentpipe.report.figures import figures_of
from bentpipe.results.changed import changed_over_time
from bentpipe.results.schema import RunResult, Writes
from unit.experiment.made_up import made_up

SECOND_PS = 10**12


def _changed(*writes: tuple[float, str, str, Any]) -> RunResult:
    """A run over a satellite, with writes at times in s."""
    result = made_up("acts-1flow")
    made: Writes = [(round(at_s * SECOND_PS), source, key, value) for at_s, source, key, value in writes]
    result.writes[:] = made
    return result


def _curves(result: RunResult) -> dict[str, dict[str, list[tuple[float, float]]]]:
    return {
        what.key: {
            name: [(at_ps / SECOND_PS, pytest.approx(value)) for at_ps, value in zip(*curve, strict=True)]
            for name, curve in what.curves.items()
        }
        for what in changed_over_time(result)
    }


def test_a_curve_begins_with_what_the_file_says_and_holds_each_value_to_the_end():
    result = _changed((2, "event", "network.lines.satellite.delay", "100 ms"))
    end_s = result.summary["time"]["simulated_s"]
    assert end_s > 2
    assert _curves(result) == {"delay": {"satellite": [(0, 267), (2, 100), (end_s, 100)]}}


def test_directions_that_change_apart_have_a_curve_each():
    result = _changed(
        (0, "profile fade.csv, out", "network.lines.satellite.ber", 1e-9),
        (1, "event", "network.lines.satellite.ber", 1e-7),
        (2, "profile fade.csv, back", "network.lines.satellite.ber", 1e-5),
        (2, "event", "network.lines.satellite.rate", [40e6, 20e6]),
    )
    end_s = result.summary["time"]["simulated_s"]
    (line,) = result.summary["resolved"]["network"]["lines"]
    out_bps, back_bps = line["rates_bps"]
    assert _curves(result) == {
        "ber": {
            "satellite, out": [(0, 1e-9), (1, 1e-7), (end_s, 1e-7)],
            "satellite, back": [(0, line["ber"][1]), (1, 1e-7), (2, 1e-5), (end_s, 1e-5)],
        },
        "rate": {
            "satellite, out": [(0, out_bps / 1e6), (2, 40), (end_s, 40)],
            "satellite, back": [(0, back_bps / 1e6), (2, 20), (end_s, 20)],
        },
    }


def test_other_settings_are_numbers_of_the_file_and_texts_are_left_out():
    result = _changed(
        (1, "request", "network.switches.west.epd_threshold", 1000),
        (1, "request", "network.switches.east.epd_threshold", 500),
        (1, "request", "network.switches.east.policy", "tail-drop"),
    )
    end_s = result.summary["time"]["simulated_s"]
    assert _curves(result) == {"epd_threshold": {"west": [(1, 1000), (end_s, 1000)], "east": [(1, 500), (end_s, 500)]}}
    (what,) = changed_over_time(result)
    assert (what.title, what.unit) == ("EPD threshold", "value in the file's unit")


def test_report_and_overview_show_them_below_the_other_figures():
    result = _changed(
        (1, "profile fade.csv", "network.lines.satellite.ber", 1e-6),
        (2, "profile fade.csv", "network.lines.satellite.ber", 0),
        (2, "profile fade.csv", "network.lines.satellite.outage", True),
    )
    with styled():
        overview = dict(figures(result))["overview"]
    titles = [axis.get_title(loc="left") for axis in overview.axes]
    assert titles[-2:] == ["Bit error ratio", "Outage of lines"]
    assert overview.axes[-2].get_yscale() == "log"
    shown = figures_of(result)
    assert [*shown][-2:] == ["changed-ber", "changed-outage"]
    (curve,) = shown["changed-ber"]["series"]
    assert curve["y"][-3:] == [1e-6, None, None]  # held until it can't be drawn on this axis
    assert sum(curve["x"][: len(curve["y"]) - 2]) == 2_000_000


def test_without_changes_there_is_nothing():
    result = _changed()
    assert changed_over_time(result) == []
    assert not [name for name in figures_of(result) if name.startswith("changed")]
