"""VPI/VCI look-up: from (port, VPI, VCI) to the index of a VC, by two hash functions; and where software puts entries.

Each VC has two places where its entry may be, one in each of two memories, so that any set of VCs fits up to the
node's number of them (cuckoo hashing; Pagh and Rodler 2004). The hash functions are multiplications with odd numbers
that software chooses (multiply-shift; Dietzfelbinger et al. 1997): of two different VCs, at most two in ``slots`` pairs
of multipliers give the same place, whatever the VCs are.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amaranth.hdl import Cat, Mux, Signal, unsigned
from amaranth.lib import data

__all__ = ["MULTIPLIERS", "TABLE", "Lookup", "LookupTable", "lookup_table"]

MULTIPLIERS = 0x0018
"""Address of the register ``LOOKUP_MULTIPLIER0``; the other follows."""

TABLE = 0x80000
"""Address of the table ``LOOKUP``."""

KEY_BITS = 32
DRAWS = 1000
"""Multipliers that are tried. At a full table one draw in four fails for the worst sets known, a few in a hundred for
others; a set for which all fail is not expected to exist."""


def _bits(vcs):
    """Bits of a place in one of the two memories: both together have four slots a VC."""
    return vcs.bit_length()


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

    def writes(self) -> Iterator[tuple[int, int]]:
        """The register writes, (address, value), that make it the table of a node. Until the last of them, cells of
        any VC may be unknown to the node."""
        for k, multiplier in enumerate(self.multipliers):
            yield MULTIPLIERS + k, multiplier
        for k, word in enumerate(self.words):
            yield TABLE + 2 * k, word & 0xFFFFFFFF
            yield TABLE + 2 * k + 1, word >> 32


def lookup_table(vcs: int, entries: Mapping[tuple[int, int, int], int]) -> LookupTable:
    """The look-up table of a node; the same for the same entries.

    An entry can be moved to its other place while cells flow: written there before the old place is cleared or
    overwritten, it is never absent.

    Parameters
    ----------
    vcs : int
        The node's number of VCs, a power of two.
    entries : mapping
        From (port, VPI, VCI) to the index of the VC: 0 to 15, 0 to 4095, 0 to 65535, below ``vcs``.

    Raises
    ------
    ValueError
        There are more entries than VCs, or a number is out of its range.
    """
    if len(entries) > vcs:
        raise ValueError(f"{len(entries)} look-up entries are more than the node's {vcs} VCs")
    keyed: dict[int, int] = {}
    for (port, vpi, vci), vc in entries.items():
        if not (0 <= port < 16 and 0 <= vpi < 4096 and 0 <= vci < 65536 and 0 <= vc < vcs):
            raise ValueError(f"a look-up entry's port, VPI, VCI or VC is out of range: {port}, {vpi}, {vci}, {vc}")
        keyed[port << 28 | vpi << 16 | vci] = vc
    draw = random.Random(0)
    for _ in range(DRAWS):
        multipliers = draw.getrandbits(KEY_BITS) | 1, draw.getrandbits(KEY_BITS) | 1
        slots = _try(_bits(vcs), keyed, multipliers)
        if slots is not None:
            words = [0] * (2 << _bits(vcs))
            for at, key in slots.items():
                words[at] = 1 << 63 | keyed[key] << 32 | key
            return LookupTable(multipliers, words)
    raise AssertionError(f"no multipliers of {DRAWS} place these {len(entries)} look-up entries")


def _try(bits: int, keys: Mapping[int, int], multipliers: tuple[int, int]) -> dict[int, int] | None:
    """Slots to keys; None if these multipliers won't do."""
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


class Lookup:
    """Two memories, each read at one place for a header: any set of ``vcs`` VPI/VCI of all ports fits.

    Slot ``s`` of memory ``k`` is for keys (port<<28 | VPI<<16 | VCI) with ``key * LOOKUP_MULTIPLIERk`` modulo 2**32
    having ``s`` in its upper bits (:func:`lookup_table`). Writing table or multipliers touches no other state of a VC.

    Parameters
    ----------
    m : Module
    slot : Slot
    csr : CsrMap
        Gets the table ``LOOKUP``, the first memory below the second, and the registers ``LOOKUP_MULTIPLIER0`` and 1.
    vcs : int
        Number of VCs; each memory has twice as many slots.
    ports : int
    nni : Value
        A bit a port: its cells have NNI headers (12 bits of VPI, no GFC).
    """

    def __init__(self, m, slot, csr, *, vcs, ports, nni):
        self._m, self._slot = m, slot
        self._nni = nni
        self._bits = _bits(vcs)
        port_bits = (ports - 1).bit_length()
        self._layout = data.StructLayout({"key": unsigned(28 + port_bits), "vc": range(vcs), "valid": 1})
        index, word, en = csr.table(
            "LOOKUP", TABLE, 2 << self._bits, 64,
            "VPI/VCI look-up, a slot an entry: valid<<63 | vc<<32 | port<<28 | vpi<<16 | vci",
        )  # fmt: skip
        packed = Signal(self._layout, name="lookup_entry")
        m.d.comb += [packed.key.eq(word), packed.vc.eq(word[32:]), packed.valid.eq(word[63])]
        self._tables, self._multipliers = [], []
        for k in range(2):
            multiplier = Signal(KEY_BITS, init=1, name=f"lookup_multiplier{k}")
            csr.setting(f"LOOKUP_MULTIPLIER{k}", MULTIPLIERS + k, multiplier, f"of memory {k} of the look-up, odd")
            table = slot.store(f"lookup{k}", self._layout, 1 << self._bits)
            table.write(index[: self._bits], packed, en & (index[self._bits] == k))
            self._tables.append(table)
            self._multipliers.append(multiplier)

    def find(self, header, port):
        """``(known, vc)`` of a header that came in on ``port``; on the narrow datapath two clocks later."""
        m = self._m
        nni = self._nni.bit_select(port, 1)
        key = Signal(self._layout["key"].shape, name="lookup_key")
        m.d.comb += key.eq(Cat(header.vci, header.vpi, Mux(nni, header.gfc, 0), port))
        hits = []
        for k, (table, multiplier) in enumerate(zip(self._tables, self._multipliers, strict=True)):
            at = self._slot.settle((key * multiplier)[KEY_BITS - self._bits : KEY_BITS], f"lookup_at{k}")
            entry = Signal(self._layout, name=f"lookup_hit{k}")
            m.d.comb += entry.eq(table.read(at))
            hits.append((entry.valid & (entry.key == key), entry.vc))
        (first, vc), (second, other) = hits
        return first | second, Mux(first, vc, other)
