"""Plots can be read: no text on another, none cut off, many flows as a band, and nothing that misleads."""

import itertools
import re
import subprocess
import sys
from array import array

import pytest
from matplotlib.text import Text

from bentpipe.experiment.load import load_cases
from bentpipe.experiment.run.run import cases_head
from bentpipe.plots.cases import case_figure
from bentpipe.plots.figures import PLOTS, figures
from bentpipe.plots.series import held, quantiles
from bentpipe.plots.style import COLOURS, styled
from bentpipe.report.cases import cases_html, sum_up_cases
from bentpipe.report.run import make_report
from bentpipe.results.metrics import BEST_TCP_BPS, deliverable_bits, most_deliverable
from unit.experiment.made_up import SAMPLES, made_up, some_cases

SHAPES = ("acts-1flow", "lan-3flows", "fall-floyd-4", "netspec-cbr", "netspec-100")
CASES = ("magic-mismatch", "magic-window", "acts-variants")


@pytest.fixture(autouse=True)
def no_plots_of_single_panels(monkeypatch):
    """Draw no plots of single panels: these are in the overview, too, and drawing takes time."""
    for name in ("windows", "losses", "queues-drops"):
        monkeypatch.delitem(PLOTS, name)


def texts(figure):
    """Every text that is to be seen, with its place in pixels."""
    figure.draw_without_rendering()
    seen = []
    for axis in figure.axes:
        seen += [*axis.texts, axis.xaxis.label, axis.yaxis.label]
        seen += [text for text in axis.findobj(Text) if text.get_text() == axis.get_title(loc="left")]
        seen += axis.get_legend().get_texts() if axis.get_legend() else []
        for which, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
            low, high = min(limits), max(limits)
            inside = [tick for tick in which.get_major_ticks() if low <= tick.get_loc() <= high]
            seen += [tick.label1 for tick in inside] + [tick.label2 for tick in inside]
    shown = {id(text): text for text in seen if text.get_visible() and text.get_text().strip()}
    return [(text.get_text(), text.get_window_extent()) for text in shown.values()]


