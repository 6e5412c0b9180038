"""Compilers and other tools, as processes of their own."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from .errors import ToolError

__all__ = [
    "CSRC", "CXX_FLAGS", "alone", "call", "compiler", "compiler_version", "imported",
    "more_flags", "run", "side_by_side", "uncollected",
]  # fmt: skip

CSRC = Path(__file__).parent / "csrc"
CXX_FLAGS = ("-std=gnu++17", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-plt", "-w")
"""But for the degree of optimisation."""


def compiler() -> str:
    """Return the C++ compiler: ``$CXX``, else the first of ``g++``, ``c++`` and ``clang++`` that is installed.

    Raises
    ------
    ToolError
        There is none.
    """
    named = os.environ.get("CXX")
    for name in [named] if named else ["g++", "c++", "clang++"]:
        if shutil.which(name):
            return name
    what = f"The C++ compiler {named} (from CXX)" if named else "A C++17 compiler"
    raise ToolError(f"{what} is missing: install g++ (Debian, Ubuntu: apt install g++) or set CXX to one")


_running: set[subprocess.Popen[str]] = set()
_ending = threading.Event()
_blocks = 0  # of side_by_side()
_lock = threading.Lock()


def call(command: Sequence[str], **options: Any) -> tuple[int, str, str]:
    """Run a tool; return its exit code, stdout and stderr.

    :func:`side_by_side` ends it with the others, and all processes that it has started.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, process_group=0, **options) as process:
        _running.add(process)
        try:
            if _ending.is_set():
                _end(process)
            out, err = process.communicate()
        except BaseException:
            _end(process)
            raise
        finally:
            _running.discard(process)
        return process.returncode, out, err


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a compiler's driver and the compiler that it started, which holds the same pipes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def side_by_side() -> Iterator[ThreadPoolExecutor]:
    """Run tools in two threads within the context.

    When an exception leaves the context (Ctrl-C, or a failed tool), no other tool starts, and the running ones are
    ended: a compiler can take a minute. One such context may be within another.
    """
    global _blocks
    with _lock:
        _blocks += 1
    try:
        with ThreadPoolExecutor(max_workers=2) as pool:
            try:
                yield pool
            except BaseException:
                _ending.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(_running):
                    _end(process)
                raise
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                _ending.clear()


_uncollected = 0


@contextmanager
def uncollected() -> Iterator[None]:
    """Stop the collection of garbage in all threads, within the context.

    A netlist is made of a million objects that stay. A third of the time would be spent on visiting them again and
    again.
    """
    global _uncollected
    collects = False
    try:
        with _lock:
            collects = gc.isenabled() or _uncollected > 0
            _uncollected += collects
            gc.disable()
        yield
    finally:
        with _lock:
            _uncollected -= collects
            if collects and not _uncollected:
                gc.enable()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep other threads and processes out of contexts with the same file; the file exists within the context.

    A waiting process gives up when :func:`side_by_side` ends.
    """
    while True:
        with path.open("w") as file:
            while not _locked(file):
                if _ending.wait(0.02):
                    raise ToolError(f"given up while another process makes {path.name}")
            if not _is(file, path):
                continue  # who had it before has removed it since it was opened here
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: then two may make the same
    return True


def _is(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def run(command: list[str], what: str, **options: Any) -> None:
    """Run a program; a failure raises an error with its first lines of output."""
    code, out, err = call(command, **options)
    if code:
        lines = [line for line in (err + out).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines or ["no message"]
        raise ToolError(f"{what} failed: {errors[0].strip()}")


_versions: dict[str, str] = {}
_asking = threading.Lock()


def imported(name: str, file: Path) -> Any:
    """Return a module of Python from its file, without an entry in ``sys.modules``."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiler_version() -> str:
    """Return the compiler's version and the added flags: all that decides what it makes of a source."""
    return " ".join([_version(compiler()), *more_flags()])


def _version(program: str) -> str:
    with _asking:
        if program not in _versions:
            done = subprocess.run([program, "--version"], capture_output=True, text=True)
            _versions[program] = (done.stdout.splitlines() or ["unknown"])[0]
        return _versions[program]


def more_flags() -> list[str]:
    """Return the flags of ``$BENTPIPE_CXXFLAGS``; they come last when a node or the event loop is compiled, so they
    win."""
    return os.environ.get("BENTPIPE_CXXFLAGS", "").split()
