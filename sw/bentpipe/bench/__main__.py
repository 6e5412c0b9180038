"""The speed of the simulation: ``python -m bentpipe.bench`` (``make bench``).

Every case runs in a process of its own on one core and reports CPU seconds per simulated second: ratios of one run on
one machine, to be compared with each other and with real time (1.0). The lines are saturated OC-3c lines over the 534
ms satellite. Cases with hosts run in both forms of these, compiled and plain. If valgrind is installed, the
instructions of one flow are counted by kind of node, without and with hosts. If Debian's ns-3 is installed, it carries
the same flow in turns with ours, and then three transfers that share a satellite's line, beside ours on one thread and
on two.

``--against DIR`` compares this tree with another checkout: CPU seconds in turns, the least of each. With
``--instructions`` (which needs valgrind) it compares the instructions a cell, which no other load on the machine
changes. ``--scaling`` measures the cost of a cell among more nodes, VCs and idle lines; with
``--instructions``, in instructions. ``--workers N`` measures the time of a sweep with so many Dask workers, and with
one. ``--parts N`` compares networks in parts, on one thread and on N, with one event loop; with ``--busy``, while four
other processes use the cores. ``--build`` measures how long large networks take to load and start, how that grows, and
how long commands take.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bentpipe.bench import beside, building, counts, parts, scaling, schedule, workers
from bentpipe.bench.cases import GOALS, TITLES, WITH_HOSTS, measure, saturated, segment
from bentpipe.compiled import prepare

__all__ = ["main"]

_TURNS: Final = 3
_TREE: Final = Path(__file__).resolve().parents[3]
_COUNTED: Final = ("cells-1flow", "hosts-1flow")
_TRANSFERS: Final = "transfers"
"""The kind of the inner cases that run whole transfers; behind it stands the number of threads."""
_OTHERS: Final = 4
_SECONDS: Final = 4.0
_MODES: Final = ("against", "scaling", "schedule", "workers", "build", "parts")
"""Kinds of measurements, by their options; without any of these the cases are measured."""
_USED_BY: Final[dict[str, tuple[str, ...]]] = {
    "case": ("", "against"),
    "seconds": ("", "against", "workers"),
    "json": ("",),
    "instructions": ("against", "scaling"),
    "plot": ("scaling", "schedule"),
    "busy": ("parts",),
}
"""The kinds of measurements that use an option; "" are the cases."""


def _seconds(trees: Sequence[Path], case: str, seconds: float) -> list[float]:
    """Return the CPU seconds per simulated second of a case in each tree, the best tenth of all turns."""
    best = [math.inf] * len(trees)
    for _ in range(_TURNS):
        for k, tree in enumerate(trees):
            found = json.loads(counts.in_tree(tree, "--inside", case, "--seconds", str(seconds)).stdout)
            best[k] = min(best[k], found["best_ratio"])
    return best


def _against(other: Path, cases: Sequence[str], seconds: float, instructions: bool) -> None:
    trees = (_TREE, other.resolve())
    print(f"{'instructions a cell' if instructions else 'CPU seconds a simulated second'}: this tree, {other}, ratio")
    for case in cases:
        if instructions:
            here, there = (counts.count(tree, case).a_cell for tree in trees)
        else:
            here, there = _seconds(trees, case, seconds)
        print(f"{case:16}{here:10.3f}{there:10.3f}{here / there:8.3f}", flush=True)


def _scaling(instructions: bool, plot: Path | None) -> None:
    unit = "instructions" if instructions else "ns"
    found = dict.fromkeys(scaling.POINTS, math.inf)
    for _ in range(1 if instructions else _TURNS):
        for k, point in enumerate(scaling.POINTS):
            case = f"scaling-{k}"
            if instructions:
                found[point] = counts.count(_TREE, case, scaling.counted(point)).a_cell
            else:
                value = json.loads(counts.in_tree(_TREE, "--inside", case).stdout)["seconds_a_cell"] * 1e9
                found[point] = min(found[point], value)
            print(f"{point.series}: {point.value}: {found[point]:.0f} {unit} a cell", flush=True)
    if plot is not None:
        scaling.draw(found, unit, plot)


def _workers(count: int, seconds: float) -> None:
    """Sweep with one worker and with several, in turns; print the shortest of each."""
    prepare(sys.stderr.isatty())
    workers.sweep(1, seconds, runs=1)  # compiles what all need
    found: dict[int, workers.Swept] = {}
    for _ in range(_TURNS):
        for number in (1, count):
            now = workers.sweep(number, seconds)
            print(f"{number} of {os.cpu_count()}: {now.wall_s:.1f} s, {now.runs_s:.1f} s of runs", flush=True)
            if number not in found or now.wall_s < found[number].wall_s:
                found[number] = now
    one, several = found[1], found[count]
    print(
        f"{count} workers take {several.wall_s / one.wall_s:.2f} of the time of one; "
        f"their runs, by themselves, {several.runs_s / one.runs_s:.2f}"
    )


def _build() -> None:
    """Measure large networks, each in a process of its own, then commands; print the least of three turns."""
    for what, (title, sizes) in building.GROWTHS.items():
        print(f"\n{title}: CPU seconds to load, lay out, start; together; memory")
        before = None
        for size in sizes:
            turns = [_built(what, size) for _ in range(_TURNS)]
            best = min(turns, key=lambda built: built.whole_s)
            growth = "" if before is None else f"  {best.whole_s / before:.2f} times that of half as many"
            if before is not None and best.whole_s > building.MOST_GROWTH * before:
                growth += f" (more than {building.MOST_GROWTH})"
            times = f"{best.load_s:8.2f}{best.layout_s:8.2f}{best.start_s:8.2f}{best.whole_s:8.2f}"
            print(f"{size:6}{times}{best.memory_mb:8.0f} MB{growth}", flush=True)
            before = best.whole_s
    print("\ncommands: CPU seconds")
    for title, arguments in building.STARTS.values():
        least = min(building.started(arguments) for _ in range(_TURNS))
        print(f"{least:6.2f}  {title}", flush=True)


def _parts(threads: int, is_busy: bool) -> None:
    for case in [] if is_busy else parts.HOSTS:
        print(f"{case}: CPU, elapsed seconds a simulated second; both in those of one thread", flush=True)
        ways = list(parts.beside(case))
        for row in ways:
            shares = f"{row.cpu / ways[0].cpu:8.2f}{row.elapsed / ways[0].elapsed:8.2f}"
            print(f"  {row.way:46}{row.cpu:8.3f}{row.elapsed:8.3f}{shares}", flush=True)
    for case in parts.CASES:
        if is_busy:
            one, several = parts.busy(case, threads, _OTHERS)
            print(f"{case:28}{one:9.3f}{several:9.3f} s a simulated second{several / one:7.2f} times", flush=True)
            continue
        print(f"{case}: CPU, elapsed seconds a simulated second; both in those of one event loop", flush=True)
        rows = list(parts.measure(case, threads))
        for row in rows:
            shares = f"{row.cpu / rows[0].cpu:8.2f}{row.elapsed / rows[0].elapsed:8.2f}"
            print(f"  {row.way:36}{row.parts:4} parts{row.cpu:8.3f}{row.elapsed:8.3f}{shares}", flush=True)


def _schedule(file: Path | None) -> None:
    print("Networks in parts on one thread, and their threads by simulation of the schedule: times as fast as one")
    print(f"{'':28}" + "".join(f"{threads:6}" for threads in schedule.THREADS))
    found: dict[str, list[float]] = {}
    for case in parts.CASES:
        gains = [schedule.gain(case, threads) for threads in schedule.THREADS]
        if gains[-1] == 1.0:  # it has one part
            continue
        found[case] = gains
        print(f"{case:28}" + "".join(f"{gain:6.2f}" for gain in found[case]), flush=True)
    if file is not None:
        schedule.draw({case: gains for case, gains in found.items() if case.startswith("120")}, file)


def _built(what: str, size: int) -> building.Built:
    return building.Built(*json.loads(counts.in_tree(_TREE, "--inside", f"build-{what}-{size}").stdout))


def _counted(case: str, until_s: float) -> dict[str, Any]:
    """Run a case from its beginning to a time, and return what :func:`counts.run_counted` does."""
    kind, _, what = case.partition("-")
    if kind == "scaling":
        network = scaling.network_at(scaling.POINTS[int(what)])
        return counts.run_counted(network, network.run, until_s)
    found = saturated(case, until_s)
    return counts.run_counted(found.network, found.run, until_s)


def _inside(case: str, seconds: float) -> dict[str, Any] | building.Built:
    """Return the measurement that a process makes."""
    from bentpipe.compiled import describe

    kind, _, what = case.partition("-")
    if kind == "build":
        grown, _, size = what.partition("-")
        return building.measure(grown, int(size))
    if kind == "scaling":
        return {"seconds_a_cell": scaling.seconds_a_cell(scaling.POINTS[int(what)])}
    if kind == _TRANSFERS:
        return {**beside.transfers(int(what)), "hosts": describe()}
    result = segment() if case == "segment" else measure(case, seconds)
    return {**result, "hosts": describe()}


def _table(results: list[dict[str, Any]], segments: dict[str, dict[str, Any]]) -> None:
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
        "memory",
    ):
        table.add_column(title, justify="left" if title in ("case", "hosts") else "right")
    for r in results:
        asked, goal = GOALS[r["case"]]
        table.add_row(
            TITLES[r["case"]],
            _short(r["hosts"]) if "goodput_mbps" in r else "",
            f"{r['ratio']:.3f}",
            f"{r['best_ratio']:.3f}",
            f"{asked}" if asked else "",
            f"{goal}" if goal else "",
            f"{1 / r['ratio']:.1f}",
            f"{r['goodput_mbps']:.1f}" if "goodput_mbps" in r else "",
            f"{r['peak_memory_mb']:.0f} MB",
        )
    where = Table(title="\nWhere the time goes, by samples", title_justify="left", box=None)
    for title in ("case", "hosts", "what", "share", "s per s", "evaluations a simulated second", "ns each"):
        where.add_column(title, justify="left" if title in ("case", "hosts", "what") else "right")
    for r in results:
        for what, cost in r["where"].items():
            evaluated = [f"{cost['evaluations']:,.0f}", f"{cost['ns']:.0f}"] if "ns" in cost else []
            form = _short(r["hosts"]) if "goodput_mbps" in r else ""
            where.add_row(r["case"], form, what, f"{100 * cost['share']:.0f} %", f"{cost['ratio']:.3f}", *evaluated)
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    console.print(where)
    alone = Table(title="\nHosts alone: us a segment sent, received and acknowledged", title_justify="left", box=None)
    alone.add_column("what")
    for form in segments:
        alone.add_column(form, justify="right")
    for what in next(iter(segments.values())):
        alone.add_row(what, *(f"{values[what]:.1f}" for values in segments.values()))
    console.print(alone)


def _short(form: str) -> str:
    return form.split(" with ")[0]


def _process(case: str, form: str, seconds: float) -> dict[str, Any] | None:
    """Return the measurement of a process of its own, with the hosts in this form; None if it fails."""
    print(f"{case}, hosts {form} ...", file=sys.stderr)
    command = [sys.executable, "-m", "bentpipe.bench", "--inside", case, "--seconds", str(seconds)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "BENTPIPE_HOSTS": form}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{case} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def _count_table(case: str, counted: counts.Counted) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"\nInstructions a cell, {case}", title_justify="left", box=None)
    for title in ("what", "evaluations a cell", "instructions an evaluation", "instructions a cell"):
        table.add_column(title, justify="left" if title == "what" else "right")
    for kind, number in sorted(counted.instructions.items(), key=lambda item: -item[1]):
        evaluations = counted.evaluations.get(kind, 0)
        table.add_row(
            kind,
            f"{evaluations / counted.cells:.2f}" if evaluations else "",
            f"{number / evaluations:,.0f}" if evaluations else "",
            f"{number / counted.cells:,.0f}",
        )
    table.add_row("together", "", "", f"{counted.a_cell:,.0f}")
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _beside(seconds: float) -> beside.Turns | str:
    """Return ns-3's cost in turns with ours, or the reason why it was not run."""
    try:
        return beside.measure(lambda: _ours("hosts-1flow", seconds), seconds, _TURNS)
    except beside.NotHere as why:
        return str(why)


