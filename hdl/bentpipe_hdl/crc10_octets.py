"""The CRC-10 of OAM and RM cells, of octets (I.610 clause 10.1, I.371 clause 7.1)."""

from __future__ import annotations

from typing import Final

__all__ = ["COVERED", "CRC10_BITS", "POLYNOMIAL", "advance", "crc10", "crc10_is_right"]

CRC10_BITS: Final = 10

POLYNOMIAL: Final = 0x233
"""x^10 + x^9 + x^5 + x^4 + x + 1; the register is preset to zero, the first bit of an octet is its MSB."""

COVERED: Final = 374
"""Bits of a payload; its last ten are the CRC."""


def advance(crc: int, bits: int = 1) -> int:
    """Return the register so many zero bits later."""
    for _ in range(bits):
        crc = (crc << 1 & 0x3FF) ^ (POLYNOMIAL if crc >> 9 else 0)
    return crc


_OCTETS: Final = tuple(advance(octet << 2, 8) for octet in range(256))


def crc10(payload: bytes) -> int:
    """Return the CRC-10 of a payload of 48 octets; its last ten bits do not count."""
    crc = 0
    for octet in payload[:46]:
        crc = (crc << 8 & 0x3FF) ^ _OCTETS[crc >> 2 ^ octet]
    for bit in range(7, 1, -1):
        crc = advance(crc ^ (payload[46] >> bit & 1) << 9)
    return crc


def crc10_is_right(payload: bytes) -> bool:
    """Return whether the last ten bits of a payload are the CRC of the others."""
    return crc10(payload) == int.from_bytes(payload[46:48], "big") & 0x3FF
