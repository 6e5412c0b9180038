"""Counts of cells with a threshold, as software sees them."""

from __future__ import annotations

from typing import Any, Final

from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Option, Setup

__all__ = ["OPTIONS", "CellCount"]


class CellCount(Option):
    """VCs whose queued cells are counted, with an interrupt at a threshold."""

    name = "cell_count"
    bit = 18

    def wanted(self, setup: Setup) -> bool:
        return any(vc.settings.interrupt_at for vc in setup.vcs)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        return (
            Register("count_reached", 0x0600, "VCs whose count reached its threshold since the last write", "ro",
                     on_write="it is 0 again, and the interrupt is low"),
            Register("count_vc", 0x0601, "VC that reached its threshold last", "ro", width=(vcs - 1).bit_length()),
            Register("count_threshold", 0xF0000, "cells at which a VC interrupts; 0: never", "wo", 32, vcs, "cells"),
            Register("count_cells", 0xF2000, "queued since the switch was reset, a VC", "ro", count=vcs, unit="cells"),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for index, vc in enumerate(setup.vcs):
            csr.count_threshold[index] = vc.settings.interrupt_at or 0

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        return {
            "counted_cells": csr.count_cells[: len(setup.vcs)],
            "count_reached": csr.count_reached,
            "count_vc": csr.count_vc,
        }


OPTIONS: Final = (CellCount(),)
