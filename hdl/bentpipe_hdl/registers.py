"""Registers as data: what a node's registers are, access to them by name, and maps of them for other tools.

A node kind declares its registers once, in its ``control.py``. From this come the decoding in RTL
(:mod:`bentpipe_hdl.csr`), access by name from Python (:class:`Registers`), the pages of the manual, and the maps in
JSON and in LiteX's CSV. Nothing here needs Amaranth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, overload

__all__ = ["ADDR_BITS", "Bus", "Field", "Recorder", "Register", "RegisterMap", "Registers", "Table", "check_vcs"]

ADDR_BITS = 20

_ACCESS = {"rw": "read and written", "ro": "read", "wo": "written"}


class Bus(Protocol):
    """A node's registers as a driver accesses them, wherever the node is: words of 32 bits at addresses of 20 bits.

    A bus may also have ``write_all(addr, words)``, which writes a list of words from an address on, in order.
    """

    def read(self, addr: int) -> int:
        """Return the word at ``addr``."""
        ...

    def write(self, addr: int, value: int) -> None:
        """Write the word at ``addr``."""
        ...


class Recorder:
    """A bus that keeps what is written, as (address, word) in ``writes``; there is nothing to be read."""

    def __init__(self) -> None:
        self.writes: list[tuple[int, int]] = []

    def write(self, addr: int, value: int) -> None:
        self.writes.append((addr, value))

    def read(self, addr: int) -> int:
        raise ValueError("writes are only recorded: nothing can be read")


def _with_unit(text: str, unit: str) -> str:
    """Return a text with its unit behind it, unless the text begins with the unit."""
    return text if unit and text.startswith(unit) else ", ".join(filter(None, (text, unit)))


@dataclass(frozen=True)
class Field:
    """A part of a register.

    Members
    -------
    name : str
    low, width : int
        Its lowest bit, and how many it has.
    text, unit : str
        What it is, and in what.
    """

    name: str
    low: int
    width: int = 1
    text: str = ""
    unit: str = ""

    @cached_property
    def mask(self) -> int:
        return (1 << self.width) - 1


@dataclass(frozen=True)
class Register:
    """A register, or a table of them.

    Members
    -------
    name : str
        In lower case.
    addr : int
        Of its first word, in its map. A table is aligned to its size, rounded up to a power of two; so is what has more
        than 32 bits: it takes two words an entry, the low one first, and is written only.
    text : str
        What it is.
    access : "rw", "ro" or "wo"
        "wo" reads as 0.
    width : int
        Bits, 1 to 64.
    count : int, optional
        Entries of a table; None: it is none.
    unit : str
        "ticks", "cells", "ticks / 2**16" …
    reset : int, optional
        Its value after reset, of each entry; None: it depends on what comes in.
    most : int, optional
        A larger value is taken as this.
    fields : tuple of Field
        Its parts, if it has any.
    on_write : str
        What a write does to a register that keeps no written value, or besides.
    """

    name: str
    addr: int
    text: str
    access: str = "rw"
    width: int = 32
    count: int | None = None
    unit: str = ""
    reset: int | None = 0
    most: int | None = None
    fields: tuple[Field, ...] = ()
    on_write: str = ""

    def __post_init__(self) -> None:
        what = f"register {self.name}"
        if self.access not in _ACCESS:
            raise ValueError(f"{what}: access is one of {', '.join(_ACCESS)}, not {self.access!r}")
        if not 1 <= self.width <= 64:
            raise ValueError(f"{what}: a width is from 1 to 64 bits, not {self.width!r}")
        if self.width > 32 and self.access != "wo":
            raise ValueError(f"{what}: what has more than 32 bits can be written only, not {_ACCESS[self.access]}")
        if self.count is not None and self.count < 1:
            raise ValueError(f"{what}: a table has an entry or more, not {self.count!r}")
        if self.reset is None and self.access != "ro":
            raise ValueError(f"{what}: what is written has a value after reset")
        if not 0 <= (self.reset or 0) < 1 << self.width:
            raise ValueError(f"{what}: it can't be {self.reset!r} after reset, with {self.width} bits")
        if self.addr < 0 or self.addr + self.size > 1 << ADDR_BITS:
            raise ValueError(f"{what}: addresses have {ADDR_BITS} bits, and {self.addr:#x} has no place for it")
        if self.addr & ((1 << self.index_bits) - 1):
            raise ValueError(f"{what} at {self.addr:#06x} is not aligned to its size")
        top = 0
        for part in sorted(self.fields, key=lambda part: part.low):
            if part.low < top or part.low + part.width > self.width:
                raise ValueError(f"{what}: field {part.name} overlaps another, or the end")
            top = part.low + part.width

    @cached_property
    def words(self) -> int:
        """Words an entry."""
        return 1 if self.width <= 32 else 2

    @property
    def size(self) -> int:
        """Words in all."""
        return self.words * (self.count or 1)

    @property
    def index_bits(self) -> int:
        """Bits of the address that tell its words apart."""
        return (self.size - 1).bit_length()

    def field(self, name: str) -> Field:
        """Return the field with this name.

        Raises
        ------
        AttributeError
            There is none.
        """
        try:
            return self._fields[name]
        except KeyError:
            has = _list(self._fields)
            raise AttributeError(f"register {self.name} has no field {name!r}; it has {has}") from None

    @cached_property
    def _fields(self) -> dict[str, Field]:
        return {part.name: part for part in self.fields}

    @cached_property
    def _most(self) -> int:
        """The largest number that may be written."""
        width = self.width if self.most is None else 32 * self.words  # what is too large is taken as ``most``
        return (1 << width) - 1

    def describe(self) -> str:
        """Return text, unit, effect of a write, and fields, as the manual has them in a cell of a table."""
        text = _with_unit(self.text, self.unit)
        if self.on_write:
            text += f" On write: {self.on_write}." if text.endswith(".") else f"; on write: {self.on_write}"
        for part in self.fields:
            place = f"bit {part.low}" if part.width == 1 else f"bits {part.low}-{part.low + part.width - 1}"
            meaning = _with_unit(part.text, part.unit)
            text += f"<br>{place}: `{part.name}`" + (f", {meaning}" if meaning else "")
        return text

    def pack(self, value: int | Mapping[str, int]) -> int:
        """Return the value of an entry, given as a number or by its fields; those that are not named are 0.

        Raises
        ------
        ValueError
            It has more bits than the register or the field.
        """
        if isinstance(value, int) or not isinstance(value, Mapping):
            word = int(value)
            if not 0 <= word <= self._most:
                raise ValueError(f"register {self.name} takes 0 to {self._most}, not {word}")
            return word
        word = 0
        for name, part in value.items():
            of, given = self.field(name), int(part)
            if not 0 <= given <= of.mask:
                raise ValueError(f"field {self.name}.{name} takes 0 to {of.mask}, not {given}")
            word |= given << of.low
        return word


def check_vcs(vcs: int) -> None:
    """Raise ValueError unless a node can be built for so many VCs."""
    if vcs not in [1 << k for k in range(1, 13)]:
        raise ValueError(f"vcs must be a power of two from 2 to 4096, not {vcs!r}")


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


IDENTITY = 0x00F0


@dataclass(frozen=True)
class RegisterMap:
    """All registers of a node.

    Members
    -------
    kind : str
        Of node: "switch" …
    magic : str
        Four letters, with which the node says what it is; "": a part of a node, which does not.
    version : int
        Of this map. It changes whenever a register changes or goes.
    shape : dict
        What the node was built with, by name: numbers of 32 bits.
    registers : tuple of Register
        ``magic``, ``version`` and ``shape`` are among them (from 0x00F0 on).
    windows : dict
        Maps of the node's parts, by name: where they begin, and the map.
    """

    kind: str
    magic: str
    version: int
    shape: dict[str, int]
    registers: tuple[Register, ...]
    windows: dict[str, tuple[int, RegisterMap]] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, Register]:
        """The registers, without those of windows."""
        return {each.name: each for each in self.registers}

    def __post_init__(self) -> None:
        if self.magic:
            parts = ", ".join(self.shape)
            own = (
                Register("magic", IDENTITY, f"'{self.magic}'", "ro", reset=int.from_bytes(self.magic.encode(), "big")),
                Register("version", IDENTITY + 1, "version of this map", "ro", reset=self.version),
                *(
                    Register(
                        "shape", IDENTITY + 8, f"parameters with which the node was built: {parts}", "ro", count=count
                    )
                    for count in (len(self.shape),)
                    if count
                ),
            )
            object.__setattr__(self, "registers", (*own, *self.registers))
        taken: list[Register] = []
        for each in sorted(self.registers, key=lambda each: each.addr):
            if taken and each.addr < taken[-1].addr + taken[-1].size:
                raise ValueError(f"register {each.name} at {each.addr:#06x} overlaps {taken[-1].name}")
            taken.append(each)
        names = [*(each.name for each in self.registers), *self.windows]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two registers of {self.kind} are called {twice}")

    def __getitem__(self, name: str) -> Register:
        """Return the register with this name; KeyError says which there are."""
        for each in self.registers:
            if each.name == name:
                return each
        raise KeyError(f"{self.kind} has no register {name!r}; it has {_list(each.name for each in self.registers)}")

    def walk(self, base: int = 0, prefix: str = "") -> Iterator[tuple[str, int, Register]]:
        """Yield all registers with those of the windows: full name, address, register; by address."""
        for each in sorted(self.registers, key=lambda each: each.addr):
            yield prefix + each.name, base + each.addr, each
        for name, (start, inner) in self.windows.items():
            yield from inner.walk(base + start, f"{prefix}{name}.")

    def to_json(self) -> dict[str, Any]:
        """Return the map as data for JSON; addresses and sizes in words of 32 bits."""
        found = []
        for name, addr, each in self.walk():
            entry: dict[str, Any] = {
                "name": name, "address": addr, "access": each.access, "width": each.width, "count": each.count,
                "unit": each.unit, "reset": each.reset, "most": each.most, "on_write": each.on_write, "text": each.text,
            }  # fmt: skip
            entry["fields"] = [
                {"name": f.name, "low": f.low, "width": f.width, "unit": f.unit, "text": f.text} for f in each.fields
            ]
            found.append(entry)
        return {
            "node": self.kind, "magic": self.magic, "version": self.version, "shape": self.shape,
            "address_unit": 4, "registers": found,
        }  # fmt: skip

    def to_text(self) -> str:
        """Return the map as lines to read."""
        shape = ", ".join(f"{name} = {value}" for name, value in self.shape.items())
        lines = [f"{self.kind}, version {self.version}: {shape}"]
        for name, addr, each in self.walk():
            last = f"-{addr + each.size - 1:05x}" if each.size > 1 else ""
            first, *parts = each.describe().replace("`", "").split("<br>")
            lines.append(f"  {addr:05x}{last:6}  {each.access}  {name:20}  {first}")
            lines += [f"{'':37}  {part}" for part in parts]
        return "\n".join(lines) + "\n"

    def to_csv(self, base: int = 0) -> str:
        """Return the map as LiteX's ``csr.csv``: byte addresses from ``base`` on, sizes in words of 32 bits."""
        lines = [f"csr_base,{self.kind},{base:#010x},,"]
        for name, addr, each in self.walk():
            full = f"{self.kind}_{name.replace('.', '_')}"
            mode = "ro" if each.access == "ro" else "rw"  # LiteX has no registers that cannot be read
            lines.append(f"csr_register,{full},{base + 4 * addr:#010x},{each.size},{mode}")
        for name, value in (("version", self.version), *self.shape.items()):
            lines.append(f"constant,{self.kind}_{name},{value},,")
        return "\n".join(lines) + "\n"


