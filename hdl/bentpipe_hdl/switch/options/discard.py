"""Which VCs a switch refuses first, and whom it tells of congestion, as software sees it: thresholds of ports, shares
of the buffer, guaranteed cells, EFCI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup

__all__ = ["FAIR_POLICIES", "SHARE_FRACTION", "Efci", "FairShare", "Minimum", "PortEpd"]

SHARE_FRACTION: Final = 12
"""Fraction bits of the share of the buffer that a VC may have."""

FAIR_POLICIES: Final = {"selective": "selective", "fba": "allocation"}
"""Policies by which a VC with little in the buffer is spared, and their bits in the table."""


def _above_buffer(setup: Setup, key: str) -> Iterator[Fault]:
    """Thresholds of ports that the buffer can't reach."""
    cells = setup.settings.buffer_cells
    for k, port in enumerate(setup.ports):
        given = getattr(port.settings, key) or 0
        if given > cells:
            yield Fault(f"{key} of port {k}: {given} cells are more than the buffer's {cells}", key, port=k)


class PortEpd(Option):
    """EPD by what is queued for a port."""

    name = "port_epd"
    needs_port_queues = True

    def wanted(self, setup: Setup) -> bool:
        return any(port.settings.epd_threshold is not None for port in setup.ports)

    def check(self, setup: Setup) -> Iterator[Fault]:
        yield from _above_buffer(setup, "epd_threshold")

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells
        return (
            Register(
                "port_epd_threshold", 0x01B0, "queued for a port from which on EPD refuses frames to it; 0: never",
                "rw", 16, ports, "cells",
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for k, port in enumerate(setup.ports):
            csr.port_epd_threshold[k] = port.settings.epd_threshold or 0


class FairShare(Option):
    """Selective drop and fair buffer allocation."""

    name = "fair"

    def wanted(self, setup: Setup) -> bool:
        settings = setup.settings
        return settings.policy in FAIR_POLICIES or any(vc.policy(settings) in FAIR_POLICIES for vc in setup.vcs)

    def check(self, setup: Setup) -> Iterator[Fault]:
        for k, vc in enumerate(setup.vcs):
            if vc.settings.epd_threshold is not None and vc.policy(setup.settings) in FAIR_POLICIES:
                what = "policies 'selective' and 'fba' go by the shared buffer: "
                yield Fault(f"{what}epd_threshold of a VC needs policy 'epd'", "epd_threshold", vc=k)
                return

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del ports
        count = (cells + 1).bit_length()
        return (
            Register("fair_share", 0x0102, "of the buffer that a VC may have: Z", width=16, unit="2**-12"),
            Register(
                "fair_span", 0x0104, "Z times the cells from the threshold to the capacity", "wo", 16 + count,
                unit="cells / 2**12",
            ),
            Register("active_vcs", 0x0106, "VCs with cells in the buffer", "ro", vcs.bit_length(), unit="VCs"),
            Register(
                "vc_fair", 0xD0000, "how a VC's share is looked at", "wo", 2, vcs,
                fields=(
                    reg.Field("selective", 0, text="selective drop"),
                    reg.Field("allocation", 1, text="fair buffer allocation"),
                ),
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        settings = setup.settings
        share = round(settings.fair_share * (1 << SHARE_FRACTION))
        csr.fair_share = share
        csr.fair_span = share * (settings.buffer_cells - settings.epd_cells)
        for index, vc in enumerate(setup.vcs):
            bit = FAIR_POLICIES.get(vc.policy(settings))
            csr.vc_fair[index] = {bit: 1} if bit else {}

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        del setup
        return {"active_vcs": csr.active_vcs}


class Minimum(Option):
    """Cells that each VC may always have in the buffer."""

    name = "minimum"

    @staticmethod
    def _minima(setup: Setup) -> list[int]:
        default = setup.settings.vc_minimum
        return [vc.credits_in or (default if vc.settings.minimum is None else vc.settings.minimum) for vc in setup.vcs]

    def wanted(self, setup: Setup) -> bool:
        return bool(setup.settings.vc_minimum) or any(self._minima(setup))

    def check(self, setup: Setup) -> Iterator[Fault]:
        settings, asked = setup.settings, sum(self._minima(setup))
        if asked > settings.buffer_cells - settings.oam_reserve:
            what = f"the minima of its {len(setup.vcs)} VCs are {asked} cells, more than the buffer's "
            left = f" but {settings.oam_reserve} for OAM" if settings.oam_reserve else ""
            yield self._fault(f"{what}{settings.buffer_cells}{left}", setup)

    def _fault(self, what: str, setup: Setup) -> Fault:
        """What takes most of the buffer is at fault: a setting of the switch, or of the VC with the largest share."""
        settings, minima = setup.settings, self._minima(setup)
        largest = max(range(len(minima)), key=minima.__getitem__)
        own = setup.vcs[largest].settings
        for key, taken in (("credits", own.credits), ("minimum", own.minimum)):
            if taken:
                return Fault(what, key, vc=largest)
        return Fault(what, "credits.share" if settings.share else "vc_minimum")

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del ports
        count = (cells + 1).bit_length()
        return (
            Register(
                "shared_capacity", 0x0108, "that all VCs together may have beyond their minima", width=count,
                unit="cells", reset=cells, most=cells,
            ),
            Register(
                "shared_user_capacity", 0x0109, "that user cells may take of that", width=count, unit="cells",
                reset=cells, most=cells,
            ),
            Register("shared", 0x010A, "in the buffer beyond their VCs' minima", "ro", width=count, unit="cells"),
            Register("vc_minimum", 0xD1000, "that a VC may always have", "wo", 16, vcs, "cells"),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        minima = self._minima(setup)
        csr.shared_capacity = shared = setup.settings.buffer_cells - sum(minima)
        csr.shared_user_capacity = shared - setup.settings.oam_reserve
        for index, minimum in enumerate(minima):
            csr.vc_minimum[index] = minimum

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        del setup
        return {"shared": csr.shared}


class Efci(Option):
    """Explicit forward congestion indication."""

    name = "efci"
    needs_port_queues = True
    changes_cells = True

    def wanted(self, setup: Setup) -> bool:
        others = (*(port.settings for port in setup.ports), *(vc.settings for vc in setup.vcs))
        return bool(setup.settings.efci_threshold) or any(one.efci_threshold for one in others)

    def check(self, setup: Setup) -> Iterator[Fault]:
        yield from _above_buffer(setup, "efci_threshold")

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        count = (cells + 1).bit_length()
        return (
            Register(
                "efci_threshold", 0x010C, "in the buffer from which on user cells get EFCI; 0: never", width=count,
                unit="cells",
            ),
            Register(
                "port_efci_threshold", 0x01C0, "queued for a port from which on cells to it do; 0: never", "rw", 16,
                ports, "cells",
            ),
            Register(
                "vc_efci_threshold", 0xD2000, "queued of a VC from which on its do; 0: never", "wo", 16, vcs, "cells"
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        csr.efci_threshold = setup.settings.efci_threshold
        for k, port in enumerate(setup.ports):
            csr.port_efci_threshold[k] = port.settings.efci_threshold or 0
        for index, vc in enumerate(setup.vcs):
            csr.vc_efci_threshold[index] = vc.settings.efci_threshold or 0
