"""A compiled node in place of Amaranth's simulator: the same testbench drives either.

It knows the ports of one node with one clock and nothing inside it. Compiling a small switch takes 3 s of processor
time. Then 22 tests of credits take 2 s, which take 53 s in Amaranth's simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from amaranth.hdl import ShapeCastable, Signal, Value, ValueCastable

from benches.compiled import Compiled
from bentpipe_hdl.amaranth_private import SignalDict, ports

__all__ = ["Context", "run"]


class Context:
    """What a testbench of Amaranth gets as ``ctx``, as far as our benches use it: ``get``, ``set``, ``tick``.

    Reading or writing anything but a whole port raises TypeError.
    """

    def __init__(self, node: Any, made: Path) -> None:
        self._compiled = Compiled(made)
        named = {name: value for name, (value, _) in ports(node).items() if len(value)}
        self._ports = SignalDict((value, self._compiled.ports[name]) for name, value in named.items())
        self._settled = False
        self._getters: dict[int, tuple[Callable[[], Any], Any]] = {}
        self._setters: dict[int, tuple[Callable[[int], None], Any]] = {}

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

    def set(self, port: Any, value: int) -> None:
        """Set an input; bits beyond its width are dropped, as Amaranth does."""
        try:
            setter = self._setters[id(port)][0]
        except KeyError:
            setter = self._setter(port)
            self._setters[id(port)] = setter, port
        setter(int(value))
        self._settled = False

    async def tick(self) -> None:
        """Let the clock rise once."""
        self._compiled.settle()
        self._compiled.edge()
        self._settled = False

    def _getter(self, port: Any) -> Callable[[], Any]:
        if not len(Value.cast(port)):
            return lambda: 0
        raw, shape = self._found(port).get, port.shape() if isinstance(port, ValueCastable) else None
        return (lambda: shape.from_bits(raw())) if isinstance(shape, ShapeCastable) else raw

    def _setter(self, port: Any) -> Callable[[int], None]:
        if not len(Value.cast(port)):
            return lambda value: None
        write, mask = self._found(port).set, (1 << len(Value.cast(port))) - 1
        return lambda value: write(value & mask)

    def _found(self, port: Any) -> Any:
        value = Value.cast(port)
        if not isinstance(value, Signal) or value not in self._ports:
            raise TypeError(f"a compiled node shows its ports alone, not {port!r}")
        return self._ports[value]


def run(node: Any, made: Path, test: Callable[[Context], Any]) -> None:
    """Run a testbench on a node and its library, until it ends."""
    bench = test(Context(node, made))
    try:
        bench.send(None)
    except StopIteration:
        return
    raise TypeError("a bench of a compiled node waits for its clock alone")
