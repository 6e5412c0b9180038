"""The layout of registers and memories in a node's class: values used together share few cache lines.

Registers that clocks mostly read or write are neighbours. Memories whose rows of the same number are used together
become one array of rows, as a VC's row in hardware would be one word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .design import Design, Memory, Register, topological
from .graph import Bits

__all__ = ["Rows", "declared", "ordered", "register_bits", "rows", "stored_type", "together"]

LINE = 64
"""Octets of a line."""


def stored_bits(width: int) -> int:
    """Return the bits that a port or a memory's field of this width takes in storage."""
    return next((bits for bits in (8, 16, 32, 64) if width <= bits), (width + 63) // 64 * 64)


def stored_type(width: int) -> str:
    """Return the C++ type in which so many bits are stored."""
    bits = stored_bits(width)
    return f"uint{bits}_t" if bits <= 64 else f"W<{bits // 64}>"


@dataclass(frozen=True)
class Rows:
    """The place of a memory: an array member; after its index, the member of a row for each field, or nothing."""

    array: str
    fields: tuple[str, ...]

    def place(self, row: str, field: int) -> str:
        return f"{self.array}[{row}]{self.fields[field]}"


def together(memories: Sequence[Memory], clocks: Iterable[Design]) -> list[list[Memory]]:
    """Group all memories: those whose same rows are used in one of these clocks are in one list."""
    found = {memory: [memory] for memory in memories}
    for design in clocks:
        first: dict[tuple[int, Bits], Memory] = {}
        wanted: list[tuple[Memory, Bits]] = [(write.memory, write.address) for write in design.writes]
        wanted += [(node.data[0], node.args[0]) for node in topological(design.roots()) if node.op == "read"]
        for memory, address in wanted:
            one, other = found[first.setdefault((_depth(memory), address), memory)], found[memory]
            if one is not other:
                one += other
                found.update(dict.fromkeys(other, one))
    return [sorted(each, key=memories.index) for each in {id(each): each for each in found.values()}.values()]


def rows(groups: Iterable[list[Memory]]) -> dict[Memory, Rows]:
    """Return the rows that memories of the same group share, by memory."""
    found = {}
    for group in groups:
        array = group[0].name
        for memory in group:
            if len(_fields(group)) == 1:
                names = ("",)
            else:
                names = tuple(f".{_field(memory, k)}" for k in range(len(memory.fields)))
            found[memory] = Rows(array, names)
    return found


def declared(group: list[Memory], zeroed: bool = False) -> str:
    """Return the declaration of the members that hold memories.

    With ``zeroed`` its octets are 0 before the object is constructed there, so pages that are never written take no
    memory.
    """
    initial = "" if zeroed else "{}"
    array, fields = group[0].name, _fields(group)
    # An address that is out of range in a clock that does not use what is read is no fault
    depth = _depth(group[0])
    octets = sum(stored_bits(width) for width, _ in fields) // 8
    if len(fields) == 1:
        return f"alignas({_aligned(octets * depth)}) {stored_type(fields[0][0])} {array}[{depth}]{initial};"
    fields.sort(key=lambda field: -stored_bits(field[0]))
    inside = " ".join(f"{stored_type(width)} {name};" for width, name in fields)
    return f"struct alignas({_aligned(octets)}) {array.upper()} {{ {inside} }} {array}[{depth}]{initial};"


def register_bits(register: Register) -> int:
    """Return the bits in which a register is stored.

    Numbers of fewer bits than the processor computes with would cost masks.
    """
    return stored_bits(max(register.width, 32) if register.width > 1 else 1)


def ordered(registers: Iterable[Register], heat: Mapping[Register, float]) -> list[Register]:
    """Order registers by cache lines.

    Those used most often are in the first line; within each line the large ones come first.
    """
    found: list[Register] = []
    line: list[Register] = []
    left = LINE
    for register in sorted(registers, key=lambda register: -heat.get(register, 0)):
        octets = register_bits(register) // 8
        if octets > left:
            found += sorted(line, key=lambda register: -register_bits(register))
            line, left = [], LINE
        line.append(register)
        left -= octets
    return found + sorted(line, key=lambda register: -register_bits(register))


def _aligned(octets: int) -> int:
    """Return the alignment that needs the fewest cache lines."""
    return min(LINE, 1 << (octets - 1).bit_length())


def _depth(memory: Memory) -> int:
    return 1 << max(0, memory.depth - 1).bit_length()


def _fields(group: Iterable[Memory]) -> list[tuple[int, str]]:
    """Return the widths and names of the fields of memories."""
    return [(memory.fields[k][1], _field(memory, k)) for memory in group for k in range(len(memory.fields))]


def _field(memory: Memory, k: int) -> str:
    return f"{memory.name}_{k}"
