"""``bentpipe wave``: every signal of a node, for some ticks of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from bentpipe.commands.command import Command, case_option, one_case, set_option
from bentpipe.errors import BentpipeError

if TYPE_CHECKING:
    from bentpipe.experiment.resolve.specs import Experiment

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "name", nargs="?", metavar="NAME|FILE|DIR", help="name of a catalogue experiment, a TOML file, or a run folder"
    )
    which.add_argument("--id", metavar="NAME", help="the same, as an option")
    parser.add_argument(
        "--node", required=True, metavar="NODE", help="host, switch, LINE.out or LINE.back (see `bentpipe show`)"
    )
    parser.add_argument("--at", required=True, metavar="T", help="simulated time at which to start, for example 7.2s")
    parser.add_argument(
        "--for", dest="span", metavar="T", default="20 us", help="length, at most 10 ms (default: 20us)"
    )
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="output file (default: ID-NODE.vcd)")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    set_option(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="random seed")
    case_option(parser)


def _run(given: argparse.Namespace) -> int:
    import sys

    from bentpipe.experiment.run.wave import write_wave
    from bentpipe_hdl.ticks import ticks_to_ps
    from bentpipe_hdl.units import format_time

    given.name = given.name or given.id
    experiment = _experiment(given)
    at_ps, for_ps = (_time(value, option) for value, option in ((given.at, "--at"), (given.span, "--for")))
    out: Path = given.out or Path(f"{experiment.id}-{given.node}.vcd")
    if out.exists() and (out.is_dir() or not given.force):
        raise BentpipeError(f"{out}: already exists; give another name, or --force to replace it")
    wave = write_wave(experiment, given.node, at_ps, for_ps, out, show_progress=sys.stderr.isatty())
    begin, end = format_time(ticks_to_ps(wave.first)), format_time(ticks_to_ps(wave.last))
    print(
        f"{out}: {wave.kind} {wave.node} from {begin} to {end}, {wave.last - wave.first + 1} ticks; "
        f"{wave.cells_in} cells came, {wave.cells_out} went"
    )
    print("Look at it with GTKWave or Surfer; its ports are in the module `ports`.")
    return 0


def _experiment(given: argparse.Namespace) -> Experiment:
    from bentpipe.experiment.load import check_seed, experiment_of, load_cases

    folder = Path(given.name)
    if folder.is_dir():
        if given.settings or given.seed is not None or given.cases:
            raise BentpipeError(f"{folder}: a run has its settings; --set, --seed and --case are for experiments")
        return experiment_of(folder)
    if given.seed is not None:
        check_seed(given.seed, "--seed")
    found = load_cases(given.name, given.settings, seed=given.seed, only=given.cases)
    return one_case(given.name, found)


def _time(text: str, option: str) -> int:
    from bentpipe_hdl.units import parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        raise BentpipeError(f"{option}: {error}") from None


COMMAND = Command("wave", "Write all signals of a node during a part of a run to a VCD file.", _run, _arguments, True)