class Registers:
    """A node's registers by name.

    ``registers.capacity`` reads a register and ``registers.capacity = 100`` writes it; ``registers.vc_policy[5]`` is an
    entry of a table, ``registers.vc_policy[5].limit`` a field of it; ``registers.end0.drift`` is in a window. What
    cannot be read from the node is what was last written through this object (before that: the value after reset), so
    that single fields of it can be written as well; a node that is reset needs another object.

    Parameters
    ----------
    bus : Bus
    registers : RegisterMap
    base : int
        Where the map begins on the bus.

    Raises
    ------
    AttributeError
        There is no such register, window or field, or it cannot be written.
    IndexError
        A table has no such entry.
    ValueError
        A value has more bits than the register or the field.
    """

    def __init__(self, bus: Bus, registers: RegisterMap, base: int = 0):
        kept = self.__dict__
        kept["_bus"], kept["_base"], kept["map"] = bus, base, registers
        kept["_written"] = {}
        kept["_known"] = registers.by_name
        for name, (start, inner) in registers.windows.items():
            kept[name] = Registers(bus, inner, base + start)

    def _find(self, name: str) -> Register:
        try:
            return self._known[name]
        except KeyError:
            has = _list((*self._known, *self.map.windows))
            raise AttributeError(f"{self.map.kind} has no register {name!r}; it has {has}") from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by pickle, of an object that has nothing yet
            raise AttributeError(name)
        register = self._find(name)
        if register.count is not None:
            return Table(self, register)
        return Entry(self, register, 0) if register.fields else self.get(register)

    def __setattr__(self, name: str, value: Any) -> None:
        register = self._find(name)
        if register.count is not None:
            raise AttributeError(f"register {name} is a table: write its entries")
        self.put(register, value)

    def get(self, register: Register, index: int = 0) -> int:
        """Return the value of an entry."""
        return self.get_all(register, range(index, index + 1))[0]

    def get_all(self, register: Register, indices: range) -> list[int]:
        """Return the values of some entries."""
        if register.access == "wo":
            return [self._written.get((register.name, k), register.reset or 0) for k in indices]
        read, first = self._bus.read, self._base + register.addr  # what can be read has a word an entry
        return [read(first + k) for k in indices]

    def put(self, register: Register, value: int | Mapping[str, int], index: int = 0) -> None:
        """Write an entry: a number, or its fields by name."""
        if register.access == "ro" and not register.on_write:
            raise AttributeError(f"register {register.name} can't be written")
        word = register.pack(value)
        addr = self._base + register.addr + index * register.words
        self._bus.write(addr, word & 0xFFFFFFFF)
        if register.words == 2:
            self._bus.write(addr + 1, word >> 32)
        if register.access == "wo":
            self._written[register.name, index] = word

    def put_all(self, register: Register, values: Sequence[int]) -> None:
        """Write all entries of a table, each a number, in order."""
        words = list(map(int, values))
        if len(words) != register.count:
            raise ValueError(f"register {register.name} has {register.count} entries, not {len(words)}")
        register.pack(min(words))
        register.pack(max(words))
        if register.access == "ro" and not register.on_write:
            raise AttributeError(f"register {register.name} can't be written")
        halves = [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)] if register.words == 2 else words
        self._write_all(self._base + register.addr, halves)
        if register.access == "wo":
            for key in [key for key in self._written if key[0] == register.name]:
                del self._written[key]
            self._written.update(
                {(register.name, index): word for index, word in enumerate(words) if word != register.reset}
            )

    def _write_all(self, addr: int, words: list[int]) -> None:
        together = getattr(self._bus, "write_all", None)
        if together is not None:
            together(addr, words)
            return
        for index, word in enumerate(words):
            self._bus.write(addr + index, word)

    def follow(self, other: Registers) -> None:
        """Take over the values last written through ``other`` to registers that cannot be read from the node."""
        self._written.update(other._written)
        for name in self.map.windows:
            self.__dict__[name].follow(other.__dict__[name])


