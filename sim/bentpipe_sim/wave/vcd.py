"""A value change dump (IEEE 1364-2005 clause 18) of a component in Amaranth's simulator."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from amaranth.hdl import Value

from bentpipe_hdl.amaranth_private import Simulated

__all__ = ["Vcd"]

_FIRST, _COUNT = 33, 94
"""First code and number of the characters of which identifiers consist."""

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z_0-9$]*")
"""Identifiers that need no backslash (clause 3.7.1)."""

Kept = list[tuple[str, Any]]
"""A signal, or a row of a memory: each part's code and what it is."""


class Vcd:
    """The file, times in ps. What changes between two calls of :meth:`put` is there at the later one, without what was
    there for a moment only. Values are bits; those that have names are texts, which GTKWave and Surfer know. Of a
    memory it has the rows that change.

    It is a context, and the file is there after :meth:`end`.
    """

    def __init__(self, file: Path, bench: Simulated, comment: str):
        self._file, self._bench, self._comment = file, bench, comment
        self._body = tempfile.TemporaryFile("w+", dir=file.parent, encoding="ascii")  # noqa: SIM115 (__exit__ closes it)
        self._kept: dict[Any, Kept] = {}
        self._declared: list[tuple[tuple[str, ...], str]] = []
        """Modules, and what is declared there."""
        self._first: list[str] = []
        self._last: dict[str, str] = {}
        self._before: dict[Any, list[int]] = {}
        self._number = {memory: number for number, (memory, _) in enumerate(bench.memories)}
        self._begin = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._body.close()

    def begin(self, time: int, rows: dict[Any, list[int]]) -> None:
        """Begin the dump with all signals as they are now; ``rows`` are the present rows of memories."""
        self._begin, self._before = time, rows
        for signal, scopes in self._bench.scopes.items():
            if len(signal):
                self._keep(id(signal), scopes, self._bench.parts(signal))
        self._bench.changed.clear()
        self._bench.rows.clear()

    def put(self, time: int) -> None:
        """Write the values that changed since the last call."""
        bench = self._bench
        lines = [line for signal in bench.changed for line in self._changes(self._kept.get(id(signal), []))]
        for memory, row in sorted(bench.rows, key=lambda each: (self._number[each[0]], each[1])):
            key = id(memory), row
            if key not in self._kept:
                before = self._before[memory][row] if memory in self._before else 0
                if before == bench.row(memory, row):
                    continue
                scope = bench.memories[self._number[memory]][1]
                with bench.before(memory, row, before):
                    self._keep(key, [(*scope[:-1], f"{scope[-1]}[{row}]")], bench.parts_of_row(memory, row))
            lines += self._changes(self._kept[key])
        bench.changed.clear()
        bench.rows.clear()
        if lines:
            self._body.write("\n".join((f"#{time}", *sorted(lines), "")))

    def end(self, time: int) -> None:
        """Write the file; what is last lasts until then."""
        self._body.write(f"#{time}\n")
        self._body.seek(0)
        with self._file.open("w", encoding="ascii", errors="replace") as out:
            out.writelines(f"{line}\n" for line in self._head())
            shutil.copyfileobj(self._body, out)

    def _keep(self, key: Any, scopes: Iterable[tuple[str, ...]], parts: Iterable[tuple[str, Any]]) -> None:
        """Dump these parts of a signal at these places from now on; they have their first values now."""
        kept: Kept = []
        for path, what in parts:
            if isinstance(what, Value) and not len(what):
                continue
            code = _code(len(self._last))
            kept.append((code, what))
            for *scope, name in scopes:
                escaped = "" if _SIMPLE.fullmatch(name + path) else "\\"
                kind, width = ("wire", len(what)) if isinstance(what, Value) else ("string", 1)
                self._declared.append((tuple(scope), f"$var {kind} {width} {code} {escaped}{name}{path} $end"))
            self._last[code] = self._line(code, what)
            self._first.append(self._last[code])
        self._kept[key] = kept

    def _changes(self, kept: Kept) -> Iterator[str]:
        for code, what in kept:
            line = self._line(code, what)
            if line != self._last[code]:
                self._last[code] = line
                yield line

    def _line(self, code: str, what: Any) -> str:
        if not isinstance(what, Value):
            return f"s{self._bench.text(what).replace(' ', '_') or '_'} {code}"
        value = self._bench.get(what)
        return f"{value}{code}" if len(what) == 1 else f"b{value:b} {code}"

    def _head(self) -> Iterator[str]:
        yield f"$comment {self._comment} $end"
        yield "$timescale 1 ps $end"
        above: tuple[str, ...] = ()
        for scope, line in sorted(self._declared, key=lambda each: each[0]):
            shared = next(
                (k for k, (a, b) in enumerate(zip(above, scope, strict=False)) if a != b), min(len(above), len(scope))
            )
            yield from ["$upscope $end"] * (len(above) - shared)
            yield from (f"$scope module {name} $end" for name in scope[shared:])
            above = scope
            yield line
        yield from ["$upscope $end"] * len(above)
        yield "$enddefinitions $end"
        yield f"#{self._begin}"
        yield "$dumpvars"
        yield from self._first
        yield "$end"


def _code(number: int) -> str:
    text = ""
    while True:
        number, digit = divmod(number, _COUNT)
        text += chr(_FIRST + digit)
        if not number:
            return text
        number -= 1
