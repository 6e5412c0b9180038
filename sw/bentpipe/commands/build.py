"""``bentpipe build``."""

from __future__ import annotations

import argparse
import logging

from bentpipe.commands.command import Command

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="empty the cache first")


def _run(given: argparse.Namespace) -> int:
    from bentpipe.compiled import prepare
    from bentpipe_sim.build import build_all

    paths = build_all(force=given.force, progress=lambda name: print(f"{name}: ready"))
    why_plain = prepare()
    if why_plain is not None:
        print(f"hosts: plain Python, {why_plain}" if why_plain else "hosts: ready")
    for path in paths:
        logging.getLogger(__name__).info("%s", path)
    return 0


COMMAND = Command("build", "Build the node models, so that no run has to.", _run, _arguments)
