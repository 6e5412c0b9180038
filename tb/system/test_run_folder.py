"""The life of a run folder: runs side by side, signals at every stage, a process that is killed, a full disk. The
commands run on the stand-in for network and hosts; those that are stopped are processes of their own, that stop at
defined points."""

import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import bentpipe.experiment.build.hosts
import bentpipe.plots.cases
import bentpipe.plots.figures
from benches.forks import Forked
from bentpipe.cli import main
from bentpipe.results.folder import read_run
from unit.experiment.fake import blank, fake_build

HELD = str(Path(__file__).with_name("held_run.py"))
RUN = ("run", "acts-3flows", "--duration", "2")
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
CASES = """
[[case]]
name = "first"

[[case]]
name = "second"
set = { window = "32 kB" }
"""


MODULES = (
    *(
        "bentpipe.cli",
        "bentpipe.commands.run",
        "bentpipe.experiment.run.run",
        "bentpipe.report.run",
        "bentpipe.plots.cases",
    ),
    *("bentpipe.plots.figures", "pyarrow.parquet", "unit.experiment.fake"),
)


class Held:
    """A command under way, at its point; ``ignored``, if anything, is a signal that it was started to ignore."""

    def __init__(self, point, *arguments, fsize=None, ignored=None):
        environment = {**os.environ, "BENTPIPE_HOSTS": "plain"}
        if fsize is not None:
            environment["FSIZE"] = str(fsize)
        command = [HELD, point, *arguments]
        if ignored is None:
            self.process = Forked(MODULES, command, environment)
        else:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                preexec_fn=lambda: signal.signal(ignored, signal.SIG_IGN),
            )
        if point != "none":
            self.wait()

    def wait(self):
        """Until it is at its next point."""
        line = self.process.stdout.readline()
        assert line == "here\n", (line, self.process.stderr.read())

    def go(self, number=None):
        """Send a signal, let it go on."""
        if number is not None:
            self.process.send_signal(number)
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, number=None):
        """Let it go on to its end; exit code and stderr."""
        if number is not None:
            self.process.send_signal(number)
        _, error = self.process.communicate("\n")
        return self.process.returncode, error


def command(*arguments, fsize=None):
    """Exit code and stderr of a command that nothing stops: in this process, but where its files are limited."""
    if fsize is not None:
        return Held("none", *arguments, fsize=fsize).end()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()), redirect_stderr(StringIO()) as error:
        patch.setattr(bentpipe.experiment.build.hosts, "build", fake_build)
        patch.setattr(bentpipe.plots.figures, "write_plots", blank)
        patch.setattr(bentpipe.plots.cases, "write_cases_plot", blank)
        return main(list(arguments)), error.getvalue()


def summary(folder="out"):
    return json.loads((Path(folder) / "result.json").read_text())


def names(folder="out"):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


WHOLE = ["flows.parquet", "overview.png", "overview.svg", "report.html", "result.json", "trace.parquet"]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cases(tmp_path):
    from bentpipe.experiment.document.catalogue import find

    text = find("acts-3flows").read_text()
    (tmp_path / "cases.toml").write_text(text[: text.index("[[published]]")] + CASES)
    return ("run", "cases.toml", "--duration", "2", "--out", "out")


# Side by side


def test_two_runs_at_once_have_a_folder_each():
    first = Held("build", *RUN)
    assert command(*RUN, "--seed", "2") == (0, "")
    assert first.end() == (0, "")
    assert [summary(f"runs/acts-3flows-{n}")["seed"] for n in (1, 2)] == [1, 2]


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("point", ["build", "1000", "plots"])
def test_a_folder_that_a_run_writes_is_refused(point, force):
    first = Held(point, *RUN, "--out", "out")
    error = "bentpipe: out: another run is writing to it; give another --out\n"
    assert command(*RUN, "--seed", "2", "--out", "out", *force) == (2, error)
    assert first.end() == (0, "")
    assert (summary()["seed"], names()) == (1, WHOLE)


def test_a_report_of_a_run_that_goes_on_is_refused():
    run = Held("1000", *RUN, "--out", "out")
    assert summary()["status"] == "running"
    assert command("report", "out") == (2, "bentpipe: out: its run is still in progress\n")
    assert run.end() == (0, "")


