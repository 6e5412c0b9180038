"""The fast path of test benches: ``ctx.set`` of whole inputs and ``await ctx.tick()`` in C++ (``quick.cpp``).

Where Python's headers are missing, or ``BENTPIPE_BENCHES`` is ``plain``, benches use :mod:`.context` alone. It does the
same, and handles all other cases in either form. Start reading there.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

from amaranth.hdl import ShapeCastable, Value, ValueCastable

from bentpipe_hdl.amaranth_simulation import SignalState

from ...cache import Cache
from ...digests import digest, digest_of
from ...tools import CXX_FLAGS, compiler, compiler_version, imported, more_flags, run
from .context import HIT, RESET, BenchContext, Tick
from .model import State
from .single_clock import SingleClock

__all__ = ["testbench_context"]

_SOURCE = Path(__file__).with_name("quick.cpp")
_MODULE = "bentpipe_quick"
_FLAGS = (*CXX_FLAGS, "-O2")
_WORD = 8
"""Octets of the widest input that is written in C++."""


def testbench_context(engine: type[Any], clock: type[Any]) -> type[BenchContext]:
    """Return the class of testbenches' contexts, for the classes of engines and of clocks."""
    if os.environ.get("BENTPIPE_BENCHES") == "plain":
        return BenchContext
    return _made(engine, clock)


@cache
def _made(engine: type[Any], clock: type[Any]) -> type[BenchContext]:
    quick = _extension()
    if quick is None:
        return BenchContext
    layout = quick.Layout(SignalState, engine, State, SingleClock, clock, HIT, RESET)

    class QuickTick(quick.Tick, Tick):
        def __init__(self, engine: Any, process: Any, *, domain: Any):
            Tick.__init__(self, engine, process, domain=domain)
            self.begin(layout, engine, self.edge, self.reset, engine.compiled, Tick.__await__, quick.Once())

    class QuickContext(quick.Context, BenchContext):
        _kind = QuickTick

        def __init__(self, design: Any, engine: Any, process: Any):
            BenchContext.__init__(self, design, engine, process)
            pending, compiled = engine.state.pending, engine.compiled
            self.begin(layout, engine, pending, compiled, QuickContext._any_tick, BenchContext.set)

        def _any_tick(self, domain: Any = "sync", *, context: Any = None) -> Any:
            found = BenchContext.tick(self, domain, context=context)
            if domain == "sync" and context is None and isinstance(found, QuickTick):
                self.default_tick = found
            return found

        def _prepare(self, expr: Any) -> None:
            value = Value.cast(expr)
            slot = self._engine.plain_input(value)
            is_converted = isinstance(expr, ValueCastable) and isinstance(expr.shape(), ShapeCastable)
            is_plain = self._engine.writer_of(slot) is not None and not is_converted and not value.shape().signed
            address, size, mask = (slot.address, slot.size, slot.mask) if is_plain else (0, 0, 0)
            if size > _WORD:
                address = mask = 0
            self.add(expr, slot, self.writer(expr), address, size, mask)

    return QuickContext


def _extension() -> Any:
    """Return the extension module, which is kept in the cache; None: it cannot be made here.

    Raises
    ------
    ToolError
        It cannot be compiled, although all is there.
    CacheError
    """
    include = sysconfig.get_path("include")
    if sys.implementation.name != "cpython" or sys.byteorder != "little" or not Path(include, "Python.h").is_file():
        return None
    name = digest(digest_of([_SOURCE]), sys.version, include, compiler_version(), *_FLAGS)

    def build(folder: Path) -> Path:
        made = folder / f"{_MODULE}.so"
        undefined = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()
        command = [compiler(), *_FLAGS, *more_flags(), *undefined, f"-I{include}", str(_SOURCE), "-o", str(made)]
        run(command, "compiling the fast path of test benches")
        return made

    return imported(_MODULE, Cache().make(f"quick-{name}.so", build))
