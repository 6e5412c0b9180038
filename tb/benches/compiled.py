"""A compiled node whose ports Python sets and reads: fast enough for tens of thousands of ticks."""

from __future__ import annotations

import ctypes
from pathlib import Path

__all__ = ["Compiled"]


class _Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("width", ctypes.c_uint32)]


class _Narrow:
    """A port of up to 64 bits."""

    def __init__(self, address: int, width: int) -> None:
        kinds = ((8, ctypes.c_uint8), (16, ctypes.c_uint16), (32, ctypes.c_uint32), (64, ctypes.c_uint64))
        self.cell = next(kind for bits, kind in kinds if width <= bits).from_address(address)
        """Its ``value`` is that of the port: four times as fast to write as by :meth:`set`, and not checked."""
        self.mask = (1 << width) - 1

    def get(self) -> int:
        return self.cell.value

    def set(self, value: int) -> None:
        assert 0 <= value <= self.mask
        self.cell.value = value


class _Wide:
    """A port of more than 64 bits."""

    def __init__(self, address: int, width: int) -> None:
        self.mask = (1 << width) - 1
        self._octets = (width + 31) // 32 * 4
        self.cell = (ctypes.c_char * self._octets).from_address(address)

    def get(self) -> int:
        return int.from_bytes(self.cell.raw, "little")

    def set(self, value: int) -> None:
        self.cell.raw = value.to_bytes(self._octets, "little")


class Compiled:
    """An instance of a node made by :func:`benches.build.library`: ``ports`` by name, a clock a call."""

    def __init__(self, made: Path) -> None:
        library = ctypes.CDLL(str(made))
        library.node_new.restype = ctypes.c_void_p
        library.node_eval.argtypes = [ctypes.c_void_p]
        node = library.node_new()
        self.ports = self.of(library, node)
        self._library, self._node, self._eval = library, ctypes.c_void_p(node), library.node_eval
        self._clk = self.ports["clk"].cell
        self.ports["rst"].set(1)
        self.settle()
        self.edge()
        self.ports["rst"].set(0)

    @staticmethod
    def of(library: ctypes.CDLL, node: int) -> dict[str, _Narrow | _Wide]:
        """Return the ports of a node of a library, by name."""
        library.node_ports.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Port)]
        found = (_Port * 128)()
        count = library.node_ports(node, found)
        return {
            port.name.decode(): (_Narrow if port.width <= 64 else _Wide)(port.data, port.width)
            for port in found[:count]
        }

    def settle(self) -> None:
        """Outputs follow inputs; what is read then belongs to the clock that ends with the next edge."""
        self._clk.value = 0
        self._eval(self._node)

    def edge(self) -> None:
        """The clock's edge; call :meth:`settle` before."""
        self._clk.value = 1
        self._eval(self._node)
