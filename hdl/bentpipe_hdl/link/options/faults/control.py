"""Outages and errors in bursts as software sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from bentpipe_hdl.bit_errors import GAP_BITS, ErrorStart, scale_of, scale_of_length
from bentpipe_hdl.link.options.base import LinkOption
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import BER, IN_RUN, NUMBER, SHARE, TIME, Settings, wrong
from bentpipe_hdl.ticks import TICK_PS

__all__ = ["LOSS_ONE", "LOST", "OPTION", "BurstSettings"]

LOST: Final = ("outage", "burst")
"""Why the option takes cells out; both are in ``GONE``."""

LOSS_ONE: Final = 1 << 31
"""Value of the registers ``loss`` at which every cell is lost."""

_LENGTH: Final = TIME.within("1 us", "100000 s")
_CELLS: Final = NUMBER.within(1.0, 1e12, name="mean of cells")


class BurstSettings(Settings):
    """Errors that come in bursts: a line that is good and bad by turns (Gilbert 1960, Elliott 1963). How long it is
    either is geometric, in time or in cells; it begins good."""

    good_ps: Annotated[int, _LENGTH] | None = Field(
        default=None, description="mean time in the good state", json_schema_extra=IN_RUN
    )
    bad_ps: Annotated[int, _LENGTH] | None = Field(
        default=None, description="mean time in the bad state", json_schema_extra=IN_RUN
    )
    good_cells: Annotated[float, _CELLS] | None = Field(
        default=None, description="mean number of cells in the good state, instead of times", json_schema_extra=IN_RUN
    )
    bad_cells: Annotated[float, _CELLS] | None = Field(
        default=None, description="mean number of cells in the bad state", json_schema_extra=IN_RUN
    )
    ber: Annotated[float, BER] = Field(
        default=0.0,
        description="bit error ratio in the bad state; in the good one it is the line's",
        json_schema_extra=IN_RUN,
    )
    loss: Annotated[float, SHARE] = Field(
        default=0.0, description="share of the cells that are lost in the bad state", json_schema_extra=IN_RUN
    )
    good_loss: Annotated[float, SHARE] = Field(
        default=0.0, description="share of the cells that are lost in the good state", json_schema_extra=IN_RUN
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        times, cells = (self.good_ps, self.bad_ps), (self.good_cells, self.bad_cells)
        if (None in times) == (None in cells) or times.count(None) == 1 or cells.count(None) == 1:
            raise wrong("give both mean lengths, 'good' and 'bad' as times, or 'good_cells' and 'bad_cells'")
        return self

    @property
    def by_cells(self) -> bool:
        """Lengths count cells, not time."""
        return self.good_ps is None

    @property
    def lengths(self) -> tuple[float, float]:
        """Mean lengths of the good and of the bad state, in ticks or cells, 1 at least."""
        if self.good_ps is None or self.bad_ps is None:
            return self.good_cells or 1.0, self.bad_cells or 1.0
        return max(1.0, self.good_ps / TICK_PS), max(1.0, self.bad_ps / TICK_PS)


_REGISTERS: Final = (
    Register("outage", 0x0020, "outage: every cell is lost", width=1),
    Register("burst_enable", 0x0021, "alternation of good and bad states enabled", width=1),
    Register("burst_cells", 0x0022, "lengths of states count cells, not ticks", width=1),
    Register("length_mantissa", 0x0024, "scale of the lengths of the good and the bad state", width=24, count=2),
    Register("length_shift", 0x0026, "scale of the lengths, binary places", width=6, count=2),
    Register("loss", 0x0028, "share of cells lost in the good and in the bad state, 1 / 2**31", count=2, most=LOSS_ONE),
    Register("bad_error_enable", 0x002A, "bit errors in the bad state", width=1),
    Register("bad_error_mantissa", 0x002B, "scale of the gaps between errors in the bad state", width=24),
    Register("bad_error_shift", 0x002C, "scale of those gaps, binary places", width=6),
    Register(
        "bad_gap", 0x0030, "bits of the bad state without errors before its next error", "wo", GAP_BITS, unit="bits"
    ),
    Register("bad_seed", 0x0032, "state of the bad state's generator, not 0", "wo", 64, reset=1),
    Register("length_seed", 0x0034, "state of the generator of lengths, not 0", "wo", 64, reset=1),
    Register("loss_seed", 0x0036, "state of the generator of losses, not 0", "wo", 64, reset=1),
    Register("length", 0x0038, "length of the rest of the state: ticks, or cells after the next one", "wo", GAP_BITS),
    Register("bad", 0x0088, "state: 1 is bad", "ro", width=1),
    Register("bad_cells", 0x0089, "cells received in the bad state", "ro", unit="cells"),
    Register("bad_states", 0x008A, "times that the bad state began", "ro"),
    Register("lost_outage", 0x008B, "cells lost in outages", "ro", unit="cells"),
    Register("lost_burst", 0x008C, "cells lost by the states' shares", "ro", unit="cells"),
)


class Faults(LinkOption):
    """A link with outages, and with good and bad states by turns."""

    name = "faults"
    place = 2

    def registers(self) -> tuple[Register, ...]:
        return _REGISTERS

    def seed(self, csr: Registers, start: ErrorStart) -> None:
        for name in ("bad", "length", "loss"):
            setattr(csr, f"{name}_seed", start.other(name).state)

    def refuse(self, settings: Any) -> None:
        if settings.faults:
            raise ValueError("this link is built without outages and bursts")

    def apply(self, csr: Registers, settings: Any) -> None:
        bursts = settings.bursts
        csr.outage = int(settings.outage)
        if bursts is not None:
            for state, (length, loss) in enumerate(zip(bursts.lengths, (bursts.good_loss, bursts.loss), strict=True)):
                csr.length_mantissa[state], csr.length_shift[state] = scale_of_length(length)
                csr.loss[state] = round(loss * LOSS_ONE)
            csr.burst_cells = int(bursts.by_cells)
            if bursts.ber:
                csr.bad_error_mantissa, csr.bad_error_shift = scale_of(bursts.ber)
            csr.bad_error_enable = int(bursts.ber > 0)
        csr.burst_enable = int(bursts is not None)

    def values_of(self, member: str, value: Any) -> Mapping[str, int | None] | None:
        return {"outage": int(value)} if member == "outage" else None

    def begin(self, csr: Registers, settings: Any, start: ErrorStart) -> None:
        bursts = settings.bursts
        if bursts is not None:
            csr.length = start.other("length").gap(1 / bursts.lengths[0])
            if bursts.ber:
                csr.bad_gap = start.other("bad").gap(bursts.ber)

    def counters(self, csr: Registers) -> dict[str, Any]:
        found = {"bad_cells": csr.bad_cells, "bad_states": csr.bad_states}
        return found | {f"drop_{why}": getattr(csr, f"lost_{why}") for why in LOST}


OPTION: Final = Faults()