def check(figure):
    """No text on another or across the figure's edge, and no text in a panel."""
    placed = texts(figure)
    assert len(placed) > 5
    for (one, a), (two, b) in itertools.combinations(placed, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        along = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 0.5 or along <= 0.5, f"{one!r} stands on {two!r}"
    for text, box in placed:
        edge = figure.bbox
        assert box.x0 >= edge.x0 - 0.5 and box.x1 <= edge.x1 + 0.5, f"{text!r} is cut off"
        assert box.y0 >= edge.y0 - 0.5 and box.y1 <= edge.y1 + 0.5, f"{text!r} is cut off"
        for axis in figure.axes:
            high = min(box.y1, axis.bbox.y1) - max(box.y0, axis.bbox.y0)
            wide = min(box.x1, axis.bbox.x1) - max(box.x0, axis.bbox.x0)
            assert high <= 1 or wide <= 1, f"{text!r} stands in a panel"


def check_units(figure):
    panels = [axis for axis in figure.axes if axis.get_title(loc="left")]
    for axis in panels:
        assert axis.get_ylabel() in ("Mb/s", "kB", "cells", "datagrams", "segment number") or re.fullmatch(
            r"cells per [\d.]+ s|flow, as in the table", axis.get_ylabel()
        )
    assert panels[-1].get_xlabel() == "simulated time (s)"


def drawn(result, *only):
    """Return the figures by name. Drawing takes time: of those in ``PLOTS``, ``only`` these if some are named."""
    with styled(), pytest.MonkeyPatch.context() as patch:
        for name in [name for name in PLOTS if only and name not in only]:
            patch.delitem(PLOTS, name)
        return dict(figures(result))


def titles(figure):
    return [title for axis in figure.axes if (title := axis.get_title(loc="left"))]


def labels(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


@pytest.mark.parametrize("name", SHAPES)
def test_no_text_of_a_run_stands_on_another_and_all_axes_have_units(name):
    with styled():
        for figure in drawn(made_up(name, peak=40_000_000)).values():
            check(figure)
            check_units(figure)


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_no_text_over_the_cases_stands_on_another(name, short):
    summary = some_cases(name, not short)
    with styled():
        check(case_figure(summary))


def test_what_was_not_recorded_has_no_panel(tmp_path):
    some = drawn(made_up("fall-floyd-4"), "overview")
    assert titles(some["overview"]) == ["Throughput at the sinks", "Congestion windows"]
    nothing = made_up("lan-3flows", "record.what=[]")
    assert drawn(nothing) == {}
    make_report(tmp_path, nothing)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "<figure" not in (tmp_path / "report.html").read_text()


def test_no_panel_of_drops_without_drops():
    result = made_up("lan-3flows")
    for _, values in (data for key, data in result.trace.series.items() if ".drops." in key):
        values[:] = array("q", [0] * SAMPLES)
    assert titles(drawn(result, "overview")["overview"])[-1] == "Cells queued in the switches"


def test_many_flows_are_a_heat_map_and_a_band():
    figure = drawn(made_up("netspec-100"), "overview")["overview"]
    assert titles(figure)[:3] == [
        "Throughput at the sinks",
        "Throughput of each of the 100 flows",
        "Congestion windows of 92 flows",
    ]
    throughput, each, windows, lost = figure.axes[:4]
    assert len(throughput.lines) <= 2 and "all 100" in labels(throughput)
    (image,) = each.images
    assert image.get_array().shape == (100, SAMPLES - 1)
    assert image.get_array()[99, 0] == pytest.approx(11_000 * 8 / 0.1 / 1e6)
    assert len(windows.lines) <= 2 and len(windows.collections) == 2
    assert labels(lost) == ["all 8"]


def test_more_than_the_lines_carry_is_explained_where_it_is_seen():
    steep = drawn(made_up("lan-3flows", peak=1_000_000))
    for name in ("overview", "throughput"):
        axis = steep[name].axes[0]
        assert "limit of the lines, 134.5 Mb/s" in labels(axis)
        (message,) = axis.texts
        assert "waited behind a lost segment" in message.get_text().replace("\n", " ")
        (line,) = [line for line in axis.lines if line.get_label().startswith("limit of the lines")]
        assert line.get_ydata()[0] == pytest.approx(134.513, abs=0.001)
    gentle = drawn(made_up("lan-3flows"), "overview")["overview"].axes[0]
    assert not gentle.texts and "limit of the lines, 134.5 Mb/s" not in labels(gentle)


def network(rates, flows, wan=149_760_000):
    """Hosts a, b, c at one switch and x, y, z at the other, a line between them."""
    return {
        "network": {
            "hosts": [
                {"name": n, "rate_bps": rates.get(n, 149_760_000), "mtu": 9180, "port": {"port": i % 3}}
                for i, n in enumerate("abcxyz")
            ],
            "switches": [
                {"name": "w", "port_rates_bps": [*(rates.get(n, 149_760_000) for n in "abc"), wan]},
                {"name": "e", "port_rates_bps": [*(rates.get(n, 149_760_000) for n in "xyz"), wan]},
            ],
            "lines": [{"ends": [{"switch": "w", "port": 3}, {"switch": "e", "port": 3}]}],
        },
        "vcs": [{"path": path, "cell_rate_bps": None} for path in flows],
        "flows": [
            {"name": f"f{i}", "source": p[0], "sink": p[-1], "protocol": "tcp", "vc": i} for i, p in enumerate(flows)
        ],
    }


def test_what_the_lines_carry():
    def most(rates, *paths, wan=149_760_000):
        return most_deliverable(network(rates, paths, wan), [f"f{i}" for i in range(len(paths))]) / BEST_TCP_BPS

    assert most({}, "awex", "bwey", "cwez") == pytest.approx(1)  # one line for all
    assert most({}, "awex", "xewa") == pytest.approx(2)  # each way has its own
    assert most({"a": 14_976_000, "y": 29_952_000}, "awex", "bwey") == pytest.approx(0.3)
    assert most({"a": 14_976_000}, "awex", "bwey", wan=74_880_000) == pytest.approx(0.5)
    assert most({}, "awb", "cwez") == pytest.approx(2)
    loop = network({}, ["awwb", "cwwb"], 74_880_000)
    loop["network"]["lines"][0]["ends"] = [{"switch": "w", "port": 3}] * 2
    assert most_deliverable(loop, ["f0", "f1"]) / BEST_TCP_BPS == pytest.approx(0.5)  # a loop is one line, not two


def over(resolved, spans, phases):
    """Check what the lines of :func:`network` deliver to flows in their times (s), with the rates of a line and of VCs
    from times on.
    """
    hosts = [149_760_000] * 3
    rates = [
        {"at_s": at, "ports": {name: [*hosts, wan] for name in "we"}, "vcs": [vc] * len(spans)}
        for at, wan, vc in phases
    ]
    flows = [
        {"name": f"f{i}", "start_ps": begin * 10**12, "end_ps": end * 10**12} for i, (begin, end) in enumerate(spans)
    ]
    return deliverable_bits({"resolved": resolved, "rates": rates}, flows) / (8 * 9140 / (424 * 192))


@pytest.mark.parametrize(
    ("spans", "phases", "most"),
    [
        ([(0, 4), (2, 6)], [(0, 10e6, None)], 60e6),  # the time of either, once
        ([(0, 1), (5, 7)], [(0, 10e6, None)], 30e6),  # no flow runs in between
        ([(1, 3), (-1, 9)], [(0, 10e6, None)], 20e6),  # one did not begin
        ([(1, 5)], [(0, 10e6, None), (2, 20e6, None), (4, 0, None)], 50e6),
        ([(0, 2)], [(0, 10e6, None), (1, 10e6, 1e6)], 20e6),  # what was sent before it was paced may come later
        ([(0, 2)], [(0, 10e6, 1e6), (1, 10e6, 2e6)], 3e6),
        ([(0, 1), (0, 4)], [(0, 10e6, 4e6)], 20e6),  # paced, one after its time for nothing
    ],
)
def test_what_the_lines_deliver_while_flows_run(spans, phases, most):
    paths = ["awex", "bwey"][: len(spans)]
    assert over(network({}, paths), spans, phases) == pytest.approx(most)


def test_values_held_and_their_quantiles():
    assert held([10, 20], [5, 6], [0, 10, 15, 20, 99]) == [0, 5, 5, 6, 6]
    rows = [[float(value), 7.0] for value in range(11)]
    assert quantiles(rows, (0, 0.1, 0.5, 1)) == [[0, 7], [1, 7], [5, 7], [10, 7]]


def test_a_shortened_run_stands_beside_no_published_mark():
    def drawn_labels(summary):
        with styled():
            return labels(case_figure(summary).axes[0])

    full = ["ours", "published, measured", "published, predicted"]
    assert sorted(drawn_labels(some_cases("magic-mismatch"))) == full
    assert drawn_labels(some_cases("magic-mismatch", False)) == ["ours, shortened"]
    assert sorted(drawn_labels(some_cases("magic-mismatch", seed=9))) == full  # another trial of the same
    changed = drawn_labels(some_cases("magic-mismatch", settings=["hosts.mtu=4470"]))
    assert "ours, changed" in changed and len(changed) == 3


def seen_by(colour, matrix):
    """A colour as a colour-blind eye has it: linear light through a matrix, then into CIE L*a*b*."""
    linear = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in linear]
    r, g, b = (min(1, max(0, sum(m * c for m, c in zip(row, linear, strict=True)))) for row in matrix)
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


# Machado, Oliveira and Fernandes, 2009, severity 1: protanopia, deuteranopia, tritanopia
EYES = (
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
)


@pytest.mark.parametrize("eye", range(3))
def test_colour_blind_readers_tell_the_first_flows_apart(eye):
    for one, two in itertools.combinations(COLOURS[:4], 2):
        a, b = seen_by(one, EYES[eye]), seen_by(two, EYES[eye])
        assert sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) ** 0.5 > 10, (one, two)


