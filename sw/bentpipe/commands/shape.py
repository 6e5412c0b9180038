"""The shape of a node, as commands take it."""

from __future__ import annotations

import argparse

from bentpipe.errors import BentpipeError

__all__ = ["shape_of", "shape_option"]


def shape_option(parser: argparse.ArgumentParser) -> None:
    """``--shape``."""
    parser.add_argument("--shape", metavar="NAME=N,…", default="", help="its shape, as vcs=256,options=red+police")


def shape_of(kind: str, text: str) -> dict[str, int]:
    """The shape that ``--shape`` gives a kind of node.

    Raises
    ------
    BentpipeError
        It is none, or the kind of node hasn't it.
    """
    from bentpipe_hdl.kinds import registers_of
    from bentpipe_hdl.switch.options import options_word

    parts = [part.partition("=") for part in text.split(",") if part]
    try:
        shape = {name: options_word(value.split("+")) for name, _, value in parts if name == "options"}
        rest = [(name, value) for name, _, value in parts if name != "options"]
        if not all(value.isdecimal() for _, value in rest):
            raise BentpipeError(f"--shape: expected NAME=N,…, as vcs=256,cells=4096, not {text!r}")
        shape |= {name: int(value) for name, value in rest}
        registers_of(kind, **shape)
    except ValueError as error:
        raise BentpipeError(str(error)) from None
    return shape
