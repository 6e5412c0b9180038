"""The payload pattern between a host and a board whose host ports have generators and checkers.

An SDU is its first cells and their continuation; the RTL is ``bentpipe_boards.pattern``. The *place* of an octet is its
index in its word of the pattern (:mod:`bentpipe_sim.pattern`). All first octets of an SDU's cells have the same place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from bentpipe_sim.board.windows import ALL_GIVEN

__all__ = ["CELL_OCTETS", "Payload", "continuation", "crossing_cells", "given_cells"]

CELL_OCTETS: Final = 48
_WORD: Final = 8
_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_INCREASES: Final = {
    (octet + carry) & 0xFF: place for place, octet in enumerate(_GOLDEN.to_bytes(8, "little")) for carry in (0, 1)
}
"""Place of an octet, by its difference from the octet eight before."""
_SAMPLE: Final = 32
"""The octet of a cell from which the checker finds the place."""


def continuation(octets: bytes | bytearray, place: int, count: int) -> bytes:
    """Return ``count`` cells of the pattern that continue whole cells.

    Parameters
    ----------
    octets : bytes
        At least the last 16 octets before. They need not be of the pattern: each octet continues the one eight before.
    place : int
        Of the first octet that is returned, 0 to 7.
    """
    end = len(octets) - place
    above = int.from_bytes(octets[end - _WORD : end], "little") + _GOLDEN & _MASK
    word = above >> 8 * place << 8 * place | int.from_bytes(octets[end:], "little")
    words = range(1 + CELL_OCTETS // _WORD * count)
    made = b"".join((word + k * _GOLDEN & _MASK).to_bytes(_WORD, "little") for k in words)
    return made[place : place + CELL_OCTETS * count]


class Payload(NamedTuple):
    """The payload of an SDU: from octet ``start`` to its end it has the pattern of a stream from ``offset`` on."""

    start: int
    offset: int


def given_cells(length: int, payload: Payload | None) -> tuple[int, int]:
    """Return how many cells of an SDU the host gives (``ALL_GIVEN``: all), and the place of a cell's first octet."""
    if payload is None:
        return ALL_GIVEN, 0
    cells = -(-(payload.start + 2 * _WORD) // CELL_OCTETS)
    if cells * CELL_OCTETS >= length or cells >= ALL_GIVEN:
        return ALL_GIVEN, 0
    return cells, (payload.offset - payload.start) % _WORD


def crossing_cells(octets: bytes) -> list[tuple[int, int, bytes]]:
    """Return the cells of a whole PDU that a checker keeps: cells withheld before it, their place, its octets."""
    found: list[tuple[int, int, bytes]] = []
    count, place, last = 0, -1, len(octets) // CELL_OCTETS - 1
    for index in range(last + 1):
        at = index * CELL_OCTETS
        cell = octets[at : at + CELL_OCTETS]
        if place >= 0 and 0 < index < last and cell == continuation(octets[at - 2 * _WORD : at], place, 1):
            count += 1
            continue
        found.append((count, place if count else 0, cell))
        count, place = 0, _INCREASES.get((cell[_SAMPLE] - cell[_SAMPLE - _WORD]) & 0xFF, -1)
    return found
