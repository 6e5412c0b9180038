"""``bentpipe shell``."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from bentpipe.commands.attach import (
    experiment_of,
    json_lines,
    options_of,
    run_session,
    session_options,
    subnet6_of,
    subnet_of,
)
from bentpipe.commands.command import Command
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    session_options(parser)
    parser.add_argument(
        "--there",
        metavar="CMD",
        action="append",
        default=[],
        help="command to run in the other namespace, b; it ends with the first command (may be repeated)",
    )


def _run(given: argparse.Namespace) -> int:
    from bentpipe.attach.shell import Commands, own_namespaces

    subnet6 = subnet6_of(given)
    prefixes = [subnet_of(given), *([subnet6] if subnet6 else [])]
    addresses = {name: [str(each[number]) for each in prefixes] for number, name in enumerate("ab", 1)}
    with own_namespaces(addresses):  # a process with threads gets no user namespace
        from bentpipe.attach.ends import End
        from bentpipe.attach.session import Session

        there = [word for text in given.there for word in ("--there", text)]
        words = ["--", *given.words] if given.words else []
        options = replace(options_of(given), commands=(*there, *words))
        experiment = experiment_of(given)
        if not experiment.flows:
            raise BentpipeError(f"{given.name}: it has no flow, so hosts a and b are not defined")
        flow = experiment.flows[0]
        session = Session(experiment, {flow.source: End("ns", "a"), flow.sink: End("ns", "b")}, options)
        command = given.words or [os.environ.get("SHELL", "/bin/sh")]
        commands = Commands(command, "a", [("b", text) for text in given.there])
        with session.open():
            try:
                if not given.json:
                    starts = f"; starts at {options.start.astimezone().isoformat(' ')}" if options.start else ""
                    text = f"a is {flow.source}, b is {flow.sink}; {session.text}{starts}"
                    print(text, file=sys.stderr, flush=True)
                with json_lines(given):
                    code = run_session(given, session, began=commands.begin, over=commands.over)
            finally:
                ended = commands.close()
        return code or ended


COMMAND = Command(
    "shell",
    "Run a command (given after --), or a shell, behind the emulated network.",
    _run,
    _arguments,
    prepares_hosts=True,
    starts_another=True,
    exit_codes="or the exit code of COMMAND",
)
