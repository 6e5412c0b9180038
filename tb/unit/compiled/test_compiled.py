"""The compiled hosts: the same results as plain Python, one form a process, never a stale or damaged one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bentpipe import compiled
from bentpipe.errors import BentpipeError
from bentpipe_sim.digests import cache_folder

ROOT = Path(__file__).parents[3]


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return the output of a program of its own with these variables set."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, cwd="/"
    )


@pytest.fixture(scope="session")
def form() -> Path:
    """The compiled form, in the cache."""
    try:
        return compiled._build()
    except compiled._NotMade as why:
        if "Python.h" in str(why):
            pytest.skip(str(why))
        raise


def test_no_module_is_forgotten() -> None:
    root = Path(compiled.__file__).parent
    files = [file for package in ("tcp", "ip", "apps", "hosts") for file in (root / package).rglob("*.py")]
    names = {"bentpipe." + ".".join(file.relative_to(root).with_suffix("").parts) for file in files}
    there = {name for name in names if not name.endswith(".__init__")}
    assert there | {compiled.BORDER} == set(compiled._modules()) | compiled.INTERPRETED


FORMS = """
import sys
from bentpipe import compiled
import bentpipe.hosts.engine, bentpipe.hosts.reader, bentpipe.apps.ttcp, bentpipe_sim.network
print(compiled.describe().split(" with ")[0], compiled.why_plain(), sep="|")
files = [sys.modules[name].__file__ for name in compiled._modules() if name in sys.modules]
assert len(files) > 12, files
print({file.rsplit(".", 1)[1] for file in files})
"""


@pytest.mark.parametrize(
    ("mode", "kind", "ending"),
    [("compiled", "compiled|", "so"), ("auto", "compiled|", "so"), ("plain", "plain Python|", "py")],
)
def test_all_modules_have_one_form(form: Path, mode: str, kind: str, ending: str) -> None:
    done = python(FORMS, BENTPIPE_HOSTS=mode)
    assert (done.stderr, done.stdout.splitlines()) == ("", [kind, f"{{'{ending}'}}"])


OTHER_FORM = (
    "tb/unit/hosts/test_beside.py",
    "tb/unit/hosts/test_oam_ends.py",
    "tb/unit/hosts/test_scheduler.py",
    "tb/unit/tcp/test_tcp_codec.py",
    "tb/unit/tcp/test_tcp_scripts.py",
    "tb/unit/tcp/test_tcp_transfer.py",
    "tb/unit/apps/test_applications.py",
    "tb/unit/sim/test_oam_cells.py::test_a_round_trip_in_an_idle_network_is_known_to_the_tick",
    "tb/unit/sim/test_pdus.py",
)
"""Short tests that run in both forms, and all that need plain hosts; whole runs below compare the forms as well."""


def test_unit_tests_pass_with_the_other_form_of_hosts(form: Path) -> None:
    mode = "plain" if compiled.describe().startswith("compiled") else "compiled"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *OTHER_FORM]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**environment, "BENTPIPE_HOSTS": mode}
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert mode == "compiled" or "skipped" not in done.stdout


def test_what_needs_plain_hosts_runs_with_them_above() -> None:
    marked = {file for file in (ROOT / "tb/unit").rglob("test_*.py") if "mark.plain_hosts" in file.read_text()}
    assert {str(file.relative_to(ROOT)) for file in marked - {Path(__file__)}} <= {
        name.partition("::")[0] for name in OTHER_FORM
    }


def test_a_run_is_the_same_to_the_bit(form: Path, tmp_path: Path) -> None:
    """Three SACK flows with losses by bit errors, on the Verilated network."""
    found = {}
    for mode in ("plain", "compiled"):
        command = ["run", "lan-3flows", "--duration", "0.4", "--no-plots", "--out", str(tmp_path / mode)]
        command += ["--set", "network.lines.lan.ber=1e-8", "--set", "hosts.tcp.variant=sack"]
        code = f"from bentpipe.cli import main; raise SystemExit(main({command!r}))"
        done = python(code, BENTPIPE_HOSTS=mode)
        assert (done.returncode, done.stderr) == (0, "")
        summary = json.loads((tmp_path / mode / "result.json").read_text())
        assert summary["versions"].pop("hosts").startswith(mode)
        assert sum(flow["retransmits"] for flow in summary["flows"]) > 0
        for name in ("wall_s", "wall_per_simulated", "started"):
            del summary["time"][name]
        found[mode] = [summary, *((tmp_path / mode / f"{n}.parquet").read_bytes() for n in ("flows", "trace"))]
    assert found["plain"] == found["compiled"]


def test_a_state_goes_from_either_form_to_the_other(form: Path, tmp_path: Path) -> None:
    asked = ["run", "lan-1flow", "--duration", "120 ms", "--no-plots", "--out"]
    stopped = [sys.executable, str(ROOT / "tb" / "system" / "stopped_run.py"), "SIGKILL", "60"]
    found = []
    for first, then in (("compiled", "plain"), ("plain", "compiled")):
        folder = tmp_path / first
        subprocess.run([*stopped, *asked, str(folder)], env={**os.environ, "BENTPIPE_HOSTS": first}, check=False)
        code = f"from bentpipe.cli import main; raise SystemExit(main(['resume', {str(folder)!r}]))"
        done = python(code, BENTPIPE_HOSTS=then)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads((folder / "result.json").read_text())["time"]["resumed_s"] == [0.05]
        found.append([(folder / f"{name}.parquet").read_bytes() for name in ("flows", "trace")])
    assert found[0] == found[1]


def test_a_form_of_other_sources_is_not_taken(form: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled._find() is not None
    changed = tmp_path / "rto.py"
    changed.write_bytes(compiled._sources()["bentpipe/tcp/rto.py"].read_bytes() + b"# changed\n")
    sources = {**compiled._sources(), "bentpipe/tcp/rto.py": changed}
    monkeypatch.setattr(compiled, "_sources", lambda: sources)
    monkeypatch.setattr(compiled, "_digests", compiled._digests.__wrapped__)
    assert compiled._find() is None


def test_what_is_hashed_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that is edited between the two would be found under the name of the one before."""
    changed = tmp_path / "rto.py"
    changed.write_text("# changed\n")
    assert compiled._digests()
    monkeypatch.setattr(compiled, "_sources", lambda: {"bentpipe/tcp/rto.py": changed})
    monkeypatch.setattr(compiled, "_call", lambda *_, **_how: pytest.fail("mypyc was started"))
    with pytest.raises(compiled._NotMade, match=r"rto\.py was changed meanwhile"):
        compiled._compile(tmp_path / "work", tmp_path / "out", "group")


