"""Credits, hop by hop, as software sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import CELLS, TIME, Settings
from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.switch.options.scheduling import scheduler_of
from bentpipe_hdl.ticks import round_ticks

__all__ = ["MOST_SHARE", "OPTIONS", "CreditSettings", "Credits", "visit_step"]

MOST_SHARE = 32768
"""Cells."""


class CreditSettings(Settings):
    """Credits on the lines into a switch."""

    share: Annotated[int, CELLS.within(0, MOST_SHARE)] = Field(
        default=0, description="cells of the buffer for each VC without `credits` of its own; 0: none"
    )
    batch: Annotated[int, CELLS.within(1, 1024)] = Field(
        default=8, description="cells of a VC between two credit cells"
    )
    resync_ps: Annotated[int, TIME.within("10 us", "100 s")] = Field(
        default=10**9, description="after which a VC with cells that aren't accounted for asks again, at the latest"
    )


def visit_step(resync_ps: int, vcs: int) -> int:
    """Return the number of ticks between the audits of two consecutive VCs, with so many VCs."""
    return max(1, round_ticks(resync_ps) // max(1, vcs))


def _credits_fault(what: str, setup: Setup) -> Fault:
    """Return a fault of the switch's credits for all VCs, or else of those of a VC."""
    if setup.settings.share:
        return Fault(what, "credits.share")
    return Fault(what, "credits", vc=setup.vc_with("credits"))


class Credits(Option):
    """VCs that send to the next switch only what it has places for."""

    name = "credits"
    bit = 12

    def wanted(self, setup: Setup) -> bool:
        return any(vc.credits_in or vc.credits_out for vc in setup.vcs)

    def check(self, setup: Setup) -> Iterator[Fault]:
        """Yield the faults of the credits' settings.

        The check of reservations covers the sum: credits are reservations of the buffer.
        """
        reserved, buffer = sum(vc.credits_in for vc in setup.vcs), setup.settings.buffer_cells
        if reserved == buffer and not all(vc.credits_in for vc in setup.vcs):
            what = f"credits take all {buffer} cells of the buffer, and some VCs have none"
            yield _credits_fault(what, setup)
        batch = _given(setup).batch
        for k, vc in enumerate(setup.vcs):
            if 0 < vc.credits_in < batch:
                what = f"VC {vc.in_vpi}/{vc.in_vci} has credits for {vc.credits_in} cells"
                what = f"{what}, and a credit cell comes after {batch} (credits.batch)"
                yield Fault(what, "credits", vc=k) if vc.settings.credits else Fault(what, "credits.share")
        by_cell = {scheduler_of(setup, port) for port in range(len(setup.ports))} & {"fifo", "virtual-clock"}
        for scheduler in sorted(by_cell):
            what = f'scheduler "{scheduler}" does not go with credits: a VC that waits would hold all others up'
            yield Fault(what, "scheduler", port=setup.port_with("scheduler", scheduler))

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        return (
            Register(
                "credit_batch", 0x0200, "that leave from one credit cell to the next", width=16, unit="cells", reset=1
            ),
            Register(
                "credit_step", 0x0202, "from the visit to a VC to the next one", unit="ticks", reset=1, most=1 << 31
            ),
            Register("credit_last", 0x0204, "the VC that is visited last", width=(vcs - 1).bit_length(), reset=0),
            Register("credit_came", 0x0210, "RM cells of known VCs that came: credit cells and probes", "ro"),
            Register("credit_bad", 0x0211, "those of them that say nothing: errors, other RM cells", "ro"),
            Register("credit_given", 0x0212, "credit cells sent", "ro"),
            Register("credit_probes", 0x0213, "probes sent", "ro"),
            Register("credit_skipped", 0x0214, "of both, not sent for want of a place at their port", "ro"),
            Register("credit_holds", 0x0215, "how often a VC had to wait for credit", "ro"),
            Register(
                "vc_credits", 0xD8000, "what a VC has of credits; to be written before it is enabled", "wo", 33, vcs,
                fields=(
                    reg.Field("share", 0, 16, "under way to the next switch and queued there, most; 0: any", "cells"),
                    reg.Field("back", 16, 12, "the VC the other way"),
                    reg.Field("back_port", 28, 4, "its output port"),
                    reg.Field("returns", 32, text="its credits are given back to where its cells come from"),
                ),
            ),
            Register("credit_freed", 0xDA000, "of a VC, as the next switch told last", "ro", count=vcs, unit="cells"),
            Register("credit_lost", 0xDB000, "of a VC, before they were queued here", "ro", count=vcs, unit="cells"),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        given = _given(setup)
        csr.credit_batch = given.batch
        csr.credit_last = len(setup.vcs) - 1
        csr.credit_step = visit_step(given.resync_ps, len(setup.vcs))
        for index, vc in enumerate(setup.vcs):
            back = None if vc.back is None else setup.vcs[vc.back]
            csr.vc_credits[index] = {
                "share": vc.credits_out,
                "back": vc.back or 0,
                "back_port": back.out_port if back else 0,
                "returns": vc.credits_in > 0,
            }

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        count = len(setup.vcs)
        return {
            "credit_cells_in": csr.credit_came,
            "credit_cells_bad": csr.credit_bad,
            "credit_cells_out": csr.credit_given + csr.credit_probes,
            "credit_probes": csr.credit_probes,
            "credit_skipped": csr.credit_skipped,
            "credit_holds": csr.credit_holds,
            "credit_freed": csr.credit_freed[:count],
            "credit_lost": csr.credit_lost[:count],
        }

    def taken(self, csr: Registers, counters: Mapping[str, Any]) -> int:
        del csr
        return counters["credit_cells_in"]

    def made(self, counters: Mapping[str, Any]) -> int:
        return counters["credit_cells_out"]


def _given(setup: Setup) -> CreditSettings:
    return setup.settings.credits or CreditSettings()


OPTIONS: Final = (Credits(),)
