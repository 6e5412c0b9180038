"""Sustained rates of an interface's VCs as software sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bentpipe_hdl import registers as reg
from bentpipe_hdl.nic.options.base import NicOption
from bentpipe_hdl.registers import Register, Registers

__all__ = ["OPTION"]


class Sustained(NicOption):
    """VCs that have a sustained rate and a burst beside the peak rate."""

    name = "sustained"
    place = 0

    def registers(self, *, vcs: int) -> tuple[Register, ...]:
        return (
            Register(
                "tx_sustained", 0x70000, "period of a VC's cells in the long run (SCR)", "wo", 41, vcs,
                fields=(
                    reg.Field("increment", 0, 40, "increment I", "ticks / 2**16"),
                    reg.Field("enabled", 40, text="the VC has a sustained rate"),
                ),
            ),
            Register("tx_burst", 0x74000, "burst tolerance of a VC", "wo", 48, vcs, "ticks / 2**16"),
        )  # fmt: skip

    def configure(self, csr: Registers, settings: Any, line: Any, sends: Mapping[int, Any]) -> None:
        for index, send in sends.items():
            size = send.sustained
            csr.tx_burst[index] = size.limit if size else 0
            csr.tx_sustained[index] = {"increment": size.increment, "enabled": 1} if size else 0


OPTION: Final = Sustained()
