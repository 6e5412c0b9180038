"""Test cells in captures of cells: the interface's analyser in software, for pcap files with ERF records.

It judges cells by the rules of :class:`bentpipe_hdl.test_cells.analyser.TestCellAnalyser`, at any place where they were
captured. At the sink's interface it finds what that has found.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe.errors import BentpipeError
from bentpipe_hdl.nic.options.test_cells.control import Analysis
from bentpipe_hdl.test_cells.cells import GAP, STAMP_PS, TestCellError, stamp_of, unpack

__all__ = ["CapturedCell", "SoftwareAnalyser", "analyse_capture", "read_capture"]

_log: Final = logging.getLogger(__name__)
_MAGIC: Final = {0xA1B2C3D4: "<", 0xA1B23C4D: "<", 0xD4C3B2A1: ">", 0x4D3CB2A1: ">"}
_ERF: Final = 197
_TYPE_ATM: Final = 3
_CLASSES: Final = 512
_WORD: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class CapturedCell:
    """A cell of a capture.

    Members
    -------
    tick : int
        Of the simulation, in which it was captured.
    way : "out" or "in"
        Out of the place of the capture, or into it.
    vpi, vci, pti : int
    hec_error : bool
    payload : bytes
    """

    tick: int
    way: str
    vpi: int
    vci: int
    pti: int
    hec_error: bool
    payload: bytes


def read_capture(path: Path) -> Iterator[CapturedCell]:
    """Yield the cells of a pcap file of kind ``cells``.

    Raises
    ------
    BentpipeError
        It cannot be read, or is no such file.
    """
    try:
        with path.open("rb") as file:
            head = file.read(24)
            order = _MAGIC.get(int.from_bytes(head[:4], "little")) if len(head) == 24 else None
            if order is None:
                raise BentpipeError(f"{path}: no pcap file")
            (link,) = struct.unpack(f"{order}I", head[20:])
            if link != _ERF:
                raise BentpipeError(f"{path}: link type {link} has no single cells; capture the kind cells (ERF, 197)")
            while record := file.read(16):
                length = struct.unpack(f"{order}4I", record)[2] if len(record) == 16 else 0
                octets = file.read(length)
                if len(record) < 16 or len(octets) < length:
                    _log.warning("%s: the last record is cut off and left out", path)
                    return
                if length >= 68 and octets[8] & 0x7F == _TYPE_ATM:
                    yield _cell(octets)
    except OSError as error:
        raise BentpipeError(f"{path}: {error.strerror or error}") from None


def _cell(octets: bytes) -> CapturedCell:
    time = int.from_bytes(octets[:8], "little")  # seconds, 32 bits of fraction
    header = int.from_bytes(octets[16:20], "big")
    return CapturedCell(
        tick=-(-time * 299_520_000 // (53 << 32)),
        way="in" if octets[9] & 3 else "out",
        vpi=header >> 20 & 0xFF,
        vci=header >> 4 & 0xFFFF,
        pti=header >> 1 & 7,
        hec_error=bool(octets[9] & 16),
        payload=octets[20:68],
    )


class SoftwareAnalyser:
    """An analyser of test cells in software: it judges the cells of one VC, one after the other.

    Parameters
    ----------
    block : tuple of int
        Log2 of N, and M, of cell blocks (I.356).
    delay_class : int
        Log2 of the width of a class of delays, in 10 ns.
    first : int, optional
        The first number. None: the first cell with a right CRC-16 says it.
    """

    def __init__(self, block: tuple[int, int] = (7, 4), delay_class: int = 8, first: int | None = 0) -> None:
        self._size, self._limit = 1 << block[0], block[1]
        self._class, self._next, self._candidate = delay_class, first, -1
        self._pending = 0
        self._counts: Counter[str] = Counter()
        self._block: Counter[str] = Counter()
        self._classes = [0] * _CLASSES
        self._least, self._most, self._reference = _WORD - 1, 0, -1

    def take(self, payload: bytes, tick: int) -> None:
        """Take a cell that arrived in this tick."""
        self._counts["received"] += 1
        try:
            cell = unpack(payload)
        except TestCellError:
            self._pending += 1
            return
        expected = self._next
        ahead = 0 if expected is None else (cell.number - expected + _WORD // 2) % _WORD - _WORD // 2
        if -GAP <= ahead < 0:
            self._add("misinserted", 1)
            self._candidate = -1
            return
        if ahead > GAP or ahead < -GAP:
            if cell.number != self._candidate:
                self._counts["skipped"] += 1
                self._candidate = (cell.number + 1) % _WORD
                return
            self._counts["resyncs"] += 1
        if expected is None or abs(ahead) > GAP:
            self._counts["skipped"] += self._pending
            self._block.clear()
            self._pending, ahead, expected = 0, 0, cell.number
        self._in_order(expected, ahead)
        self._next, self._candidate = (cell.number + 1) % _WORD, -1
        self._time((stamp_of(tick) - cell.stamp) % _WORD)

    def _add(self, what: str, cells: int) -> None:
        self._counts[what] += cells
        self._block[what] += cells

    def _in_order(self, number: int, gap: int) -> None:
        """Count a cell in order behind a gap that begins with ``number``."""
        errored = min(gap, self._pending)
        self._add("misinserted", self._pending - errored)
        self._pending = 0
        left = gap + 1
        while left:
            step = min(left, self._size - number % self._size)  # of a block
            missing = min(step, gap)
            bad = min(missing, errored)
            self._add("errored", bad)
            self._add("lost", missing - bad)
            errored, gap, left, number = errored - bad, gap - missing, left - step, number + step
            if number % self._size == 0:
                self._end_block()
        self._counts["in_order"] += 1

    def _end_block(self) -> None:
        self._counts["blocks"] += 1
        if sum(self._block.values()) > self._limit:
            self._counts["secbs"] += 1
            for what, cells in self._block.items():
                self._counts[f"secb_{what}"] += cells
        self._block.clear()

    def _time(self, delay: int) -> None:
        if self._reference < 0:
            self._reference = delay
        self._counts["delay_sum"] += delay
        self._least, self._most = min(self._least, delay), max(self._most, delay)
        variation = (delay - self._reference + _WORD // 2) % _WORD - _WORD // 2
        place = (variation >> self._class) + _CLASSES // 4
        self._classes[min(max(place, 0), _CLASSES - 1)] += 1

    def result(self) -> Analysis:
        """Return what has been counted so far."""
        names = (
            "received", "in_order", "errored", "lost", "misinserted", "skipped", "resyncs", "blocks", "secbs",
            "secb_errored", "secb_lost", "secb_misinserted",
        )  # fmt: skip
        return Analysis(
            **{name: self._counts[name] for name in names},
            pending=self._pending,
            delay_sum_ps=self._counts["delay_sum"] * STAMP_PS,
            delay_min_ps=self._least * STAMP_PS,
            delay_max_ps=self._most * STAMP_PS,
            reference_ps=max(self._reference, 0) * STAMP_PS,
            class_ps=STAMP_PS << self._class,
            classes=tuple(self._classes),
        )


def analyse_capture(
    cells: Iterable[CapturedCell], block: tuple[int, int] = (7, 4), delay_class: int = 8, first: int | None = 0
) -> dict[tuple[str, int, int], Analysis]:
    """Return an analysis of test cells, by way, VPI and VCI, for VCs on which any cell is a test cell.

    Cells with a bad HEC and OAM cells belong to no VC.
    """
    found: dict[tuple[str, int, int], SoftwareAnalyser] = {}
    for cell in cells:
        if cell.hec_error or cell.pti & 4:
            continue
        key = cell.way, cell.vpi, cell.vci
        if key not in found:
            found[key] = SoftwareAnalyser(block, delay_class, first)
        found[key].take(cell.payload, cell.tick)
    results = {key: analyser.result() for key, analyser in found.items()}
    return {key: result for key, result in sorted(results.items()) if result.in_order}
