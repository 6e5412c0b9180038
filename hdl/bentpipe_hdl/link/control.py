"""The link as software sees it: its registers, its settings, its driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from bentpipe_hdl import registers as reg
from bentpipe_hdl.bit_errors import GAP_BITS, ErrorStart, scale_of
from bentpipe_hdl.driver import Balance, Driver
from bentpipe_hdl.lookup_table import lookup_registers, lookup_table
from bentpipe_hdl.registers import Bus, Register, RegisterMap
from bentpipe_hdl.settings import BER, IN_RUN, TIME, Settings
from bentpipe_hdl.ticks import round_ticks

__all__ = ["ENTRIES", "VCS", "LinkDriver", "LinkSettings", "Losses", "link_registers"]

VCS = 16
"""VCs of a link that can have losses."""

ENTRIES = 256
"""Words of the lists of all VCs together, an end mark for each among them."""


class LinkSettings(Settings):
    """One direction of a line."""

    delay_ps: Annotated[int, TIME.within(0, "1 s")] = Field(default=0, description="of propagation")
    ber: Annotated[float, BER] = Field(default=0.0, description="bit error ratio", json_schema_extra=IN_RUN)

    @property
    def ticks(self) -> int:
        """The delay in ticks, one at least."""
        return max(1, round_ticks(self.delay_ps))


@dataclass(frozen=True)
class Losses:
    """PDUs (or user cells) of a VC that a link takes out: their numbers, ascending from 1 on."""

    pdus: bool
    numbers: tuple[int, ...]


def link_registers(*, delay_cells: int = 0) -> RegisterMap:
    """The registers of a link; ``delay_cells`` of its delay memory: 0, or a power of two from 2 to 65536, or it is a
    ValueError."""
    if delay_cells not in [0, *(1 << k for k in range(1, 17))]:
        raise ValueError(f"delay_cells must be 0 or a power of two from 2 to 65536, not {delay_cells!r}")
    return RegisterMap(
        "link",
        "BPLK",
        2,
        {"delay_cells": delay_cells},
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
        ),
    )  # fmt: skip


class LinkDriver(Driver):
    """The software side of a link; ``delay_cells`` of its delay memory."""

    kind = "link"

    def __init__(self, bus: Bus, *, delay_cells: int = 0):
        super().__init__(bus, link_registers(delay_cells=delay_cells))

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
        self.apply(settings)
        if settings.ber:
            csr.gap = start.gap(settings.ber)

    def apply(self, settings: LinkSettings) -> None:
        """Write the settings but where the errors start."""
        self.csr.delay = settings.ticks
        ber = settings.ber
        if ber:
            self.csr.error_mantissa, self.csr.error_shift = scale_of(ber)
        self.csr.error_enable = int(ber > 0)

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
        return {**found, "drop_lost": csr.lost, "drop_listed": csr.dropped}

    def account(self, cells_in: int, cells_out: int) -> Iterator[Balance]:
        now = self.counters()
        yield Balance("cells in = counted", cells_in, now["cells"])
        yield Balance("cells in = cells out + lost", cells_in, cells_out + now["drop_lost"] + now["drop_listed"])

    def told(self) -> Iterator[tuple[str, int, int]]:
        csr = self.csr
        yield "cells told as hit", 0, csr.errored
        yield "cells told as gone", 1, csr.lost + csr.dropped
