"""CRC-10 of OAM and RM cells, a cell a clock (wide) or four octets a clock (narrow), as flat XORs.

Generator x^10 + x^9 + x^5 + x^4 + x + 1, register preset to zero, first bit of an octet is its MSB; it covers the first
374 bits of the payload, and is its last ten (I.610 clause 10.1, I.371 clause 7.1).
"""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const

from .crc10_octets import COVERED, CRC10_BITS, advance

__all__ = ["CRC10_BITS", "crc10_cell", "crc10_holds", "crc10_word"]


def _place(bit):
    """Return the bit of a payload that is sent as number ``bit``: octet ``k`` is in bits ``8k`` to ``8k+7``, MSB
    first."""
    return 8 * (bit // 8) + 7 - bit % 8


def _masks(bits):
    """Return a mask for each bit of the register: the bits of a payload or word whose parity it is."""
    masks, one = [0] * CRC10_BITS, advance(1 << 9)
    for bit in reversed(range(bits)):
        for k in range(CRC10_BITS):
            masks[k] |= (one >> k & 1) << _place(bit)
        one = advance(one)
    return masks


def crc10_cell(payload):
    """Return the CRC-10 of a payload (384 bits, octet ``k`` in bits ``8k`` to ``8k+7``); its last ten bits do not
    count."""
    return Cat((payload & Const(mask, 384)).xor() for mask in _masks(COVERED))


def crc10_holds(payload):
    """Return whether the last ten bits of a payload are the CRC-10 of the others."""
    return crc10_cell(payload) == Cat(payload[376:384], payload[368:370])


def crc10_word(crc, word, bits=32):
    """Return the register after four more octets, the first in the low bits of ``word``, or after the first ``bits`` of
    them. After all twelve words of a payload whose CRC is right it is 0; before its last ten bits it is the CRC."""
    columns = [advance(1 << i, bits) for i in range(CRC10_BITS)]
    kept = [reduce(xor, [crc[i] for i in range(CRC10_BITS) if columns[i] >> k & 1], Const(0, 1)) for k in range(10)]
    return Cat(kept[k] ^ (word & Const(mask, 32)).xor() for k, mask in enumerate(_masks(bits)))
