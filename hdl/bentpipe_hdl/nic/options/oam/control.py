"""OAM cells of an interface as software sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bentpipe_hdl.nic.options.base import NicOption
from bentpipe_hdl.registers import Register, Registers

__all__ = ["OPTION"]


class Oam(NicOption):
    """The host sends single cells, and is given the OAM cells of its VCs."""

    name = "oam"
    place = 3
    always_in_shape = False

    def registers(self, *, vcs: int) -> tuple[Register, ...]:
        del vcs
        return (
            Register("oam_taken", 0x0084, "cells of OAM that were given to the host", "ro", unit="cells"),
            Register("oam_lost", 0x0085, "cells of OAM that were lost, as their place was full", "ro", unit="cells"),
        )

    def counters(self, csr: Registers, sends: Mapping[int, Any]) -> dict[str, Any]:
        del sends
        return {"oam_cells": csr.oam_taken, "drop_oam_place": csr.oam_lost}

    def taken(self, counters: Mapping[str, Any]) -> int:
        return counters["oam_cells"]


OPTION: Final = Oam()
