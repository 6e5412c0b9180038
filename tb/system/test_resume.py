"""Runs that were stopped and go on: the same as one that wasn't; what can't go on says so."""

import errno
import json
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import bentpipe.experiment.run.run as runs
import bentpipe.results.folder as folders
from bentpipe.cli import main
from bentpipe.experiment.build.hosts import build
from bentpipe.experiment.load import load, load_cases
from bentpipe.experiment.run import state
from bentpipe.experiment.run.perform import perform_cases, resume_cases
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.folder import RunFolder
from bentpipe_sim.network import Network
from models.resumed import interrupted, no_report, outcome, stopped_at, uninterrupted

MS = 10**9
STOPPED = Path(__file__).with_name("stopped_run.py")

SHORT = {
    "one flow, captured": (
        "lan-1flow",
        ['record.pcap=["ip:alpha1", "cells:lan"]', "flow.0.size=6 MB"],
        300,
        (0, 117, 118),
    ),
    "errors, a small buffer": (
        "acts-3flows",
        ["network.lines.satellite.ber=1e-7", "network.lines.satellite.delay=5 ms", "record.interval=7 ms"],
        700,
        (50, 420, 433, 650),
    ),
}


@pytest.mark.parametrize("name", SHORT)
def test_a_run_that_was_stopped_ends_as_one_that_was_not(name, tmp_path):
    entry, settings, length_ms, moments = SHORT[name]
    experiment = load(entry, settings, duration_ps=length_ms * MS)
    one = uninterrupted(experiment, tmp_path / "one")
    found, stops = interrupted(experiment, tmp_path / "other", [at * MS for at in moments])
    assert stops >= len(moments) - 1
    assert found == one
    assert one["result.json"]["flows"][0]["octets_delivered"] > 400_000


def test_it_is_noted_when_it_went_on(tmp_path):
    experiment = load("lan-1flow", duration_ps=200 * MS)
    interrupted(experiment, tmp_path / "run", [70 * MS, 130 * MS])
    times = json.loads((tmp_path / "run" / "result.json").read_text())["time"]["resumed_s"]
    assert times == [0.1, 0.15]


def run(*arguments):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """A run with a capture that nothing stops."""
    settings = ['record.pcap=["cells:lan"]']
    return uninterrupted(load("lan-1flow", settings, duration_ps=200 * MS), tmp_path_factory.mktemp("one") / "run")


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
def test_another_process_goes_on(number, captured, tmp_path):
    other = tmp_path / "other"
    asked = ["run", "lan-1flow", "--duration", "200 ms", "--pcap", "cells:lan", "--json", "--out"]
    done = run(STOPPED, number, 90, *asked, other)
    assert done.returncode == (-signal.SIGKILL if number == "SIGKILL" else 128 + signal.SIGTERM)
    if number == "SIGTERM":
        line = f"bentpipe: interrupted at 0.100 s; kept in {other}; `bentpipe resume {other}` goes on\n"
        assert done.stderr.endswith(line)
    assert (other / "run.state").is_file()
    assert main(["resume", str(other), "--json"]) == 0
    found = outcome(other)
    for name in ("settings", "changes"):  # how the capture was asked for
        del found["result.json"][name]
    assert found == {**captured, "result.json": {k: captured["result.json"][k] for k in found["result.json"]}}
    assert (other / "report.html").is_file() and not (other / ".running").exists()


def test_cases_go_on(tmp_path):
    """Stopped in the first and again in the second; one that was killed before it saved its state begins anew."""
    cases = load_cases("magic-mismatch", duration_ps=200 * MS)[:3]
    with no_report():
        with RunFolder.claim(tmp_path / "one") as folder:
            one = perform_cases(cases, folder)
        other = tmp_path / "other"
        with RunFolder.claim(other) as folder, stopped_at(60 * MS):
            assert perform_cases(cases, folder)["status"] == "interrupted"
        assert len(list(other.glob("*/result.json"))) == 1
        with RunFolder.resume(other) as folder, stopped_at(20 * MS, run=2):
            assert resume_cases(folder)["status"] == "interrupted"
        (second,) = (file for file in other.glob("*/run.state"))
        second.unlink()
        with RunFolder.resume(other) as folder:
            found = resume_cases(folder)
    assert found["planned"] == one["planned"] and found["status"] == "done"
    assert [case["metrics"] for case in found["cases"]] == [case["metrics"] for case in one["cases"]]
    assert not list(other.rglob("run.state"))


@pytest.mark.parametrize(
    ("began", "more", "drawn"), [(["--no-plots"], [], False), ([], [], True), ([], ["--no-plots"], False)]
)
@pytest.mark.parametrize("entry", [["lan-1flow"], ["magic-mismatch", "--case", "no pacing"]], ids=" ".join)
def test_plots_are_drawn_as_the_run_began(entry, began, more, drawn, tmp_path, monkeypatch, capsys):
    """``--no-plots`` holds for the whole run; ``bentpipe resume`` may add it."""
    asked: list[bool] = []
    for name in ("make_report", "make_cases_report"):
        monkeypatch.setattr(f"bentpipe.experiment.run.perform.{name}", lambda *given: asked.append(given[-1]))
    path = str(tmp_path / "run")
    with stopped_at(60 * MS):
        assert main(["run", *entry, "--duration", "100 ms", "--out", path, *began]) == 128 + signal.SIGTERM
    assert asked == [not began] * len(asked)
    asked.clear()
    assert main(["resume", path, *more]) == 0
    assert asked == [drawn] * len(asked) and asked


