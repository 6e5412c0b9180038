"""Cores that a package of LiteX writes as Verilog, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bentpipe_sim.errors import ToolError

__all__ = ["generated"]

_TITLES: Final = {"liteeth": "LiteEth", "litedram": "LiteDRAM"}


def generated(package: str, settings: Mapping[str, Any], file: Path, remedy: str) -> str:
    """Return the core of a package of :data:`_TITLES` as Verilog; it is written into a file first.

    Raises
    ------
    ToolError
        The package is not there (``remedy`` says what to do), or fails.
    """
    title = _TITLES[package]
    module = f"bentpipe_boards.fpga.{package}_core"
    command = [sys.executable, "-m", module, str(file.resolve()), json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        if "No module named" in reason and re.search(rf"'(migen|litex|{package})\b", reason):
            raise ToolError(f"{title} is missing: {remedy}")
        raise ToolError(f"{title}'s core could not be made: {reason}")
    return file.read_text()
