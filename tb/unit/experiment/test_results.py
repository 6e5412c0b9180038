"""Run folders: written whole or not at all, and read back as written."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe.experiment.run import run_experiment
from bentpipe.plots.figures import PLOTS, write_plots
from bentpipe.plots.series import bin_width, increments, rates, thin
from bentpipe.results.folder import check_target, read_run, write_report, write_run
from bentpipe.results.report import make_report, report_html
from unit.experiment.fake import fake_build

PS = 10**12


@pytest.fixture(scope="module")
def result():
    return run_experiment(load("acts-3flows", duration_ps=30 * PS), build=fake_build)


def no_report(folder, result):
    pass


def everything(folder):
    return sorted(p.name for p in folder.rglob("*"))


def test_what_is_written_is_read_back(tmp_path, result):
    write_run(tmp_path / "run", result, no_report)
    back = read_run(tmp_path / "run")
    assert back.summary == json.loads(json.dumps(result.summary))
    assert back.flows == result.flows
    assert back.trace == result.trace
    assert result.trace.events and result.trace.series
    assert everything(tmp_path) == ["flows.parquet", "result.json", "run", "trace.parquet"]


def test_an_error_while_writing_leaves_nothing(tmp_path, result):
    def broken(folder, result):
        (folder / "overview.png").write_bytes(b"half")
        raise RuntimeError("no ink")

    with pytest.raises(RuntimeError):
        write_run(tmp_path / "run", result, broken)
    assert everything(tmp_path) == []


def test_an_error_while_replacing_leaves_the_old_run(tmp_path, result):
    write_run(tmp_path / "run", result, no_report)

    def broken(folder, result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_run(tmp_path / "run", result, broken, force=True)
    assert everything(tmp_path) == ["flows.parquet", "result.json", "run", "trace.parquet"]
    read_run(tmp_path / "run")


def test_a_run_folder_is_replaced_only_by_force(tmp_path, result):
    folder = tmp_path / "run"
    write_run(folder, result, no_report)
    (folder / "old").touch()
    with pytest.raises(BentpipeError, match="not empty; give another --out"):
        check_target(folder)
    with pytest.raises(BentpipeError, match="not empty"):
        write_run(folder, result, no_report)
    write_run(folder, result, no_report, force=True)
    assert everything(tmp_path) == ["flows.parquet", "result.json", "run", "trace.parquet"]


def test_targets_that_cannot_be(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(BentpipeError, match="is a file, not a folder"):
        check_target(file)
    with pytest.raises(BentpipeError, match="can't be made"):
        check_target(file / "below")
    other = tmp_path / "other"
    other.mkdir()
    check_target(other)
    (other / "photo.jpg").touch()
    with pytest.raises(BentpipeError, match="replaces run folders only"):
        check_target(other, force=True)
    check_target(tmp_path / "a" / "b" / "c")
    assert everything(tmp_path) == ["file", "other", "photo.jpg"]


def test_an_empty_folder_is_filled(tmp_path, result):
    (tmp_path / "run").mkdir()
    write_run(tmp_path / "run", result, no_report)
    read_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("result.json", None, "not a run folder"),
        ("result.json", b"{", "damaged"),
        ("result.json", b"[]", "damaged"),
        ("result.json", b'{"schema": 99}', "schema 99 is newer"),
        ("trace.parquet", None, "is missing"),
        ("trace.parquet", b"PAR1 nonsense", "damaged"),
        ("flows.parquet", b"", "damaged"),
    ],
)
def test_damaged_run_folders(tmp_path, result, name, data, message):
    folder = tmp_path / "run"
    write_run(folder, result, no_report)
    if data is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(data)
    with pytest.raises(BentpipeError, match=message) as caught:
        read_run(folder)
    assert "\n" not in str(caught.value)


class Page(HTMLParser):
    """What a page is made of and what it refers to."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.links += [value for key, value in attrs if key in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_report_needs_nothing_beside_itself(tmp_path, result):
    write_run(tmp_path / "run", result, make_report)
    folder = tmp_path / "run"
    for name in PLOTS:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (folder / f"{name}.svg").read_text()
    page = Page((folder / "report.html").read_text())
    assert page.open == []
    assert page.links and all(link.startswith("data:") for link in page.links)
    text = " ".join(page.text)
    row = result.summary["published"][0]
    for wanted in ("54.105", "49.641", f"{row['ours']:.3f}", "Shortened:", "flow3"):
        assert wanted in text


