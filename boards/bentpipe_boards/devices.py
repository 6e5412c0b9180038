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
    logic_columns : range
        Columns of tiles with look-up tables.
    logic_rows : tuple of int
        Rows of tiles with look-up tables. The other rows have block memories and multipliers.
    """

    lut: int
    ff: int
    ebr: int
    dsp: int
    logic_columns: range
    logic_rows: tuple[int, ...]


_85 = Device(
    lut=83640,
    ff=83640,
    ebr=208,
    dsp=156,
    logic_columns=range(2, 125),
    logic_rows=tuple(row for row in range(2, 94) if row % 12 != 10),
)
DEVICES: Final = {"LFE5U-85F": _85, "LFE5UM5G-85F": _85}
