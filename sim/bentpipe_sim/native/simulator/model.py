"""Compiled designs, kept by their netlists, and the state of one that is simulated."""

from __future__ import annotations

import ctypes
import dataclasses
import json
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

from bentpipe_hdl.amaranth_simulation import nir

from ...cache import Cache
from ...digests import digest, digest_of
from ...tools import CSRC, CXX_FLAGS, compiler, compiler_version, more_flags, run, uncollected
from .netlist import identity
from .source import HEADERS, MONITORS, PORTS, Map, Source, masks_of

__all__ = ["FAST", "SHORT", "Model", "State", "model_of"]

FAST, SHORT = "-O2", "-O0"
"""Degrees of optimisation. A clock of CRC-32 takes 3.6 times as long with -O1 as with -O2, one of a NIC 2.0 times. -O2
takes 20 to 35 % longer to compile (``python -m speed.simulator``). For some thousand clocks either is too long."""

Pieces = list[list[Any]]


@cache
def _makers() -> str:
    """Return the digest of all files that make a library of a netlist."""
    here = Path(__file__).parent
    return digest_of([*sorted(here.parent.glob("*.py")), *sorted(here.glob("*.py")), *(CSRC / h for h in HEADERS)])


_models: dict[str, Model] = {}


def model_of(netlist: nir.Netlist, shown: Iterable[int], optimization: str) -> Model:
    """Return the model of a netlist; it is compiled only if it is not in the cache. ``shown`` is as for
    :class:`.source.Source`."""
    shown = sorted(shown)
    key = digest(identity(netlist), repr(shown), _makers(), compiler_version(), *CXX_FLAGS, optimization)
    found = _models.get(key)
    if found is None:
        found = _models[key] = Model(key, lambda: Source(netlist, shown), optimization)
    return found


class Model:
    """A design's map and libraries.

    Members
    -------
    map : Map
    size : int
        Octets of a state.
    places : list of (int, int, int)
        Octet, size, and octets from row to row of each place in a state.
    begin : function
        ``begin(address)`` makes a state as it is at the beginning.
    """

    def __init__(self, key: str, source: Callable[[], Source], optimization: str):
        self.key, self._make, self._optimization = key, source, optimization
        self._source: Source | None = None
        made = Cache().make(f"design-{key}.json", self._write_map)
        self.map = Map(**json.loads(made.read_text()))
        masks = sorted(set(masks_of(self.map.clocks).values()))
        groups = [group for group in (PORTS, MONITORS) if self.map.outputs[group]]
        self._main = self._library("", masks, groups)
        self._clocks: dict[int, ctypes.CDLL] = dict.fromkeys(masks, self._main)
        self._groups: dict[str, ctypes.CDLL] = dict.fromkeys(groups, self._main)
        self.size = ctypes.c_uint64.in_dll(self._main, "bentpipe_size").value
        self.places = _table(self._main, "bentpipe_places", 3)
        self.begin = _function(self._main, "bentpipe_begin")

    def edge(self, mask: int) -> Any:
        """Return the function of a :attr:`Buffer.pointer` that is an edge of these clocks."""
        return _quick(self._of_clock(mask), f"clock_{mask}_")

    def clocks(self, mask: int) -> Any:
        """Return the function for so many such edges in sequence."""
        return _function(self._of_clock(mask), f"clocks_{mask}_", ctypes.c_uint64)

    def _of_clock(self, mask: int) -> ctypes.CDLL:
        if mask not in self._clocks:
            self._clocks[mask] = self._library(f"-{mask}", [mask], [])
        return self._clocks[mask]

    def group(self, group: str) -> tuple[Any, int, list[tuple[int, ...]]]:
        """Return the function that computes a group of values, and their places.

        It takes the pointers of a state and of the values; the places are octet and size of each.
        """
        if group not in self._groups:
            self._groups[group] = self._library(f"-{group}", [], [group])
        library = self._groups[group]
        size = ctypes.c_uint64.in_dll(library, f"size_of_{group}").value
        function = _quick(library, f"work_out_{group}_")
        return function, size, _table(library, f"outputs_of_{group}", 2)

    def source(self) -> Source:
        if self._source is None:
            with uncollected():
                self._source = self._make()
        return self._source

    def _write_map(self, folder: Path) -> Path:
        (folder / "map.json").write_text(json.dumps(dataclasses.asdict(self.source().map)))
        return folder / "map.json"

    def _library(self, suffix: str, masks: Iterable[int], groups: Iterable[str]) -> ctypes.CDLL:
        def build(folder: Path) -> Path:
            written, made = folder / "design.cpp", folder / "design.so"
            written.write_text(self.source().library(masks, groups))
            command = [compiler(), *CXX_FLAGS, self._optimization, *more_flags(), f"-I{CSRC}", str(written)]
            run([*command, "-o", str(made)], "compiling a design")
            return made

        return ctypes.CDLL(str(Cache().make(f"design-{self.key}{suffix}.so", build)))


