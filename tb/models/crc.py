"""Cyclic redundancy checks, bit by bit as the standards word them.

Slow on purpose: every step is the division that the clause describes, so that nothing but the clause is needed to
check it. The table-driven forms that the tests of larger parts use are derived from these.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["crc10", "crc10_bits", "crc32_aal5", "crc32_register", "divide", "table_of"]


def divide(data: bytes, *, width: int, polynomial: int, register: int = 0) -> int:
    """The remainder of ``register`` and then ``data`` (MSB of each octet first) divided by the generator.

    ``polynomial`` leaves out the term of degree ``width``. The result includes the multiplication by
    ``x**width``, i.e. it is the field that is sent after ``data``.
    """
    top = 1 << (width - 1)
    mask = (1 << width) - 1
    for octet in data:
        for bit in range(7, -1, -1):
            feedback = bool(register & top) ^ bool(octet >> bit & 1)
            register = (register << 1) & mask
            if feedback:
                register ^= polynomial
    return register


def table_of(width: int, polynomial: int) -> Callable[[bytes, int], int]:
    """A byte-wise form of :func:`divide` for ``width >= 8``, its table made with :func:`divide`."""
    table = [divide(bytes([octet]), width=width, polynomial=polynomial) for octet in range(256)]
    shift = width - 8
    mask = (1 << width) - 1

    def step(data: bytes, register: int) -> int:
        for octet in data:
            register = ((register << 8) & mask) ^ table[(register >> shift) ^ octet]
        return register

    return step


_crc32 = table_of(32, 0x04C11DB7)


def crc32_register(data: bytes, register: int = 0xFFFF_FFFF) -> int:
    """The CRC-32 register after ``data``; after a whole, undamaged CPCS-PDU it is 0xC704DD7B (I.363.5)."""
    return _crc32(data, register)


def crc32_aal5(data: bytes) -> int:
    """The CRC-32 field of an AAL5 CPCS-PDU whose other octets are ``data``.

    Generator 0x04C11DB7, first bit of an octet is its MSB, register preset to ones, sent complemented (I.363.5).
    """
    return crc32_register(data) ^ 0xFFFF_FFFF


def crc10_bits(bits: list[int]) -> int:
    """CRC-10 of a sequence of bits: x^10+x^9+x^5+x^4+x+1, register preset to zero (I.610)."""
    register = 0
    for bit in bits:
        feedback = (register >> 9) ^ bit
        register = (register << 1) & 0x3FF
        if feedback:
            register ^= 0x233
    return register


def crc10(payload: bytes) -> int:
    """The CRC-10 of an OAM or RM cell: over the first 374 bits of its 48 octets of payload.

    The field takes the last 10 bits of the payload, after six reserved bits.
    """
    if len(payload) != 48:
        raise ValueError(f"an OAM cell's payload has 48 octets, not {len(payload)}")
    bits = [octet >> bit & 1 for octet in payload for bit in range(7, -1, -1)]
    return crc10_bits(bits[:374])
