"""Test cells of an interface as software sees them: their registers, and what an analyser has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from bentpipe_hdl import registers as reg
from bentpipe_hdl.nic.options.base import NicOption
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.test_cells.cells import STAMP_PS

__all__ = [
    "CELL_COUNTERS",
    "OPTION",
    "POSTS",
    "SENDS",
    "WORDS",
    "Analysis",
    "analyse",
    "generate",
    "read_analysis",
    "stop",
]

CELL_COUNTERS: Final = {
    "sent": "test cells sent",
    "received": "cells received on the analyser's VC",
    "in_order": "cells received in order, whose delay is known",
    "errored": "cells received with a wrong CRC-16 in the place of a sent cell",
    "lost": "cells lost",
    "misinserted": "cells received out of order, twice, or from another VC",
    "skipped": "cells not judged, as the analyser had lost the sequence",
    "secb_errored": "errored cells in severely errored cell blocks",
    "secb_lost": "lost cells in severely errored cell blocks",
    "secb_misinserted": "misinserted cells in severely errored cell blocks",
    "delay_sum": "sum of the delays of cells in order, in 10 ns",
}
"""Counters of more than 32 bits, by name: two words each, the low one first."""

WORDS: Final = 2

SENDS, POSTS = 1, 2
"""Bits of ``test_state``: the generator runs; it waits for its VC."""

_COUNTERS: Final = {
    "pending": "cells with a wrong CRC-16 since the last one with a right one",
    "resyncs": "times that the analyser found another sequence",
    "blocks": "cell blocks",
    "secbs": "severely errored cell blocks",
}
_DELAYS: Final = {
    "delay_min": "least delay since the start",
    "delay_max": "greatest delay since the start",
    "reference": "delay of the first cell since the start: the reference of 2-point CDV",
}


class TestCells(NicOption):
    """A generator and an analyser of test cells, for one VC each."""

    __test__ = False  # no test of pytest
    name = "test_cells"
    place = 4
    always_in_shape = False

    def registers(self, *, vcs: int) -> tuple[Register, ...]:
        vc = reg.Field("vc", 0, 12, "index of the VC")
        wide = {name: (text, WORDS) for name, text in CELL_COUNTERS.items()}
        plain = {name: (text, None) for name, text in (_COUNTERS | _DELAYS).items()}
        return (
            Register("test_tx", 0x0300, "generator of test cells", width=13, fields=(
                vc, reg.Field("run", 12, text="the generator sends")),
                on_write="starts again, or ends after one more cell"),
            Register("test_tx_first", 0x0301, "sequence number of the first test cell"),
            Register("test_tx_count", 0x0302, "cells to send as test cells, 0: without end", unit="cells"),
            Register("test_rx", 0x0304, "analyser of test cells", width=14, fields=(
                vc, reg.Field("run", 12, text="the analyser takes the cells of the VC"),
                reg.Field("known", 13, text="the first number is known")),
                on_write="starts again; counters continue"),
            Register("test_rx_first", 0x0305, "first sequence number, if it is known"),
            Register("test_block_size", 0x0306, "log2 of the cells of a block (N of I.356)", width=5, reset=7, most=16),
            Register("test_block_limit", 0x0307, "most bad outcomes in a block that is not severely errored (M), less "
                     "than N", width=16, reset=4),
            Register("test_class", 0x0308, "log2 of the width of a class of delays in 10 ns", width=5, reset=8,
                     most=22),
            Register("test_state", 0x0309, "state of generator and analyser", "ro", 3, fields=(
                reg.Field("sends", 0, text="the generator runs"),
                reg.Field("posts", 1, text="the generator waits for its VC"),
                reg.Field("synced", 2, text="the analyser knows the next number"))),
            *(Register(f"test_{name}", 0x0310 + WORDS * k, f"{text}: low word, high word", "ro", count=count)
              for k, (name, (text, count)) in enumerate(wide.items())),
            *(Register(f"test_{name}", 0x0330 + k, text, "ro", unit="10 ns" if name in _DELAYS else "",
                       reset=(1 << 32) - 1 if name == "delay_min" else 0)
              for k, (name, (text, _)) in enumerate(plain.items())),
            Register("test_classes", 0x1000, "in order by their delay minus the first cell's: a quarter of the classes "
                     "is below it; the first and the last class are open", "ro", count=min(512, 8 * vcs), unit="cells"),
        )  # fmt: skip

    def counters(self, csr: Registers, sends: Mapping[int, Any]) -> dict[str, Any]:
        del sends
        return {
            "test_cells_sent": _wide(csr, "sent"),
            "test_cells_received": _wide(csr, "received"),
        }

    def taken(self, counters: Mapping[str, Any]) -> int:
        return counters["test_cells_received"]


OPTION: Final = TestCells()


def _wide(csr: Registers, name: str) -> int:
    """Return a counter of two words. Behind a carry the high word is read again."""
    table = getattr(csr, f"test_{name}")
    while True:
        high, low = table[1], table[0]
        if table[1] == high:
            return high << 32 | low


def generate(csr: Registers, vc: int, *, first: int = 0, count: int = 0) -> None:
    """Start the generator on a VC that has a header and a rate; 0 cells: without end."""
    csr.test_tx_first, csr.test_tx_count = first, count
    csr.test_tx = {"vc": vc, "run": 1}


def stop(csr: Registers) -> None:
    """Stop the generator after one more cell."""
    csr.test_tx.run = 0


def analyse(
    csr: Registers, vc: int, *, block: tuple[int, int] = (7, 4), delay_class: int = 8, first: int | None = 0
) -> None:
    """Start the analyser on the cells of a VC again; its counters continue.

    Parameters
    ----------
    vc : int
    block : tuple of int
        Log2 of N, and M, of cell blocks (I.356).
    delay_class : int
        Log2 of the width of a class of delays, in 10 ns.
    first : int, optional
        The first number. None: it is taken from the first cell, and losses before that cell are not seen.

    Raises
    ------
    ValueError
        N is not from 2 to 65536, M not less than N, or the class wider than 42 ms.
    """
    size, limit = block
    if not (1 <= size <= 16 and 0 <= limit < 1 << size):
        raise ValueError(f"a cell block has 2**1 to 2**16 cells, and M is less than that, not 2**{size} and {limit}")
    if not 0 <= delay_class <= 22:
        raise ValueError(f"a class of delays is 2**0 to 2**22 times 10 ns wide, not 2**{delay_class}")
    csr.test_block_size, csr.test_block_limit, csr.test_class = size, limit, delay_class
    csr.test_rx_first = first or 0
    csr.test_rx = {"vc": vc, "run": 1, "known": int(first is not None)}


@dataclass(frozen=True)
class Analysis:
    """Counts of an analyser. The difference of two is what happened between them.

    Members
    -------
    received, in_order, errored, lost, misinserted, skipped, pending, resyncs : int
        As of the registers ``test_…``. Received cells are in order, errored, misinserted, skipped or pending.
    blocks, secbs, secb_errored, secb_lost, secb_misinserted : int
    delay_sum_ps, delay_min_ps, delay_max_ps, reference_ps : int
        Of cells in order.
    class_ps : int
        Width of a class of delays.
    classes : tuple of int
    """

    received: int
    in_order: int
    errored: int
    lost: int
    misinserted: int
    skipped: int
    pending: int
    resyncs: int
    blocks: int
    secbs: int
    secb_errored: int
    secb_lost: int
    secb_misinserted: int
    delay_sum_ps: int
    delay_min_ps: int
    delay_max_ps: int
    reference_ps: int
    class_ps: int
    classes: tuple[int, ...]

    @property
    def sent(self) -> int:
        """Cells that were sent up to the last one in order, by their numbers."""
        return self.in_order + self.errored + self.lost

    @property
    def delay_mean_ps(self) -> float | None:
        """Return the mean delay; None if no cell was in order."""
        return self.delay_sum_ps / self.in_order if self.in_order else None

    def quantile_ps(self, share: float) -> int | None:
        """Return the delay that this share of cells does not exceed: the upper end of its class, at most the greatest
        delay. None: no cell was in order, or the quantile is in a class that is open."""
        total, counted = sum(self.classes), 0
        for k, cells in enumerate(self.classes):
            counted += cells
            if cells and counted >= share * total:
                upper = self.reference_ps + (k + 1 - len(self.classes) // 4) * self.class_ps
                if k == len(self.classes) - 1:
                    return self.delay_max_ps if self.delay_max_ps < upper else None
                return None if k == 0 else min(upper, self.delay_max_ps)
        return None


def read_analysis(csr: Registers) -> Analysis:
    """Return what the analyser has counted since the node was reset; least and greatest delay and reference since the
    analyser began."""
    wide = {name: _wide(csr, name) for name in CELL_COUNTERS if name != "sent"}
    plain = {name: getattr(csr, f"test_{name}") for name in (*_COUNTERS, *_DELAYS)}
    values: dict[str, Any] = {}
    for name, value in (wide | plain).items():
        if name.startswith("delay_") or name == "reference":
            values[f"{name}_ps"] = value * STAMP_PS
        else:
            values[name] = value
    values |= {"class_ps": STAMP_PS << csr.test_class, "classes": tuple(csr.test_classes[:])}
    return Analysis(**{field.name: values[field.name] for field in fields(Analysis)})