@pytest.fixture
def stopped(tmp_path):
    """The folder of a run that was stopped."""
    path = tmp_path / "run"
    with RunFolder.claim(path) as folder, stopped_at(90 * MS):
        folder.finish(run_experiment(load("lan-1flow", duration_ps=200 * MS), folder=folder))
    return path


def refusal(path, capsys):
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    capsys.readouterr()
    assert main(["resume", str(path)]) == 2
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    return capsys.readouterr().err


def test_a_state_of_another_bentpipe_is_refused(stopped, capsys, monkeypatch):
    ours = state.code()
    monkeypatch.setattr(state, "code", lambda: "0123456789abcdef")
    now = version("bentpipe")
    line = (
        f"saved by bentpipe {now} (code {ours}), this is {now} (code 0123456789abcdef): only that version "
        "can continue it"
    )
    assert refusal(stopped, capsys) == f"bentpipe: {stopped / 'run.state'}: {line}\n"


@pytest.mark.parametrize("cut", [slice(0, -1), slice(1, None), slice(0, 0)])
def test_a_damaged_state_is_refused(stopped, capsys, cut):
    file = stopped / "run.state"
    file.write_bytes(file.read_bytes()[cut])
    assert refusal(stopped, capsys).startswith(f"bentpipe: {file}: damaged: ")


def test_what_is_over_is_not_resumed(stopped, capsys, tmp_path):
    assert main(["resume", str(stopped), "--json"]) == 0
    assert refusal(stopped, capsys) == f"bentpipe: {stopped}: nothing to resume: its run is done\n"
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty", capsys).endswith("empty: not a run folder (no result.json)\n")


def test_the_engine_verilator_saves_nothing(tmp_path, capsys, monkeypatch):
    def unsaved(experiment, recorder):
        with monkeypatch.context() as context:
            context.setattr(Network, "saves", False)  # as of this engine's networks
            return build(experiment, recorder)

    path = tmp_path / "run"
    with RunFolder.claim(path) as folder, stopped_at(0):
        folder.finish(run_experiment(load("lan-1flow", duration_ps=60 * MS), build=unsaved, folder=folder))
    line = f"bentpipe: {path}: nothing to resume: its run ended before its state was saved\n"
    assert refusal(path, capsys) == line


def test_a_run_with_a_board_is_not_resumed(tmp_path, capsys):
    path = tmp_path / "run"
    with RunFolder.claim(path) as folder, stopped_at(0):
        result = run_experiment(load("lan-1flow", duration_ps=60 * MS), folder=folder)
        result.summary["board"] = {"pdus": 1}
        folder.finish(result)
    folder.state.unlink()
    line = f"bentpipe: {path}: nothing to resume: the state of a run with a board is not saved\n"
    assert refusal(path, capsys) == line


def test_no_room_leaves_the_last_state(tmp_path, monkeypatch, caplog):
    """The second state finds no room: the run goes on, with a line, and the first state is still there."""
    written, kept = [], []
    through = folders._write_through

    def full(path, data):
        written.append(data)
        if len(written) == 1:
            return through(path, data)
        path.write_bytes(data[: len(data) // 2])
        kept.append((tmp_path / "run" / "run.state").read_bytes() == written[0])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folders, "_write_through", full)
    monkeypatch.setattr(runs, "_SAVE_S", 0)
    monkeypatch.setattr(runs, "_KEEP_SHARE", 0)
    with RunFolder.claim(tmp_path / "run") as folder:
        result = run_experiment(load("lan-1flow", duration_ps=200 * MS), folder=folder)
        assert (tmp_path / "run" / "run.state").read_bytes() == written[0]
        assert not list((tmp_path / "run" / ".running").glob("*.part"))
    assert result.summary["status"] == "done"
    assert len(written) > 2 and all(kept)
    line = f"{tmp_path / 'run' / 'run.state'}: No space left on device: the state is not saved; the run continues"
    assert caplog.messages.count(line) == len(kept)


def test_a_run_with_samples_close_to_each_other_saves_too(monkeypatch, tmp_path):
    monkeypatch.setattr(runs, "_SAVE_S", 0)
    monkeypatch.setattr(runs, "_KEEP_SHARE", 0)
    saved = []
    monkeypatch.setattr(RunFolder, "save", lambda folder, packed: saved.append(packed))
    experiment = load("lan-1flow", ["record.interval=7 ms"], duration_ps=40 * MS)
    with RunFolder.claim(tmp_path / "run") as folder:
        run_experiment(experiment, folder=folder)
    assert len(saved) >= 5
