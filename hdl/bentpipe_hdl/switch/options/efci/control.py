"""Explicit forward congestion indication as software sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup, above_buffer

__all__ = ["OPTIONS", "Efci"]


class Efci(Option):
    """Explicit forward congestion indication."""

    name = "efci"
    bit = 9
    needs_port_queues = True
    changes_cells = True

    def wanted(self, setup: Setup) -> bool:
        others = (*(port.settings for port in setup.ports), *(vc.settings for vc in setup.vcs))
        return bool(setup.settings.efci_threshold) or any(one.efci_threshold for one in others)

    def check(self, setup: Setup) -> Iterator[Fault]:
        yield from above_buffer(setup, "efci_threshold")

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        count = (cells + 1).bit_length()
        return (
            Register(
                "efci_threshold", 0x010C, "cells in the buffer from which on user cells get EFCI; 0: never",
                width=count,
                unit="cells",
            ),
            Register(
                "port_efci_threshold", 0x01C0,
                "cells queued for a port from which on its user cells get EFCI; 0: never",
                "rw", 16,
                ports, "cells",
            ),
            Register(
                "vc_efci_threshold", 0xD2000, "cells queued of a VC from which on its user cells get EFCI; 0: never",
                "wo", 16, vcs, "cells"
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        csr.efci_threshold = setup.settings.efci_threshold
        for k, port in enumerate(setup.ports):
            csr.port_efci_threshold[k] = port.settings.efci_threshold or 0
        for index, vc in enumerate(setup.vcs):
            csr.vc_efci_threshold[index] = vc.settings.efci_threshold or 0


OPTIONS: Final = (Efci(),)
