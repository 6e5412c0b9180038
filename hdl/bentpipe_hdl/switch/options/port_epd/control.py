"""Early packet discard by the queue of a port, as software sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup, above_buffer

__all__ = ["OPTIONS", "PortEpd"]


class PortEpd(Option):
    """EPD by what is queued for a port."""

    name = "port_epd"
    bit = 6
    needs_port_queues = True

    def wanted(self, setup: Setup) -> bool:
        return any(port.settings.epd_threshold is not None for port in setup.ports)

    def check(self, setup: Setup) -> Iterator[Fault]:
        yield from above_buffer(setup, "epd_threshold")

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells
        return (
            Register(
                "port_epd_threshold", 0x01B0,
                "cells queued for a port from which on EPD refuses frames to it; 0: never",
                "rw", 16, ports, "cells",
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for k, port in enumerate(setup.ports):
            csr.port_epd_threshold[k] = port.settings.epd_threshold or 0


OPTIONS: Final = (PortEpd(),)
