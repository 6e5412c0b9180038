"""FIFO ports, weights and priorities as software sees them."""

from __future__ import annotations

from typing import Any, Final

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Option, Setup
from bentpipe_hdl.switch.options.scheduling import scheduler_of

__all__ = ["MOST_WEIGHT", "OPTIONS", "PRIORITIES", "WEIGHT_BITS", "Fifo", "Shares"]

PRIORITIES: Final = 4

WEIGHT_BITS: Final = 8

MOST_WEIGHT: Final = (1 << WEIGHT_BITS) - 1


def _weight(setup: Setup, vc: Any) -> int:
    """Return the weight of a VC: 1 unless its port schedules by weights."""
    return vc.settings.weight if scheduler_of(setup, vc.out_port) == "weighted" else 1


class Fifo(Option):
    """Ports that send cells in the order in which they were queued."""

    name = "fifo"
    bit = 3

    def wanted(self, setup: Setup) -> bool:
        return any(scheduler_of(setup, port) == "fifo" for port in range(len(setup.ports)))

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells
        return (
            Register("fifo", 0xA0000, "ports that send cells in the order of arrival, a bit for each", width=ports),
        )

    def configure(self, csr: Registers, setup: Setup) -> None:
        csr.fifo = sum((scheduler_of(setup, port) == "fifo") << port for port in range(len(setup.ports)))


class Shares(Option):
    """VCs with weights and priorities."""

    name = "shares"
    bit = 4

    def wanted(self, setup: Setup) -> bool:
        return any(vc.settings.priority or _weight(setup, vc) > 1 for vc in setup.vcs)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        return (
            Register(
                "share", 0xA1000, "share of a VC in its port", "wo", WEIGHT_BITS + (PRIORITIES - 1).bit_length(), vcs,
                fields=(
                    reg.Field("weight", 0, WEIGHT_BITS, "cells that the VC sends in a turn; 0 is 1", "cells"),
                    reg.Field(
                        "priority", WEIGHT_BITS, (PRIORITIES - 1).bit_length(),
                        "priority; the higher one is served first",
                    ),
                ),
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for index, vc in enumerate(setup.vcs):
            csr.share[index] = {"weight": _weight(setup, vc), "priority": vc.settings.priority}


OPTIONS: Final = (Fifo(), Shares())
