"""Losses in a pattern as software sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bentpipe_hdl.link.options.base import LinkOption
from bentpipe_hdl.registers import Register, Registers

__all__ = ["OPTION"]


class Pattern(LinkOption):
    """A link that loses the first cells of each so many."""

    name = "pattern"
    place = 5
    needs = ("faults",)
    everywhere = False
    title = "a pattern of losses"

    def registers(self) -> tuple[Register, ...]:
        return (
            Register("pattern_lost", 0x0050, "cells lost of each ``pattern_of``, the first; 0: none", unit="cells"),
            Register("pattern_of", 0x0051, "cells after which the pattern begins again", unit="cells", reset=1),
            Register("lost_pattern", 0x0094, "cells lost by the pattern", "ro", unit="cells"),
        )

    def wanted(self, settings: Any) -> bool:
        return settings.lose > 0

    def apply(self, csr: Registers, settings: Any) -> None:
        csr.pattern_lost, csr.pattern_of = settings.lose, settings.lose_of

    def values_of(self, member: str, value: Any) -> Mapping[str, int | None] | None:
        return {"lose": {"pattern_lost": value}, "lose_of": {"pattern_of": value}}.get(member)

    def counters(self, csr: Registers) -> dict[str, Any]:
        return {"drop_pattern": csr.lost_pattern}


OPTION: Final = Pattern()
