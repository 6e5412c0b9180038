"""The payload pattern: octets that are a function of (stream key, offset), made and checked on both sides.

Bulk data so need not cross Python, is real on the wire all the same, and is checked octet by octet. The octet
at ``offset`` is octet ``offset % 8`` (least significant first) of ``(mix64(key) + offset // 8) * GOLDEN``, with
mix64 the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): a Weyl sequence, in which the next word costs an
addition. All words of a stream are different, and octets of other offsets or other streams differ but by chance. The
same function stands in C++ in ``csrc/pattern.hpp``; a test holds them together.
"""

from __future__ import annotations

from typing import Final

__all__ = ["pattern"]

_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15


def _mix64(z: int) -> int:
    z = (z + _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def pattern(key: int, offset: int, length: int) -> bytes:
    """Return ``length`` octets of stream ``key`` (0..2**32-1) from ``offset`` (0..2**63-1) on."""
    first, last = offset // 8, (offset + length + 7) // 8
    base = _mix64(key)
    words = b"".join(((base + i) * _GOLDEN & _MASK).to_bytes(8, "little") for i in range(first, last))
    return words[offset - 8 * first : offset - 8 * first + length]
