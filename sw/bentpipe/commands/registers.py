"""``bentpipe registers``."""

from __future__ import annotations

import argparse

from bentpipe.commands.command import Command, plugin_option, print_json
from bentpipe.commands.shape import shape_of, shape_option
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    plugin_option(parser)
    parser.add_argument(
        "kind", nargs="?", metavar="KIND", help="kind of node: nic, switch, link or sonet (default: all)"
    )
    shape_option(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the register map as JSON")
    form.add_argument(
        "--csv", action="store_true", help="print the register map as LiteX's csr.csv, with byte addresses"
    )


def _run(given: argparse.Namespace) -> int:
    from bentpipe_hdl.kinds import REGISTERS, registers_of

    if given.kind is None and given.shape:
        raise BentpipeError("a shape belongs to one kind of node: name the kind")
    shape = shape_of(given.kind, given.shape) if given.kind else {}
    maps = [registers_of(kind, **shape) for kind in ([given.kind] if given.kind else REGISTERS)]
    if given.json:
        return print_json([each.to_json() for each in maps] if given.kind is None else maps[0].to_json())
    for each in maps:
        print(each.to_csv() if given.csv else each.to_text(), end="")
    return 0


COMMAND = Command("registers", "List the registers of each kind of node.", _run, _arguments, aliases=("regs",))
