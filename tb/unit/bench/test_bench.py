"""The parts of ``make bench`` that measure nothing themselves."""

from __future__ import annotations

import hashlib
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bentpipe.bench import beside, kinds, scaling, workers
from bentpipe.bench.__main__ import main
from bentpipe.bench.cases import network_of
from bentpipe.bench.counts import by_object
from bentpipe.bench.samples import sampled
from bentpipe_sim.nodes import Node

CALLGRIND = """\
# callgrind format
version: 1
positions: line
events: Ir
summary: 1234

ob=(1) /models/switch-0a1b.so
fl=(1) ???
fn=(1) clock
0 100
+3 20
cob=(2) /models/network-2c3d.so
cfn=(2) take
calls=7 0
* 5000

ob=(2)
fn=(2)
0 14
-2 6
cob=(3) /lib/libc.so.6
cfn=(3) memcpy
calls=1 0
0 30

ob=(3)
fn=(3)
0 30
totals: 170
"""


def test_instructions_are_those_of_each_library_itself() -> None:
    found = by_object(CALLGRIND.splitlines())
    assert found == {"/models/switch-0a1b.so": 120, "/models/network-2c3d.so": 20, "/lib/libc.so.6": 30}


@pytest.mark.parametrize("point", [scaling.Point("", 0, full=2, idle=1), scaling.Point("", 0, vcs=3, idle_vcs=2)])
def test_only_full_lines_carry_cells_and_they_are_full(point: scaling.Point) -> None:
    network = scaling.network_at(point)
    before = network.stats()
    network.run(6_000_000_000)
    after = network.stats()
    cells = {name: after[name]["cells_in"] - before[name]["cells_in"] for name in after if name.startswith("b")}
    a_millisecond = 149_760_000 / 424 / 1000
    full = [cells[f"b{path}"] for path in range(point.full)]
    assert full == [pytest.approx(a_millisecond, abs=3)] * point.full
    assert all(cells[f"b{path}"] == 0 for path in range(point.full, point.full + point.idle))
    network.check_conservation()


def test_fifteen_flows_fill_a_line_in_turn() -> None:
    network = network_of("cells-15flows")
    network.run(2_000_000_000)
    before = network.stats()
    network.run(4_000_000_000)
    after = network.stats()
    came = {name: after[name]["cells_in"] - before[name]["cells_in"] for name in after}
    sent = [after[f"source{k}"]["cells_out"] - before[f"source{k}"]["cells_out"] for k in range(15)]
    assert came["satellite.out"] == pytest.approx(2 * 149_760_000 / 424 / 1000, abs=3)
    assert max(sent) - min(sent) <= 1
    network.check_conservation()


def test_the_ratio_is_that_of_the_best_and_its_spread_that_of_turns() -> None:
    turns = beside.Turns("3.37")
    turns.ours, turns.theirs = [0.2, 0.3, 0.24], [0.1, 0.2, 0.08]
    assert turns.ratio == pytest.approx(2.5)
    assert turns.ratios == pytest.approx([1.5, 2, 3])
    assert "The ratio is 2.50 (in turns 1.50 to 3.00)" in str(turns)


def test_transfers_are_compared_by_the_least_of_each() -> None:
    found = beside.Congested("3.37")
    for way, scale in (("ns-3", 2.0), ("one thread", 1.0), ("two threads", 0.5)):
        for turn in (1.5, 1.0):
            run = {"cpu_s": 2 * scale * turn, "elapsed_s": 3 * scale / turn, "simulated_s": 377.0, "octets": 3 << 30}
            found.runs[way].append(run)
    assert found.least("ns-3", "cpu_s") == pytest.approx(4)
    assert found.ratio("one thread", "cpu_s") == pytest.approx(0.5)
    assert found.ratio("two threads", "elapsed_s") == pytest.approx(0.25)
    _, theirs, _, ours = str(found).splitlines()
    assert theirs.startswith("  ns-3           4.00 CPU s (1.00 of ns-3's)   4.00 s elapsed (1.00); 3,221,225,472 oct")
    assert "1.00 CPU s (0.25 of ns-3's)   1.00 s elapsed (0.25)" in ours


