"""Run folders: every file whole or not there, and read back as written."""

import fcntl
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.plots.figures import PLOTS, write_plots
from bentpipe.plots.series import bin_width, increments, rates, thin
from bentpipe.report.run import make_report, report_html
from bentpipe.results.folder import RunFolder, read_run
from unit.experiment.fake import fake_build, write_run

PS = 10**12


@pytest.fixture(scope="module")
def result():
    return run_experiment(load("acts-3flows", duration_ps=30 * PS), build=fake_build)


def everything(folder):
    return sorted(p.name for p in folder.rglob("*"))


def test_what_is_written_is_read_back(tmp_path, result):
    write_run(tmp_path / "run", result)
    back = read_run(tmp_path / "run")
    assert back.summary == json.loads(json.dumps(result.summary))
    assert back.flows == result.flows
    assert back.trace == result.trace
    assert result.trace.events and result.trace.series
    assert everything(tmp_path) == ["flows.parquet", "result.json", "run", "trace.parquet"]


def test_an_error_while_drawing_leaves_the_data(tmp_path, result):
    def broken(folder, result):
        (folder / "overview.png").write_bytes(b"half")
        raise RuntimeError("no ink")

    with pytest.raises(RuntimeError):
        write_run(tmp_path / "run", result, broken)
    assert everything(tmp_path) == ["flows.parquet", "result.json", "run", "trace.parquet"]
    assert read_run(tmp_path / "run").summary["status"] == "done"


def test_an_error_while_writing_leaves_the_files_before(tmp_path, result, monkeypatch):
    write_run(tmp_path / "run", result)
    old = (tmp_path / "run" / "flows.parquet").read_bytes()

    def full(path, flows):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bentpipe.results.folder.write_flows", full)
    with RunFolder.reopen(tmp_path / "run") as folder, pytest.raises(OSError, match=r"flows\.parquet"):
        folder.finish(result)
    assert (tmp_path / "run" / "flows.parquet").read_bytes() == old
    assert everything(tmp_path) == ["flows.parquet", "result.json", "run", "trace.parquet"]


def test_an_error_in_a_run_that_goes_on_makes_it_a_failed_one(tmp_path, result):
    summary = {**result.summary, "status": "running"}
    with pytest.raises(ZeroDivisionError) as caught, RunFolder.claim(tmp_path / "run") as folder:
        folder.keep(summary, result.trace)
        raise ZeroDivisionError("by zero")
    assert caught.value.__notes__ == [f"the existing files are kept; see `bentpipe report {tmp_path / 'run'}`"]
    back = read_run(tmp_path / "run")
    assert (back.summary["status"], back.summary["reason"]) == ("failed", "by zero")
    assert back.trace == result.trace


def test_a_run_that_never_begins_leaves_nothing(tmp_path):
    with RunFolder.claim(tmp_path / "run"):
        pass
    assert everything(tmp_path) == []


def test_a_run_folder_is_replaced_only_by_force(tmp_path, result):
    folder = tmp_path / "run"
    write_run(folder, result)
    (folder / "old").touch()
    with pytest.raises(BentpipeError, match="not empty; give another --out"):
        RunFolder.claim(folder)
    write_run(folder, result, force=True)
    assert everything(tmp_path) == ["flows.parquet", "result.json", "run", "trace.parquet"]


def test_a_folder_is_claimed_once(tmp_path):
    with RunFolder.claim(tmp_path / "run"):
        for force in (False, True):
            with pytest.raises(BentpipeError, match="another run is writing to it"):
                RunFolder.claim(tmp_path / "run", force)
    with RunFolder.claim(tmp_path / "run"):
        pass


def test_a_claim_just_when_the_folder_is_let_go_of_is_one(tmp_path, result, monkeypatch):
    """The lock file that was opened is gone when it is locked: it locks nothing, so another is made."""
    first = RunFolder.claim(tmp_path / "run")
    lock = fcntl.flock

    def late(handle, how):
        monkeypatch.setattr(fcntl, "flock", lock)
        first.__exit__(None, None, None)
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with RunFolder.claim(tmp_path / "run"), pytest.raises(BentpipeError, match="another run is writing to it"):
        RunFolder.claim(tmp_path / "run")


def test_folders_are_numbered(tmp_path):
    with RunFolder.claim_next(tmp_path, "x") as one, RunFolder.claim_next(tmp_path, "x") as two:
        assert (one.path.name, two.path.name) == ("x-1", "x-2")
    (tmp_path / "x-7").mkdir()
    (tmp_path / "x-y").mkdir()
    with RunFolder.claim_next(tmp_path, "x") as next_one:
        assert next_one.path.name == "x-8"


