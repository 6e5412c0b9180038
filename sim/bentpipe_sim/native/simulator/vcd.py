"""Waves of a simulation: a value change dump, recorded in C++."""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amaranth.hdl import Signal, Value, ValueLike

from bentpipe_hdl.amaranth_simulation import MemoryData, memories, parts_of, parts_of_row, scopes, signals_of

from ...cache import Cache
from ...digests import digest
from ...tools import CSRC, CXX_FLAGS, compiler, compiler_version, run
from .model import Buffer, Pieces
from .source import INNER, PORTS

__all__ = ["Recorder"]

_MUCH = 1 << 20
"""Octets of text that are written at once."""


def _library() -> ctypes.CDLL:
    source, flags = CSRC / "recorder.cpp", (*CXX_FLAGS, "-O2")

    def build(folder: Path) -> Path:
        run([compiler(), *flags, str(source), "-o", str(folder / "recorder.so")], "compiling the recorder of waves")
        return folder / "recorder.so"

    name = f"recorder-{digest(source.read_bytes(), compiler_version(), *flags)}.so"
    found = ctypes.CDLL(str(Cache().make(name, build)))
    pointer = ctypes.c_void_p
    for name, result, arguments in (
        ("new", pointer, []),
        ("delete", None, [pointer]),
        ("variable", None, [pointer, ctypes.c_char_p]),
        ("piece", None, [pointer, pointer, ctypes.c_uint32, ctypes.c_uint32]),
        ("name", None, [pointer, ctypes.c_uint64, ctypes.c_char_p]),
        ("sample", ctypes.c_uint64, [pointer, ctypes.c_uint64]),
        ("text", ctypes.c_char_p, [pointer]),
        ("clear", None, [pointer]),
    ):
        function = getattr(found, f"recorder_{name}")
        function.restype, function.argtypes = result, arguments
    return found


