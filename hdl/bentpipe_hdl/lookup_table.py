"""A look-up's registers, and where software puts its entries: from (port, VPI, VCI) to the index of a VC.

Each VC has two places where its entry may be, one in each of two memories, so that any set of VCs fits up to the
node's number of them (cuckoo hashing; Pagh and Rodler 2004). The hash functions are multiplications with odd numbers
that software chooses (multiply-shift; Dietzfelbinger et al. 1997): of two different VCs, at most two in ``slots`` pairs
of multipliers give the same place, whatever the VCs are.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from bentpipe_hdl.registers import Field, Register, Registers

__all__ = ["KEY_BITS", "LookupTable", "lookup_registers", "lookup_table", "slot_bits"]

KEY_BITS = 32
DRAWS = 1000
"""Multipliers that are tried. At a full table one draw in four fails for the worst sets known, a few in a hundred for
others; a set for which all fail is not expected to exist."""


def slot_bits(entries: int) -> int:
    """Return the bits of an index into one of the two memories: both together have four slots an entry."""
    return entries.bit_length()


def lookup_registers(entries: int, *, paths: bool = False) -> tuple[Register, ...]:
    """Return the registers of a node's look-up, or of its second one: of ``paths``."""
    name, multiplier_addr, addr = ("vp_lookup", 0x0500, 0xE0000) if paths else ("lookup", 0x0018, 0x80000)
    what, vci = ("port and VPI", ()) if paths else ("VPI/VCI", (Field("vci", 0, 16),))
    return (
        Register(
            f"{name}_multiplier", multiplier_addr,
            f"hash multiplier of each memory of the look-up by {what}, odd", "rw", count=2, reset=1,
        ),
        Register(
            name, addr, f"look-up by {what}, a slot an entry; the first memory comes before the second", "wo", 64,
            count=2 << slot_bits(entries),
            fields=(
                *vci, Field("vpi", 16, 12), Field("port", 28, 4), Field("vc", 32, 12), Field("valid", 63),
            ),
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class LookupTable:
    """A whole look-up table.

    Members
    -------
    multipliers : (int, int)
        Of the two memories, odd numbers of 32 bits.
    words : list of int
        Of the slots, in order: an entry (``valid<<63 | vc<<32 | port<<28 | vpi<<16 | vci``), or 0.
    """

    multipliers: tuple[int, int]
    words: list[int]

    def write(self, csr: Registers, name: str = "lookup") -> None:
        """Make it the table of the node with these registers, of its look-up with this name. Until all is written,
        cells of any VC may be unknown to the node."""
        multipliers, slots = getattr(csr, f"{name}_multiplier"), getattr(csr, name)
        for k, multiplier in enumerate(self.multipliers):
            multipliers[k] = multiplier
        slots[:] = self.words


def lookup_table(size: int, entries: Mapping[tuple[int, int, int], int], *, vcs: int | None = None) -> LookupTable:
    """Return the look-up table of a node; the same for the same entries.

    An entry can be moved to its other place while cells flow: written there before the old place is cleared or
    overwritten, it is never absent.

    Parameters
    ----------
    size : int
        Entries that it has place for, a power of two.
    entries : mapping
        From (port, VPI, VCI) to the index of the VC: 0 to 15, 0 to 4095, 0 to 65535, below ``vcs``. Of a look-up by
        paths the VCI is 0.
    vcs : int, optional
        The node's number of VCs; ``size`` unless given.

    Raises
    ------
    ValueError
        There are more entries than VCs, or a number is out of its range.
    """
    if len(entries) > size:
        raise ValueError(f"{len(entries)} look-up entries are more than the {size} that it has place for")
    keyed: dict[int, int] = {}
    for (port, vpi, vci), vc in entries.items():
        if not (0 <= port < 16 and 0 <= vpi < 4096 and 0 <= vci < 65536 and 0 <= vc < (vcs or size)):
            raise ValueError(f"a look-up entry's port, VPI, VCI or VC is out of range: {port}, {vpi}, {vci}, {vc}")
        keyed[port << 28 | vpi << 16 | vci] = vc
    draw = random.Random(0)
    for _ in range(DRAWS):
        multipliers = draw.getrandbits(KEY_BITS) | 1, draw.getrandbits(KEY_BITS) | 1
        slots = _try(slot_bits(size), keyed, multipliers)
        if slots is not None:
            words = [0] * (2 << slot_bits(size))
            for at, key in slots.items():
                words[at] = 1 << 63 | keyed[key] << 32 | key
            return LookupTable(multipliers, words)
    raise AssertionError(f"no multipliers of {DRAWS} place these {len(entries)} look-up entries")


def _try(bits: int, keys: Mapping[int, int], multipliers: tuple[int, int]) -> dict[int, int] | None:
    """Return the key of each used slot; None if these multipliers do not work."""
    slots: dict[int, int] = {}
    for key in keys:
        side = 0
        for _ in range(4 * len(keys) + 4):  # more steps only go round a cycle
            at = side << bits | (key * multipliers[side] & 0xFFFFFFFF) >> KEY_BITS - bits
            other = slots.get(at)
            slots[at] = key
            if other is None:
                break
            key, side = other, 1 - side
        else:
            return None
    return slots
