"""``bentpipe sweep``, and what other commands that are sweeps share with it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe.commands.command import (
    Command,
    case_option,
    choose_engine,
    console,
    engine_option,
    gone_on_options,
    json_option,
    junit_option,
    length_options,
    length_ps,
    print_json,
    print_report_path,
    set_option,
)
from bentpipe.errors import ExperimentFailed
from bentpipe.signals import exit_code

if TYPE_CHECKING:
    from rich.console import Console

    from bentpipe.sweeps.grid import Axis
    from bentpipe.sweeps.plan import Plan
    from bentpipe.sweeps.precision import Precision

__all__ = ["COMMAND", "do_sweep", "judge", "plan_given", "sweep_options"]


def sweep_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for seeds, the runs' folder, plots and output."""
    parser.add_argument(
        "--no-plots",
        dest="plots",
        action="store_false",
        help="do not write plot files; the report has its own figures, and `bentpipe report` draws plots later",
    )
    parser.add_argument(
        "--seeds",
        metavar="A-B,…",
        help="run once per seed, for example 1-10 or 1,3,7-9; gives means with confidence intervals",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        type=_positive,
        metavar="N",
        help="number of local processes (default: $WORKERS, or one per processor)",
    )
    where.add_argument(
        "--cluster",
        metavar="tcp://…",
        help="address or scheduler file of a running Dask cluster (default: Dask's configuration)",
    )
    parser.add_argument(
        "--dashboard",
        type=int,
        nargs="?",
        const=8787,
        metavar="PORT",
        help="serve Dask's dashboard on this loopback port (default: 8787)",
    )
    junit_option(parser)
    parser.add_argument(
        "--metric",
        dest="metrics",
        metavar="NAME",
        action="append",
        default=[],
        help="print and draw this metric, for example cell_loss_ratio, or "
        "'*.cell_loss_ratio' for all VCs and ports (may be repeated); `bentpipe help metrics` lists them",
    )
    parser.add_argument(
        "--precision",
        metavar="METRIC: SHARE",
        help="add seeds until the 95 %% interval of a metric is this narrow at each point, for example "
        "'cell_loss_ratio: 10 %%' (default of --seeds: 1-5)",
    )
    parser.add_argument(
        "--most-seeds",
        type=_positive,
        metavar="N",
        default=100,
        help="with --precision: seeds that a point gets at most (default: 100)",
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"expected 1 to 1024, not {text!r}")
    return int(text)


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument("name", metavar="NAME|FILE", help="name of a catalogue experiment, or a TOML file")
    parser.add_argument(
        "--vary",
        metavar="KEY=A,B,…|KEY=FROM..TO:N",
        action="append",
        default=[],
        help="run once per value of a key; repeat it for all combinations of several keys",
    )
    set_option(parser)
    length_options(parser)
    case_option(parser)
    gone_on_options(parser, "NAME")
    engine_option(parser)
    sweep_options(parser)


def _sweep(given: argparse.Namespace) -> int:
    from bentpipe.sweeps.grid import parse_axes

    duration = length_ps(given)
    choose_engine(given)
    axes = parse_axes(given.vary)
    plan = plan_given(given, axes, duration)
    return do_sweep(given, plan)


def plan_given(given: argparse.Namespace, axes: Sequence[Axis], duration_ps: int | None) -> Plan:
    """Return the plan of a sweep with the options of :func:`sweep_options`."""
    from bentpipe.sweeps.grid import parse_seeds
    from bentpipe.sweeps.plan import plan_sweep, with_metrics
    from bentpipe.sweeps.precision import FIRST_SEEDS

    precision = _precision(given)
    seeds = parse_seeds(given.seeds) if given.seeds is not None else FIRST_SEEDS if precision else ()
    metrics, again = [*given.metrics], []
    if precision is not None:
        metrics += [] if precision.metric in metrics else [precision.metric]
        again = ["--precision", str(precision), "--most-seeds", str(precision.most)]
    plan = plan_sweep(
        given.name, axes, seeds, given.settings, cases=given.cases, duration_ps=duration_ps, quick=given.quick
    )
    return with_metrics(plan, metrics, again)


def _precision(given: argparse.Namespace) -> Precision | None:
    from bentpipe.sweeps.precision import parse_precision

    return parse_precision(given.precision, given.most_seeds) if given.precision else None


def do_sweep(
    given: argparse.Namespace, plan: Plan, show: Callable[[Console, dict[str, Any]], None] | None = None
) -> int:
    """Run a sweep and print it; return the exit code.

    Parameters
    ----------
    given : Namespace
        With the options of :func:`sweep_options`, ``out``, ``force`` and ``json``.
    plan : Plan
    show : callable, optional
        Prints the sweep; by default :func:`~bentpipe.sweeps.show.print_sweep`.
    """
    from bentpipe.progress import Counted
    from bentpipe.sweeps.run import claim_sweep, run_precisely, run_sweep
    from bentpipe.sweeps.show import print_sweep

    def announce(address: str) -> None:
        print(f"bentpipe: dashboard: {address}", file=sys.stderr)

    shown = sys.stderr.isatty() and not given.json
    with claim_sweep(plan, given.out, given.force) as folder, Counted(shown) as bar:
        options = {
            "workers": given.workers,
            "cluster": given.cluster,
            "dashboard": given.dashboard,
            "progress": bar.update,
            "opened_at": announce,
            "plots": given.plots,
        }
        precision = _precision(given)
        if precision is None:
            summary = run_sweep(plan, folder, **options)
        else:
            summary = run_precisely(plan, folder, precision, **options)
    if given.junit:
        from bentpipe.results.expect import write_junit

        write_junit(given.junit, plan.id, _named(summary))
    if given.json:
        print_json({**summary, "folder": str(folder.path)})
    else:
        out = console()
        if show is None:
            print_sweep(out, summary)
        else:
            show(out, summary)
        print_report_path(out, folder.path)
        out.print(f"Table: {folder.path / 'table.parquet'}", highlight=False, soft_wrap=True)
    if summary["status"] == "failed":
        raise ExperimentFailed(f"{plan.id}: {summary['reason']} (kept in {folder.path})")
    if summary["status"] == "interrupted":
        left = sum(run["status"] != "done" for run in summary["runs"])
        print(f"bentpipe: interrupted; {left} runs are left; continue with --out {folder.path}", file=sys.stderr)
        return exit_code()
    judge(plan.id, _named(summary), folder.path)
    return 0


def _named(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the runs with the name and time for their judgement."""
    return [
        {**run, "name": run["folder"].rpartition("/")[2], "time": {"wall_s": run["seconds"] or 0.0}}
        for run in summary["runs"]
    ]


def judge(name: str, runs: Sequence[dict[str, Any]], folder: Path) -> None:
    """Fail if a run does not come to what is expected of it."""
    from bentpipe.results.expect import broken, expectation_text

    failures = [
        ": ".join(filter(None, (run["name"], expectation_text(row)))) for run in runs for row in broken(run["expected"])
    ]
    if failures:
        error = ExperimentFailed(f"{name}: {failures[0]} (kept in {folder})")
        error.more = tuple(f"{name}: {each}" for each in failures[1:])
        raise error


COMMAND = Command(
    "sweep",
    "Run an experiment for all combinations of settings and seeds, on several processes or machines.",
    _sweep,
    _arguments,
    prepares_hosts=True,
)
