"""Selective drop and fair buffer allocation as software sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup

__all__ = ["FAIR_POLICIES", "OPTIONS", "SHARE_FRACTION", "FairShare"]

SHARE_FRACTION: Final = 12
"""Fraction bits of the share of the buffer that a VC may have."""

FAIR_POLICIES: Final = {"selective": "selective", "fba": "allocation"}
"""Policies by which a VC with little in the buffer is spared, and their bits in the table."""


class FairShare(Option):
    """Selective drop and fair buffer allocation."""

    name = "fair"
    bit = 7

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
            Register("fair_share", 0x0102, "share Z of the buffer that a VC may have", width=16, unit="2**-12"),
            Register(
                "fair_span", 0x0104, "cells from the threshold to the capacity, times Z", "wo", 16 + count,
                unit="cells / 2**12",
            ),
            Register("active_vcs", 0x0106, "VCs with cells in the buffer", "ro", vcs.bit_length(), unit="VCs"),
            Register(
                "vc_fair", 0xD0000, "discard policy by a VC's share", "wo", 2, vcs,
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


OPTIONS: Final = (FairShare(),)
