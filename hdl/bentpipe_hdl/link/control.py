"""The link as software sees it: its registers."""

from __future__ import annotations

from bentpipe_hdl.bit_errors import GAP_BITS
from bentpipe_hdl.lookup_table import lookup_registers
from bentpipe_hdl.registers import Field, Register, RegisterMap

__all__ = ["ENTRIES", "VCS", "link_registers"]

VCS = 16
"""VCs of a link that can have losses."""

ENTRIES = 256
"""Words of the lists of all VCs together, an end mark for each among them."""


def link_registers(*, delay_cells: int = 0) -> RegisterMap:
    """The registers of a link; ``delay_cells`` of its delay memory."""
    return RegisterMap(
        "link",
        "BPLK",
        2,
        {"delay_cells": delay_cells},
        (
            Register(
                "delay", 0x0001, "from in to out, 1 and more (2 and more with a delay memory)", unit="ticks", reset=1
            ),
            Register("error_enable", 0x0002, "bit errors on", width=1),
            Register("error_mantissa", 0x0003, "scale of the gaps between errors", width=24),
            Register("error_shift", 0x0004, "scale of the gaps, binary places", width=6),
            Register("loss_enable", 0x0005, "listed losses on", width=1),
            Register("gap", 0x0010, "good bits before the next error", "wo", GAP_BITS, unit="bits"),
            Register("seed", 0x0012, "state of the generator, not 0", "wo", 64, reset=1),
            *lookup_registers(VCS),
            Register("cells", 0x0080, "that came in", "ro", unit="cells"),
            Register("errored", 0x0081, "with bit errors", "ro", unit="cells"),
            Register("corrected", 0x0082, "headers corrected", "ro", unit="cells"),
            Register("rejected", 0x0083, "headers with an error that was not corrected", "ro", unit="cells"),
            Register("error_bits", 0x0084, "inverted", "ro", unit="bits"),
            Register("lost", 0x0085, "that found the delay memory full", "ro", unit="cells"),
            Register("dropped", 0x0086, "taken out by the lists", "ro", unit="cells"),
            Register(
                "loss_vc", 0x10000, "a VC's list; its count starts again", "wo", 9, VCS,
                fields=(Field("first", 0, 8, "place of its first number"), Field("pdus", 8, text="not cells")),
            ),
            Register("losses", 0x20000, "numbers of lost cells or PDUs, 0 at the end", "wo", count=ENTRIES),
        ),
    )  # fmt: skip
