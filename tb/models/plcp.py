"""The PLCP's frame on a DS-3 (ITU-T G.804, ANSI T1.624): when its slots begin, in exact numbers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

__all__ = ["slots"]

PAYLOAD_BPS = Fraction(44_736_000) * 4704 / 4760
"""Of an M-frame's 4760 bits 56 are overhead."""

FRAME_S = Fraction(125, 1_000_000)


def slots() -> Iterator[tuple[Fraction, int]]:
    """The beginning of each slot in seconds, the first at 0, and the nibbles of the trailer behind it (0: none).

    A row has 57 octets: A1, A2, POI, POH and a cell; a frame 12 rows. In cycles of three frames the first trailer has
    13 nibbles, the second 14; the third one has what brings the next cycle closer to its place on a clock of 8 kHz.
    """
    row, nibble = 57 * 8 / PAYLOAD_BPS, 4 / PAYLOAD_BPS
    begin, frame = Fraction(0), 0
    while True:
        for place in range(12):
            trailer = 0
            if place == 11:
                frame += 1
                if frame % 3:
                    trailer = 12 + frame % 3
                else:
                    trailer = min((13, 14), key=lambda n: abs(begin + row + n * nibble - frame * FRAME_S))
            yield begin, trailer
            begin += row + trailer * nibble
