"""Listed losses as software sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bentpipe_hdl import registers as reg
from bentpipe_hdl.link.options.base import LinkOption
from bentpipe_hdl.lookup_table import lookup_registers, lookup_table
from bentpipe_hdl.registers import Register, Registers

__all__ = ["ENTRIES", "OPTION", "VCS", "ListedLosses", "Losses"]

VCS: Final = 16
"""VCs of a link that can have losses."""

ENTRIES: Final = 256
"""Words of the lists of all VCs together, an end mark for each among them."""


@dataclass(frozen=True)
class Losses:
    """PDUs (or user cells) of a VC that a link takes out: their numbers, ascending from 1 on."""

    pdus: bool
    numbers: tuple[int, ...]


class ListedLosses(LinkOption):
    """Every link has them."""

    place = 0

    def registers(self) -> tuple[Register, ...]:
        return (
            Register("loss_enable", 0x0005, "listed losses enabled", width=1),
            *lookup_registers(VCS),
            Register("dropped", 0x0086, "cells lost by the lists", "ro", unit="cells"),
            Register(
                "loss_vc", 0x10000, "list of a VC's losses; writing it restarts the VC's count", "wo", 9, VCS,
                fields=(
                    reg.Field("first", 0, 8, "index of the list's first number"),
                    reg.Field("pdus", 8, text="numbers count PDUs, not cells"),
                ),
            ),
            Register("losses", 0x20000, "numbers of lost cells or PDUs, 0 at the end", "wo", count=ENTRIES),
        )  # fmt: skip

    def counters(self, csr: Registers) -> dict[str, Any]:
        return {"drop_listed": csr.dropped}

    @staticmethod
    def write(csr: Registers, losses: Mapping[tuple[int, int], Losses]) -> None:
        """Write what a link loses, by VPI and VCI.

        Raises
        ------
        ValueError
            There are losses for more than ``VCS`` VCs, or more numbers and ends of lists than ``ENTRIES``.
        """
        if len(losses) > VCS or sum(len(lost.numbers) + 1 for lost in losses.values()) > ENTRIES:
            raise ValueError(f"a link has losses for {VCS} VCs, {ENTRIES} numbers and ends of lists in all")
        place = 0
        lookup_table(VCS, {(0, vpi, vci): index for index, (vpi, vci) in enumerate(losses)}).write(csr)
        for index, lost in enumerate(losses.values()):
            csr.loss_vc[index] = {"first": place, "pdus": lost.pdus}
            for number in (*lost.numbers, 0):
                csr.losses[place] = number
                place += 1
        csr.loss_enable = int(bool(losses))


OPTION: Final = ListedLosses()
