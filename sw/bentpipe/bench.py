"""How fast the simulation is: ``python -m bentpipe.bench`` (``make bench``).

Every case runs in a process of its own on one core and reports CPU seconds per simulated second: ratios of one run
on one machine, to be compared with each other and with real time (1.0). Saturated OC-3c lines over the 534 ms
satellite. Cases with hosts run in both forms of these, compiled and plain.

``--against DIR`` holds this tree against another checkout: CPU seconds in turns, the least of each; with
``--instructions`` (where valgrind is) what the cases without hosts execute, which no other load on the machine changes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bentpipe.compiled import prepare
from bentpipe.experiment.build import add_hosts, build_network
from bentpipe.experiment.load import load
from bentpipe.experiment.record import TraceRecorder
from bentpipe.experiment.schema import Experiment
from bentpipe_sim.loop import Loop
from bentpipe_sim.network import Network

__all__ = ["main"]

_S = 10**12
_SDU = 9188
_ACK = 40
_CALLS = 100_000
_LAN = (
    "network.lines.satellite.delay=40 us",
    "network.lines.satellite.ber=0",
    "window=800 kB",
    "record.interval=50 ms",
)

TITLES = {
    "cells-1flow": "1 flow, no hosts: PDUs made and checked in C++",
    "cells-3flows": "3 flows, a third of the line each, no hosts",
    "cells-overload": "3 flows, a whole line each, two thirds dropped, no hosts",
    "sonet-3": "an OC-3c SONET line full of cells both ways, two NICs included",
    "sonet-12": "an OC-12c SONET line full of cells both ways, two NICs included",
    "hosts-1flow": "1 flow, everything included, over the satellite",
    "hosts-3flows": "3 flows, everything included, over a LAN",
}
GOALS = {
    "cells-1flow": (0.3, 0.1),
    "cells-3flows": (0.3, 0.1),
    "cells-overload": (0, 0),
    "sonet-3": (1.0, 0.25),
    "sonet-12": (2.5, 0.5),
    "hosts-1flow": (0.5, 0.15),
    "hosts-3flows": (0.5, 0.15),
}
"""CPU seconds per simulated second: what is asked, what is aimed at."""


class _Clocked:
    """An event loop whose time in C++ is measured from outside: what is left is Python and hosts."""

    def __init__(self, loop: Loop):
        self.seconds, self.calls = 0.0, 0
        nothing = self._timed(lambda: None)
        start = time.process_time()
        for _ in range(_CALLS):
            nothing()
        # What reading the clock adds to a call: in all, and within what is measured.
        self.outer = (time.process_time() - start) / _CALLS
        self.inner = self.seconds / _CALLS
        self.seconds, self.calls = 0.0, 0
        for name in ("run", "send", "check", "checksum"):
            setattr(loop, name, self._timed(getattr(loop, name)))

    def _timed(self, function: Any) -> Any:
        clock = time.process_time_ns

        def call(*arguments: Any) -> Any:
            start = clock()
            result = function(*arguments)
            self.seconds += (clock() - start) / 1e9
            self.calls += 1
            return result

        return call

    def share_of_rest(self, seconds: float) -> float:
        """The share of a run of so many CPU seconds that was not in C++."""
        return 1 - (self.seconds - self.calls * self.inner) / (seconds - self.calls * self.outer)


def _experiment(flows: str, *settings: str) -> Experiment:
    """The experiment of ``bench-FLOWS.toml`` beside this file."""
    return load(str(Path(__file__).with_name(f"bench-{flows}.toml")), settings)


def _cells(case: str) -> tuple[Network, list[str]]:
    """The network of an experiment, saturated by PDUs that the event loop makes, two answered by one of one cell.

    Several flows share the satellite's line by pacing, as TCP's flows share it in the long run, or overload it.
    """
    experiment = _experiment("1flow" if case == "1flow" else "3flows")
    network, nics, vcs = build_network(experiment)
    if case != "overload":
        for flow in experiment.flows:
            nic = nics[flow.source]
            sent = nic.sends[vcs[flow.vc]]
            nic.sends[vcs[flow.vc]] = replace(sent, period=nic.period * len(experiment.flows))
    network.start()
    loop = network.loop
    for key, flow in enumerate(experiment.flows):
        source, sink = nics[flow.source].index, nics[flow.sink].index
        loop.sink(sink, vcs[flow.vc], key, vcs[flow.return_vc], _ACK, 2)
        loop.sink(source, vcs[flow.return_vc], 0, 0, 0, 0)
        loop.source(source, vcs[flow.vc], _SDU, key)
    return network, [node.name for node in network.nodes]


def _sonet(sts: int) -> tuple[Network, list[str]]:
    """Two NICs on a SONET line, which send as fast as it goes."""
    network = Network(seed=1)
    rate = {3: 149_760_000, 12: 599_040_000}[sts]
    nics = [network.add_nic(name, rate) for name in ("left", "right")]
    line = network.add_sonet_line("line", sts=sts)
    for end, nic in enumerate(nics):
        network.connect(nic, (line, end))
        network.connect((line, end), nic)
    ways = [network.add_vc([nics[k], line, nics[1 - k]], 0, 100 + k) for k in range(2)]
    network.start()
    loop = network.loop
    for k, vc in enumerate(ways):
        loop.sink(nics[1 - k].index, vc, k, 0, 0, 0)
        loop.source(nics[k].index, vc, _SDU, k)
    return network, [node.name for node in network.nodes]


def _measure(case: str, seconds: float) -> dict[str, Any]:
    kind, flows = case.split("-")
    result: dict[str, Any] = {"case": case}
    if kind in ("cells", "sonet"):
        network, names = _cells(flows) if kind == "cells" else _sonet(int(flows))
        network.run(1 * _S)  # the satellite's line is full
        spent = _in_tenths(network.run, 1, seconds)
        before = network.stats()
        network.loop.timing(1)
        network.run(int((2 + seconds) * _S))
        after = network.stats()
        overhead = _clock_overhead_ns()
        result["nodes"] = {
            name: {
                "evaluations": evaluations,
                "ns": (after[name]["nanoseconds"] - before[name]["nanoseconds"]) / evaluations - overhead,
            }
            for name in names
            if (evaluations := after[name]["evaluations"] - before[name]["evaluations"])
        }
        network.check_conservation()
    else:
        # One flow: from the end of slow start on. Three: on the LAN, where the line is full from the start.
        begin = 11 if flows == "1flow" else 2
        experiment = _experiment(flows, *(_LAN if flows == "3flows" else ()))
        recorder = TraceRecorder(experiment.record.interval_ps, experiment.record.what)
        network, nics, vcs = build_network(experiment)
        built = add_hosts(experiment, recorder, network, nics, vcs)
        built.engine.run(begin * _S)
        delivered = [flow.report(built.now_ps()).octets_delivered for flow in built.flows.values()]
        spent = _in_tenths(built.engine.run, begin, seconds)
        more = [flow.report(built.now_ps()).octets_delivered for flow in built.flows.values()]
        result["goodput_mbps"] = (sum(more) - sum(delivered)) * 8 / seconds / 1e6
        clocked = _Clocked(network.loop)
        start = time.process_time()
        built.engine.run(int((begin + 2 * seconds) * _S))
        result["python_share"] = clocked.share_of_rest(time.process_time() - start)
        built.check()
    result["simulated_s"], result["cpu_s"] = seconds, sum(spent)
    result["ratio"], result["best_ratio"] = sum(spent) / seconds, min(spent) * len(spent) / seconds
    result["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return result


def _in_tenths(run: Any, begin: float, seconds: float) -> list[float]:
    """CPU seconds of each tenth of the simulated seconds from ``begin`` on."""
    spent = []
    for tenth in range(1, 11):
        start = time.process_time()
        run(int((begin + seconds * tenth / 10) * _S))
        spent.append(time.process_time() - start)
    return spent


def _clock_overhead_ns() -> float:
    """What two readings of the clock add to an evaluation, roughly: they are vDSO calls of about 25 ns."""
    count = 100_000
    start = time.perf_counter_ns()
    for _ in range(count):
        pass
    loop = time.perf_counter_ns() - start
    start = time.perf_counter_ns()
    for _ in range(count):
        time.perf_counter_ns()
    return max(0.0, (time.perf_counter_ns() - start - loop) / count)


def _segment(form: str) -> dict[str, Any]:
    """Microseconds a segment of the hosts alone: the best of three runs of each kind."""
    from bentpipe.hosts.bench import microseconds_a_segment

    cost = 62_000_000
    kinds = {"hosts that cost nothing": (0, 0, "reno"), "the same with SACK": (0, 0, "sack"),
             "62 us a segment": (cost, cost, "reno")}  # fmt: skip
    return {what: min(microseconds_a_segment(20_000, *how)[1] for _ in range(3)) for what, how in kinds.items()}


_FROM, _TO = 0.3, 0.4
"""Simulated seconds between which instructions are counted."""
_TURNS = 3


def _until(case: str, seconds: float) -> None:
    """Run a case without hosts for so long."""
    kind, what = case.split("-")
    network, _ = _cells(what) if kind == "cells" else _sonet(int(what))
    network.run(int(seconds * _S))


def _in_tree(tree: Path, *arguments: str, under: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """This program's counterpart in a checkout."""
    paths = os.pathsep.join(str(tree / part) for part in ("hdl", "sim", "sw", "boards"))
    environment = {"BENTPIPE_HOSTS": "compiled", **os.environ, "PYTHONPATH": paths}
    command = [*under, sys.executable, "-m", "bentpipe.bench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{tree}: {' '.join(arguments)} failed: {done.stderr.strip().splitlines()[-1:]}")
    return done


