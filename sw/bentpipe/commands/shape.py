"""The shape of a node, as commands take it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bentpipe.errors import BentpipeError

__all__ = ["shape_of", "shape_option"]


def shape_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--shape``, and its most used parts as options of their own."""
    parser.add_argument(
        "--shape",
        metavar="NAME=N,…",
        action="append",
        default=[],
        help="size and options, for example vcs=256,options=red+police (may be repeated)",
    )
    for part in ("ports", "vcs", "cells"):
        text = f"{part}={{}}".format
        parser.add_argument(
            f"--{part}", metavar="N", dest="shape", action="append", type=text, help=f"--shape {part}=N"
        )


def shape_of(kind: str, given: Sequence[str]) -> dict[str, int]:
    """Return the shape that these options give a kind of node.

    Raises
    ------
    BentpipeError
        It is none, or the kind of node has not it.
    """
    from bentpipe_hdl.kinds import check_parts, registers_of
    from bentpipe_hdl.switch.options import options_word

    text = ",".join(given)
    parts = [part.partition("=") for part in text.split(",") if part]
    try:
        check_parts(kind, [name for name, _, _ in parts])
        shape = {name: options_word(value.split("+")) for name, _, value in parts if name == "options"}
        rest = [(name, value) for name, _, value in parts if name != "options"]
        if not all(value.isdecimal() for _, value in rest):
            raise BentpipeError(f"--shape: expected NAME=N,…, as vcs=256,cells=4096, not {text!r}")
        shape |= {name: int(value) for name, value in rest}
        if len(shape) < len(parts):
            raise BentpipeError(f"--shape: given twice: {text}")
        registers_of(kind, **shape)
    except ValueError as error:
        raise BentpipeError(str(error)) from None
    return shape
