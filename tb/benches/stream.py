"""Streams of millions of cells through a compiled node: what comes in is an array, so is what goes out.

The node is one of :mod:`benches.compiled` (Verilator, either width) or a model of the native engine (416 bits). A cell
a tick at most; every tick is run, in the fewest clocks that it has.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benches.build import library_of
from benches.compiled import Compiled
from bentpipe_hdl.cell import WIDE
from bentpipe_sim.build import Shape, build_model
from bentpipe_sim.cache import Cache
from bentpipe_sim.digests import digest
from bentpipe_sim.tools import compiler, compiler_version, run
from models.compiled import CompiledModel

__all__ = ["CELL", "StreamedNode"]

CELL = np.dtype([("tick", "<u8"), ("header", "<u4"), ("hec_error", "<u4"), ("payload", "u1", 48)])
"""Cells by tick, as ``stream.cpp`` has them."""

_NAMES = (
    "clk", "time_tick", "i_valid", "i_soc", "i_hec_error", "o_valid", "o_soc", "time_now", "i_header", "i_payload",
    "i_word", "o_header", "o_payload", "o_word",
)  # fmt: skip


class _Ports(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("node", "eval", *_NAMES)]


@cache
def _driver() -> Any:
    source = Path(__file__).with_name("stream.cpp")
    name = f"stream-{digest(source.read_text(), compiler_version())}.so"

    def build(folder: Path) -> Path:
        command = [compiler(), "-std=c++17", "-O2", "-fPIC", "-shared", str(source), "-o", str(folder / name)]
        run(command, "compiling stream.cpp")
        return folder / name

    stream = ctypes.CDLL(str(Cache().make(name, build))).stream
    stream.restype = ctypes.c_uint64
    stream.argtypes = [
        ctypes.POINTER(_Ports), ctypes.c_int, *[ctypes.c_uint64] * 2, ctypes.c_void_p, ctypes.c_uint64,
        ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint32),
    ]  # fmt: skip
    return stream


class StreamedNode:
    """A node of a shape at a width, on an engine: "native" or "verilator". It is a driver's bus, too."""

    def __init__(self, shape: Shape, width: int = WIDE, engine: str = "native", now: int = 0) -> None:
        assert engine == "verilator" or width == WIDE, "the native engine has no narrow nodes"
        self.now, self._wide, self._place = now, width == WIDE, ctypes.c_uint32()
        if engine == "native":
            model = CompiledModel(build_model(shape, "native"))
            self._address = {name: data for name, (data, _) in model.ports.items()}
            self._node, self._eval = model._instance, model._model.clock
            self._get, self._set, self._clock = model.get, model.set, model.clock
            model.reset(True)
            model.clock()
            model.reset(False)
        else:
            model = Compiled(library_of(shape, width))
            self._address = {name: ctypes.addressof(port.cell) for name, port in model.ports.items()}
            self._node, self._eval = model._node, model._library.node_eval
            self._get = lambda name: model.ports[name].get()
            self._set = lambda name, value: model.ports[name].set(value)

            def clock() -> None:
                model.settle()
                model.edge()

            self._clock = clock
        self._model = model
        self._ports = _Ports(
            self._node, ctypes.cast(self._eval, ctypes.c_void_p), *(self._address.get(name) for name in _NAMES)
        )
        self._quiet()
        self.settle()

    def _quiet(self) -> None:
        for name in ("time_tick", "i_valid", "post_valid", "csr_w_en", "csr_r_en"):
            self._set(name, 0)
        self._set("time_now", self.now)

    def settle(self) -> None:
        """Let clocks without a tick pass until the tables are cleared."""
        for _ in range(20000):
            self._clock()
            if not self._wide or self._get("status_idle"):
                break
        if not self._wide:
            for _ in range(8 * 64 + 8):
                self._clock()

    def reset(self) -> None:
        """Reset the node, in the middle of whatever it does."""
        if isinstance(self._model, CompiledModel):
            self._model.reset(True)
            self._clock()
            self._model.reset(False)
        else:
            self._set("rst", 1)
            self._clock()
            self._set("rst", 0)
        self._place = ctypes.c_uint32()
        self.settle()

    def write(self, addr: int, value: int) -> None:
        self._set("csr_addr", addr)
        self._set("csr_w_data", value)
        self._set("csr_w_en", 1)
        self._clock()
        self._set("csr_w_en", 0)

    def read(self, addr: int) -> int:
        self._set("csr_addr", addr)
        self._set("csr_r_en", 1)
        self._clock()
        self._set("csr_r_en", 0)
        for _ in range(3):
            self._clock()
        return self._get("csr_r_data")

    def run(self, until: int, cells: np.ndarray | None = None, most: int = 0) -> np.ndarray:
        """Run up to this tick with these cells, of dtype :data:`CELL`; up to so many cells that came out."""
        given = np.zeros(0, CELL) if cells is None else np.ascontiguousarray(cells)
        assert given.dtype == CELL
        out = np.zeros(most + 1, CELL)
        count = _driver()(
            ctypes.byref(self._ports), int(self._wide), self.now, until, given.ctypes.data, len(given),
            out.ctypes.data, most, ctypes.byref(self._place),
        )  # fmt: skip
        assert count < 1 << 63, "cells whose tick was past, or two in one tick"
        self.now = until
        return out[:count]
