"""``bentpipe get``."""

from __future__ import annotations

import argparse
from typing import Final

from bentpipe.commands.command import Command, console, json_option, print_json, session_folder, session_option

__all__ = ["COMMAND"]

_WHAT: Final = ("counters", "losses", "queue", "lateness", "now", "events", "session")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("keys", nargs="*", metavar="KEY", help="key, for example satellite.ber (default: all)")
    parser.add_argument("--what", choices=_WHAT, help="print these instead of settings, as JSON")
    session_option(parser)
    json_option(parser)


def _run(given: argparse.Namespace) -> int:
    from rich.table import Table

    from bentpipe.attach.client import SessionClient

    with SessionClient(session_folder(given)) as session:
        if given.what:
            return print_json(session.call(given.what))
        rows = session.keys()
        values = session.call("get", keys=given.keys) if given.keys else {}
    if given.json:
        return print_json(values if given.keys else rows)
    if given.keys:
        for key, value in values.items():
            print(f"{key} = {value}")
        return 0
    table = Table("key", "value", "kind", "range")
    for row in rows:
        span = ", ".join(row["words"]) or ("" if row["low"] is None else f"{row['low']} to {row['high'] or '…'}")
        table.add_row(row["key"], "-" if row["value"] is None else str(row["value"]), row["kind"], span)
    console().print(table)
    return 0


COMMAND = Command("get", "Print settings, counters, losses or queues of a running session.", _run, _arguments)
