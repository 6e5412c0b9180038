"""A simulator of any Amaranth design with the interface of ``amaranth.sim.Simulator``, compiled to C++.

Start at :class:`Simulator`; :mod:`.engine` is what happens at a point in time, :mod:`.source` the C++.
"""

from __future__ import annotations

from typing import Any

from amaranth.sim import Simulator as _Simulator

from bentpipe_hdl.amaranth_simulation import prepared

from ...tools import uncollected
from .engine import Engine
from .model import FAST, SHORT

__all__ = ["Engine", "Simulator"]


class Simulator(_Simulator):
    """A simulator of an Amaranth design, used like ``amaranth.sim.Simulator`` and 25 to 270 times as fast.

    The design is compiled to C++ when it is simulated for the first time, and kept in the cache by its netlist
    (:mod:`bentpipe_sim.cache`).

    Parameters
    ----------
    toplevel : Elaboratable
    is_short : bool
        The simulation has some thousand clocks: what it saves to compile without optimisation is more than it costs.

    Raises
    ------
    NetlistError
        The design has something that the native engine does not handle; the error names it.
    ToolError
        There is no C++ compiler, and the design is not in the cache.
    """

    def __init__(self, toplevel: Any, *, is_short: bool = False):
        with uncollected():
            self._design = prepared(toplevel)
            self._engine: Any = Engine(self._design, toplevel, SHORT if is_short else FAST)
        self._clocked: set[Any] = set()
        self._running = False

    def run(self) -> None:
        """Run until no critical testbench or process is left."""
        self._running = True
        self._engine.run()

    def run_until(self, deadline: float, *, run_passive: bool | None = None) -> None:
        """Run until a time, in seconds."""
        until = int(deadline * 1e15)
        assert self._engine.now <= until
        self._running = True
        self._engine.run(until)