def test_a_number_that_another_run_takes_meanwhile_is_left_to_it(tmp_path, monkeypatch):
    make = Path.mkdir

    def late(self, *args, **options):
        if self.name == "x-1":
            make(self)
        make(self, *args, **options)

    monkeypatch.setattr(Path, "mkdir", late)
    with RunFolder.claim_next(tmp_path, "x") as folder:
        assert folder.path.name == "x-2"


def test_targets_that_cannot_be(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(BentpipeError, match="is a file, not a folder"):
        RunFolder.claim(file)
    with pytest.raises(BentpipeError, match="cannot be created"):
        RunFolder.claim(file / "below")
    other = tmp_path / "other"
    other.mkdir()
    with RunFolder.claim(other):
        pass
    (other / "photo.jpg").touch()
    with pytest.raises(BentpipeError, match="replaces run folders only"):
        RunFolder.claim(other, force=True)
    assert everything(tmp_path) == ["file", "other", "photo.jpg"]


def test_an_empty_folder_is_filled(tmp_path, result):
    (tmp_path / "run").mkdir()
    write_run(tmp_path / "run", result)
    read_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("result.json", None, "not a run folder"),
        ("result.json", b"{", "damaged"),
        ("result.json", b"[]", "damaged"),
        ("result.json", b'{"schema": 99}', "schema 99 is newer"),
        ("result.json", b"{}", "damaged: there is no 'schema'"),
        ("result.json", b'{"schema": 4}', "damaged: there is no 'id'"),
        (
            "result.json",
            b'{"schema": 1}',
            "schema 1 is of an older bentpipe, this one's is 4: run the experiment again",
        ),
        ("trace.parquet", None, "is missing"),
        ("trace.parquet", b"PAR1 nonsense", "damaged"),
        ("flows.parquet", b"", "damaged"),
    ],
)
def test_damaged_run_folders(tmp_path, result, name, data, message):
    folder = tmp_path / "run"
    write_run(folder, result)
    if data is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(data)
    with pytest.raises(BentpipeError, match=message) as caught:
        read_run(folder)
    assert "\n" not in str(caught.value)


def test_an_error_over_an_older_run_sends_nobody_in_circles(tmp_path, result):
    write_run(tmp_path / "run", result)
    (tmp_path / "run" / "trace.parquet").write_bytes(b"PAR1")
    with pytest.raises(BentpipeError, match="damaged") as caught, RunFolder.reopen(tmp_path / "run"):
        read_run(tmp_path / "run")
    assert not getattr(caught.value, "__notes__", ())  # nothing to look at by the command that failed


class Page(HTMLParser):
    """Return the parts of a page, and the files that it refers to."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link"):
            self.open.append(tag)
        self.links += [value for key, value in attrs if key in ("src", "srcset", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_report_needs_nothing_beside_itself(tmp_path, result):
    write_run(tmp_path / "run", result, make_report)
    folder = tmp_path / "run"
    for name in PLOTS.keys() - {"losses", "reactive"}:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (folder / f"{name}.svg").read_text()
    page = Page((folder / "report.html").read_text())
    assert page.open == []
    assert {link for link in page.links if not link.startswith(("#", "data:"))} == {
        "result.json",
        "flows.parquet",
        "trace.parquet",
    }
    text = " ".join(page.text)
    row = result.summary["published"][0]
    for wanted in ("54.105", "49.641", f"{row['ours']:.3f}", "Shortened:", "flow3"):
        assert wanted in text


def test_the_report_says_what_went_wrong_and_escapes_it(result):
    summary = {**result.summary, "status": "failed", "reason": "a < b"}
    text = report_html(type(result)(summary, result.flows, result.trace))
    assert "The experiment failed: a &lt; b" in text
    assert "broke" not in text


def test_the_report_names_broken_connections(result):
    flows = [result.flows[0], {**result.flows[1], "error": "timed out"}]
    text = report_html(type(result)(result.summary, flows, result.trace))
    assert "Broken connections: flow2 (timed out)." in text


def test_a_report_is_made_anew(tmp_path, result):
    write_run(tmp_path / "run", result)
    (tmp_path / "run" / "report.html").write_text("old")

    def report(folder, again):
        assert again.summary["id"] == "acts-3flows"
        (folder / "report.html").write_text("new")

    with RunFolder.reopen(tmp_path / "run") as folder:
        folder.draw(lambda aside: report(aside, read_run(folder.path)))
    assert (tmp_path / "run" / "report.html").read_text() == "new"
    assert everything(tmp_path / "run") == ["flows.parquet", "report.html", "result.json", "trace.parquet"]


def test_plots_are_the_same_twice(tmp_path, result, monkeypatch):
    for name in PLOTS.keys() - {"overview"}:
        monkeypatch.delitem(PLOTS, name)
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
