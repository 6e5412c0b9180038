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
        default=10**9, description="longest time before a VC with unaccounted cells asks for its credits"
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
            what = f'scheduler "{scheduler}" cannot be combined with credits: a waiting VC would stop all others'
            yield Fault(what, "scheduler", port=setup.port_with("scheduler", scheduler))

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        return (
            Register(
                "credit_batch", 0x0200, "cells that leave from one credit cell to the next",
                width=16, unit="cells", reset=1
            ),
            Register(
                "credit_step", 0x0202, "interval between the audits of two VCs", unit="ticks", reset=1, most=1 << 31
            ),
            Register("credit_last", 0x0204, "last VC that is audited", width=(vcs - 1).bit_length(), reset=0),
            Register("credit_came", 0x0210, "RM cells received on known VCs: credit cells and probes", "ro"),
            Register("credit_bad", 0x0211, "RM cells of these that were ignored: errors, other RM cells", "ro"),
            Register("credit_given", 0x0212, "credit cells sent", "ro"),
            Register("credit_probes", 0x0213, "probes sent", "ro"),
            Register(
                "credit_skipped", 0x0214, "credit cells and probes not sent, as their port had no place for them",
                "ro",
            ),
            Register("credit_holds", 0x0215, "times that a VC had to wait for credit", "ro"),
            Register(
                "vc_credits", 0xD8000, "credits of a VC; to be written before the VC is enabled", "wo", 33, vcs,
                fields=(
                    reg.Field(
                        "share", 0, 16, "cells on the way to the next switch and queued there, at most; 0: any number",
                        "cells",
                    ),
                    reg.Field("back", 16, 12, "VC in the opposite direction"),
                    reg.Field("back_port", 28, 4, "output port of that VC"),
                    reg.Field("returns", 32, text="credits of the VC are returned to the node before"),
                ),
            ),
            Register(
                "credit_freed", 0xDA000, "cells of a VC that the next switch has freed, by its last credit cell",
                "ro", count=vcs, unit="cells",
            ),
            Register(
                "credit_lost", 0xDB000, "cells of a VC lost before they were queued here",
                "ro", count=vcs, unit="cells",
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        given = _given(setup)
        csr.credit_batch = given.batch
        csr.credit_last = max(0, len(setup.vcs) - 1)
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
