"""Test cells as octets, and the units in which they measure. No Amaranth.

The layout is modelled on O.191 and is not claimed to be that of the Recommendation, which could not be read:

======= ==================================================================
octets  hold
======= ==================================================================
0-3     sequence number, most significant octet first; 1 more each cell
4-7     time stamp in 10 ns, modulo 2**32
8-44    6A hex
45      type of test cell, 0
46-47   CRC-16 over octets 0-45
======= ==================================================================
"""

from __future__ import annotations

from binascii import crc_hqx
from dataclasses import dataclass
from typing import Final

__all__ = [
    "CRC16_BITS",
    "GAP",
    "STAMP_BITS",
    "STAMP_FACTOR",
    "STAMP_PS",
    "STAMP_SHIFT",
    "UNUSED",
    "TestCell",
    "TestCellError",
    "advance",
    "block_of_rate",
    "crc16",
    "pack",
    "stamp_of",
    "unpack",
]

PAYLOAD_OCTETS: Final = 48

UNUSED: Final = 0x6A
"""In octets 8 to 44."""

TYPE: Final = 0
"""Octet 45."""

CRC16_BITS: Final = 16
POLYNOMIAL: Final = 0x1021
"""x^16 + x^12 + x^5 + 1; the register is preset to ones, the first bit of an octet is its MSB, nothing is inverted."""
PRESET: Final = 0xFFFF

GAP: Final = 1 << 16
"""A sequence number that is more cells than this away from the expected one proves nothing alone."""

STAMP_BITS: Final = 32
STAMP_PS: Final = 10_000
"""Picoseconds of a time stamp's unit: 10 ns."""

STAMP_SHIFT: Final = 27
STAMP_FACTOR: Final = round(33125 / 1872 * 2**STAMP_SHIFT)
"""Time stamp = tick * STAMP_FACTOR / 2**STAMP_SHIFT. A tick is 33125/1872 units of 10 ns; the clock of the stamps is
right to 3e-11."""


class TestCellError(ValueError):
    """A payload is no test cell, or is damaged."""

    __test__ = False  # no test of pytest


@dataclass(frozen=True)
class TestCell:
    """Content of a test cell: its sequence number, and its time stamp in 10 ns."""

    __test__ = False

    number: int
    stamp: int


def advance(crc: int, bits: int = 1) -> int:
    """Return the register of the CRC-16 so many zero bits later."""
    for _ in range(bits):
        crc = (crc << 1 & 0xFFFF) ^ (POLYNOMIAL if crc >> 15 else 0)
    return crc


def crc16(octets: bytes) -> int:
    """Return the CRC-16 of some octets."""
    return crc_hqx(octets, PRESET)


def pack(cell: TestCell) -> bytes:
    """Return the 48 octets of a test cell's payload.

    Raises
    ------
    ValueError
        Number or stamp have more than 32 bits.
    """
    for name, value in (("sequence number", cell.number), ("time stamp", cell.stamp)):
        if not 0 <= value < 1 << 32:
            raise ValueError(f"the {name} of a test cell has 32 bits, not {value!r}")
    head = cell.number.to_bytes(4, "big") + cell.stamp.to_bytes(4, "big")
    octets = head.ljust(PAYLOAD_OCTETS - 3, bytes([UNUSED])) + bytes([TYPE])
    return octets + crc16(octets).to_bytes(2, "big")


def unpack(payload: bytes) -> TestCell:
    """Decode a payload of 48 octets. Octets 8 to 45 are checked by the CRC alone.

    Raises
    ------
    TestCellError
        The CRC-16 is wrong.
    """
    if len(payload) != PAYLOAD_OCTETS:
        raise TestCellError(f"a payload has {PAYLOAD_OCTETS} octets, and this has {len(payload)}")
    found, stated = crc16(payload[:46]), int.from_bytes(payload[46:], "big")
    if found != stated:
        raise TestCellError(f"the CRC-16 of the cell is {found:#06x}, and its last octets are {stated:#06x}")
    return TestCell(int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big"))


def stamp_of(tick: int) -> int:
    """Return the time stamp of a tick, as the hardware computes it."""
    return (tick * STAMP_FACTOR >> STAMP_SHIFT) & 0xFFFFFFFF


def block_of_rate(cells_a_second: float) -> tuple[int, int]:
    """Return log2 of N, and M, of the cell blocks of I.356 for a peak cell rate: N is the smallest power of two that is
    at least PCR/25 and 128, M is N/32."""
    size = 7
    while 1 << size < cells_a_second / 25:
        size += 1
    return size, (1 << size) // 32
