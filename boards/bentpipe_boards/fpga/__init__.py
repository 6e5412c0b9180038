"""FPGA boards: what each one is, the top for it, and its bitstream.

A board is a module here with a ``BOARD`` and its name in the list below; :mod:`.ulx3s` is an example."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from bentpipe_boards.fpga.board import Board
from bentpipe_boards.fpga.errors import FpgaError

__all__ = ["board_named", "boards"]

_MODULES: Final = ("ulx3s", "ecpix5")


def boards() -> list[Board]:
    """Return all boards."""
    return [import_module(f"bentpipe_boards.fpga.{name}").BOARD for name in _MODULES]


def board_named(name: str) -> Board:
    """Return the board of this name.

    Raises
    ------
    FpgaError
        There is none.
    """
    known = {board.name: board for board in boards()}
    if name not in known:
        raise FpgaError(f"there is no board {name}; there is {', '.join(known)}")
    return known[name]
