"""A delay that changes in a run, as software sees it. The delay itself is a setting of every link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bentpipe_hdl.link.options.base import LinkOption
from bentpipe_hdl.registers import Register, Registers

__all__ = ["OPTION", "ORDERS"]

ORDERS: Final = ("kept", "merged")
"""What ``order`` may be, by the value of the register ``path_merge``."""

_REGISTERS: Final = (
    Register(
        "path_merge", 0x0040, "overtaking of cells with a shorter delay, on a second path; else they wait", width=1
    ),
    Register(
        "path_spacing",
        0x0042,
        "spacing from a cell to one that waited for it",
        "wo",
        40,
        unit="ticks / 2**16",
        reset=1 << 16,
    ),
    Register("path_held", 0x0090, "cells that waited for cells before them", "ro", unit="cells"),
    Register("path_overtook", 0x0091, "cells that overtook cells before them", "ro", unit="cells"),
)


class MovingPath(LinkOption):
    """A link whose delay may change while cells are under way."""

    name = "path"
    place = 9
    excludes = ("delay_cells",)

    def registers(self) -> tuple[Register, ...]:
        return _REGISTERS

    def refuse(self, settings: Any) -> None:
        if settings.order != ORDERS[0]:
            raise ValueError("this link is built without a delay that changes")

    def apply(self, csr: Registers, settings: Any) -> None:
        csr.path_merge = ORDERS.index(settings.order)

    def space(self, csr: Registers, period: int) -> None:
        csr.path_spacing = period

    def values_of(self, member: str, value: Any) -> Mapping[str, int | None] | None:
        return {"path_merge": ORDERS.index(value)} if member == "order" else None

    def counters(self, csr: Registers) -> dict[str, Any]:
        return {"held": csr.path_held, "overtook": csr.path_overtook}


OPTION: Final = MovingPath()
