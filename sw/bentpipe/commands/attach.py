"""``bentpipe attach``."""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.commands.command import (
    Command,
    case_option,
    claim,
    engine_option,
    json_option,
    one_case,
    pcap_option,
    run_folder_options,
    settings_options,
    take_options,
)
from bentpipe.errors import BentpipeError, ExperimentFailed

if TYPE_CHECKING:
    from bentpipe.attach.session import Options, Session
    from bentpipe.experiment.resolve.specs import Experiment

__all__ = [
    "COMMAND",
    "conclude",
    "experiment_of",
    "json_lines",
    "options_of",
    "run_session",
    "session_options",
    "subnet6_of",
    "subnet_of",
    "write_json",
]

_EVERY_PS: Final = {False: 2 * 10**11, True: 10**12}
"""Between two live lines, and two of JSON."""


def session_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``attach`` and ``shell`` share."""
    output = parser.add_mutually_exclusive_group()
    json_option(output)
    output.add_argument(
        "--json-to",
        metavar="FILE|FD",
        help="write JSON lines to a file (or named pipe), or to an open file descriptor, instead of standard output",
    )
    settings_options(parser)
    case_option(parser)
    run_folder_options(parser, "runs/NAME-attached-1, …")
    parser.add_argument(
        "--late",
        choices=["report", "drop", "abort"],
        default="report",
        help="what to do with a late packet besides counting it: forward it at once, drop it, or end the session",
    )
    parser.add_argument(
        "--computing",
        default="4 ms",
        metavar="TIME",
        help="how far simulated time stays behind the clock (default: 4 ms)",
    )
    parser.add_argument(
        "--release",
        default="16 ms",
        metavar="TIME",
        help="time between the delivery of a packet and its transmission (default: 16 ms)",
    )
    parser.add_argument(
        "--priority",
        choices=["fifo", "normal"],
        default="fifo",
        help="fifo: real-time scheduling if permitted (default); normal: none",
    )
    parser.add_argument("--cpus", metavar="N,M", help="pin the simulation to processor N, input and output to M")
    parser.add_argument(
        "--subnet", default="10.111.0.0/24", help="addresses of namespace ends (default: 10.111.0.0/24)"
    )
    parser.add_argument("--subnet6", metavar="PREFIX", help="IPv6 addresses of namespace ends, too; as fd00:111::/64")
    parser.add_argument(
        "--at",
        metavar="TIME",
        help="the time of day of simulated time 0: 2026-12-24T18:00:00Z, 18:00, or '+30 s' from now (default: at once)",
    )
    parser.add_argument("--record", action="store_true", help="record all received packets, for `bentpipe replay`")
    pcap_option(parser)
    engine_option(parser)


def _arguments(parser: argparse.ArgumentParser) -> None:
    ends = "ns:, tap:, tun: or if:NAME, udp:, cells-udp: or dynamips:LOCAL-REMOTE"
    parser.add_argument(
        "--a",
        required=True,
        metavar="END",
        help=f"attachment of the first flow's source: {ends}; if:NAME,VLAN=HOST,… selects VCs by VLAN",
    )
    parser.add_argument(
        "--b", required=True, metavar="END", help="attachment of its sink; HOST=END attaches another host instead"
    )
    parser.add_argument(
        "--end", action="append", default=[], metavar="HOST=END", help="attachment of a further host (may be repeated)"
    )
    session_options(parser)


def experiment_of(given: argparse.Namespace) -> Experiment:
    """Return the experiment, endless unless a duration is given."""
    from dataclasses import replace

    from bentpipe.attach.session import ENDLESS_PS
    from bentpipe.experiment.load import load_cases

    duration = take_options(given)
    found = load_cases(
        given.name, given.settings, seed=given.seed, duration_ps=duration, quick=given.quick, only=given.cases
    )
    experiment = one_case(given.name, found)
    return experiment if duration or given.quick else replace(experiment, duration_ps=ENDLESS_PS)


def subnet_of(given: argparse.Namespace) -> ipaddress.IPv4Network:
    """Return the network of ``--subnet``."""
    try:
        subnet = ipaddress.IPv4Network(given.subnet)
    except ValueError as error:
        raise BentpipeError(f"--subnet {given.subnet}: {error}") from None
    if subnet.prefixlen > 28:
        raise BentpipeError(f"--subnet {given.subnet}: give it room for 14 hosts, /28 or more")
    return subnet


def subnet6_of(given: argparse.Namespace) -> ipaddress.IPv6Network | None:
    """Return the network of ``--subnet6``; None: it is not given."""
    if given.subnet6 is None:
        return None
    try:
        subnet = ipaddress.IPv6Network(given.subnet6)
    except ValueError as error:
        raise BentpipeError(f"--subnet6 {given.subnet6}: {error}") from None
    if subnet.prefixlen > 120:
        raise BentpipeError(f"--subnet6 {given.subnet6}: give it room for 255 hosts, /120 or more")
    return subnet


def options_of(given: argparse.Namespace) -> Options:
    """Return the session's settings from the command line."""
    from bentpipe.attach.session import Options
    from bentpipe.attach.start import parse_start
    from bentpipe.experiment.load import parse_duration
    from bentpipe_sim.attached import Late

    cpus: tuple[int, ...] = ()
    if given.cpus:
        there = os.sched_getaffinity(0)
        parts = given.cpus.split(",")
        if len(parts) != 2 or not all(part.isdecimal() and int(part) in there for part in parts):
            raise BentpipeError(f"--cpus {given.cpus}: two of {', '.join(map(str, sorted(there)))}, as 0,1")
        cpus = (int(parts[0]), int(parts[1]))
    return Options(
        late=Late[given.late.upper()],
        computing_ps=parse_duration(given.computing, "--computing"),
        release_ps=parse_duration(given.release, "--release"),
        fifo=given.priority == "fifo",
        cpus=cpus,
        record=given.record,
        subnet=subnet_of(given),
        subnet6=subnet6_of(given),
        start=parse_start(given.at, datetime.now().astimezone()) if given.at is not None else None,
    )