def test_an_older_run_stays_until_the_new_one_begins():
    assert command(*RUN, "--out", "out") == (0, "")
    new = Held("build", *RUN, "--out", "out", "--seed", "2", "--force")
    assert (summary()["seed"], names()) == (1, [".running", ".running/lock", *WHOLE])
    assert new.end(signal.SIGINT) == (130, "bentpipe: interrupted\n")
    assert (summary()["seed"], names()) == (1, WHOLE)
    Path("out/mine").mkdir()
    assert command(*RUN, "--out", "out", "--seed", "2", "--force") == (0, "")
    assert (summary()["seed"], names()) == (2, WHOLE)


# Signals


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_keeps_what_was_simulated(number):
    code, error = Held("1000", *RUN, "--out", "out").end(number)
    assert (code, error) == (128 + number, "bentpipe: interrupted at 1.000 s; kept in out\n")
    assert (summary()["status"], summary()["reason"]) == ("interrupted", number.name)
    assert names() == WHOLE
    assert read_run(Path("out")).trace.series["flow1.delivered"][0][-1] == 10**12


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_ends_it_at_once(number):
    run = Held("1000+plots", *RUN, "--out", "out")
    run.go(signal.SIGINT)
    run.wait()
    assert run.end(number) == (
        128 + number,
        "bentpipe: interrupted; the existing files are kept; see `bentpipe report out`\n",
    )
    assert names() == ["flows.parquet", "result.json", "trace.parquet"]
    assert summary()["reason"] == "SIGINT"


def test_a_signal_before_the_run_begins_leaves_nothing():
    assert Held("build", *RUN, "--out", "out").end(signal.SIGTERM) == (143, "bentpipe: interrupted\n")
    assert not Path("out").exists()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_plots_are_drawn_keeps_the_run(number):
    code, error = Held("plots", *RUN, "--out", "out").end(number)
    assert (code, error) == (
        128 + number,
        "bentpipe: interrupted; the existing files are kept; see `bentpipe report out`\n",
    )
    assert (summary()["status"], names()) == ("done", ["flows.parquet", "result.json", "trace.parquet"])
    assert command("report", "out") == (0, "")
    assert names() == WHOLE


def test_a_signal_that_is_ignored_stays_ignored():
    """SIGHUP is ignored, as by ``nohup``."""
    run = Held("1000", *RUN, "--out", "out", ignored=signal.SIGHUP)
    assert run.end(signal.SIGHUP) == (0, "")
    assert summary()["status"] == "done"


