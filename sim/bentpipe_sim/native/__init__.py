"""The native engine: C++ straight from Amaranth's netlist.

One pass after the other, each a module: the netlist as Amaranth has it (:mod:`.netlist`), the fields of its words
(:mod:`.fields`), a graph of values that folds (:mod:`.graph`, :mod:`.design`), conditions (:mod:`.guards`), statements
and their order (:mod:`.schedule`), their text (:mod:`.cpp`), a node with its bodies (:mod:`.node`), its library
(:mod:`.library`). :mod:`.simulator` takes the same way with any Amaranth design.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .simulator import Simulator

__all__ = ["Simulator"]


def __getattr__(name: str) -> Any:
    """Import ``Simulator`` only if it is used, as it needs Amaranth's simulator."""
    if name == "Simulator":
        from .simulator import Simulator

        return Simulator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
