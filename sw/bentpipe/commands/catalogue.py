"""``bentpipe catalogue``."""

from __future__ import annotations

import argparse

from bentpipe.commands.command import (
    Command,
    CommandGroup,
    choose_engine,
    engine_option,
    gone_on_options,
    json_option,
    set_option,
)
from bentpipe.commands.sweep import do_sweep, sweep_options
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument(
        "--only",
        metavar="PAPER|ID",
        action="append",
        default=[],
        help="only this experiment, or the experiments of this paper (may be repeated)",
    )
    parser.add_argument("--quick", action="store_true", help="use the shortened runs that the experiments define")
    set_option(parser)
    gone_on_options(parser, "catalogue")
    engine_option(parser)
    sweep_options(parser)


def _run(given: argparse.Namespace) -> int:
    from bentpipe.sweeps.grid import parse_seeds
    from bentpipe.sweeps.plan import plan_catalogue, with_metrics
    from bentpipe.sweeps.show import print_catalogue

    if given.precision:
        raise BentpipeError("--precision is for one experiment: use it with `bentpipe sweep`")
    choose_engine(given)
    seeds = parse_seeds(given.seeds) if given.seeds is not None else ()
    plan = plan_catalogue(_names(given.only), seeds, given.settings, quick=given.quick)
    plan = with_metrics(plan, given.metrics)
    return do_sweep(given, plan, print_catalogue)


def _names(only: list[str]) -> list[str]:
    """Return the experiments of these papers and ids, in the catalogue's order."""
    from bentpipe.experiment.document.catalogue import catalogue, read_extended
    from bentpipe_hdl.words import nearest

    papers = {name: str(read_extended(path)[0]["experiment"].get("paper", "")) for name, path in catalogue().items()}
    words = {word.lower(): word for paper in papers.values() for word in paper.replace(",", " ").split()}
    for wanted in only:
        if wanted not in papers and wanted.lower() not in words:
            raise BentpipeError(
                f"--only {wanted}: is no paper and no experiment of the catalogue"
                f"{nearest(wanted, [*words.values(), *papers])}"
            )
    return [
        name
        for name, paper in papers.items()
        if not only or any(w == name or w.lower() in paper.lower().replace(",", " ").split() for w in only)
    ]


COMMAND = CommandGroup(
    "catalogue",
    "Run all of the catalogue.",
    (
        Command(
            "run",
            "Run the experiments of the catalogue on several processes or machines, and summarise the results.",
            _run,
            _arguments,
            prepares_hosts=True,
        ),
    ),
)