def _congested(seconds: float) -> beside.Congested | str:
    """Return ns-3's cost of whole transfers in turns with ours, or the reason why it was not run."""
    try:
        return beside.congested(lambda threads: _ours(f"{_TRANSFERS}-{threads}", seconds), _TURNS)
    except beside.NotHere as why:
        return str(why)


def _ours(case: str, seconds: float) -> dict[str, float]:
    found = _process(case, "auto", seconds)
    if found is None:
        raise beside.NotHere("our own run failed")
    return found


def _kinds(parser: argparse.ArgumentParser) -> None:
    """Add the options for other kinds of measurements."""
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--against", type=Path, metavar="DIR", help="compare with this checkout, case by case")
    modes.add_argument("--scaling", action="store_true", help="what a cell costs in larger networks")
    modes.add_argument("--schedule", action="store_true", help="networks in parts on 1 to 16 threads, by simulation")
    modes.add_argument(
        "--workers", type=int, metavar="N", help="a sweep with so many Dask workers, beside one with one worker"
    )
    modes.add_argument("--build", action="store_true", help="how long large networks and commands take to start")
    modes.add_argument("--parts", type=int, metavar="N", help="networks in parts on one thread and on N threads")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="with --scaling, --schedule: a plot of it")
    parser.add_argument("--instructions", action="store_true", help="with --against, --scaling: by valgrind")
    parser.add_argument("--busy", action="store_true", help=f"with --parts: beside {_OTHERS} busy processes")


