"""The command ``bentpipe``. Heavy imports wait until a command needs them."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import BentpipeError, ExperimentFailed
from bentpipe.signals import exit_code, heeded

if TYPE_CHECKING:
    from rich.console import Console

    from bentpipe.experiment.schema import Experiment
    from bentpipe.results.folder import RunFolder

__all__ = ["main"]

_EPILOG: Final = (
    "Exit codes: 0 done, 1 the experiment failed or could not be written, 2 wrong use, "
    "130 interrupted (143 by SIGTERM, 129 by SIGHUP); what was there is kept."
)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-v", "--verbose", action="count", default=0, help="tell more; -vv: everything, and tracebacks")
    machine = argparse.ArgumentParser(add_help=False)
    machine.add_argument("--json", action="store_true", help="print JSON")
    parser = argparse.ArgumentParser(
        prog="bentpipe",
        description="An ATM cell switch and link emulator in hardware, with the hosts in software.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], what: str, *parents: Any) -> Any:
        sub = commands.add_parser(name, help=what, description=what, parents=[common, *parents], epilog=_EPILOG)
        sub.set_defaults(run=run)
        return sub

    def settings(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("name", metavar="NAME|FILE", help="an experiment of the catalogue, or a TOML file")
        sub.add_argument(
            "--set",
            dest="settings",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="change a value, as hosts.tcp.variant=newreno or flow.0.size='10 MB' (may be given often)",
        )
        sub.add_argument("--seed", type=int, metavar="N", help="seed of every random choice")
        length = sub.add_mutually_exclusive_group()
        length.add_argument("--duration", metavar="S", help="simulate at most so many seconds (or '500 ms')")
        length.add_argument("--quick", action="store_true", help="the shorter run that the experiment declares")

    run = command("run", _run, "Run an experiment and write its run folder.", machine)
    settings(run)
    run.add_argument("--out", type=Path, metavar="DIR", help="the run folder (default: runs/NAME-1, -2, …)")
    run.add_argument("--force", action="store_true", help="replace a run folder that is there")
    run.add_argument(
        "--case",
        dest="cases",
        metavar="CASE",
        action="append",
        default=[],
        help="run only this case of the experiment (may be given often)",
    )
    run.add_argument(
        "--pcap",
        metavar="KIND:PLACE",
        action="append",
        default=[],
        help="capture ip, pdus or cells at a host or a line (LINE or LINE@SWITCH) as pcap; may be given often",
    )
    run.add_argument(
        "--engine",
        choices=["native", "verilator"],
        help="what simulates the nodes (default: native); verilator is the reference: slower, the same cells",
    )
    command("list", _list, "List the experiments of the catalogue.", machine)
    settings(command("show", _show, "Show an experiment: its network, flows, published figures.", machine))
    command("schema", _schema, "Print the JSON Schema of experiments' files, for editors.")
    registers = command("registers", _registers, "List the registers of the kinds of nodes.")
    registers.add_argument("kind", nargs="?", metavar="KIND", help="of node: nic, switch, link, sonet (default: all)")
    registers.add_argument("--shape", metavar="NAME=N,…", default="", help="its shape, as vcs=256,options=red+police")
    form = registers.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the map as JSON")
    form.add_argument("--csv", action="store_true", help="print the map as LiteX's csr.csv, with byte addresses")
    build = command("build", _build, "Build the node models, so that no run has to.")
    build.add_argument("--force", action="store_true", help="empty the cache first")
    report = command("report", _report, "Make plots and report of a run folder anew.", machine)
    report.add_argument("folder", type=Path, metavar="DIR")
    netspec = command("netspec", _netspec, "Check a NetSpec script.")
    actions = netspec.add_subparsers(dest="action", metavar="ACTION", required=True)
    what = "Tell what a script says, or what is wrong with it; hosts are not looked up."
    check = actions.add_parser("check", help=what, description=what, parents=[common, machine], epilog=_EPILOG)
    check.add_argument("file", type=Path, metavar="FILE")
    command("doctor", _doctor, "Tell what is installed, what is missing, and how to get it.", machine)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    parser = _parser()
    try:
        given = parser.parse_args(arguments)
    except SystemExit as leave:  # argparse has printed its line
        return leave.code if isinstance(leave.code, int) else 2
    if given.version:
        print(f"bentpipe {_version()}")
        return 0
    if given.command is None:
        parser.print_help(sys.stderr)
        return 2
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(given.verbose, 2)]
    logging.basicConfig(level=level, format="%(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    try:
        with heeded():
            if given.command == "run":
                _prepare_hosts(sys.stderr.isatty() and not given.json)
            return given.run(given)
    except KeyboardInterrupt as error:
        _say("interrupted", error)
        return exit_code()
    except BrokenPipeError:  # the reader of our output went away
        sys.stderr.close()
        return 0
    except Exception as error:
        return _failed(error, given.verbose)


def _prepare_hosts(show: bool) -> None:
    """The hosts compiled, before anything imports them; a line if that can't be."""
    from bentpipe.compiled import prepare

    why_plain = prepare(show)
    if why_plain:
        print(f"bentpipe: the hosts run as plain Python: {why_plain}", file=sys.stderr)