@pytest.mark.parametrize(
    "compare", [lambda: beside.measure(dict, 1.0, 1), lambda: beside.congested(lambda threads: {}, 1)]
)
def test_without_ns3_one_line_says_so(compare: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "call", lambda command: (1, "", "no packages found matching libns3-dev"))
    with pytest.raises(beside.NotHere, match=r"^ns-3 is not installed \(.*\), so there is no comparison$"):
        compare()


def test_a_plot_of_what_was_found(tmp_path: Path) -> None:
    scaling.draw(dict.fromkeys(scaling.POINTS, 500.0), "ns", tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("--schedule --parts 2", "argument --parts: not allowed with argument --schedule"),
        ("--build --against /", "argument --against: not allowed with argument --build"),
        ("--parts 2 --json", "--parts does not use --json: leave it out"),
        ("--parts 2 --plot x.png", "--parts does not use --plot: it goes with --scaling or --schedule"),
        ("--schedule --busy", "--schedule does not use --busy: it goes with --parts"),
        ("--build --seconds 3", "--build does not use --seconds: it goes with --against or --workers"),
        ("--workers 2 cells-1flow", "--workers does not use case: it goes with --against"),
        ("--schedule --instructions", "--schedule does not use --instructions: it goes with --against or --scaling"),
        ("--busy", "--busy: it goes with --parts"),
        ("--parts 1", "--parts: 2 or more, they are compared with one"),
        ("--seconds 0", "--seconds is more than 0, not 0"),
    ],
)
def test_options_that_would_be_ignored_are_refused(given: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given.split())
    assert ended.value.code == 2 and capsys.readouterr().err.endswith(f"error: {line}\n")


@pytest.mark.parametrize("given", [["--instructions"], ["--plot", "x.png"], ["no-such-case"], ["--against", "/"]])
def test_wrong_use_is_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2 and "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/cache/switch-native-0a.so", "switch"),
        ("/cache/hosts-0a-1b/sender.so", "hosts"),
        ("/cache/hosts-0a-1b", "libraries and Python"),
        ("/lib/libpython3.11.so.1.0", "libraries and Python"),
        ("", "libraries and Python"),
    ],
)
def test_whose_code_a_library_is(file: str, kind: str) -> None:
    assert kinds.kind_of(file) == kind


def test_samples_are_where_the_time_goes() -> None:
    """Samples show work that is nearly all in one library, for as long as it takes."""

    def work() -> None:
        end = time.perf_counter() + 0.3
        while time.perf_counter() < end:
            hashlib.sha256(bytes(1 << 20)).digest()

    shares = sampled(work)
    assert sum(shares.values()) == pytest.approx(1)
    file, share = max(shares.items(), key=lambda item: item[1])
    assert "crypto" in Path(file).name or "sha" in Path(file).name
    assert share > 0.5
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


def test_work_that_fails_is_sampled_no_longer() -> None:
    with pytest.raises(ZeroDivisionError):
        sampled(lambda: 1 / 0)
    hashlib.sha256(bytes(1 << 24)).digest()  # a signal that nobody takes would end the process


def test_every_kind_of_node_has_its_name_in_the_table() -> None:
    assert {kind.kind for kind in Node.__subclasses__()} <= set(kinds.KINDS)


def test_sweeps_with_one_worker_and_several_are_told_as_a_ratio(monkeypatch, capsys):
    took = iter([9.0, 8.0, 4.2, 10.0, 5.0, 9.0, 4.4])

    def sweep(number, seconds, runs=16):
        assert seconds == 3
        return workers.Swept(next(took), 7.0 + 0.07 * number)

    monkeypatch.setattr(workers, "sweep", sweep)
    assert main(["--workers", "2", "--seconds", "3"]) == 0
    assert "2 workers take 0.53 of the time of one; their runs, by themselves, 1.01" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--workers", "1"])
