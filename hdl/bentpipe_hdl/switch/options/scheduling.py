"""In which order the cells of a port leave, as software sees it: FIFO, weights, priorities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.ticks import cell_period
from bentpipe_hdl.units import format_rate

__all__ = [
    "AHEAD_BITS",
    "MOST_WEIGHT",
    "PERIOD_BITS",
    "PRIORITIES",
    "WEIGHT_BITS",
    "Fifo",
    "Scheduler",
    "Shares",
    "VirtualClocks",
    "scheduler_of",
]

PRIORITIES: Final = 4

WEIGHT_BITS: Final = 8

PERIOD_BITS: Final = 40

AHEAD_BITS: Final = 38
"""A virtual clock is at most 2**38 ticks ahead, 13.5 hours."""

MOST_WEIGHT: Final = (1 << WEIGHT_BITS) - 1

Scheduler = Literal["round-robin", "weighted", "fifo", "virtual-clock"]


def scheduler_of(setup: Setup, port: int) -> str:
    """What a port has: its own, or the switch's."""
    return setup.ports[port].settings.scheduler or setup.settings.scheduler


def _weight(setup: Setup, vc: Any) -> int:
    """Of a VC, where its port goes by weights."""
    return vc.settings.weight if scheduler_of(setup, vc.out_port) == "weighted" else 1


class Fifo(Option):
    """Ports that send cells in the order in which they were queued."""

    name = "fifo"

    def wanted(self, setup: Setup) -> bool:
        return any(scheduler_of(setup, port) == "fifo" for port in range(len(setup.ports)))

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells
        return (Register("fifo", 0xA0000, "a bit a port: cells leave as they came", width=ports),)

    def configure(self, csr: Registers, setup: Setup) -> None:
        csr.fifo = sum((scheduler_of(setup, port) == "fifo") << port for port in range(len(setup.ports)))


class Shares(Option):
    """VCs with weights and priorities."""

    name = "shares"

    def wanted(self, setup: Setup) -> bool:
        return any(vc.settings.priority or _weight(setup, vc) > 1 for vc in setup.vcs)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        return (
            Register(
                "share", 0xA1000, "what a VC has of its port", "wo", WEIGHT_BITS + (PRIORITIES - 1).bit_length(), vcs,
                fields=(
                    reg.Field("weight", 0, WEIGHT_BITS, "that it sends in a turn; 0 is 1", "cells"),
                    reg.Field("priority", WEIGHT_BITS, (PRIORITIES - 1).bit_length(), "the higher is served first"),
                ),
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for index, vc in enumerate(setup.vcs):
            csr.share[index] = {"weight": _weight(setup, vc), "priority": vc.settings.priority}


class VirtualClocks(Option):
    """Ports that serve the VC whose virtual clock is least: all of a switch."""

    name = "virtual-clock"

    def wanted(self, setup: Setup) -> bool:
        return any(scheduler_of(setup, port) == self.name for port in range(len(setup.ports)))

    def check(self, setup: Setup) -> Iterator[Fault]:
        if any(scheduler_of(setup, port) != self.name for port in range(len(setup.ports))):
            what = "virtual-clock is for all ports of a switch: give it to the switch, and no port another scheduler"
            own = next(k for k, port in enumerate(setup.ports) if port.settings.scheduler)
            yield Fault(what, "scheduler", port=own)
        if (vc := setup.vc_with("priority")) is not None:
            yield Fault("virtual-clock knows no priorities, and a VC through it has one", "priority", vc=vc)
        for number, port in enumerate(setup.ports):
            rates = [vc.settings.service_rate_bps or 0 for vc in setup.vcs if vc.out_port == number]
            if sum(rates) > port.rate_bps:
                what = f"port {number} of {format_rate(port.rate_bps)} has VCs with service rates of"
                last = max(
                    k for k, vc in enumerate(setup.vcs) if vc.out_port == number and vc.settings.service_rate_bps
                )
                yield Fault(f"{what} {format_rate(sum(rates))} together", "service_rate", vc=last)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        return (
            Register(
                "service_period", 0xA4000, "by which a VC's virtual clock goes on with each cell", "wo", PERIOD_BITS,
                vcs, "ticks / 2**16",
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for index, vc in enumerate(setup.vcs):
            rate, port = vc.settings.service_rate_bps, setup.ports[vc.out_port]
            csr.service_period[index] = cell_period(rate, port.clock_ppm) if rate else (1 << PERIOD_BITS) - 1
