"""Point-to-multipoint VCs as software sees them (ATM Forum UNI 3.1 clause 5.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup

__all__ = ["OPTIONS", "Copies"]


class Copies(Option):
    """VCs whose cells are copied: one for each leaf."""

    name = "copies"
    bit = 17
    makes_cells = True

    def wanted(self, setup: Setup) -> bool:
        return any(vc.leaf is not None for vc in setup.vcs)

    def check(self, setup: Setup) -> Iterator[Fault]:
        """Yield a fault for each copied VC that has credits.

        Where chains are made it is checked that each VC is a copy of one VC at most.
        """
        for k, vc in enumerate(setup.vcs):
            if vc.leaf is not None and (vc.credits_in or setup.vcs[vc.leaf].credits_in):
                what = f"VC {vc.out_vpi}/{vc.out_vci} goes to several hosts, and has credits: these are for one"
                yield Fault(what, "credits", vc=k)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells, ports
        bits = (vcs - 1).bit_length()
        return (
            Register("copies_waiting", 0x0510, "cells that wait to be copied now", "ro", width=6, unit="cells"),
            Register("copies_made", 0x0511, "cells copied, and accepted as cells of their VCs", "ro", unit="cells"),
            Register(
                "copies_endless", 0x0512,
                "cells whose chain of VCs led into a circle, and so got one copy fewer than there are VCs",
                "ro", unit="cells",
            ),
            Register(
                "vc_copies", 0xE8000, "next VC of the chain that gets a copy of the VC's cells", "wo",
                bits + 1, vcs,
                fields=(
                    reg.Field("next", 0, bits, "VC"),
                    reg.Field("valid", bits, text="the chain has a next VC"),
                ),
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for index, vc in enumerate(setup.vcs):
            csr.vc_copies[index] = {"next": vc.leaf or 0, "valid": vc.leaf is not None}

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        del setup
        return {"copies": csr.copies_made, "copies_waiting": csr.copies_waiting, "copies_endless": csr.copies_endless}


OPTIONS: Final = (Copies(),)
