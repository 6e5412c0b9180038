"""Resources of FPGA devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DEVICES", "Device"]


@dataclass(frozen=True)
class Device:
    """The resources of an FPGA.

    Members
    -------
    lut, ff : int
        LUT4 and flip-flops.
    ebr : int
        Block memories of 18 kbit.
    dsp : int
        Multipliers of 18 x 18.
    """

    lut: int
    ff: int
    ebr: int
    dsp: int


_85 = Device(lut=83640, ff=83640, ebr=208, dsp=156)
DEVICES: Final = {"LFE5U-85F": _85, "LFE5UM5G-85F": _85}