def test_ctrl_c_while_the_command_is_imported_is_no_traceback(tmp_path):
    """It is pressed when the command asks for argparse."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Press:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'argparse':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Press)\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "bentpipe", "list"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_python_m_bentpipe_is_the_command():
    done = subprocess.run([sys.executable, "-m", "bentpipe", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("bentpipe ")


# Killed


def kill(point, *arguments):
    assert Held(point, *arguments).end(signal.SIGKILL) == (-signal.SIGKILL, "")


def test_a_report_of_a_killed_run_has_what_was_kept():
    assert command("run", "acts-3flows", "--duration", "15", "--out", "whole") == (0, "")
    kill("14000", "run", "acts-3flows", "--out", "out")
    assert names() == [".running", ".running/lock", ".running/trace.arrows", "result.json"]
    assert summary()["status"] == "running"
    until_ps = round(summary()["time"]["simulated_s"] * 10**12)
    assert command("report", "out") == (0, "")
    assert names() == WHOLE
    assert (summary()["status"], summary()["reason"], summary()["shortened"]) == ("interrupted", "killed", True)
    killed, whole = (read_run(Path(name)).trace for name in ("out", "whole"))
    assert until_ps == 13_950_000_000_000 and killed.series.keys() == whole.series.keys()
    for name, (times, values) in killed.series.items():
        assert list(times) == [t for t in whole.series[name][0] if t <= until_ps][: len(times)], name
        assert times[-1] > until_ps - 2 * 10**11 and values == whole.series[name][1][: len(times)], name
    assert killed.events == [event for event in whole.events if event[1] <= until_ps] and killed.events


def test_a_trace_that_was_cut_off_is_read_up_to_there():
    kill("1900", *RUN, "--out", "out")
    stream = Path("out/.running/trace.arrows")
    os.truncate(stream, stream.stat().st_size * 2 // 3)
    assert command("report", "out") == (0, "")
    times, _ = read_run(Path("out")).trace.series["flow1.delivered"]
    assert 0.7 * 10**12 < times[-1] < 1.7 * 10**12 and times[0] == 0


@pytest.mark.parametrize("point", ["1500", "plots"])
def test_force_replaces_a_killed_run(point):
    kill(point, *RUN, "--out", "out")
    code, error = command(*RUN, "--out", "out")
    assert code == 2 and error.startswith("bentpipe: out: not empty; give another --out, or --force")
    assert command(*RUN, "--out", "out", "--force", "--seed", "2") == (0, "")
    assert (names(), summary()["seed"]) == (WHOLE, 2)


def test_a_report_of_a_run_killed_while_plots_were_drawn():
    kill("plots", *RUN, "--out", "out")
    assert command("report", "out") == (0, "")
    assert (summary()["status"], names()) == ("done", WHOLE)


def test_a_run_killed_before_it_began_is_in_nobodys_way():
    kill("build", *RUN, "--out", "out")
    code, error = command("report", "out")
    assert (code, error) == (2, "bentpipe: out: its run ended before it began to simulate (no result.json)\n")
    assert command(*RUN, "--out", "out") == (0, "")
    assert names() == WHOLE


# With cases


def test_a_report_of_killed_cases_has_all_that_had_begun(cases):
    kill("second:1500", *cases)
    assert summary()["status"] == "running"
    assert command("report", "out") == (0, "")
    states = [(case["name"], case["status"]) for case in summary()["cases"]]
    assert states == [("first", "done"), ("second", "interrupted")]
    assert (summary()["status"], summary()["reason"]) == ("interrupted", "second: killed")
    top = ["overview.png", "overview.svg", "report.html", "result.json", "run.state"]
    assert names() == sorted([*top, *(str(Path(case, name)) for case in ("first", "second") for name in ["", *WHOLE])])


def test_a_signal_in_a_case_ends_them_all(cases):
    code, error = Held("first:1000", *cases).end(signal.SIGTERM)
    assert (code, error) == (143, "bentpipe: interrupted; kept in out; `bentpipe resume out` goes on\n")
    assert (summary()["status"], summary()["reason"]) == ("interrupted", "first: SIGTERM")
    assert summary()["planned"] == ["first", "second"] and not Path("out/second").exists()


def test_ctrl_c_while_a_cases_plots_are_drawn_leaves_a_run_folder(cases):
    code, error = Held("plots", *cases).end(signal.SIGINT)
    assert (code, error) == (130, "bentpipe: interrupted; the existing files are kept; see `bentpipe report out`\n")
    assert summary()["status"] == "interrupted"
    assert command("report", "out") == (0, "")
    assert [case["status"] for case in summary()["cases"]] == ["done"]
    assert command(*cases, "--force") == (0, "")
    assert summary()["status"] == "done"


# No room


def test_no_room_for_plots_leaves_the_data():
    code, error = command(*RUN, "--out", "out", fsize=200_000)
    assert (code, error) == (
        1,
        "bentpipe: out/report.html: File too large; the existing files are kept; see `bentpipe report out`\n",
    )
    assert (summary()["status"], names()) == ("done", ["flows.parquet", "result.json", "trace.parquet"])
    assert command("report", "out") == (0, "")
    assert names() == WHOLE


def test_no_room_while_it_runs_leaves_what_was_simulated():
    code, error = command("run", "acts-3flows", "--out", "out", fsize=60_000)
    assert code == 1
    assert error.startswith("bentpipe: out/.running/trace.arrows: File too large; the existing files are kept"), error
    assert error.count("\n") == 1
    simulated_s = summary()["time"]["simulated_s"]
    assert simulated_s > 1
    assert command("report", "out") == (0, "")
    assert (summary()["status"], names()) == ("interrupted", WHOLE)
    assert read_run(Path("out")).trace.series["flow1.delivered"][0][-1] > (simulated_s - 0.2) * 10**12


def test_no_room_for_the_first_file_is_told():
    code, error = command(*RUN, "--out", "out", fsize=100)
    assert code == 1 and "File too large" in error and error.count("\n") == 1
