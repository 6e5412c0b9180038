"""The network interface as software sees it: its registers."""

from __future__ import annotations

from bentpipe_hdl.lookup_table import lookup_registers
from bentpipe_hdl.registers import Field, Register, RegisterMap

__all__ = ["VERDICTS", "nic_registers"]

VERDICTS = ("ok", "crc", "length", "lost_last", "overlength", "abort", "timeout")
"""How the reassembly of a PDU ended, in the order of the counters."""


def nic_registers(*, vcs: int) -> RegisterMap:
    """The registers of a NIC with so many VCs each way."""
    return RegisterMap(
        "nic",
        "BPNC",
        2,
        {"vcs": vcs},
        (
            Register("nni", 0x0005, "the line has NNI headers", width=1),
            Register("line_period", 0x0010, "a cell of the line takes", "wo", 40, unit="ticks / 2**16", reset=1 << 16),
            Register("tolerance", 0x0012, "CDVT: that a paced VC may catch up", width=24, unit="ticks"),
            Register("tx_refused", 0x0014, "PDUs not taken: VC busy, or length 0", "ro"),
            Register("rx_timeout", 0x0016, "after which a PDU is given up, 0: never", unit="ticks", most=1 << 31),
            *lookup_registers(vcs),
            Register("rx_unknown", 0x0080, "of unknown VCs", "ro", unit="cells"),
            Register("rx_hec", 0x0081, "with a bad HEC", "ro", unit="cells"),
            Register("rx_oam", 0x0082, "OAM and RM, which are not for AAL5", "ro", unit="cells"),
            Register("rx_over", 0x0083, "beyond the limit of their PDU", "ro", unit="cells"),
            Register(
                "tx_header", 0x10000, "of a VC's cells; sets the VC up", "wo", count=vcs,
                fields=(Field("clp", 0), Field("vci", 4, 16), Field("vpi", 20, 8), Field("gfc", 28, 4)),
            ),
            Register("tx_period", 0x20000, "a cell of a VC takes (PCR)", "wo", 40, vcs, "ticks / 2**16"),
            Register("tx_cells", 0x30000, "sent, a VC", "ro", count=vcs, unit="cells"),
            Register("rx_limit", 0x40000, "most of a VC's PDU; sets the VC up", "wo", 11, vcs, "cells"),
            Register("rx_cells", 0x50000, "taken to a PDU, a VC", "ro", count=vcs, unit="cells"),
            Register("rx_pdus", 0x60000, f"PDUs of a VC: {', '.join(VERDICTS)}", "ro", count=8 * vcs),
        ),
    )  # fmt: skip
