"""The frames between a host and a board: what both sides, in Python and in RTL, agree on.

A frame is a sequence of words of 32 bits, the low octet first: a head, a body, and the CRC-32 (as of Ethernet and zlib)
of both. On the line it is encoded by consistent overhead byte stuffing (COBS: Cheshire and Baker 1999), with an octet 0
before and behind it. Whatever is damaged ends at the next 0.

Head of a request: ``session << 16 | sequence << 8 | kind``. ``OPEN`` begins a session, of a number that the host draws;
a board has one session. ``LIST`` asks for the items of its body, in order. A board does a list only if its session is
the board's and its sequence number is the next one. It keeps its last answer: the same number again gets the same
answer, and nothing is done twice.

Items of a list, each ``kind << 24 | count``, then its arguments:

======= ======================== ==============================================================================
WRITE   address, ``count`` words write them from the address on
READ    address                  answer: ``count`` words from the address on
TAKE    address                  answer: a count, and so many words out of a FIFO: all it has, or ``count``
RUN     until, low and high word let time pass to the end of that tick, or to a stop; answer: the next tick's low word,
                                 its high word and ``STOPPED`` if ``until`` was not reached
======= ======================== ==============================================================================

Behind a ``RUN`` that stopped, ``WRITE`` and ``RUN`` are skipped and have no part in the answer; ``READ`` and ``TAKE``
are done. A ``TAKE`` is of the register with the FIFO's level, and of the next address, which gives a word at each read.

Head of an answer: session and sequence number of the board, and ``OPENED``, ``ANSWER`` (a body follows: a word of
flags, and what the items answer), ``BUSY`` (that list is being done) or ``REFUSED`` (another session, or a number out
of sequence).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = [
    "ANSWER", "BUSY", "LIST", "MALFORMED", "OPEN", "OPENED", "OVERFLOW", "READ", "REFUSED", "RUN", "STOPPED", "TAKE",
    "WRITE", "FrameReader", "cobs_decoded", "cobs_encoded", "framed", "head", "unframed",
]  # fmt: skip

OPEN: Final = 1
LIST: Final = 2
OPENED: Final = 0x81
ANSWER: Final = 0x82
BUSY: Final = 0x83
REFUSED: Final = 0x84

WRITE: Final = 1
READ: Final = 2
TAKE: Final = 3
RUN: Final = 4

STOPPED: Final = 1 << 16
"""In the second word of a ``RUN``'s answer."""
OVERFLOW: Final = 1
"""Flag of an answer: it found no room."""
MALFORMED: Final = 2
"""Flag of an answer: an item was none, and the list ended there."""


def head(session: int, sequence: int, kind: int) -> int:
    """Return the head of a frame."""
    return session << 16 | sequence << 8 | kind


def cobs_encoded(octets: bytes) -> bytes:
    """Return the octets without a 0 among them; no delimiter."""
    out = bytearray()
    for stretch in octets.split(b"\0"):
        at = 0
        while len(stretch) - at >= 254:
            out.append(255)
            out += stretch[at : at + 254]
            at += 254
        out.append(len(stretch) - at + 1)
        out += stretch[at:]
    return bytes(out)


def cobs_decoded(octets: bytes) -> bytes | None:
    """Return the octets of a COBS code; None if it is no such code."""
    out, at = bytearray(), 0
    while at < len(octets):
        code = octets[at]
        block = octets[at + 1 : at + code]
        if not code or len(block) < code - 1 or 0 in block:
            return None
        out += block
        at += code
        if code < 255 and at < len(octets):
            out.append(0)
    return bytes(out)


def framed(words: Iterable[int]) -> bytes:
    """Return the octets of a frame, given its head and body."""
    listed = tuple(words)
    octets = struct.pack(f"<{len(listed)}I", *listed)
    return b"\0" + cobs_encoded(octets + zlib.crc32(octets).to_bytes(4, "little")) + b"\0"


def unframed(octets: bytes) -> tuple[int, ...] | None:
    """Return head and body of the octets between two zeros; None if they are no frame."""
    decoded = cobs_decoded(octets)
    if decoded is None or len(decoded) < 8 or len(decoded) % 4 or zlib.crc32(decoded) != 0x2144DF1C:
        return None
    return struct.unpack(f"<{len(decoded) // 4 - 1}I", decoded[:-4])


class FrameReader:
    """A reader of frames in a stream of octets.

    Parameters
    ----------
    most : int
        Words of the longest frame; what is longer is dropped.

    Members
    -------
    damaged : int
        Stretches between two zeros that were no frame.
    """

    def __init__(self, most: int = 1 << 16) -> None:
        self._most = 4 * most + 4 * most // 254 + 2
        self._octets = bytearray()
        self.damaged = 0

    def feed(self, octets: bytes) -> list[Sequence[int]]:
        """Return the frames that end in these octets."""
        *ended, rest = octets.split(b"\0")
        found: list[Sequence[int]] = []
        for part in ended:
            self._keep(part)
            if self._octets:
                words = unframed(bytes(self._octets)) if len(self._octets) <= self._most else None
                if words is None:
                    self.damaged += 1
                else:
                    found.append(words)
                self._octets.clear()
        self._keep(rest)
        return found

    def _keep(self, octets: bytes) -> None:
        room = self._most + 1 - len(self._octets)
        self._octets += octets[:room]
