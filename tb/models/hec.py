"""Header error control (I.432.1): CRC-8 with coset, single-bit correction, the receiver's two modes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from models.crc import divide

__all__ = ["COSET", "SINGLE_BIT", "Mode", "Outcome", "Receiver", "hec", "syndrome"]

COSET = 0x55
"""Added modulo 2 to the remainder before transmission."""


def hec(header: bytes) -> int:
    """The HEC octet of the four octets of a cell header: x^8+x^2+x+1 over them, plus the coset 01010101."""
    if len(header) != 4:
        raise ValueError(f"a header has 4 octets before its HEC, not {len(header)}")
    return divide(header, width=8, polynomial=0x07) ^ COSET


def syndrome(received: bytes) -> int:
    """Return the difference of the received HEC (fifth octet) and the one computed from the other four; 0: none."""
    if len(received) != 5:
        raise ValueError(f"a header with its HEC has 5 octets, not {len(received)}")
    return hec(received[:4]) ^ received[4]


def _flip(octets: bytes, bit: int) -> bytes:
    """``octets`` with bit ``bit`` inverted, counted from the first transmitted one (MSB of the first octet)."""
    changed = bytearray(octets)
    changed[bit // 8] ^= 0x80 >> (bit % 8)
    return bytes(changed)


def _single_bit_table() -> dict[int, int]:
    good = bytes(4) + bytes([hec(bytes(4))])
    return {syndrome(_flip(good, bit)): bit for bit in range(40)}


SINGLE_BIT = _single_bit_table()
"""Syndrome -> the one bit whose inversion has it, counted from the first transmitted bit of the header."""


class Mode(enum.Enum):
    """Mode of the receiver (I.432.1, figure of the HEC's modes of operation)."""

    CORRECTION = "correction"
    DETECTION = "detection"


class Outcome(enum.Enum):
    """The result of a header's check."""

    GOOD = "good"
    CORRECTED = "corrected"
    DISCARDED = "discarded"


@dataclass
class Receiver:
    """The receiver's automaton.

    In correction mode a single-bit error is corrected, a multi-bit error discards the cell; either enters detection
    mode. There every cell with an error is discarded, and the first header without one leads back.
    """

    mode: Mode = Mode.CORRECTION
    counts: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))

    def receive(self, received: bytes) -> tuple[Outcome, bytes]:
        """Take a header with HEC; give its fate and the header as it goes on (as received if discarded)."""
        found = syndrome(received)
        if found == 0:
            self.mode = Mode.CORRECTION
            outcome, header = Outcome.GOOD, received
        elif self.mode is Mode.CORRECTION and found in SINGLE_BIT:
            self.mode = Mode.DETECTION
            outcome, header = Outcome.CORRECTED, _flip(received, SINGLE_BIT[found])
        else:
            self.mode = Mode.DETECTION
            outcome, header = Outcome.DISCARDED, received
        self.counts[outcome] += 1
        return outcome, header