def _function(library: ctypes.CDLL, name: str, *more: Any) -> Any:
    found = library[name]
    found.argtypes, found.restype = [ctypes.c_void_p, *more], None
    return found


def _quick(library: ctypes.CDLL, name: str) -> Any:
    """Return a function that takes pointers, for short calls.

    It keeps the interpreter's lock and converts no argument: a call takes 0.09 us instead of 0.17 (CPython 3.11,
    ``timeit``).
    """
    found = ctypes.PyDLL(library._name)[name]
    found.restype = None
    return found


def _table(library: ctypes.CDLL, name: str, columns: int) -> list[tuple[int, ...]]:
    """Return the rows of numbers of a table; the last one, which is left out, is all 0 (nothing has size 0)."""
    row, found = ctypes.c_uint64 * columns, []
    address = ctypes.addressof(row.in_dll(library, name))
    while (line := tuple(row.from_address(address))) and line[1]:
        found.append(line)
        address += ctypes.sizeof(row)
    return found


class Buffer:
    """Octets at an address that is a multiple of 64, and values in them."""

    def __init__(self, size: int):
        size += -size % 64
        self._memory = (ctypes.c_uint8 * (size + 64))()
        skip = -ctypes.addressof(self._memory) % 64
        self.address = ctypes.c_void_p(ctypes.addressof(self._memory) + skip)
        self.pointer = ctypes.byref(self._memory, skip)
        self.octets = memoryview(self._memory).cast("B")[skip : skip + size]
        self.views = {2**k: self.octets.cast(kind) for k, kind in enumerate("BHIQ")}  # type: ignore[call-overload]

    def reader(self, octet: int, size: int) -> Callable[[], int]:
        """Return a function that gives the value there."""
        view = self.views.get(size)
        if view is None:
            octets = self.octets[octet : octet + size]
            return lambda: int.from_bytes(octets, "little")
        at = octet // size
        return lambda: view[at]

    def writer(self, octet: int, size: int) -> Callable[[int], None]:
        view = self.views.get(size)
        if view is None:
            octets = self.octets[octet : octet + size]

            def write_wide(value: int) -> None:
                octets[:] = value.to_bytes(size, "little")

            return write_wide
        at = octet // size

        def write(value: int) -> None:
            view[at] = value

        return write


class Group:
    """Values that are worked out together when one of them is asked for and the state is another one."""

    def __init__(self, model: Model, group: str, state: Buffer):
        function, size, self._outputs = model.group(group)
        self._buffer = Buffer(size)
        self.stale = True
        self.work_out = partial(function, state.pointer, self._buffer.pointer)

    def reader(self, k: int) -> Callable[[], int]:
        return self._buffer.reader(*self._outputs[k])

    def address_of(self, k: int) -> int:
        return (self._buffer.address.value or 0) + self._outputs[k][0]

    def view(self, k: int) -> tuple[Any, int]:
        """Return an array that a value is in, and its place there; None: it is wider than 64 bits."""
        octet, size = self._outputs[k]
        return self._buffer.views.get(size), octet // size