def _instructions(tree: Path, case: str) -> float:
    """Millions of instructions that a case executes in a simulated tenth of a second."""
    _in_tree(tree, "--inside", case, "--until", "0")  # compiles what is missing
    counts = []
    for seconds in (_FROM, _TO):
        under = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
        done = _in_tree(tree, "--inside", case, "--until", str(seconds), under=under)
        counts.append(int(re.findall(r"Collected : (\d+)", done.stderr)[-1]))
    return (counts[1] - counts[0]) / 1e6 * 0.1 / (_TO - _FROM)


def _seconds(trees: Sequence[Path], case: str, seconds: float) -> list[float]:
    """CPU seconds a simulated second of a case in each tree, the best tenth of all turns."""
    best = [math.inf] * len(trees)
    for _ in range(_TURNS):
        for k, tree in enumerate(trees):
            found = json.loads(_in_tree(tree, "--inside", case, "--seconds", str(seconds)).stdout)
            best[k] = min(best[k], found["best_ratio"])
    return best


def _against(other: Path, cases: Sequence[str], seconds: float, instructions: bool) -> None:
    trees = (Path(__file__).resolve().parents[2], other.resolve())
    what = "million instructions in 0.1 s simulated" if instructions else "CPU seconds a simulated second"
    print(f"{what}: this tree, {other}, ratio")
    for case in cases:
        here, there = [_instructions(t, case) for t in trees] if instructions else _seconds(trees, case, seconds)
        print(f"{case:16}{here:10.3f}{there:10.3f}{here / there:8.3f}", flush=True)