def run_session(given: argparse.Namespace, session: Session, **callbacks: Callable[..., Any]) -> int:
    """Run an opened session into its folder, report its result, and return the exit code.

    ``callbacks`` are members of :class:`~bentpipe.attach.session.Callbacks`.
    """
    from bentpipe.attach.session import Callbacks

    with claim(given, f"{session.experiment.id}-attached") as folder:
        try:
            result = session.run(folder, given.settings, Callbacks(progress=_LiveLine(given), **callbacks))
        except OSError:  # a full disk, for example: the verdict is printed all the same
            if session.verdict:
                print(session.verdict)
            raise
        return conclude(given, result.summary, folder.path)


def conclude(given: argparse.Namespace, summary: dict[str, Any], folder: Path) -> int:
    """Report the result of a session; return the exit code."""
    verdict = summary["attached"]["verdict"]
    if not write_json(given, {"kind": "end", "folder": str(folder), "verdict": verdict, "status": summary["status"]}):
        print(verdict)
        print(f"Run folder: {folder}")
    if summary["status"] == "failed":
        over = summary["attached"]["over"]
        raise (BentpipeError if "went away" in over else ExperimentFailed)(f"{summary['reason']} (kept in {folder})")
    return 0


@contextmanager
def json_lines(given: argparse.Namespace) -> Iterator[None]:
    """Open what ``--json-to`` names for :func:`write_json` within the context, as ``given.json_lines``."""
    given.json_lines = sys.stdout
    if given.json_to is None:
        yield
        return
    number = int(given.json_to) if given.json_to.isdecimal() else None
    try:
        given.json_lines = open(given.json_to if number is None else number, "w", encoding="utf-8")  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise BentpipeError(f"--json-to {given.json_to}: {getattr(error, 'strerror', None) or error}") from None
    try:
        yield
    finally:
        with suppress(OSError):
            given.json_lines.close()


def write_json(given: argparse.Namespace, row: dict[str, Any]) -> bool:
    """Write a line of JSON, where such lines are wanted; False: standard output says it in words. Lines that nobody
    reads any more do not end the session."""
    if given.json or given.json_to is not None:
        with suppress(BrokenPipeError):
            print(json.dumps(row), file=given.json_lines, flush=True)
    return bool(given.json)


class _LiveLine:
    """The live line on the terminal, or lines of JSON."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self._lines = lines = bool(given.json or given.json_to)
        self._shows = lines or sys.stderr.isatty()
        self._due: int | None = None
        self._before: tuple[int, list[int]] = (0, [])

    def __call__(self, session: Session, now_ps: int) -> None:
        if self._due is None:  # the time is negative before a start that is ahead
            self._due, self._before = min(now_ps, 0) + _EVERY_PS[self._lines], (min(now_ps, 0), [])
        if not self._shows or now_ps < self._due:
            return
        self._due = now_ps + _EVERY_PS[self._lines]
        now = session.now()
        span = (now_ps - self._before[0]) / 1e12
        octets = [row["octets"] for row in now["ends"]]
        before = self._before[1] or [0] * len(octets)
        rates = [8 * (a - b) / span / 1e6 if span else 0.0 for a, b in zip(octets, before, strict=True)]
        self._before = (now_ps, octets)
        if self._lines:
            for row, rate in zip(now["ends"], rates, strict=True):
                row["out_mbps"] = round(rate, 3)
            write_json(self._given, {"kind": "now", "time_s": now_ps / 1e12, **now})
            return
        if now_ps < 0:
            print(f"\r\x1b[Kstarts in {-now_ps / 1e12:.1f} s", end="", file=sys.stderr, flush=True)
            return
        parts = [f"to {row['host']} {rate:.1f} Mb/s" for row, rate in zip(now["ends"], rates, strict=True)]
        parts.append(f"queued {now['queued']} cells")
        parts.append(f"dropped {now['dropped']}")
        parts.append(f"late {now['late']}" if now["late"] else "in time")
        print(f"\r\x1b[K{now_ps / 1e12:.1f} s  {'  '.join(parts)}", end="", file=sys.stderr, flush=True)


def _run(given: argparse.Namespace) -> int:
    from bentpipe.attach.hosts import parse_ends
    from bentpipe.attach.session import Session

    experiment = experiment_of(given)
    ends = parse_ends(given.a, given.b, given.end, experiment)
    session = Session(experiment, ends, options_of(given))
    with json_lines(given), session.open():
        return run_session(given, session, ready=lambda: _report_ends(given, session))


def _report_ends(given: argparse.Namespace, session: Session) -> None:
    """Report the places of the ends, now that packets pass."""
    ends = {host: end.row() for host, end in session.opened.items()}
    start = session.options.start
    row = {"kind": "begin", "ends": ends, "slack": session.text}
    if write_json(given, row | ({"starts": start.isoformat()} if start else {})):
        return
    for host, end in session.opened.items():
        print(f"{host}: {', '.join((end.where, *end.addresses))}")
    starts = f" It starts at {start.astimezone().isoformat(' ')}." if start else ""
    print(f"{session.text}\nAttached; Ctrl-C ends it.{starts}", flush=True)


COMMAND = Command(
    "attach",
    "Attach real hosts to an experiment's network in real time: namespaces, TUN, TAP, interfaces, UDP.",
    _run,
    _arguments,
    prepares_hosts=True,
    exit_codes="0 also after Ctrl-C, SIGTERM or SIGHUP",
)