def copied(form: Path, cache: Path) -> Path:
    shutil.copytree(form, cache / form.name)
    return cache / form.name


def test_a_damaged_form_is_not_taken_but_replaced(form: Path, tmp_path: Path) -> None:
    there = copied(form, tmp_path)
    module = next(there.glob("bentpipe.tcp.rto.*"))
    module.write_bytes(module.read_bytes()[:-1] + b"!")
    done = python(FORMS, BENTPIPE_HOSTS="auto", BENTPIPE_CACHE=str(tmp_path))
    assert done.stdout.startswith("plain Python|not compiled yet"), done.stderr
    shutil.copytree(form, tmp_path / "made")
    compiled._place(tmp_path / "made", there)
    assert compiled._whole(there) is not None


def test_the_faster_process_wins(form: Path, tmp_path: Path) -> None:
    there = copied(form, tmp_path)
    inode = there.stat().st_ino
    shutil.copytree(form, tmp_path / "made")
    compiled._place(tmp_path / "made", there)
    assert there.stat().st_ino == inode


FAILING = """
from bentpipe import compiled
every, compiled._modules = compiled._modules, lambda: ("bentpipe.tcp.constants",)  # one is enough for the C compiler
print(compiled.prepare())
compiled._modules = every
"""


def test_a_compiler_that_fails(tmp_path: Path) -> None:
    failing = tmp_path / "failing-g++"
    failing.write_text("#!/bin/sh\necho 'host.c:1: error: out of ideas' >&2; exit 1\n")
    failing.chmod(0o755)
    cache = tmp_path / "cache"
    done = python(FAILING + FORMS, BENTPIPE_HOSTS="auto", BENTPIPE_CACHE=str(cache), CXX=str(failing))
    assert "host.c:1: error: out of ideas" in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[1].startswith("plain Python|")
    assert [file.name for file in cache.iterdir()] in ([], ["digests.json"])


def test_hosts_that_have_to_be_compiled_and_cannot_be_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise compiled._NotMade("out of ideas")

    monkeypatch.setenv("BENTPIPE_HOSTS", "compiled")
    monkeypatch.setattr(compiled, "_find", lambda: None)
    monkeypatch.setattr(compiled, "_build", fail)
    with pytest.raises(BentpipeError, match=r"The hosts can't be compiled: out of ideas"):
        compiled._Finder().decide()


@pytest.mark.parametrize("mode", ["auto", "compiled"])
def test_a_form_that_is_there_needs_no_compiler(form: Path, mode: str) -> None:
    done = python("from bentpipe import compiled; compiled.prepare(); " + FORMS, BENTPIPE_HOSTS=mode, PATH="", CXX="")
    assert (done.stderr, done.stdout.splitlines()) == ("", ["compiled|", "{'so'}"])


def test_no_compiler(tmp_path: Path) -> None:
    prepare = "from bentpipe import compiled; print(compiled.prepare())"
    done = python(prepare, BENTPIPE_HOSTS="auto", BENTPIPE_CACHE=str(tmp_path), CXX="no-such-compiler")
    assert "no-such-compiler" in done.stdout


def test_an_unknown_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENTPIPE_HOSTS", "fast")
    with pytest.raises(BentpipeError, match="BENTPIPE_HOSTS is 'fast'; it can be auto, plain, compiled"):
        compiled.prepare()


def test_force_empties_the_cache_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bentpipe_sim.cache import Cache

    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path))
    (tmp_path / "hosts-0").mkdir()
    Cache().clear()
    assert list(cache_folder().iterdir()) == []
