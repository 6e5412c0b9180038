"""``bentpipe build``."""

from __future__ import annotations

import argparse
import logging

from bentpipe.commands.command import Command, plugin_option

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    plugin_option(parser)
    what = "name of a catalogue experiment, or a TOML file, whose nodes to compile (default: the most used nodes)"
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=what)
    parser.add_argument("--force", action="store_true", help="delete the cache first")


def _run(given: argparse.Namespace) -> int:
    from bentpipe.compiled import prepare
    from bentpipe_sim.build import DEFAULT_SHAPES, build_all
    from bentpipe_sim.cache import Cache

    if given.force:
        Cache().clear()
    why_plain = prepare()
    shapes = list(DEFAULT_SHAPES)
    if given.experiments:
        from bentpipe.experiment.build.network import build_network
        from bentpipe.experiment.load import load_cases

        cases = [case for name in given.experiments for case in load_cases(name)]
        shapes = [shape for case in cases for shape in build_network(case)[0].shapes()]
    libraries = build_all(shapes, progress=lambda name: print(f"{name}: ready", flush=True))
    if why_plain is not None:
        print(f"hosts: plain Python, {why_plain}" if why_plain else "hosts: ready")
    for path in libraries.values():
        logging.getLogger(__name__).info("%s", path)
    return 0


COMMAND = Command("build", "Compile node models and hosts in advance, so that runs start at once.", _run, _arguments)