def test_a_folder_of_cases_none_of_which_has_run_has_no_plot():
    cases = load_cases("magic-mismatch")
    none = sum_up_cases(cases_head(cases, (), {}), [])
    assert case_figure(none) is None and "<figure" not in cases_html(none)


def test_histograms_are_a_figure_of_their_own_with_the_share_of_cells_at_and_beyond_each_bin():
    result = made_up("lan-1flow")
    assert drawn(result, "histograms") == {}
    result.summary["counters"] = {
        "lan": {
            "queue_by_port": [[], [[0, 60], [1, 30], [4, 10]]],
            "delay_by_port": [[], [[1, 50], [16, 50]]],
        },
        "nic": {"tx_cells": [1]},
    }
    queues, delays = drawn(result, "histograms")["histograms"].axes
    (line,) = queues.get_lines()
    assert (line.get_label(), list(line.get_xdata()), list(line.get_ydata())) == ("lan:1", [0, 1, 4], [1, 0.4, 0.1])
    (line,) = delays.get_lines()
    assert list(line.get_xdata()) == pytest.approx([0.17695, 2.8312], rel=1e-4)


def test_figures_are_imported_without_help_texts_that_take_long_and_later_classes_have_them() -> None:
    script = """
from inspect import signature
from bentpipe.plots.style import styled
with styled():
    from matplotlib.artist import Artist
    from matplotlib.lines import Line2D
class Later(Artist):
    pass
print("alpha" in signature(Line2D.set).parameters, "alpha" in signature(Later.set).parameters)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
