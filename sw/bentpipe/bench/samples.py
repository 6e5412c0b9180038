"""A sampling profiler of a run: every 0.1 ms it records in which program or library the processor is.

The measured code is not changed, so an evaluation of 20 ns can be told from the loop around it.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cffi import FFI

from bentpipe_sim.digests import cache_folder
from bentpipe_sim.tools import CXX_FLAGS, compiler, run

__all__ = ["sampled"]

_SOURCE: Final = Path(__file__).with_name("samples.cc")
_EVERY_NS: Final = 100_000
_MOST: Final = 10_000_000
"""Samples: more than a quarter of an hour of them."""


def sampled(work: Callable[[], object]) -> dict[str, float]:
    """Return the share of each program and library in the time of some work, by its file; "" is none (the kernel's page
    of clocks).

    Raises
    ------
    ToolError
        The sampler cannot be compiled, or there is no such timer.
    """
    library = _Library()
    library.start()
    try:
        work()
    finally:
        files = library.stop()
    return {file: number / files.total() for file, number in files.items()}


class _Library:
    def __init__(self) -> None:
        self._ffi: Any = FFI()
        self._ffi.cdef("int start(long, size_t); size_t stop(void); const char *file(size_t);")
        self._library = self._ffi.dlopen(str(_compiled()))

    def start(self) -> None:
        if self._library.start(_EVERY_NS, _MOST):
            raise OSError("no timer for samples")

    def stop(self) -> Counter[str]:
        count = self._library.stop()
        return Counter(os.fsdecode(self._ffi.string(self._library.file(k))) for k in range(count))


def _compiled() -> Path:
    cxx = compiler()
    digest = hashlib.sha256(_SOURCE.read_bytes() + cxx.encode()).hexdigest()[:16]
    library = cache_folder() / f"samples-{digest}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        made = library.with_suffix(f".{os.getpid()}")
        run([cxx, *CXX_FLAGS, "-O2", str(_SOURCE), "-o", str(made), "-ldl", "-lrt"], "compiling samples.cc")
        made.rename(library)
    return library
