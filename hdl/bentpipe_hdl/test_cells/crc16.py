"""CRC-16 of test cells in hardware, as flat XORs: of a whole payload, and of four octets a clock."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const

from .cells import CRC16_BITS, PRESET, UNUSED, advance

__all__ = ["crc16_holds", "crc16_of", "crc16_word"]


def _place(bit):
    """Return the place of the ``bit``-th sent bit of a payload: octet ``k`` is in bits ``8k`` to ``8k+7``, its MSB
    first."""
    return 8 * (bit // 8) + 7 - bit % 8


def _masks(bits, after=0):
    """Return, for each bit of the register, ``after`` further zero bits later: the bits of some octets of which it
    is the parity."""
    masks, one = [0] * CRC16_BITS, advance(0x8000, 1 + after)
    for bit in reversed(range(bits)):
        for k in range(CRC16_BITS):
            masks[k] |= (one >> k & 1) << _place(bit)
        one = advance(one)
    return masks


def _parities(value, masks, constant):
    bits = [(value & Const(mask, len(value))).xor() for mask in masks]
    return Cat(~bit if constant >> k & 1 else bit for k, bit in enumerate(bits))


def crc16_holds(payload):
    """Return whether the last 16 bits of a payload (384 bits) are the CRC-16 of the others."""
    return _parities(payload, _masks(384), advance(PRESET, 384)) == 0


def crc16_of(number, stamp):
    """Return the CRC-16 of the test cell with this number and stamp."""
    after = 46 * 8 - 64
    rest = _constant(after)
    octets = Cat(*(value[8 * k : 8 * k + 8] for value in (number, stamp) for k in reversed(range(4))))
    return _parities(octets, _masks(64, after), advance(PRESET, 46 * 8) ^ rest)


def _constant(bits):
    """Return what the octets after the stamp, the last of which is the type, add to the register."""
    crc = 0
    for octet in [UNUSED] * (bits // 8 - 1) + [0]:
        crc = advance(crc ^ octet << 8, 8)
    return crc


def crc16_word(crc, word):
    """Return the register after four more octets, the first in the low bits of ``word``. It is 0 after a payload whose
    CRC is right."""
    columns = [advance(1 << i, 32) for i in range(CRC16_BITS)]
    kept = [
        reduce(xor, [crc[i] for i in range(CRC16_BITS) if columns[i] >> k & 1], Const(0, 1)) for k in range(CRC16_BITS)
    ]
    return Cat(kept[k] ^ (word & Const(mask, 32)).xor() for k, mask in enumerate(_masks(32)))