def test_the_report_says_what_went_wrong_and_escapes_it(result):
    summary = {**result.summary, "status": "failed", "reason": "a < b"}
    text = report_html(type(result)(summary, result.flows, result.trace), b"<svg/>")
    assert "The experiment failed: a &lt; b" in text
    assert "broke" not in text


def test_the_report_names_broken_connections(result):
    flows = [result.flows[0], {**result.flows[1], "error": "timed out"}]
    text = report_html(type(result)(result.summary, flows, result.trace), b"<svg/>")
    assert "Connections that broke: flow2 (timed out)." in text


def test_a_report_is_made_anew(tmp_path, result):
    write_run(tmp_path / "run", result, no_report)
    (tmp_path / "run" / "report.html").write_text("old")

    def report(folder, again):
        assert again.summary["id"] == "acts-3flows"
        (folder / "report.html").write_text("new")

    write_report(tmp_path / "run", read_run(tmp_path / "run"), report)
    assert (tmp_path / "run" / "report.html").read_text() == "new"
    assert everything(tmp_path / "run") == ["flows.parquet", "report.html", "result.json", "trace.parquet"]


def test_plots_of_a_run_that_recorded_nothing(tmp_path, monkeypatch):
    monkeypatch.delitem(PLOTS, "throughput")
    nothing = run_experiment(load("lan-3flows", ["record.what=[]"], duration_ps=PS), build=fake_build)
    assert write_plots(tmp_path, nothing) == list(PLOTS)


def test_plots_are_the_same_twice(tmp_path, result, monkeypatch):
    monkeypatch.delitem(PLOTS, "throughput")
    monkeypatch.delitem(PLOTS, "windows")
    monkeypatch.delitem(PLOTS, "queues-drops")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_plots(tmp_path / name, result)
    one, two = ((tmp_path / name / "overview.svg").read_text() for name in ("a", "b"))
    assert one == two and not re.search(r"<dc:date>", one)


def test_rates_and_increments_add_up():
    times = [i * PS // 10 for i in range(1001)]
    counts = [i * i for i in range(1001)]
    when, what = rates(times, counts, bins=100)
    assert len(when) == len(what) == 100
    assert sum(what) * 1e6 * 1.0 / 8 == pytest.approx(counts[-1])
    edges = [i * 7 * PS for i in range(16)]
    growth = increments(times, counts, edges)
    assert sum(growth) == counts[-1]
    assert growth[:2] == [70**2, 140**2 - 70**2]
    assert increments([5, 6], [0, 3], [0, 5, 6, 10]) == [0, 3, 0]


def test_bins_have_round_widths():
    assert bin_width(600 * PS, PS // 10, 160) == 5 * PS
    assert bin_width(16 * PS, PS // 10, 160) == PS // 10
    assert bin_width(16 * PS + 1, PS // 10, 160) == PS // 5


def test_thinning_keeps_the_peaks():
    times = list(range(100_000))
    values = [0] * 100_000
    values[54_321], values[12_345] = 1000, -1000
    when, what = thin(times, values, 1000)
    assert len(when) <= 1100
    assert max(what) == 1000 and min(what) == -1000
    assert when == sorted(when)


def test_a_run_that_cannot_be_moved_into_place_leaves_the_old_run(tmp_path, result, monkeypatch):
    write_run(tmp_path / "run", result, no_report)
    (tmp_path / "run" / "mine").touch()
    rename = Path.rename

    def refuse(self, target):
        if self.suffix == ".part":
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(BentpipeError, match="run: Permission denied"):
        write_run(tmp_path / "run", result, no_report, force=True)
    assert everything(tmp_path) == ["flows.parquet", "mine", "result.json", "run", "trace.parquet"]
