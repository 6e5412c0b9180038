"""Cells of the buffer that are reserved for each VC, as software sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup

__all__ = ["OPTIONS", "Minimum"]


class Minimum(Option):
    """Cells that each VC may always have in the buffer."""

    name = "minimum"
    bit = 8

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
        """Return a fault that names the setting that takes most of the buffer: the switch's, or that of the largest
        VC."""
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
                "shared_capacity", 0x0108, "cells that all VCs together may have beyond their minima", width=count,
                unit="cells", reset=cells, most=cells,
            ),
            Register(
                "shared_user_capacity", 0x0109, "cells of the shared capacity that are open to user cells",
                width=count, unit="cells",
                reset=cells, most=cells,
            ),
            Register("shared", 0x010A, "cells in the buffer beyond their VCs' minima", "ro", width=count, unit="cells"),
            Register("vc_minimum", 0xD1000, "cells that a VC may always have", "wo", 16, vcs, "cells"),
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


OPTIONS: Final = (Minimum(),)
