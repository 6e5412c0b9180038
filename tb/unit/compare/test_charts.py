"""Charts as papers have them: what is drawn where, with which unit."""

import pytest

from bentpipe.compare.figures import draw_beside, draw_published
from bentpipe.compare.sides import Side, grouped
from bentpipe.plots.charts import Chart, Level, Mark, Point, chart_figure, marks_of
from bentpipe.plots.style import COLOURS, styled
from unit.compare.test_compare import run

ROW = {"case": "a", "metric": "goodput", "measured": 5.0, "predicted": None, "unit": "Mb/s"}


def point(case, at, value, curve="", half=None, metric="aggregate_goodput"):
    return Point(case, at, curve, {metric: (value, half)})


def drawn(**members):
    chart = Chart(**({"title": "t", "axis": "load, Mb/s", "metrics": ("aggregate_goodput",)} | members))
    with styled():
        (axis,) = chart_figure(chart).axes
    return axis


def line(axis, label):
    (found,) = [each for each in axis.get_lines() if each.get_label() == label]
    return list(zip(found.get_xdata(), found.get_ydata(), strict=True))


def test_a_curve_goes_over_the_axis_in_its_order_and_unit():
    axis = drawn(points=(point("b", 2, 4e6), point("a", 1, 3e6), point("c", 3, None)))
    assert line(axis, "ours") == [(1, 3), (2, 4)]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("load, Mb/s", "aggregate throughput (Mb/s)")


def test_the_axis_ends_by_its_points():
    axis = drawn(points=tuple(point(str(at), at, 1e6) for at in (0, 20, 100)))
    low, high = axis.get_xlim()
    assert -10 < low <= 0 and 100 <= high < 110
    assert [tick for tick in axis.get_xticks() if tick < 0] == []


def test_a_point_without_a_place_is_a_line_across():
    axis = drawn(points=(point("a", 1, 3e6), point("full rate", None, 2e6)))
    assert {y for _, y in line(axis, "full rate")} == {2}


def test_levels_and_marks_have_the_colour_of_their_curve():
    points = (point("a", 1, 3e6, "in LAN"), point("b", 1, 2e6, "in WAN"))
    marks = (Mark("b", "aggregate_goodput", "measured", 2.5e6),)
    axis = drawn(points=points, marks=marks, levels=(Level("full blast", "in WAN", 1e6, 0.1e6),))
    by_label = {each.get_label(): each for each in axis.get_lines()}
    assert by_label["full blast"].get_color() == by_label["in WAN"].get_color() == COLOURS[1]
    (mark,) = [each for each in axis.get_lines() if list(each.get_ydata()) == [2.5]]
    assert mark.get_color() == COLOURS[1] and "published, measured" in by_label


def test_intervals_are_drawn_where_there_are_any():
    axis = drawn(points=(point("a", 1, 3e6, half=0.5e6), point("b", 2, 3e6)))
    (bars,) = axis.collections
    assert [list(map(tuple, segment)) for segment in bars.get_segments()] == [[(1, 2.5), (1, 3.5)]]


def test_several_figures_of_a_case_are_bars_side_by_side():
    figures = {"x.goodput": (1e6, None), "y.goodput": (2e6, None)}
    marks = (Mark("one", "y.goodput", "measured", 3e6),)
    axis = drawn(metrics=(*figures,), points=(Point("one", None, "", figures),), marks=marks)
    assert sorted(bar.get_width() for bar in axis.patches) == [1, 2]
    low, high = sorted(bar.get_y() for bar in axis.patches)
    ((x, y),) = line(axis, "published, measured")
    assert x == 3 and high < y < high + (high - low) and axis.get_xlabel() == "throughput (Mb/s)"


def test_published_places_on_the_axis():
    axis = drawn(points=(point("a", 10, 1e6), point("b", 50, 1e6)), places=(("published: buffer", 35),))
    assert {x for x, _ in line(axis, "published: buffer")} == {35}


@pytest.mark.parametrize(
    ("row", "mark"),
    [
        ({}, ("aggregate_goodput", 5e6)),
        ({"metric": "aggregate_goodput"}, ("aggregate_goodput", 5e6)),
        ({"metric": "share", "measured": 0.5, "unit": "1"}, ("aggregate_goodput", pytest.approx(67.2566e6, rel=1e-5))),
        ({"metric": "fairness", "measured": 0.5, "unit": "1"}, ("fairness", 0.5)),
    ],
)
def test_published_figures_beside_the_aggregate(row, mark):
    (found,) = marks_of([ROW | row], ("aggregate_goodput",))
    assert (found.metric, found.value) == mark


def placed(name, case, at, goodput, **keys):
    made = run(goodput, name=name, case=case, **keys)
    made.summary.update(title="t", resolved={"axis": "load, Mb/s"}, configuration={"experiment": {}})
    made.summary["case"]["at"] = at
    return made


def test_a_comparison_has_a_chart_for_each_experiment_with_cases(tmp_path):
    runs = [placed("load-sweep", case, at, 1e6 * at, seed=seed) for seed in (1, 2) for case, at in (("a", 1), ("b", 2))]
    side = Side("s", grouped([*runs, run(3e6, name="lan-3flows")]), (), 0)
    assert draw_published(side, tmp_path) == ["load-sweep"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "load-sweep.svg", "load-sweep.png",
    }  # fmt: skip


def test_two_sides_with_cases_have_a_curve_each(tmp_path):
    one, two = (
        Side(name, grouped([placed("x", case, at, 1e6 * at) for case, at in (("a", 1), ("b", 2))]), (), 0)
        for name in ("mine", "yours")
    )
    assert draw_beside(one, two, tmp_path) == ["overlay"]
    assert (tmp_path / "overlay.png").is_file()
