"""The link as software sees it: its registers, its settings, its driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from bentpipe_hdl import registers as reg
from bentpipe_hdl.bit_errors import GAP_BITS, ErrorStart, scale_of, scale_of_length
from bentpipe_hdl.driver import Balance, Driver
from bentpipe_hdl.lookup_table import lookup_registers, lookup_table
from bentpipe_hdl.registers import Bus, Register, RegisterMap
from bentpipe_hdl.settings import BER, IN_RUN, NUMBER, SHARE, TIME, Settings, wrong
from bentpipe_hdl.ticks import TICK_PS, round_ticks

__all__ = ["ENTRIES", "GONE", "VCS", "BurstSettings", "LinkDriver", "LinkSettings", "Losses", "link_registers"]

VCS = 16
"""VCs of a link that can have losses."""

ENTRIES = 256
"""Words of the lists of all VCs together, an end mark for each among them."""


GONE: Final = ("listed", "outage", "burst")
"""Why a link takes a cell out."""

LOSS_ONE: Final = 1 << 31
"""Of the registers ``loss``: every cell."""

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
        default=None, description="instead of times: mean number of cells in the good state", json_schema_extra=IN_RUN
    )
    bad_cells: Annotated[float, _CELLS] | None = Field(
        default=None, description="and in the bad state", json_schema_extra=IN_RUN
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
        default=0.0, description="and in the good state", json_schema_extra=IN_RUN
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


class LinkSettings(Settings):
    """One direction of a line."""

    delay_ps: Annotated[int, TIME.within(0, "1 s")] = Field(default=0, description="of propagation")
    ber: Annotated[float, BER] = Field(default=0.0, description="bit error ratio", json_schema_extra=IN_RUN)
    outage: bool = Field(default=False, description="every cell is lost", json_schema_extra=IN_RUN)
    bursts: BurstSettings | None = Field(default=None, description="errors that come in bursts, as `bursts = { … }`")

    @property
    def faults(self) -> bool:
        """They ask for a link with outages and bursts."""
        return self.outage or self.bursts is not None

    @property
    def ticks(self) -> int:
        """The delay in ticks, one at least."""
        return max(1, round_ticks(self.delay_ps))


@dataclass(frozen=True)
class Losses:
    """PDUs (or user cells) of a VC that a link takes out: their numbers, ascending from 1 on."""

    pdus: bool
    numbers: tuple[int, ...]


def link_registers(*, delay_cells: int = 0, faults: int = 0) -> RegisterMap:
    """The registers of a link.

    Parameters
    ----------
    delay_cells : int
        Of its delay memory: 0, or a power of two from 2 to 65536.
    faults : int
        1: with outages and bursts; 0: without.

    Raises
    ------
    ValueError
        A parameter has another value.
    """
    if faults not in (0, 1):
        raise ValueError(f"faults must be 0 or 1, not {faults!r}")
    if delay_cells not in [0, *(1 << k for k in range(1, 17))]:
        raise ValueError(f"delay_cells must be 0 or a power of two from 2 to 65536, not {delay_cells!r}")
    return RegisterMap(
        "link",
        "BPLK",
        3,
        {"delay_cells": delay_cells, "faults": faults},
        (
            Register(
                "delay", 0x0001, "from in to out, 1 and more (2 and more with a delay memory)", unit="ticks", reset=1
            ),
            Register("error_enable", 0x0002, "bit errors on", width=1),
            Register("error_mantissa", 0x0003, "scale of the gaps between errors", width=24),
            Register("error_shift", 0x0004, "scale of the gaps, binary places", width=6),
            Register("loss_enable", 0x0005, "listed losses on", width=1),
            Register("gap", 0x0010, "good bits before the next error", "wo", GAP_BITS, unit="bits"),
            Register("seed", 0x0012, "state of the generator, not 0", "wo", 64, reset=1),
            *lookup_registers(VCS),
            Register("cells", 0x0080, "that came in", "ro", unit="cells"),
            Register("errored", 0x0081, "with bit errors", "ro", unit="cells"),
            Register("corrected", 0x0082, "headers corrected", "ro", unit="cells"),
            Register("rejected", 0x0083, "headers with an error that was not corrected", "ro", unit="cells"),
            Register("error_bits", 0x0084, "inverted", "ro", unit="bits"),
            Register("lost", 0x0085, "that found the delay memory full", "ro", unit="cells"),
            Register("dropped", 0x0086, "taken out by the lists", "ro", unit="cells"),
            Register(
                "loss_vc", 0x10000, "a VC's list; its count starts again", "wo", 9, VCS,
                fields=(reg.Field("first", 0, 8, "place of its first number"), reg.Field("pdus", 8, text="not cells")),
            ),
            Register("losses", 0x20000, "numbers of lost cells or PDUs, 0 at the end", "wo", count=ENTRIES),
            *(_FAULTS if faults else ()),
        ),
    )  # fmt: skip


_FAULTS: Final = (
    Register("outage", 0x0020, "every cell is lost", width=1),
    Register("burst_enable", 0x0021, "good and bad states by turns", width=1),
    Register("burst_cells", 0x0022, "lengths of states count cells, not ticks", width=1),
    Register("length_mantissa", 0x0024, "scale of the good state's length, of the bad one's", width=24, count=2),
    Register("length_shift", 0x0026, "scale of the lengths, binary places", width=6, count=2),
    Register("loss", 0x0028, "of cells in the good state, in the bad one, 1 / 2**31", count=2, most=LOSS_ONE),
    Register("bad_error_enable", 0x002A, "bit errors in the bad state", width=1),
    Register("bad_error_mantissa", 0x002B, "scale of the gaps between those", width=24),
    Register("bad_error_shift", 0x002C, "scale of those gaps, binary places", width=6),
    Register("bad_gap", 0x0030, "good bits of the bad state before its next error", "wo", GAP_BITS, unit="bits"),
    Register("bad_seed", 0x0032, "state of its generator, not 0", "wo", 64, reset=1),
    Register("length_seed", 0x0034, "state of the generator of lengths, not 0", "wo", 64, reset=1),
    Register("loss_seed", 0x0036, "state of the generator of losses, not 0", "wo", 64, reset=1),
    Register("length", 0x0038, "that the state goes on, ticks, or cells behind the next", "wo", GAP_BITS),
    Register("bad", 0x0088, "the state is bad", "ro", width=1),
    Register("bad_cells", 0x0089, "that came in the bad state", "ro", unit="cells"),
    Register("bad_states", 0x008A, "times that it began", "ro"),
    Register("lost_outage", 0x008B, "lost in outages", "ro", unit="cells"),
    Register("lost_burst", 0x008C, "lost by the states' shares", "ro", unit="cells"),
)


class LinkDriver(Driver):
    """The software side of a link; ``delay_cells`` of its delay memory, with ``faults`` or without."""

    kind = "link"

    def __init__(self, bus: Bus, *, delay_cells: int = 0, faults: int = 0):
        super().__init__(bus, link_registers(delay_cells=delay_cells, faults=faults))
        self._faults = bool(faults)

    def configure(
        self, settings: LinkSettings, start: ErrorStart, losses: Mapping[tuple[int, int], Losses] | None = None
    ) -> None:
        """Write all settings of a link that was reset: where its errors start, and what it loses, by VPI and VCI.

        Raises
        ------
        ValueError
            There are losses for more than ``VCS`` VCs, or more numbers and ends of lists than ``ENTRIES``.
        """
        csr = self.csr
        self._lose(losses or {})
        csr.seed = start.state
        if self._faults:
            for name in ("bad", "length", "loss"):
                setattr(csr, f"{name}_seed", start.other(name).state)
        self.apply(settings)
        if settings.ber:
            csr.gap = start.gap(settings.ber)
        bursts = settings.bursts
        if bursts is not None:
            csr.length = start.other("length").gap(1 / bursts.lengths[0])
            if bursts.ber:
                csr.bad_gap = start.other("bad").gap(bursts.ber)

    def apply(self, settings: LinkSettings) -> None:
        """Write the settings but where the errors start.

        Raises
        ------
        ValueError
            The link is built without faults, and they ask for some.
        """
        csr, bursts = self.csr, settings.bursts
        csr.delay = settings.ticks
        if settings.ber:
            csr.error_mantissa, csr.error_shift = scale_of(settings.ber)
        csr.error_enable = int(settings.ber > 0)
        if not self._faults:
            if settings.faults:
                raise ValueError("this link is built without outages and bursts")
            return
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

    def _lose(self, losses: Mapping[tuple[int, int], Losses]) -> None:
        if len(losses) > VCS or sum(len(lost.numbers) + 1 for lost in losses.values()) > ENTRIES:
            raise ValueError(f"a link has losses for {VCS} VCs, {ENTRIES} numbers and ends of lists in all")
        csr, place = self.csr, 0
        lookup_table(VCS, {(0, vpi, vci): index for index, (vpi, vci) in enumerate(losses)}).write(csr)
        for index, lost in enumerate(losses.values()):
            csr.loss_vc[index] = {"first": place, "pdus": lost.pdus}
            for number in (*lost.numbers, 0):
                csr.losses[place] = number
                place += 1
        csr.loss_enable = int(bool(losses))

    def counters(self) -> dict[str, Any]:
        csr = self.csr
        names = ("cells", "errored", "corrected", "rejected", "error_bits")
        found: dict[str, Any] = {name: getattr(csr, name) for name in names}
        found |= {"drop_lost": csr.lost, "drop_listed": csr.dropped}
        if self._faults:
            found |= {"bad_cells": csr.bad_cells, "bad_states": csr.bad_states}
            found |= {f"drop_{why}": getattr(csr, f"lost_{why}") for why in GONE[1:]}
        return found

    def account(self, cells_in: int, cells_out: int) -> Iterator[Balance]:
        now = self.counters()
        yield Balance("cells in = counted", cells_in, now["cells"])
        gone = sum(count for name, count in now.items() if name.startswith("drop_"))
        yield Balance("cells in = cells out + lost", cells_in, cells_out + gone)

    def told(self) -> Iterator[tuple[str, int, int]]:
        now = self.counters()
        yield "cells told as hit", 0, now["errored"]
        yield "cells told as gone", 1, sum(count for name, count in now.items() if name.startswith("drop_"))
