"""Histograms as software sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import CELLS, TIME, Settings
from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.ticks import round_ticks

__all__ = [
    "BINS",
    "BIN_BITS",
    "MOST_VCS",
    "OCTAVE_BITS",
    "OPTIONS",
    "SHIFT_BITS",
    "HistogramSettings",
    "Histograms",
    "lower_bounds",
]

BIN_BITS: Final = 6

BINS: Final = 1 << BIN_BITS

OCTAVE_BITS: Final = 2
"""A doubling has four bins."""

SHIFT_BITS: Final = 5

MOST_VCS: Final = 256
"""VCs of a switch with histograms at most: its tables have no more entries."""

_WIDEST: Final = 1 << ((1 << SHIFT_BITS) - 1)


class HistogramSettings(Settings):
    """Histograms of queues and delays, by port and by VC."""

    bins: Literal["logarithmic", "linear"] = Field(
        default="logarithmic", description="widths of the 64 bins: four per doubling, or all equal"
    )
    queue_bin: Annotated[int, CELLS.within(1, 32768)] = Field(
        default=1, description="width of the narrowest bin of queues, rounded up to a power of 2"
    )
    delay_bin_ps: Annotated[int, TIME.within(0, "100 s")] = Field(
        default=0, description="width of the narrowest bin of delays, rounded up to a power of 2 of ticks (177 ns)"
    )

    @property
    def shifts(self) -> tuple[int, int]:
        """Return the logarithms (base 2) of the bin widths: of queues in cells, of delays in ticks."""
        widths = self.queue_bin, min(max(1, round_ticks(self.delay_bin_ps)), _WIDEST)
        return (widths[0] - 1).bit_length(), (widths[1] - 1).bit_length()


def lower_bounds(shift: int, logarithmic: bool) -> list[int]:
    """Return the least value in each bin."""
    if not logarithmic:
        return [k << shift for k in range(BINS)]
    part = 1 << OCTAVE_BITS
    return [(k if k < part else (part + k % part) << (k // part - 1)) << shift for k in range(BINS)]


class Histograms(Option):
    """Counts in hardware how long queues and delays are."""

    name = "histograms"
    bit = 10
    needs_port_queues = True
    series: ClassVar = {
        "sent": "cells that a port has sent, of a switch with histograms",
        "delays": "their delays in the switch together, ticks",
        "came": "cells that came for the port, queued or not",
        "found": "cells that these found queued for it, together",
    }

    def wanted(self, setup: Setup) -> bool:
        return setup.settings.histograms is not None

    def check(self, setup: Setup) -> Iterator[Fault]:
        if setup.entries > MOST_VCS:
            yield Fault(f"histograms are of {MOST_VCS} VCs at most, and {setup.entries} pass it", "histograms")

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells
        if vcs > MOST_VCS:
            raise ValueError(f"histograms are of {MOST_VCS} VCs at most, not {vcs!r}")
        scale = (
            reg.Field("shift", 0, SHIFT_BITS, "log2 of the width of the narrowest bin"),
            reg.Field("logarithmic", SHIFT_BITS, text="logarithmic bins: from bin 4 on each doubling has four"),
        )
        vc_bins, port_bins = vcs << BIN_BITS, ports << BIN_BITS
        found, took = "cells by the queue that they found", "cells by their delay"
        return (
            Register("vc_queue_bins", 0xB0000, f"{found} of their VC, 64 bins a VC", "ro", count=vc_bins, unit="cells"),
            Register("vc_delay_bins", 0xB8000, f"{took}, 64 bins a VC", "ro", count=vc_bins, unit="cells"),
            Register(
                "port_queue_bins", 0xC0000, f"{found} for their port, 64 bins a port", "ro", count=port_bins,
                unit="cells",
            ),
            Register("port_delay_bins", 0xC0400, f"{took}, 64 bins a port", "ro", count=port_bins, unit="cells"),
            Register("queue_scale", 0xC0800, "bins of queues, in cells", width=SHIFT_BITS + 1, fields=scale),
            Register("delay_scale", 0xC0801, "bins of delays, in ticks", width=SHIFT_BITS + 1, fields=scale),
            Register("queue_sum_low", 0xC0810, "sum of the queues found, by port, low word", "ro", count=ports),
            Register("queue_sum_high", 0xC0820, "sum of the queues found, by port, high word", "ro", count=ports),
            Register("delay_sum_low", 0xC0830, "sum of the delays, by port, low word", "ro", count=ports),
            Register("delay_sum_high", 0xC0840, "sum of the delays, by port, high word", "ro", count=ports),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        given = setup.settings.histograms or HistogramSettings()
        logarithmic = given.bins == "logarithmic"
        csr.queue_scale, csr.delay_scale = ({"shift": s, "logarithmic": logarithmic} for s in given.shifts)

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        """Return ``[least value, cells]`` of every occupied bin for each VC and port: queues in cells, delays in
        ticks."""
        given = setup.settings.histograms or HistogramSettings()
        found: dict[str, Any] = {}
        for what, shift in zip(("queue", "delay"), given.shifts, strict=True):
            bounds = lower_bounds(shift, given.bins == "logarithmic")
            for of, count in (("vc", len(setup.vcs)), ("port", len(setup.ports))):
                words = getattr(csr, f"{of}_{what}_bins")[: count << BIN_BITS]
                found[f"{what}_by_{of}"] = [
                    [[least, cells] for least, cells in zip(bounds, words[k << BIN_BITS :], strict=False) if cells]
                    for k in range(count)
                ]
            found[f"{what}_sum"] = [_sum(csr, what, port) for port in range(len(setup.ports))]
        return found

    def sample(self, csr: Registers, setup: Setup) -> dict[str, dict[int, int]]:
        ports = range(len(setup.ports))

        def cells(what: str) -> dict[int, int]:
            words = getattr(csr, f"port_{what}_bins")[: len(ports) << BIN_BITS]
            return {port: sum(words[port << BIN_BITS : (port + 1) << BIN_BITS]) for port in ports}

        return {
            "sent": cells("delay"),
            "delays": {port: _sum(csr, "delay", port) for port in ports},
            "came": cells("queue"),
            "found": {port: _sum(csr, "queue", port) for port in ports},
        }


def _sum(csr: Registers, what: str, port: int) -> int:
    """Return a port's sum from its two words.

    They do not change while software reads them, if the node waits for it. Elsewhere the sum may be torn.
    """
    low, high = getattr(csr, f"{what}_sum_low")[port], getattr(csr, f"{what}_sum_high")[port]
    return high << 32 | low


OPTIONS: Final = (Histograms(),)