class State:
    """A state of a model.

    ``stale`` says that the state is another one than when the values that the top component shows were worked out.
    """

    __slots__ = ("_groups", "_ports", "address", "buffer", "model", "stale")

    def __init__(self, model: Model):
        self.model, self.buffer = model, Buffer(model.size)
        self.address = self.buffer.address
        self._groups: dict[str, Group] = {}
        self._ports: Group | None = None
        self.begin()

    def begin(self) -> None:
        self.model.begin(self.address)
        self.stale = True

    def group(self, name: str) -> Group:
        if name not in self._groups:
            self._groups[name] = Group(self.model, name, self.buffer)
        return self._groups[name]

    def settle(self) -> None:
        """Mark all groups as out of date."""
        self.stale = False
        for group in self._groups.values():
            group.stale = True

    def refresh(self, group: Group) -> None:
        """Work out a group's values again, if they are out of date."""
        if self.stale:
            self.settle()
        if group.stale:
            group.work_out()
            group.stale = False

    def reader(self, pieces: Pieces) -> Callable[[], int]:
        """Return a function that gives a value, without a sign."""
        if len(pieces) == 1:
            return self._piece(pieces[0])
        parts, wide, base, at = [], [], 0, 0
        for piece in pieces:
            if piece[0] == "constant":
                base |= piece[1] << at
            else:  # outputs are alone
                octet, size, low, width, _ = self._place(piece)
                view, mask = self.buffer.views.get(size), (1 << width) - 1
                if view is None:
                    wide.append((self._piece(piece), at))
                else:
                    parts.append((view, octet // size, low, mask, at))
            at += piece[-1]

        def read() -> int:
            value = base
            for view, index, low, mask, at in parts:
                value |= (view[index] >> low & mask) << at
            for part, at in wide:
                value |= part() << at
            return value

        return read

    def _piece(self, piece: list[Any]) -> Callable[[], int]:
        match piece:
            case ["constant", value, _]:
                return lambda: value
            case ["output", name, k, _]:
                return self._output(self.group(name), k)
        octet, size, low, width, whole = self._place(piece)
        read, view, mask = self.buffer.reader(octet, size), self.buffer.views.get(size), (1 << width) - 1
        if whole:
            return read
        if view is None:
            return lambda: read() >> low & mask
        index = octet // size
        return lambda: view[index] >> low & mask

    def _place(self, piece: list[Any]) -> tuple[int, int, int, int, bool]:
        """Return octet, size, lowest bit and width of a piece, and whether it is all of the stored number."""
        match piece:
            case ["place", place, low, width]:
                octet, size, _ = self.model.places[place]
            case ["row", place, row, low, width]:
                octet, size, step = self.model.places[place]
                octet += row * step
            case _:
                raise AssertionError(piece)
        return octet, size, low, width, not low and width == self.model.map.widths[piece[1]]

    def _output(self, group: Group, k: int) -> Callable[[], int]:
        view, at, read = *group.view(k), group.reader(k)

        def output() -> int:
            if self.stale or group.stale:
                self.refresh(group)
            return read()

        def narrow() -> int:
            if self.stale or group.stale:
                self.refresh(group)
            return view[at]

        return output if view is None else narrow

    def writer(self, pieces: Pieces) -> Callable[[int], None] | None:
        """Return a function that writes a value, which has no bits above its own; None: it is not in the state."""
        if any(piece[0] in ("constant", "output") for piece in pieces):
            return None
        parts, at = [], 0
        for piece in pieces:
            octet, size, low, width, _ = self._place(piece)
            parts.append((self._field(octet, size, low, width), at, (1 << width) - 1))
            at += width
        if len(parts) == 1:
            return parts[0][0]

        def write(value: int) -> None:
            for part, at, mask in parts:
                part(value >> at & mask)

        return write

    def _field(self, octet: int, size: int, low: int, width: int) -> Callable[[int], None]:
        read, write = self.buffer.reader(octet, size), self.buffer.writer(octet, size)
        mask = ((1 << width) - 1) << low
        return lambda value: write(read() & ~mask | value << low)

    def address_of(self, piece: list[Any]) -> tuple[int, int]:
        """Return the address of what a piece is part of, and its lowest bit there."""
        if piece[0] == "output":
            return self.group(piece[1]).address_of(piece[2]), piece[3] if len(piece) > 4 else 0
        octet, _, low, _, _ = self._place(piece)
        return (self.address.value or 0) + octet, low

    def size_of(self, piece: list[Any]) -> int:
        """Return the octets of what a piece is part of."""
        return self._place(piece)[1]

    def whole(self, piece: list[Any]) -> Callable[[int], None]:
        """Return a function that writes a piece that is a whole input."""
        octet, size, *_ = self._place(piece)
        return self.buffer.writer(octet, size)
