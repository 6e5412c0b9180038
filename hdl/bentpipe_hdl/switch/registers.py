"""The registers of the parts that every switch has, and why cells are dropped. No Amaranth."""

from __future__ import annotations

from typing import Final

from bentpipe_hdl import registers as reg
from bentpipe_hdl.lookup_table import lookup_registers
from bentpipe_hdl.registers import Register

__all__ = ["REASONS", "REASON_BITS", "REASON_TITLES", "core_registers"]

REASON_TITLES: Final = {
    "full": "full",
    "epd": "EPD",
    "ppd": "PPD",
    "clp": "CLP",
    "reserve": "reserve",
    "limit": "limit",
    "red": "RED",
    "upc": "UPC",
    "fair": "share",
    "copies": "copies",
}
"""Why a cell of a known VC was dropped, in the order of the counters; and how tables call it."""

REASONS: Final = tuple(REASON_TITLES)

REASON_BITS: Final = (len(REASONS) - 1).bit_length()


def core_registers(
    *, vcs: int, cells: int, ports: int, makes_cells: bool = False, changes_cells: bool = False
) -> tuple[Register, ...]:
    """Return the registers of a switch without options; ``makes_cells`` and ``changes_cells`` as of an
    :class:`~bentpipe_hdl.switch.options.base.Option`."""
    count = (cells + 1).bit_length()
    top = (1 << count) - 1
    return (
        Register(
            "capacity", 0x0001, "cells that the buffer takes", width=count, unit="cells", reset=cells, most=cells
        ),
        Register(
            "epd_threshold", 0x0002, "cells in the buffer from which on EPD refuses frames", width=count,
            unit="cells", reset=cells, most=top,
        ),
        Register(
            "clp_threshold", 0x0003, "cells in the buffer from which on CLP=1 cells are dropped",
            width=count, unit="cells",
            reset=cells, most=top,
        ),
        Register(
            "user_capacity", 0x0009, "cells of the buffer that are open to user cells", width=count, unit="cells",
            reset=cells, most=top,
        ),
        Register("processing_delay", 0x0004, "delay of a cell in an idle switch, 1 and more", width=24, unit="ticks"),
        Register("nni", 0x0005, "ports with NNI headers, a bit for each", width=ports),
        Register("occupancy", 0x0006, "cells in the buffer now", "ro", width=count, unit="cells"),
        Register(
            "high_water", 0x0007, "cells in the buffer, the maximum since the last write",
            "ro", width=count, unit="cells",
            on_write="the maximum starts again with the present value",
        ),
        Register(
            "flushed", 0x0008, "cells of disabled VCs that left the buffer without being sent", "ro", unit="cells"
        ),
        *lookup_registers(vcs),
        Register("period", 0x0020, "period of a port's cells", "wo", 40, ports, "ticks / 2**16"),
        Register("unknown", 0x0080, "cells of unknown VCs, by port", "ro", count=ports, unit="cells"),
        Register("hec", 0x0090, "cells with a bad HEC, by port", "ro", count=ports, unit="cells"),
        Register(
            "vc_policy", 0x10000, "discard policy and output port of a VC; a VC that is not enabled has ended",
            "wo", 40, vcs,
            fields=(
                reg.Field("limit", 0, 16, "cells that the VC may have queued", "cells"),
                reg.Field("epd_threshold", 16, 16, "cells in the VC's queue from which on EPD refuses frames", "cells"),
                reg.Field("port", 32, 4, "output port"),
                reg.Field("ppd", 36, text="partial packet discard"),
                reg.Field("epd", 37, text="early packet discard"),
                reg.Field("epd_own", 38, text="EPD by the VC's queue and threshold, not by the switch's"),
                reg.Field("enabled", 39, text="the VC exists"),
            ),
        ),
        Register(
            "vc_header", 0x20000, "header of a VC's departing cells", "wo", 28, vcs,
            fields=(reg.Field("vci", 0, 16, "VCI; 0: unchanged"), reg.Field("vpi", 16, 12)),
        ),
        Register("accepted", 0x30000, "cells queued, by VC", "ro", count=vcs, unit="cells"),
        Register("departed", 0x40000, "cells sent or flushed, by VC", "ro", count=vcs, unit="cells"),
        Register(
            "dropped", 0x50000, f"cells dropped, by VC and reason: {', '.join(REASONS)}", "ro",
            count=vcs << REASON_BITS, unit="cells",
        ),
        *(
            (Register("injected", 0x000A, "cells made in the switch and accepted like others", "ro", unit="cells"),)
            if makes_cells
            else ()
        ),
        *(
            (
                Register("tagged", 0xA2000, "cells queued with CLP newly set, by VC", "ro", count=vcs, unit="cells"),
                Register("marked", 0xA3000, "cells queued with EFCI newly set, by VC", "ro", count=vcs, unit="cells"),
            )
            if changes_cells
            else ()
        ),
    )  # fmt: skip
