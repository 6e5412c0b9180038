"""The payload pattern and what a board withholds of it, octet by octet, written from their definitions alone.

The pattern: ``bentpipe_sim/pattern.py``, whose words are made here from splitmix64 as published. Withheld cells: an SDU
is rebuilt from the cells that crossed, by the rule of ``HostPort``: a withheld octet is the one eight before it, plus
the octet of the constant at its place, plus the carry from the octet before it in its word.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["octet_of", "rebuilt"]

GOLDEN = 0x9E3779B97F4A7C15
WORD = 1 << 64


def _mixed(key: int) -> int:
    """The first output of splitmix64 with this seed (Vigna's splitmix64.c)."""
    z = (key + GOLDEN) % WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return z ^ z >> 31


def octet_of(key: int, offset: int) -> int:
    """The octet of a stream at an offset."""
    index, place = divmod(offset, 8)
    return (_mixed(key) + index) * GOLDEN % WORD >> 8 * place & 0xFF


def rebuilt(crossed: Iterable[tuple[int, int, bytes]]) -> bytes:
    """The octets of a PDU from its cells that crossed: the number of cells withheld before each, the place of their
    first octet, its octets."""
    octets = bytearray()
    for count, place, cell in crossed:
        begin = len(octets)
        for at in range(begin, begin + 48 * count):
            here = (at - begin + place) % 8
            carry = 0
            for back in range(here, 0, -1):  # the octets before it in its word, the lowest first
                carry = (octets[at - 8 - back] + (GOLDEN >> 8 * (here - back) & 0xFF) + carry) >> 8
            octets.append((octets[at - 8] + (GOLDEN >> 8 * here & 0xFF) + carry) & 0xFF)
        octets += cell
    return bytes(octets)