def _inside(case: str, seconds: float) -> dict[str, Any]:
    from bentpipe.compiled import describe

    result = _segment(case) if case == "segment" else _measure(case, seconds)
    return {**result, "hosts": describe()}


def _table(results: list[dict[str, Any]], segment: dict[str, dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="CPU seconds per simulated second, one core", title_justify="left", box=None)
    for title in (
        "case",
        "hosts",
        "s per s",
        "best tenth",
        "asked",
        "goal",
        "x real time",
        "Mb/s",
        "Python and hosts",
        "memory",
    ):
        table.add_column(title, justify="left" if title in ("case", "hosts") else "right")
    for r in results:
        asked, goal = GOALS[r["case"]]
        table.add_row(
            TITLES[r["case"]],
            _short(r["hosts"]) if "python_share" in r else "",
            f"{r['ratio']:.3f}",
            f"{r['best_ratio']:.3f}",
            f"{asked}" if asked else "",
            f"{goal}" if goal else "",
            f"{1 / r['ratio']:.1f}",
            f"{r['goodput_mbps']:.1f}" if "goodput_mbps" in r else "",
            f"{100 * r['python_share']:.0f} %" if "python_share" in r else "",
            f"{r['peak_memory_mb']:.0f} MB",
        )
    nodes = Table(title="\nNanoseconds an evaluated tick", title_justify="left", box=None)
    for title in ("case", "node", "ns", "evaluations a simulated second", "s per s"):
        nodes.add_column(title, justify="right" if title != "case" and title != "node" else "left")
    for r in results:
        for name, node in r.get("nodes", {}).items():
            nodes.add_row(
                r["case"],
                name,
                f"{node['ns']:.0f}",
                f"{node['evaluations']:,}",
                f"{node['ns'] * node['evaluations'] / 1e9:.3f}",
            )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    console.print(nodes)
    alone = Table(title="\nHosts alone: us a segment sent, received and acknowledged", title_justify="left", box=None)
    alone.add_column("what")
    for form in segment:
        alone.add_column(form, justify="right")
    for what in next(iter(segment.values())):
        alone.add_row(what, *(f"{values[what]:.1f}" for values in segment.values()))
    console.print(alone)


def _short(form: str) -> str:
    return form.split(" with ")[0]


def _process(case: str, form: str, seconds: float) -> dict[str, Any] | None:
    """What a process of its own measures, with the hosts in this form; None if it fails."""
    print(f"{case}, hosts {form} ...", file=sys.stderr)
    command = [sys.executable, "-m", "bentpipe.bench", "--inside", case, "--seconds", str(seconds)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "BENTPIPE_HOSTS": form}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{case} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def main(arguments: list[str] | None = None) -> int:
    """Run the cases named (all by default); prints a table, or with ``--json`` one object."""
    parser = argparse.ArgumentParser(prog="python -m bentpipe.bench", description="How fast the simulation is.")
    parser.add_argument("case", nargs="*", help=f"{', '.join(TITLES)} (default: all)")
    parser.add_argument("--seconds", type=float, default=4.0, help="simulated seconds a case (default 4)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--against", type=Path, metavar="DIR", help="compare with this checkout, case by case")
    parser.add_argument("--instructions", action="store_true", help="with --against: count them, by valgrind")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.until is not None:
        _until(given.inside, given.until)
        return 0
    if given.inside:
        print(json.dumps(_inside(given.inside, given.seconds)))
        return 0
    unknown = set(given.case) - set(TITLES)
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}: there are {', '.join(TITLES)}")
    if given.instructions and not given.against:
        parser.error("--instructions goes with --against")
    if given.instructions and not shutil.which("valgrind"):
        parser.error("--instructions needs valgrind")
    if given.against:
        if not (given.against / "sw" / "bentpipe" / "bench.py").is_file():
            parser.error(f"{given.against} is no checkout of bentpipe")
        cases = [case for case in given.case or TITLES if not (given.instructions and case.startswith("hosts"))]
        _against(given.against, cases, given.seconds, given.instructions)
        return 0
    why_plain = prepare(sys.stderr.isatty())
    if why_plain:
        print(f"hosts only as plain Python: {why_plain}", file=sys.stderr)
    forms = ("compiled", "plain") if why_plain == "" else ("plain",)
    results = []
    for case in given.case or TITLES:
        for form in forms if case.startswith("hosts") else forms[:1]:
            found = _process(case, form, given.seconds)
            if found is None:
                return 1
            results.append(found)
    segment = {}
    for form in forms:
        found = _process("segment", form, given.seconds)
        if found is None:
            return 1
        segment[_short(found.pop("hosts"))] = found
    if given.json:
        print(json.dumps({"cases": results, "microseconds_a_segment": segment}, indent=1))
    else:
        _table(results, segment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
