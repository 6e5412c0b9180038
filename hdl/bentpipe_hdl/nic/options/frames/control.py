"""A line with slots in frames as software sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bentpipe_hdl.nic.options.base import NicOption
from bentpipe_hdl.plcp import frame_times
from bentpipe_hdl.registers import Register, Registers

__all__ = ["OPTION"]


class Frames(NicOption):
    """A line that takes cells in slots of its frames, not at an even rate."""

    name = "frames"
    place = 2
    replaces = ("line_period",)

    def registers(self, *, vcs: int) -> tuple[Register, ...]:
        del vcs
        return (
            Register("line_slot", 0x0010, "length of a slot of the line's frames", unit="ticks / 2**16"),
            Register("line_cycle", 0x0011, "length of three frames", unit="ticks / 2**16"),
        )

    def configure(self, csr: Registers, settings: Any, line: Any, sends: Mapping[int, Any]) -> None:
        csr.line_slot, csr.line_cycle = frame_times(line.clock_ppm)


OPTION: Final = Frames()