class Recorder:
    """A file with all signals and memories of a design, and of those that are traced what is not in it; times in fs.

    It has what is there when a point in time is over, and nothing of what was there for a moment.
    """

    def __init__(self, engine: Any, file: Any, traces: Any):
        self._engine = engine
        self._is_own = isinstance(file, str | Path)
        self._file = open(file, "w") if self._is_own else file  # noqa: SIM115 (close() closes it)
        self._library = _library()
        self._recorder = self._library.recorder_new()
        self._count = 0
        self._scopes: dict[str, Any] = {}
        self._others: list[tuple[Any, Buffer]] = []
        compiled = engine.compiled
        self._groups = [name for name in (PORTS, INNER) if compiled.model.map.outputs[name]]
        for signal, name in scopes(engine.design):
            self._add_signal(signal, ("bench", *name))
        for memory, name in memories(engine.design):
            self._add_memory(memory, ("bench", *name))
        for signal in _traced(traces):
            if engine.number(signal) is None:
                self._add_other(signal)
        self._write_header()

    # What is recorded

    def _declare(self, name: tuple[str, ...], path: str, width: int, names: dict[int, str] | None) -> None:
        digits, rest = "", self._count
        self._count += 1
        while rest or not digits:
            digits += chr(33 + rest % 94)
            rest //= 94
        scope = self._scopes
        for part in name[:-1]:
            scope = scope.setdefault(part, {})
        kind = f"wire {width}" if names is None else "string 1"
        full = f"{name[-1]}{path}"
        if path or "[" in full:
            full = f"\\{full}"
        scope.setdefault("", []).append(f"$var {kind} {digits} {full} $end")
        self._library.recorder_variable(self._recorder, digits.encode())

    def _add_signal(self, signal: Signal, name: tuple[str, ...]) -> None:
        number = self._engine.number(signal)
        assert number is not None
        pieces = self._engine.compiled.model.map.values[number]
        for path, low, width, names in parts_of(signal):
            if width:
                self._declare(name, path, width, names)
                self._put(_cut(pieces, low, width))
                self._put_names(names, width)

    def _add_memory(self, memory: MemoryData, name: tuple[str, ...]) -> None:
        words = self._engine.compiled.model.map.words[self._engine.number_of_memory(memory)]
        for row in range(memory.depth):
            pieces = [["row", place, row, 0, width] for _, width, place in words]
            for path, low, width, names in parts_of_row(memory, row):
                if width:
                    self._declare(name, f"[{row}]{path}", width, names)
                    self._put(_cut(pieces, low, width))
                    self._put_names(names, width)

    def _add_other(self, signal: Signal) -> None:
        """Add a signal that is not of the design."""
        buffer = Buffer(max(64, len(signal) // 8 + 1))
        self._others.append((signal, buffer))
        for path, low, width, names in parts_of(signal):
            if width:
                self._declare(("bench", str(signal.name)), path, width, names)
                self._library.recorder_piece(self._recorder, buffer.address, low, width)
                self._put_names(names, width)

    def _put(self, pieces: Pieces) -> None:
        compiled, put = self._engine.compiled, self._library.recorder_piece
        for piece in pieces:
            if piece[0] == "constant":
                for low in range(0, piece[2], 32):
                    part = min(32, piece[2] - low)
                    put(self._recorder, None, piece[1] >> low & ((1 << part) - 1), part)
                continue
            address, low = compiled.address_of(piece)
            put(self._recorder, address, low, piece[-1])

    def _put_names(self, names: dict[int, str] | None, width: int) -> None:
        for value, name in (names or {}).items():
            text = name.expandtabs().replace(" ", "_").encode()
            self._library.recorder_name(self._recorder, value & ((1 << width) - 1), text)

    def _write_header(self) -> None:
        lines = ["$comment Recorded by bentpipe_sim.native.Simulator $end", "$timescale 1 fs $end"]

        def scope(inside: dict[str, Any]) -> None:
            lines.extend(inside.get("", ()))
            for name, inner in inside.items():
                if name:
                    lines.append(f"$scope module {name} $end")
                    scope(inner)
                    lines.append("$upscope $end")

        scope(self._scopes)
        self._file.write("\n".join([*lines, "$enddefinitions $end", ""]))

    # What happens

    def sample(self, now: int) -> None:
        """End a point in time."""
        compiled = self._engine.compiled
        for name in self._groups:
            compiled.refresh(compiled.group(name))
        for signal, buffer in self._others:
            value = self._engine.get_value(signal) & ((1 << len(signal)) - 1)
            buffer.octets[:] = value.to_bytes(len(buffer.octets), "little")
        if self._library.recorder_sample(self._recorder, now) > _MUCH:
            self._flush()

    def _flush(self) -> None:
        self._file.write(self._library.recorder_text(self._recorder).decode())
        self._library.recorder_clear(self._recorder)

    def close(self, now: int) -> None:
        self._flush()
        self._file.write(f"#{now}\n")
        self._library.recorder_delete(self._recorder)
        self._file.close()


def _cut(pieces: Pieces, low: int, width: int) -> Pieces:
    """Return ``width`` bits from ``low`` on."""
    found, at = [], 0
    for piece in pieces:
        size = piece[-1]
        a, b = max(low, at), min(low + width, at + size)
        if a < b:
            if piece[0] == "constant":
                found.append(["constant", piece[1] >> (a - at) & ((1 << (b - a)) - 1), b - a])
            elif piece[0] == "output":
                found.append([*piece[:3], (piece[3] if len(piece) > 4 else 0) + a - at, b - a])
            else:
                found.append([*piece[:-2], piece[-2] + a - at, b - a])
        at += size
    return found


def _traced(traces: Any) -> Iterator[Signal]:
    """Yield the signals of a trace specification of Amaranth."""
    if isinstance(traces, ValueLike):
        value = Value.cast(traces)
        yield from () if isinstance(value, MemoryData._Row) else signals_of(value)
    elif isinstance(traces, list | tuple):
        for trace in traces:
            yield from _traced(trace)
    elif isinstance(traces, dict):
        yield from _traced([*traces.values()])
    elif hasattr(traces, "signature"):
        yield from _traced([value for _, _, value in traces.signature.flatten(traces)])
    elif not isinstance(traces, MemoryData):
        raise TypeError(f"{traces!r} is not a traceable object")
