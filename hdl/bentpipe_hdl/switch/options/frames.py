"""Ports whose cells have places in frames, as software sees them: the PLCP of a DS-3."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Final, Literal

from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Option, Setup
from bentpipe_hdl.ticks import TICKS_A_SECOND
from bentpipe_hdl.units import LINE_RATES

__all__ = ["FRACTION", "NIBBLE", "SLOTS", "TRAILER", "Frames", "FramesName", "in_units"]

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
    """A time in units of 2**-16 ticks."""
    return round(float(seconds * (1 << FRACTION)) * TICKS_A_SECOND)


NIBBLE: Final = in_units(4 / _DS3_PAYLOAD)
TRAILER: Final = in_units(13 * 4 / _DS3_PAYLOAD)
"""What a nibble and the shorter trailer take, of 13 nibbles."""


class Frames(Option):
    """Ports that send each cell in a slot of its line's frame."""

    name: ClassVar[str] = "frames"

    def wanted(self, setup: Setup) -> bool:
        return any(port.settings.frames for port in setup.ports)

    def check(self, setup: Setup) -> Iterator[str]:
        for k, port in enumerate(setup.ports):
            if port.settings.frames and port.rate_bps != LINE_RATES["DS-3"]:
                yield f'port {k}: frames = "plcp" are those of a DS-3: its rate has to be DS-3'
            if port.settings.frames and port.settings.reactive:
                yield f"port {k}: a load-reactive port has no frames"

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells
        return (
            Register(
                "frame_slot", 0x0400, "a slot of a port's frames, 0: it has none", "rw", 32, ports, "ticks / 2**16"
            ),
            Register("frame_cycle", 0x0410, "three frames", "rw", 32, ports, "ticks / 2**16"),
        )

    def configure(self, csr: Registers, setup: Setup) -> None:
        for k, port in enumerate(setup.ports):
            if port.settings.frames:
                clock = 1 / (1 + Fraction(port.clock_ppm) / 1_000_000)
                csr.frame_cycle[k] = in_units(_CYCLE_S * clock)
                csr.frame_slot[k] = in_units(_SLOT_BITS / _DS3_PAYLOAD * clock)
                csr.period[k] = 1 << FRACTION  # the slots alone say when
