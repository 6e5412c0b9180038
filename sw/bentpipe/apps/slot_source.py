"""The common part of sources that send single cells in slots of a line."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from bentpipe.apps.blocks import BlockSource
from bentpipe.apps.settings import FlowRequest, Problem
from bentpipe.ip.udp import CELL_STAMP_OCTETS

__all__ = ["SlotSource", "one_cell"]

_BITS_A_CELL_PS: Final = 424 * 10**12
_HALF_TICK_PS: Final = 88_475


@mypyc_attr(allow_interpreted_subclasses=True)
class SlotSource(BlockSource):
    """A datagram of one cell in some of the slots of a line, which are numbered from the beginning of time.

    Members
    -------
    slot : int
        In which the next cell is due.
    """

    def __init__(self, kind: str, rate_bps: int, size_octets: int | None, duration_ps: int) -> None:
        super().__init__(kind, size_octets, duration_ps, False)
        if rate_bps < 1:
            raise ValueError(f"rate_bps must be at least 1, not {rate_bps!r}")
        self.rate_bps = rate_bps
        self.slot = 0

    def slot_ps(self) -> int:
        """Return the time at which the slot begins (ps).

        It is the middle of the slot's first tick, so that rounding cannot change the tick.
        """
        return -(-self.slot * _BITS_A_CELL_PS // self.rate_bps) + _HALF_TICK_PS

    def first_slot(self, now_ps: int) -> int:
        """Return the first slot that begins at this time or later."""
        return -(-now_ps * self.rate_bps // _BITS_A_CELL_PS)

    def slot_behind(self, now_ps: int) -> int:
        """Return the first slot that begins behind this time, as :meth:`slot_ps` has it."""
        return (now_ps - _HALF_TICK_PS) * self.rate_bps // _BITS_A_CELL_PS + 1

    def draw(self) -> int:
        return CELL_STAMP_OCTETS


def one_cell(app: str, given: FlowRequest) -> Problem:
    """Return a problem unless datagrams fit one cell."""
    if given.datagram != CELL_STAMP_OCTETS:
        return "datagram", f"{app} has datagrams of one cell: give datagram = {CELL_STAMP_OCTETS}"
    return None
