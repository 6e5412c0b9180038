"""Duplicated and misinserted cells as software sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bentpipe_hdl.bit_errors import ErrorStart, scale_of_length
from bentpipe_hdl.link.options.base import LinkOption
from bentpipe_hdl.link.options.faults.control import LOSS_ONE
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.ticks import TICKS_A_SECOND

__all__ = ["MADE", "OPTION", "header_of"]

MADE: Final = ("copies", "misinserted")
"""Cells that a link makes, by the value of its output ``o_extra``, from 1 on."""


def header_of(vc: str) -> int:
    """Return the header of a user cell of a VC, given as VPI/VCI, within its PDU."""
    vpi, _, vci = vc.partition("/")
    return int(vpi) << 20 | int(vci) << 4


def _of_rate(rate: float) -> dict[str, int | None]:
    """Return the registers of a number of misinserted cells a second."""
    mantissa, shift = scale_of_length(float(TICKS_A_SECOND) / rate) if rate else (None, None)
    return {"misinsert_mantissa": mantissa, "misinsert_shift": shift, "misinsert_enable": int(rate > 0)}


class Extra(LinkOption):
    """A link that makes cells."""

    name = "extra"
    place = 6
    excludes = ("delay_cells",)
    everywhere = False
    title = "duplicated and misinserted cells"

    def registers(self) -> tuple[Register, ...]:
        return (
            Register("duplicate", 0x0054, "share of cells that are duplicated, 1 / 2**31", most=LOSS_ONE),
            Register("misinsert_enable", 0x0055, "misinsertion enabled", width=1),
            Register("misinsert_mantissa", 0x0056, "scale of the times between misinserted cells", width=24),
            Register("misinsert_shift", 0x0057, "scale of those times, binary places", width=6),
            Register(
                "misinsert_own",
                0x0058,
                "misinserted cells have the header below, else that of the last cell's VC",
                width=1,
            ),
            Register(
                "misinsert_header", 0x0059, "header of misinserted cells, gfc<<28 | vpi<<20 | vci<<4 | pti<<1 | clp"
            ),
            Register("duplicate_seed", 0x005A, "state of the generator of duplicates, not 0", "wo", 64, reset=1),
            Register("misinsert_seed", 0x005C, "state of the generator of misinsertion, not 0", "wo", 64, reset=1),
            Register("made_copies", 0x0096, "cells sent as duplicates", "ro", unit="cells"),
            Register("made_misinserted", 0x0097, "cells sent as misinserted ones", "ro", unit="cells"),
            Register(
                "made_missed",
                0x0098,
                "cells not duplicated or misinserted, as there was no place for them",
                "ro",
                unit="cells",
            ),
        )

    def wanted(self, settings: Any) -> bool:
        return settings.duplicate > 0 or settings.misinsert > 0

    def seed(self, csr: Registers, start: ErrorStart) -> None:
        for name in ("duplicate", "misinsert"):
            setattr(csr, f"{name}_seed", start.other(name).state)

    def apply(self, csr: Registers, settings: Any) -> None:
        csr.duplicate = round(settings.duplicate * LOSS_ONE)
        csr.misinsert_own = int(settings.misinsert_vc is not None)
        csr.misinsert_header = header_of(settings.misinsert_vc or "0/0")
        for name, value in _of_rate(settings.misinsert).items():
            if value is not None:
                setattr(csr, name, value)

    def values_of(self, member: str, value: Any) -> Mapping[str, int | None] | None:
        if member == "duplicate":
            return {"duplicate": round(value * LOSS_ONE)}
        return _of_rate(value) if member == "misinsert" else None

    def counters(self, csr: Registers) -> dict[str, Any]:
        found = {f"made_{name}": getattr(csr, f"made_{name}") for name in MADE}
        return found | {"missed": csr.made_missed}


OPTION: Final = Extra()
