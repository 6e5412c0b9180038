"""Print, Assert, Assume and Cover of a compiled design."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bentpipe_hdl.amaranth_simulation import nir, pin_blame, value_to_string

from .model import State

__all__ = ["Monitors"]


class _Monitor:
    """One of them: it says something, or raises, when it is enabled."""

    def __init__(self, cell: Any, state: State, clock: int | None, asked: list[Any]):
        self.cell, self.clock = cell, clock
        enable, test, *values = [None if pieces is None else state.reader(pieces) for pieces in asked]
        assert enable is not None
        self.enable, self.test = enable, test
        self.values: list[Callable[[], int]] = [value for value in values if value is not None]
        self.last: tuple[int, ...] | None = None

    def check(self) -> None:
        if not self.enable():
            return
        kind = getattr(self.cell, "kind", "print")
        if kind == "print":
            print(self.text(), end="")
        elif kind == "cover":
            if self.cell.format is not None and self.test is not None and self.test():
                filename, line = self.cell.src_loc
                print(f"Coverage hit at {filename}:{line}:", self.text())
        elif self.test is not None and not self.test():
            named = "Assertion" if kind == "assert" else "Assumption"
            more = "" if self.cell.format is None else f": {self.text()}"
            pin_blame(self.cell.src_loc, AssertionError(f"{named} violated{more}"))

    def check_changed(self) -> None:
        """Check again if something that it depends on has changed."""
        enable = self.enable()
        now = (enable, self.test() if self.test else 0, *(read() for read in self.values if enable))
        if now != self.last:
            self.last = now
            self.check()

    def text(self) -> str:
        """Format it as Amaranth's simulator does."""
        values, found = iter(self.values), []
        for chunk in self.cell.format.chunks:
            if isinstance(chunk, str):
                found.append(chunk)
                continue
            value, width = next(values)(), len(chunk.value)
            if chunk.signed and width and value >> (width - 1):
                value -= 1 << width
            if chunk.format_desc.endswith("s"):
                found.append(format(value_to_string(value), chunk.format_desc[:-1]))
            else:
                found.append(format(value, chunk.format_desc))
        return "".join(found)


class Monitors:
    """All of a design. ``clocked``: there are some in clock domains; ``are_combinational``: there are some that are
    not."""

    def __init__(self, netlist: nir.Netlist, state: State):
        found = [_Monitor(netlist.cells[cell], state, clock, asked) for cell, clock, asked in state.model.map.monitors]
        self.clocked = [monitor for monitor in found if monitor.clock is not None]
        self._combinational = [monitor for monitor in found if monitor.clock is None]
        self.are_combinational = bool(self._combinational)

    def reset(self) -> None:
        for monitor in self._combinational:
            monitor.last = None

    def check(self, mask: int) -> None:
        """Take the edge of these clocks, before anything has changed."""
        for monitor in self.clocked:
            if mask >> (monitor.clock or 0) & 1:
                monitor.check()

    def check_combinational(self) -> None:
        for monitor in self._combinational:
            monitor.check_changed()
