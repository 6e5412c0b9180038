"""The times of the PLCP, the frame in which a DS-3 carries cells (ITU-T G.804, ANSI T1.624)."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, Literal

from bentpipe_hdl.ticks import TICKS_A_SECOND
from bentpipe_hdl.units import LINE_RATES

__all__ = [
    "FRACTION",
    "NIBBLE",
    "SLOTS",
    "SLOT_RATE_BPS",
    "TRAILER",
    "FramesName",
    "frame_problem",
    "frame_times",
    "in_units",
]

FramesName = Literal["plcp"]

SLOTS: Final = 12
"""Cells of a frame."""

FRACTION: Final = 16
"""Fraction bits of times in ticks."""

_DS3_PAYLOAD: Final = Fraction(44_736_000 * 84, 85)
"""Bits a second of a DS-3 that its M-frame leaves."""

_SLOT_BITS: Final = 57 * 8
"""A1, A2, POI, POH and a cell."""

_CYCLE_S: Final = Fraction(375, 1_000_000)
"""Three frames, after which the stuffing begins again."""


def in_units(seconds: Fraction) -> int:
    """Return a time in units of 2**-16 ticks."""
    return round(float(seconds * (1 << FRACTION)) * TICKS_A_SECOND)


NIBBLE: Final = in_units(4 / _DS3_PAYLOAD)
TRAILER: Final = in_units(13 * 4 / _DS3_PAYLOAD)
"""What a nibble and the shorter trailer take, of 13 nibbles."""


SLOT_RATE_BPS: Final = float(_DS3_PAYLOAD * 53 / 57)
"""Bits of cells a second while slots follow each other."""


def frame_times(clock_ppm: float) -> tuple[int, int]:
    """Return the duration of a slot and of three frames by a clock so many ppm too fast, in units of 2**-16 ticks."""
    clock = 1 / (1 + Fraction(clock_ppm) / 1_000_000)
    return in_units(_SLOT_BITS / _DS3_PAYLOAD * clock), in_units(_CYCLE_S * clock)


def frame_problem(frames: FramesName | None, rate_bps: float) -> str:
    """Return the fault of a line with such frames and such a rate; ``""`` if there is none."""
    if frames and rate_bps != LINE_RATES["DS-3"]:
        return f'frames = "{frames}" are those of a DS-3: its rate has to be DS-3'
    return ""
