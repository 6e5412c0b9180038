"""Credits of an interface's VCs as software sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bentpipe_hdl import registers as reg
from bentpipe_hdl.nic.options.base import NicOption
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.credits.control import visit_step

__all__ = ["OPTION"]


class Credits(NicOption):
    """VCs that send to their switch only what it has places for."""

    name = "credits"
    place = 1

    def registers(self, *, vcs: int) -> tuple[Register, ...]:
        return (
            Register("credit_step", 0x0202, "interval between the audits of two VCs", unit="ticks", reset=1,
                     most=1 << 31),
            Register("credit_last", 0x0204, "last VC that is audited", width=(vcs - 1).bit_length(), reset=0),
            Register("credit_came", 0x0210, "credit cells received", "ro"),
            Register("credit_bad", 0x0211, "credit cells of these that were unreadable: errors, other RM cells", "ro"),
            Register("credit_probes", 0x0213, "probes sent", "ro"),
            Register("credit_holds", 0x0215, "times that a VC had to wait for credit", "ro"),
            Register("credit_late", 0x0216, "credit cells received before the last one was taken", "ro"),
            Register(
                "tx_share", 0xD8000, "cells of a VC on the way to the switch and queued there, at most; 0: any number",
                "wo", 16, vcs,
                "cells",
            ),
            Register(
                "rx_back", 0xDA000, "meaning of a VC's RM cells", "wo", 13, vcs,
                fields=(reg.Field("vc", 0, 12, "VC to which the credit cells belong"),
                        reg.Field("takes", 12, text="RM cells are credit cells")),
            ),
            Register(
                "tx_freed", 0xDC000, "cells of a VC that the switch has freed, by its last credit cell",
                "ro", count=vcs, unit="cells",
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, settings: Any, line: Any, sends: Mapping[int, Any]) -> None:
        last = max(sends, default=0)
        csr.credit_last = last
        csr.credit_step = visit_step(settings.credit_resync_ps, last + 1)
        for index, send in sends.items():
            csr.tx_share[index] = send.credits
            if send.credits and send.back is not None:
                csr.rx_back[send.back] = {"vc": index, "takes": 1}

    def counters(self, csr: Registers, sends: Mapping[int, Any]) -> dict[str, Any]:
        return {
            "credit_cells_in": csr.credit_came,
            "credit_cells_bad": csr.credit_bad,
            "credit_cells_late": csr.credit_late,
            "credit_cells_out": csr.credit_probes,
            "credit_holds": csr.credit_holds,
            "credit_freed": [csr.tx_freed[vc] for vc in sends],
        }

    def taken(self, counters: Mapping[str, Any]) -> int:
        return counters["credit_cells_in"]

    def made(self, counters: Mapping[str, Any]) -> int:
        return counters["credit_cells_out"]


OPTION: Final = Credits()