class Entry:
    """A register or an entry of a table that has fields: each is an attribute. As a number it is the whole value."""

    _registers: Registers
    _register: Register
    _index: int

    def __init__(self, registers: Registers, register: Register, index: int):
        kept = self.__dict__
        kept["_registers"], kept["_register"], kept["_index"] = registers, register, index

    def __int__(self) -> int:
        return self._registers.get(self._register, self._index)

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> int:
        part = self._register.field(name)
        return int(self) >> part.low & part.mask

    def __setattr__(self, name: str, value: int) -> None:
        part = self._register.field(name)
        kept = int(self) & ~(part.mask << part.low)
        self._registers.put(self._register, kept | self._register.pack({name: value}), self._index)


class Table:
    """A table of registers, by index; a slice is a list of numbers, and ``[:]`` can be written."""

    def __init__(self, registers: Registers, register: Register):
        self._registers, self._register = registers, register

    def __len__(self) -> int:
        return self._register.count or 1

    def _place(self, index: int) -> int:
        if not 0 <= index < len(self):
            raise IndexError(f"register {self._register.name} has entries 0 to {len(self) - 1}, not {index}")
        return index

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._registers.get_all(self._register, range(len(self))[index])
        place = self._place(index)
        if self._register.fields:
            return Entry(self._registers, self._register, place)
        return self._registers.get(self._register, place)

    @overload
    def __setitem__(self, index: int, value: int | Mapping[str, int]) -> None: ...

    @overload
    def __setitem__(self, index: slice, value: Sequence[int]) -> None: ...

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            if index != slice(None):
                raise IndexError(f"register {self._register.name}: of slices only [:] can be written")
            self._registers.put_all(self._register, value)
        else:
            self._registers.put(self._register, value, self._place(index))