def _say(what: str, error: BaseException) -> None:
    """A line about an error, with what is to be said beside it; a terminal that has gone away is no further error."""
    with suppress(OSError):
        print(f"bentpipe: {'; '.join([what, *getattr(error, '__notes__', ())])}", file=sys.stderr)


def _failed(error: Exception, verbose: int) -> int:
    """One line for an error; the traceback with -vv."""
    if verbose >= 2:
        traceback.print_exception(error)
    if isinstance(error, BentpipeError):
        _say(_one_line(error), error)
        for line in error.detail.splitlines():
            print(f"    {line}", file=sys.stderr)
        for line in error.more:
            print(f"bentpipe: {line}", file=sys.stderr)
        return error.exit_code
    from bentpipe_sim.errors import SimulationError

    if isinstance(error, SimulationError):
        _say(_one_line(error), error)
        return 2
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        _say(f"{place}{error.strerror or _one_line(error)}", error)
        return 1
    what = f"internal error: {type(error).__name__}: {_one_line(error)}; -vv shows where, please report it"
    _say(what, error)
    return 1


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _version() -> str:
    from importlib.metadata import version

    return version("bentpipe")


def _console() -> Console:
    """Where tables go; as wide as they need where there is no terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=160)


def _json(data: Any) -> int:
    print(json.dumps(data, indent=2, ensure_ascii=False))
    return 0


def _length(given: argparse.Namespace) -> int | None:
    """``--duration`` in ps, after a look at ``--seed`` as well."""
    from bentpipe_hdl.units import parse_time

    duration = None
    if given.duration is not None:
        try:
            duration = parse_time(given.duration)
        except ValueError as error:
            raise BentpipeError(f"--duration: {error}") from None
        if not 10**6 <= duration <= 10**17:
            raise BentpipeError(f"--duration {given.duration}: out of range, 1 us to 100000 s")
    if given.seed is not None and not 0 <= given.seed < 2**32:
        raise BentpipeError(f"--seed {given.seed}: out of range 0..{2**32 - 1}")
    return duration


def _run(given: argparse.Namespace) -> int:
    from bentpipe.experiment.load import load_cases
    from bentpipe.results.folder import RunFolder

    duration = _length(given)
    if given.engine:
        os.environ["BENTPIPE_ENGINE"] = given.engine
    if given.pcap:
        given.settings.append(f"record.pcap={json.dumps(given.pcap)}")
    experiments = load_cases(
        given.name, given.settings, seed=given.seed, duration_ps=duration, quick=given.quick, only=given.cases
    )
    first = experiments[0]
    claimed = RunFolder.claim(given.out, given.force) if given.out else RunFolder.claim_next(Path("runs"), first.id)
    with claimed as folder:
        summary = _run_cases(given, experiments, folder) if first.case else _run_one(given, first, folder)
    if given.json:
        _json({**summary, "folder": str(folder.path)})
    if summary["status"] == "failed":
        raise ExperimentFailed(f"{first.id} failed: {summary['reason']} (kept in {folder.path})")
    if summary["status"] == "interrupted":
        at = "" if first.case else f" at {summary['time']['simulated_s']:.3f} s"
        print(f"bentpipe: interrupted{at}; kept in {folder.path}", file=sys.stderr)
        return exit_code()
    return 0


def _run_one(given: argparse.Namespace, experiment: Experiment, folder: RunFolder) -> dict[str, Any]:
    """Run, write the folder, print; the summary."""
    from bentpipe.experiment.run import run_beside_cells, run_experiment
    from bentpipe.report.run import make_report
    from bentpipe.results.tables import print_run

    show = sys.stderr.isatty() and not given.json
    result = run_experiment(experiment, settings=tuple(given.settings), show_progress=show, folder=folder)
    folder.finish(result)
    if experiment.network.sonet and result.summary["status"] == "done":
        run_beside_cells(experiment, result, show_progress=show)
        folder.put(result.summary)
    folder.draw(lambda aside: make_report(aside, result))
    if not given.json and not experiment.case:
        console = _console()
        print_run(console, result.summary, result.flows)
        console.print(f"\nReport: {folder.path / 'report.html'}", highlight=False, soft_wrap=True)
    return result.summary


def _run_cases(given: argparse.Namespace, experiments: Sequence[Experiment], folder: RunFolder) -> dict[str, Any]:
    """Run the cases one after the other; after each, what there is so far is written."""
    from bentpipe.experiment.run import cases_head, versions
    from bentpipe.report.cases import case_folder, make_cases_report, print_cases, sum_up_cases

    head = cases_head(experiments, given.settings, versions())
    folder.put(head)
    summaries: list[dict[str, Any]] = []
    try:
        for index, experiment in enumerate(experiments, 1):
            if sys.stderr.isatty() and not given.json:
                print(f"case {index} of {len(experiments)}: {experiment.case}", file=sys.stderr)
            with folder.case(case_folder(experiment.case)) as own:
                summaries.append(_run_one(given, experiment, own))
            whole = sum_up_cases(head, summaries)
            if summaries[-1]["status"] == "interrupted":
                break
            if index < len(experiments):
                folder.put({**whole, "status": "running", "reason": None})
                folder.draw(lambda aside, whole=whole: make_cases_report(aside, whole))
    finally:
        whole = sum_up_cases(head, summaries)
        if folder.begun:
            folder.put(whole)
    folder.draw(lambda aside: make_cases_report(aside, whole))
    if not given.json:
        console = _console()
        print_cases(console, whole)
        console.print(f"\nReport: {folder.path / 'report.html'}", highlight=False, soft_wrap=True)
    return whole


def _list(given: argparse.Namespace) -> int:
    from bentpipe.experiment.catalogue import catalogue, read_extended
    from bentpipe_hdl.units import format_time, parse_time

    rows = []
    for name, path in catalogue().items():
        head = read_extended(path)[0]["experiment"]
        rows.append(
            {
                "name": name,
                "title": head["title"],
                "paper": head.get("paper", ""),
                "figure": head.get("figure", ""),
                "duration_s": parse_time(head["duration"]) / 10**12,
                "quick_s": parse_time(head["quick"]) / 10**12 if "quick" in head else None,
            }
        )
    if given.json:
        return _json(rows)
    width = max(len(row["name"]) for row in rows)
    title = max(len(row["title"]) for row in rows)
    for row in rows:
        source = ", ".join(filter(None, (row["paper"], row["figure"])))
        length = format_time(round(row["duration_s"] * 10**12))
        print(f"{row['name']:{width}}  {row['title']:{title}}  {source:22}  at most {length}")
    return 0


def _show(given: argparse.Namespace) -> int:
    from bentpipe.experiment.load import cases_of, load

    experiment = load(given.name, given.settings, seed=given.seed, duration_ps=_length(given), quick=given.quick)
    if given.json:
        from bentpipe.experiment.schema import plain

        data = plain(experiment)
        data["configuration"] = data.pop("document")
        data["cases"] = [{"name": c.name, "at": c.at, "settings": c.set} for c in cases_of(given.name)]
        return _json(data)
    from bentpipe.experiment.describe import describe

    describe(_console(), experiment, cases_of(given.name))
    return 0


def _schema(given: argparse.Namespace) -> int:
    from bentpipe.experiment.document import json_schema

    return _json(json_schema())


def _registers(given: argparse.Namespace) -> int:
    from bentpipe_hdl.kinds import REGISTERS, registers_of
    from bentpipe_hdl.switch.options import options_word

    if given.kind is None and given.shape:
        raise BentpipeError("a shape is that of one kind of node: name it")
    parts = [part.partition("=") for part in given.shape.split(",") if part]
    try:
        shape = {name: options_word(value.split("+")) for name, _, value in parts if name == "options"}
        rest = [(name, value) for name, _, value in parts if name != "options"]
        if not all(value.isdecimal() for _, value in rest):
            raise BentpipeError(f"--shape: expected NAME=N,…, as vcs=256,cells=4096, not {given.shape!r}")
        shape |= {name: int(value) for name, value in rest}
        maps = [registers_of(kind, **shape) for kind in ([given.kind] if given.kind else REGISTERS)]
    except ValueError as error:
        raise BentpipeError(str(error)) from None
    if given.json:
        return _json([each.to_json() for each in maps] if given.kind is None else maps[0].to_json())
    for each in maps:
        print(each.to_csv() if given.csv else each.to_text(), end="")
    return 0


def _build(given: argparse.Namespace) -> int:
    from bentpipe.compiled import prepare
    from bentpipe_sim.build import build_all

    paths = build_all(force=given.force, progress=lambda name: print(f"{name}: ready"))
    why_plain = prepare()
    if why_plain is not None:
        print(f"hosts: plain Python, {why_plain}" if why_plain else "hosts: ready")
    for path in paths:
        logging.getLogger(__name__).info("%s", path)
    return 0


def _report(given: argparse.Namespace) -> int:
    from bentpipe.report.cases import print_cases
    from bentpipe.results.folder import RunFolder, is_cases, read_run
    from bentpipe.results.tables import print_run

    console = _console()
    with RunFolder.reopen(given.folder) as folder:
        if is_cases(folder.path):
            summary = _report_cases(folder)
            if not given.json:
                print_cases(console, summary)
        else:
            summary = _report_one(folder)
            if not given.json:
                print_run(console, summary, read_run(folder.path).flows)
    if given.json:
        return _json({**summary, "folder": str(folder.path)})
    console.print(f"\nReport: {folder.path / 'report.html'}", highlight=False, soft_wrap=True)
    return 0


def _report_one(folder: RunFolder) -> dict[str, Any]:
    from bentpipe.report.run import make_report
    from bentpipe.results.folder import read_run

    result = read_run(folder.path)
    folder.draw(lambda aside: make_report(aside, result))
    return result.summary


def _report_cases(folder: RunFolder) -> dict[str, Any]:
    from bentpipe.report.cases import case_folder, make_cases_report, sum_up_cases
    from bentpipe.results.folder import RunFolder, read_cases

    head = read_cases(folder.path)
    summaries = []
    for path in (folder.path / case_folder(name) for name in head["planned"]):
        if (path / "result.json").is_file():
            with RunFolder.reopen(path) as case:
                summaries.append(_report_one(case))
    whole = sum_up_cases(head, summaries)
    folder.put(whole)
    folder.draw(lambda aside: make_cases_report(aside, whole))
    return whole


def _netspec(given: argparse.Namespace) -> int:
    from dataclasses import asdict

    from bentpipe.netspec.plan import read_script, summary
    from bentpipe.netspec.syntax import Script

    path: Path = given.file
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BentpipeError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BentpipeError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    plan = read_script(Script(text, str(path)))
    if given.json:
        return _json(asdict(plan))
    print(f"{path}: {summary(plan)}")
    return 0


def _doctor(given: argparse.Namespace) -> int:
    from dataclasses import asdict

    from bentpipe.doctor import examine

    findings = examine()
    missing = [f for f in findings if f.required and f.found is None]
    if given.json:
        _json({"ready": not missing, "findings": [asdict(f) for f in findings]})
    else:
        width = max(len(f.name) for f in findings)
        for f in findings:
            state = f.found or f"MISSING{'' if f.required else ' (optional)'}, get it: {f.get}"
            print(f"{'ok' if f.found else '--'}  {f.name:{width}}  {state}  [{f.needed_for}]")
        print("Ready." if not missing else f"Missing: {', '.join(f.name for f in missing)}.")
    return 1 if missing else 0