def _check(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Refuse options that the chosen kind of measurement would ignore, and values that it cannot take."""
    mode = next((name for name in _MODES if getattr(given, name) not in (None, False)), "")
    for name, users in _USED_BY.items():
        if mode not in users and getattr(given, name):
            option = "case" if name == "case" else f"--{name}"
            goes = (
                f"it goes with {' or '.join(f'--{user}' for user in users if user)}" if any(users) else "leave it out"
            )
            parser.error(f"--{mode} does not use {option}: {goes}" if mode else f"{option}: {goes}")
    unknown = set(given.case) - set(TITLES)
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}: there are {', '.join(TITLES)}")
    if given.seconds is not None and given.seconds <= 0:
        parser.error(f"--seconds is more than 0, not {given.seconds:g}")
    for name in ("workers", "parts"):
        if (count := getattr(given, name)) is not None and count < 2:
            parser.error(f"--{name}: 2 or more, they are compared with one")
    if given.instructions and not shutil.which("valgrind"):
        parser.error("--instructions needs valgrind")
    if given.against and not (given.against / "sw" / "bentpipe" / "bench").is_dir():
        parser.error(f"{given.against} is no checkout of bentpipe with this bench")


def _print(
    results: list[dict[str, Any]],
    alone: dict[str, dict[str, Any]],
    counted: dict[str, counts.Counted],
    given: argparse.Namespace,
) -> None:
    """Measure ns-3, and print all measurements."""
    turns, transfers = _beside(given.seconds), _congested(given.seconds)
    if given.json:
        whole: dict[str, Any] = {"cases": results, "microseconds_a_segment": alone}
        if counted:
            whole["instructions"] = [{"case": case, **vars(found)} for case, found in counted.items()]
        whole["ns-3"] = turns if isinstance(turns, str) else {**vars(turns), "ratio": turns.ratio}
        whole["ns-3 transfers"] = transfers if isinstance(transfers, str) else vars(transfers)
        print(json.dumps(whole, indent=1))
    else:
        _table(results, alone)
        if not counted:
            print("\nvalgrind is not installed, so no instructions are counted")
        for case, instructions in counted.items():
            _count_table(case, instructions)
        print(f"\n{turns}")
        if not isinstance(transfers, str):  # else the reason is the same
            print(f"\n{transfers}")


def main(arguments: list[str] | None = None) -> int:
    """Run the cases named (all by default); print a table, or with ``--json`` one object; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bentpipe.bench", description="How fast the simulation is.")
    parser.add_argument("case", nargs="*", help=f"{', '.join(TITLES)} (default: all)")
    parser.add_argument("--seconds", type=float, help=f"simulated seconds a case (default {_SECONDS:g})")
    parser.add_argument("--json", action="store_true")
    _kinds(parser)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if not given.inside:
        _check(parser, given)
    given.seconds = _SECONDS if given.seconds is None else given.seconds
    os.environ.setdefault("BENTPIPE_THREADS", "1")  # CPU seconds are one core's
    if given.inside:
        case, until = given.inside, given.until
        print(json.dumps(_inside(case, given.seconds) if until is None else _counted(case, until)))
        return 0
    if given.against:
        _against(given.against, given.case or list(TITLES), given.seconds, given.instructions)
        return 0
    if given.workers is not None:
        _workers(given.workers, given.seconds)
        return 0
    if given.parts is not None:
        _parts(given.parts, given.busy)
        return 0
    if given.build or given.schedule:
        _build() if given.build else _schedule(given.plot)
        return 0
    if given.scaling:
        _scaling(given.instructions, given.plot)
        return 0
    why_plain = prepare(sys.stderr.isatty())
    if why_plain:
        print(f"hosts only as plain Python: {why_plain}", file=sys.stderr)
    forms = ("compiled", "plain") if why_plain == "" else ("plain",)
    results = []
    for case in given.case or TITLES:
        for form in forms if case.startswith(WITH_HOSTS) else forms[:1]:
            found = _process(case, form, given.seconds)
            if found is None:
                return 1
            results.append(found)
    alone = {}
    for form in forms:
        found = _process("segment", form, given.seconds)
        if found is None:
            return 1
        alone[_short(found.pop("hosts"))] = found
    counted = {case: counts.count(_TREE, case) for case in _COUNTED} if shutil.which("valgrind") else {}
    _print(results, alone, counted, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
