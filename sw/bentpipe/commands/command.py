"""Commands, and the options and output that several of them share."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import BentpipeError

if TYPE_CHECKING:
    from rich.console import Console

    from bentpipe.experiment.resolve.specs import Experiment
    from bentpipe.results.folder import RunFolder

__all__ = [
    "INTERRUPTED",
    "Command",
    "CommandGroup",
    "case_option",
    "choose_engine",
    "choose_target",
    "choose_threads",
    "claim",
    "console",
    "engine_option",
    "gone_on_options",
    "json_option",
    "junit_option",
    "length_options",
    "length_ps",
    "one_case",
    "pcap_option",
    "plugin_option",
    "print_json",
    "print_report_path",
    "run_folder_options",
    "session_folder",
    "session_option",
    "set_option",
    "settings_options",
    "take_options",
    "take_plugins",
    "target_option",
    "threads_option",
    "write_file",
]


INTERRUPTED: Final = "130 interrupted (SIGTERM: 143, SIGHUP: 129). Completed work is kept"


def _none(parser: argparse.ArgumentParser) -> None:
    pass


@dataclass(frozen=True)
class Command:
    """A command of ``bentpipe``.

    Members
    -------
    name : str
    what : str
        One sentence, for ``--help``.
    run : callable
        Does it, with what was given; returns the exit code. Imports what is heavy only here.
    arguments : callable
        Adds its arguments to its parser.
    prepares_hosts : bool
        It simulates: the hosts are to be compiled before anything imports them.
    starts_another : bool
        What stands behind ``--`` is a command with arguments of its own, ``given.words``.
    aliases : tuple of str
        Shorter names of it.
    exit_codes : str
        Of its ends that are neither an error nor wrong use, for ``--help``.
    """

    name: str
    what: str
    run: Callable[[argparse.Namespace], int]
    arguments: Callable[[argparse.ArgumentParser], None] = _none
    prepares_hosts: bool = False
    starts_another: bool = False
    aliases: tuple[str, ...] = ()
    exit_codes: str = INTERRUPTED


@dataclass(frozen=True)
class CommandGroup:
    """Commands of two words: a name, and its actions."""

    name: str
    what: str
    actions: tuple[Command, ...]
    aliases: tuple[str, ...] = ()


def json_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def session_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--run`` for commands that speak to a session."""
    parser.add_argument(
        "--run", type=Path, metavar="DIR", help="run folder of the session (default: the newest in runs)"
    )


def session_folder(given: argparse.Namespace) -> Path:
    """Return the run folder of ``--run``, or that of the newest session in ``runs``."""
    if given.run is not None:
        return given.run
    found = sorted(Path("runs").glob("*/.running/control"), key=lambda path: path.lstat().st_mtime)
    if not found:
        raise BentpipeError("no session is running in runs; name its folder: --run DIR")
    return found[-1].parents[1]


def case_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--case``."""
    parser.add_argument(
        "--case",
        dest="cases",
        metavar="CASE",
        action="append",
        default=[],
        help="run only this case of the experiment (may be repeated)",
    )


def gone_on_options(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--out`` and ``--force`` for commands that continue in an existing folder."""
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"output folder; work in an existing one continues (default: runs/{default}-1, …)",
    )
    parser.add_argument("--force", action="store_true", help="replace an existing folder")


def run_folder_options(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--out`` and ``--force`` for commands that make a run folder."""
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"run folder to create (default: {default})")
    parser.add_argument("--force", action="store_true", help="replace an existing run folder")


def claim(given: argparse.Namespace, name: str) -> RunFolder:
    """Claim the run folder of ``--out``; without it the next of this name in ``runs``."""
    from bentpipe.results.folder import RunFolder

    return RunFolder.claim(given.out, given.force) if given.out else RunFolder.claim_next(Path("runs"), name)


def pcap_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--pcap``."""
    parser.add_argument(
        "--pcap",
        metavar="KIND:PLACE",
        action="append",
        default=[],
        help="capture ip, pdus or cells at a host or line (LINE or LINE@SWITCH) to a pcap file (may be repeated)",
    )


def engine_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--engine``."""
    parser.add_argument(
        "--engine",
        choices=["native", "verilator"],
        help="simulation engine (default: native); verilator is the slower reference and gives the same cells",
    )


def choose_engine(given: argparse.Namespace) -> None:
    """Set the engine of ``--engine`` for this process and those it starts."""
    if given.engine:
        os.environ["BENTPIPE_ENGINE"] = given.engine


def threads_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--threads``."""
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads for a run that can be in parts (default: as many as are useful); the results do not depend on it",
    )


def choose_threads(given: argparse.Namespace) -> None:
    """Set the number of threads of ``--threads`` for this process and those it starts.

    Raises
    ------
    NetworkError
        It is no number of threads.
    """
    if given.threads is not None:
        from bentpipe_sim.parts import THREADS, number_of

        os.environ[THREADS] = str(number_of("--threads", given.threads))


