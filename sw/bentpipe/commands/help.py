"""``bentpipe help``: the manual's tables."""

from __future__ import annotations

import argparse
import sys

from bentpipe.commands.command import Command, console, plugin_option
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    plugin_option(parser)
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="topic to explain (default: list the topics)")


def _run(given: argparse.Namespace) -> int:
    from bentpipe.manual import TOPICS
    from bentpipe_hdl.words import nearest

    if given.topic is None:
        width = max(map(len, TOPICS))
        for name, topic in TOPICS.items():
            print(f"bentpipe help {name:{width}}  {topic.what}")
        return 0
    if given.topic not in TOPICS:
        raise BentpipeError(f"no help on {given.topic!r}{nearest(given.topic, TOPICS)}")
    text = TOPICS[given.topic].text()
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        console().print(Markdown(text))
    else:
        print(text, end="")
    return 0


COMMAND = Command(
    "help", "Explain keys, TCP, host profiles, applications, series, metrics, columns, NetSpec.", _run, _arguments
)
