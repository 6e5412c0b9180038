"""Frames of boards and a bridge that does them, written from the description of the protocol alone.

It shares no code with ``bentpipe_sim.board``: COBS by splitting at zeros, CRC-32 by its polynomial, items one after the
other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

__all__ = ["ReferenceBridge", "answer_of", "decode", "encode", "frame"]


class Machine(Protocol):
    """The registers and the time on which lists are executed."""

    def read(self, addr: int) -> int: ...
    def write(self, addr: int, value: int) -> None: ...
    def run(self, until: int) -> tuple[int, bool]: ...


def _shifted(register: int) -> int:
    for _ in range(8):
        register = register >> 1 ^ (0xEDB88320 if register & 1 else 0)
    return register


_SHIFTED = [_shifted(octet) for octet in range(256)]


def crc32(octets: bytes) -> int:
    """IEEE 802.3: the lowest bit of an octet first."""
    register = 0xFFFFFFFF
    for octet in octets:
        register = register >> 8 ^ _SHIFTED[(register ^ octet) & 0xFF]
    return register ^ 0xFFFFFFFF


def encode(octets: bytes) -> bytes:
    """COBS: each stretch between zeros, in blocks of 254 octets."""
    out = b""
    for stretch in octets.split(b"\0"):
        while len(stretch) >= 254:
            out += b"\xff" + stretch[:254]
            stretch = stretch[254:]
        out += bytes([len(stretch) + 1]) + stretch
    return out


def decode(octets: bytes) -> bytes | None:
    """COBS backwards; None: it is no such code."""
    found: list[int] = []
    source: Iterator[int] = iter(octets)
    code = 0xFF
    for octet in source:
        if code != 0xFF:
            found.append(0)
        code = octet
        for _ in range(code - 1):
            each = next(source, -1)
            if each < 0:
                return None
            found.append(each)
    return bytes(found)


def frame(words: list[int]) -> bytes:
    """A frame on the line."""
    octets = b"".join(word.to_bytes(4, "little") for word in words)
    return b"\0" + encode(octets + crc32(octets).to_bytes(4, "little")) + b"\0"


def answer_of(octets: bytes) -> list[int] | None:
    """The words of what was between two zeros, without the CRC; None: it was no frame."""
    plain = decode(octets)
    if plain is None or len(plain) < 8 or len(plain) % 4:
        return None
    if crc32(plain[:-4]) != int.from_bytes(plain[-4:], "little"):
        return None
    return [int.from_bytes(plain[at : at + 4], "little") for at in range(0, len(plain) - 4, 4)]


class ReferenceBridge:
    """Does requests one after the other; nothing of it happens at the same time.

    Members
    -------
    answers : list of list of int
        Words of all answers so far.
    """

    def __init__(self, machine: Machine, words: int) -> None:
        self._machine, self._words = machine, words
        self._line = b""
        self._begun = False
        self._now = (0, 0)  # session and sequence
        self._kept: list[int] = []
        self.answers: list[list[int]] = []

    def feed(self, octets: bytes) -> None:
        """Octets come."""
        for octet in octets:
            if octet:
                self._line += bytes([octet])
                continue
            words = answer_of(self._line) if self._line else None
            self._line = b""
            if words is not None and len(words) + 1 <= self._words:
                self._request(words)

    def _request(self, words: list[int]) -> None:
        kind, sequence, session = words[0] % 256, words[0] // 256 % 256, words[0] // 65536
        if kind == 1:
            if session != self._now[0]:
                self._now, self._kept = (session, 0), []
            self._say(0x81, [])
        elif kind == 2 and session == self._now[0] != 0 and sequence == (self._now[1] + 1) % 256:
            self._now = (session, sequence)
            self._kept = self._items(words[1:])
            self._say(0x82, self._kept)
        elif kind == 2 and (session, sequence) == self._now and session and self._kept:
            self._say(0x82, self._kept)
        else:
            self._say(0x84, [])

    def _say(self, kind: int, body: list[int]) -> None:
        self.answers.append([self._now[0] * 65536 + self._now[1] * 256 + kind, *body])

    def _items(self, rest: list[int]) -> list[int]:
        flags, body, stopped = 0, [], False
        room = self._words - 3  # head, flags, CRC

        def give(*words: int) -> None:
            nonlocal flags
            for word in words:
                if len(body) < room:
                    body.append(word)
                else:
                    flags |= 1

        while rest:
            kind, count, rest = rest[0] >> 24, rest[0] & 0xFFFF, rest[1:]
            if kind not in (1, 2, 3, 4) or not rest:
                flags |= 2
                break
            addr, rest = rest[0], rest[1:]
            if kind == 1:
                for k in range(min(count, len(rest))):
                    if not stopped:
                        self._machine.write((addr + k) % (1 << 28), rest[k])
                if count > len(rest):
                    flags |= 2
                    break
                rest = rest[count:]
            elif kind == 2:
                for k in range(count):
                    give(self._machine.read((addr + k) % (1 << 28)))
            elif kind == 3:
                taken = min(self._machine.read(addr % (1 << 28)), count, max(0, room - len(body) - 1))
                give(taken)
                for _ in range(taken):
                    give(self._machine.read((addr + 1) % (1 << 28)))
            else:
                if not rest:
                    flags |= 2
                    break
                high, rest = rest[0], rest[1:]
                if not stopped:
                    following, stopped = self._machine.run(addr + ((high & 0xFFFF) << 32))
                    give(following & 0xFFFFFFFF, following >> 32 | stopped << 16)
        return [flags, *body]