def target_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--target``, ``--alone`` and ``--board-ticks``."""
    parser.add_argument(
        "--target",
        metavar="BOARD",
        help="a board that runs in lockstep: board:/dev/ttyUSB0, board:udp:ADDRESS, board:sim (its RTL, simulated),"
        " board:model. With :patterns at the end, the last two make and check payload on the board",
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="with --target: run on the board by itself, without the native network: no loss ledger, no captures",
    )
    parser.add_argument(
        "--board-ticks",
        action="store_true",
        help="let hosts act in the ticks in which they act on a board by itself; a run has the same figures as there",
    )


def choose_target(given: argparse.Namespace) -> None:
    """Set the target of ``--target`` for this process.

    Raises
    ------
    BentpipeError
        ``--alone`` stands without a target, or beside an option for the native network.
    """
    if given.alone:
        if not given.target:
            raise BentpipeError("--alone is for a board by itself: name the board with --target")
        for option in ("engine", "threads"):
            if getattr(given, option) is not None:
                raise BentpipeError(f"--alone and --{option}: a board by itself has no native network")
    if given.board_ticks:
        from bentpipe_sim.board.target import BOARD_TICKS

        os.environ[BOARD_TICKS] = "1"
    if given.target:
        from bentpipe_sim.board.target import ALONE, TARGET, check_target

        os.environ[TARGET] = check_target(given.target)
        if given.alone:
            os.environ[ALONE] = "1"


def junit_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--junit``."""
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="write the experiment's expectations and their results as JUnit XML"
    )


def settings_options(parser: argparse.ArgumentParser) -> None:
    """Add the experiment and its changes: name, ``--set``, ``--seed``, length."""
    parser.add_argument("name", metavar="NAME|FILE", help="name of a catalogue experiment, or a TOML file")
    set_option(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="random seed")
    length_options(parser)


def plugin_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--plugin``, which is handled before the command runs (:func:`take_plugins`)."""
    parser.add_argument(
        "--plugin",
        dest="plugins",
        metavar="FILE",
        action="append",
        default=[],
        help="Python file or package folder with models of your own: applications, window growths, switch options "
        "(may be repeated)",
    )


def take_plugins(given: argparse.Namespace) -> None:
    """Load what ``--plugin`` names, and what packages install; ``[plugins]`` of the experiment has the former, too."""
    from bentpipe.experiment.document import plugins

    plugins.installed()
    for text in given.plugins:
        name = Path(text).resolve().stem.replace("-", "_")
        plugins.load(name, Path(text))
        if hasattr(given, "settings"):
            given.settings.append(f"plugins.{name}={json.dumps(text)}")


def set_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--set`` and ``--plugin``."""
    plugin_option(parser)
    parser.add_argument(
        "--set",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a setting, for example hosts.tcp.variant=newreno or flow.0.size='10 MB' (may be repeated); "
        "@NAME: all settings of a fitted set",
    )


def length_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--duration`` and ``--quick``."""
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--duration", metavar="S", help="longest simulated time, in seconds or with a unit ('500 ms')")
    length.add_argument("--quick", action="store_true", help="use the shortened run that the experiment defines")


def length_ps(given: argparse.Namespace) -> int | None:
    """Return ``--duration`` in ps; check ``--seed`` as well."""
    from bentpipe.experiment.load import check_seed, parse_duration

    if getattr(given, "seed", None) is not None:
        check_seed(given.seed, "--seed")
    return None if given.duration is None else parse_duration(given.duration, "--duration")


def take_options(given: argparse.Namespace) -> int | None:
    """Apply ``--engine``, add ``--pcap`` to the settings, and return ``--duration`` in ps."""
    duration = length_ps(given)
    choose_engine(given)
    if given.pcap:
        given.settings.append(f"record.pcap={json.dumps(given.pcap)}")
    return duration


def one_case(name: str, found: Sequence[Experiment]) -> Experiment:
    """Return the only one of an experiment's cases.

    Raises
    ------
    BentpipeError
        There are several, and none was named.
    """
    if len(found) > 1:
        raise BentpipeError(f"{name}: has several cases; give --case, one of {', '.join(one.case for one in found)}")
    return found[0]


def console() -> Console:
    """Return the console for tables; without a terminal it is as wide as they need."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=160)


def print_json(data: Any) -> int:
    """Print data for machines; return the exit code of success."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    print(json.dumps(data, indent=2, ensure_ascii=not unicode))
    return 0


def write_file(path: Path, text: str) -> None:
    """Write a file whole: aside first, then into its place.

    Raises
    ------
    BentpipeError
        It cannot be written; nothing is left of it.
    """
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise BentpipeError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def print_report_path(console: Console, folder: Path) -> None:
    """Print the place of the report."""
    console.print(f"\nReport: {folder / 'report.html'}", highlight=False, soft_wrap=True)
