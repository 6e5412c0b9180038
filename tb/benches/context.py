"""A compiled node in place of Amaranth's simulator: the same testbench drives either.

It knows the ports of one node, or part of a node, with one clock, and nothing inside it. Compiling a small switch takes
3 s of processor time. Then 22 tests of credits take 2 s, which take 53 s in Amaranth's simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from amaranth.hdl import Const, ShapeCastable, Signal, Value

from benches.compiled import Compiled
from bentpipe_hdl.amaranth_private import PortDirection, SignalDict, ports, unsliced

__all__ = ["Context", "run"]


class Context:
    """The ``ctx`` of a testbench of Amaranth, as far as our benches use it: ``get``, ``set``, ``tick``, ``delay``.

    Reading or writing anything but a port, or a field of one, raises TypeError.
    """

    def __init__(self, node: Any, made: Path) -> None:
        self._compiled = Compiled(made)
        named = {name: value for name, (value, _) in ports(node).items() if len(value)}
        self._ports = SignalDict((value, self._compiled.ports[name]) for name, value in named.items())
        for value, way in ports(node).values():
            if way is PortDirection.Input and isinstance(value, Signal) and value.init:
                self._ports[value].set(value.init)
        self._settled = False
        self._getters: dict[int, tuple[Callable[[], Any], Any]] = {}
        self._setters: dict[int, tuple[Callable[[Any], None], Any]] = {}

    def get(self, port: Any) -> Any:
        """Return a port's value now; outputs follow inputs at once."""
        if not self._settled:
            self._compiled.settle()
            self._settled = True
        try:
            return self._getters[id(port)][0]()
        except KeyError:
            getter = self._getter(port)
            self._getters[id(port)] = getter, port
            return getter()

    def set(self, port: Any, value: Any) -> None:
        """Set an input; bits beyond its width are dropped, as Amaranth does."""
        try:
            setter = self._setters[id(port)][0]
        except KeyError:
            setter = self._setter(port)
            self._setters[id(port)] = setter, port
        setter(value)
        self._settled = False

    async def tick(self) -> None:
        """Let the clock rise once."""
        self._compiled.settle()
        self._compiled.edge()
        self._settled = False

    async def delay(self, interval: float) -> None:
        """Do nothing: outputs have followed inputs when they are read."""

    def _getter(self, port: Any) -> Callable[[], Any]:
        value = Value.cast(port)
        if not len(value):
            return lambda: 0
        read, start = self._found(value)
        mask, shape = (1 << len(value)) - 1, port.shape()
        if isinstance(shape, ShapeCastable):
            return lambda: shape.from_bits(read.get() >> start & mask)
        if shape.signed:
            half = 1 << len(value) - 1
            return lambda: ((read.get() >> start & mask) ^ half) - half
        return lambda: read.get() >> start & mask

    def _setter(self, port: Any) -> Callable[[Any], None]:
        value = Value.cast(port)
        if not len(value):
            return lambda given: None
        written, start = self._found(value)
        mask, shape = (1 << len(value)) - 1, port.shape()

        def number(given: Any) -> int:
            if isinstance(shape, ShapeCastable) and not isinstance(given, int):
                given = Const.cast(shape.const(given)).value
            return int(given) & mask

        if start or mask != written.mask:
            return lambda given: written.set(written.get() & ~(mask << start) | number(given) << start)
        return lambda given: written.set(number(given))

    def _found(self, value: Value) -> tuple[Any, int]:
        """The port that a value is, or is a field of, and its first bit there."""
        whole, start = unsliced(value)
        if not isinstance(whole, Signal) or whole not in self._ports:
            raise TypeError(f"a compiled node shows its ports and their fields alone, not {value!r}")
        return self._ports[whole], start


def run(node: Any, made: Path, test: Callable[[Context], Any]) -> None:
    """Run a testbench on a node and its library, until it ends."""
    bench = test(Context(node, made))
    try:
        bench.send(None)
    except StopIteration:
        return
    raise TypeError("a bench of a compiled node waits for its clock alone")
