"""Virtual clock scheduling as software sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.switch.options.scheduling import scheduler_of
from bentpipe_hdl.ticks import cell_period
from bentpipe_hdl.units import format_rate

__all__ = ["AHEAD_BITS", "OPTIONS", "PERIOD_BITS", "VirtualClocks"]

PERIOD_BITS: Final = 40

AHEAD_BITS: Final = 38
"""A virtual clock is at most 2**38 ticks ahead, 13.5 hours."""


class VirtualClocks(Option):
    """Ports that serve the VC whose virtual clock is least: all of a switch."""

    name = "virtual-clock"
    bit = 11

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
                "service_period", 0xA4000, "advance of a VC's virtual clock with each cell", "wo", PERIOD_BITS,
                vcs, "ticks / 2**16",
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for index, vc in enumerate(setup.vcs):
            rate, port = vc.settings.service_rate_bps, setup.ports[vc.out_port]
            csr.service_period[index] = cell_period(rate, port.clock_ppm) if rate else (1 << PERIOD_BITS) - 1


OPTIONS: Final = (VirtualClocks(),)
