"""``bentpipe cells``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bentpipe.commands.command import Command, console, json_option, print_json
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="capture of kind cells (pcap)")
    parser.add_argument(
        "--block", type=int, default=128, metavar="N", help="cells of a cell block, a power of two (default: 128)"
    )
    parser.add_argument(
        "--block-limit", type=int, metavar="M", help="bad outcomes that a block may have (default: N/32)"
    )
    parser.add_argument(
        "--from-first", action="store_true", help="begin with the first cell found (default: with number 0)"
    )


def _run(given: argparse.Namespace) -> int:
    from dataclasses import asdict

    from bentpipe.captures.test_cells import analyse_capture, read_capture

    size = given.block.bit_length() - 1
    limit = given.block // 32 if given.block_limit is None else given.block_limit
    if not (1 <= size <= 16 and given.block == 1 << size):
        raise BentpipeError(f"--block: a cell block has a power of two of cells from 2 to 65536, not {given.block}")
    if not 0 <= limit < given.block:
        raise BentpipeError(f"--block-limit: from 0 to {given.block - 1} bad outcomes of {given.block}, not {limit}")
    first = None if given.from_first else 0
    found = analyse_capture(read_capture(given.file), (size, limit), first=first)
    if given.json:
        rows = [
            {
                "way": way,
                "vpi": vpi,
                "vci": vci,
                **{name: value for name, value in asdict(each).items() if name != "classes"},
            }
            for (way, vpi, vci), each in found.items()
        ]
        return print_json(rows)
    if not found:
        raise BentpipeError(f"{given.file}: no test cells")
    from rich.table import Table

    names = ("received", "in_order", "lost", "errored", "misinserted", "skipped", "pending", "blocks", "secbs")
    heads = [name.replace("_", " ").replace("secbs", "SECBs") for name in names]
    delays = ("mean CTD, ms", "min", "max", "2-point CDV")
    table = Table("way", "VPI/VCI", *heads, *delays, box=None)
    for (way, vpi, vci), each in found.items():
        times = (each.delay_mean_ps or 0, each.delay_min_ps, each.delay_max_ps, each.delay_max_ps - each.delay_min_ps)
        counts = [f"{getattr(each, name):,}" for name in names]
        table.add_row(way, f"{vpi}/{vci}", *counts, *(f"{time / 1e9:.5f}" for time in times))
    console().print(table)
    return 0


COMMAND = Command("cells", "Analyse the test cells in a capture of cells.", _run, _arguments)
