"""The size of a plan on a device: each node as yosys maps it by itself, and the nodes that do not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from bentpipe_boards.components import Entry
from bentpipe_boards.fpga.board import Board
from bentpipe_boards.fpga.memories import FEW_ROWS, SCARCE
from bentpipe_boards.synth import measure
from bentpipe_hdl.cell import NARROW
from bentpipe_sim.board.windows import DDR3_CELLS, SDRAM_CELLS, Plan
from bentpipe_sim.build import Shape
from bentpipe_sim.digests import cache_folder

__all__ = [
    "FITTING",
    "LONG",
    "ROUTED",
    "STEP",
    "Row",
    "fitting_buffer",
    "is_within",
    "rows_of",
    "with_buffers",
    "with_sdram",
]

FITTING: Final = {"lut": 0.85, "ff": 0.85, "ebr": 0.9, "dsp": 1.0}
"""Shares of a device up to which a plan counts as fitting: with 94 % of the block memories in use the router did not
end."""
ROUTED: Final = {"lut": 0.6, "ff": 0.4, "ebr": 0.68, "dsp": 1.0}
"""Shares of a device that the largest routed networks take: `lan` with Ethernet on ECPIX-5, and `acts-1flow` with
buffers of 1,024 cells on ULX3S. With 80 % of the block memories `acts-1flow` was not routed."""
_BOXES: Final = 2
"""Block memories at the ends of a FIFO in the SDRAM."""
LONG: Final = 256
"""Cells of the longest wire that stays in block memories: 8 of them."""
STEP: Final = 256
"""Cells by which :func:`fitting_buffer` makes buffers smaller."""
_ROWS: Final = 512
"""Rows of 32 bits in a block memory."""
_MAPPED_CELLS: Final = 8192
"""Buffer of a switch up to which yosys maps it. A larger one fits no board and takes yosys many minutes; its size is
that of this one, with the block memories of its payload alone."""
_CELL_BITS: Final = 8 * 48
_BLOCK_BITS: Final = 18 << 10

# LUTs and flip-flops of the parts around nodes: `python -m bentpipe_boards.synth --quick` of each, and the difference
# between the plan `line` and its nodes; those of LiteDRAM are what is left of the plan `far-ddr3`
_CORE: Final = (3600, 1700)
_WIRE: Final = (1000, 770)
_DUES: Final = (85, 0)
"""Due ticks of a wire in LUTs."""
_LONG_WIRE: Final = (1100, 800)
_SDRAM: Final = (850, 550)
_DDR3: Final = (3600, 2200)
_ETHERNET: Final = (5150, 3240)
"""Of ECPIX-5's plan `lan` with Ethernet, less the same without."""
_ETHERNET_BLOCKS: Final = 3
_HOST_PORT: Final = (900, 700)
_PATTERNS: Final = (750, 460)
"""Of a host port of 16 VCs: generator and checker of payload, and records that can be withdrawn."""
_SOURCES: Final = (290, 170)
"""Of a host port: a source and a sink of SDUs."""
_PACE: Final = (810, 220)
"""Of the core: the pace of time."""


@dataclass(frozen=True)
class Row:
    """A node, or what is around them, and what it takes.

    Members
    -------
    name, shape : str
    lut, ff, ebr, dsp : int
    why : str
        Why it does not fit; "" if it does.
    """

    name: str
    shape: str
    lut: int
    ff: int
    ebr: int
    dsp: int
    why: str = ""


def with_sdram(plan: Plan, board: Board) -> Plan:
    """Return the plan with its long wires in the board's SDRAM or DDR3 memory, if it has one: the longest first, as
    many as fit."""
    if board.sdram is None and board.ddr3 is None:
        return plan
    room = SDRAM_CELLS if board.ddr3 is None else DDR3_CELLS
    faces: list[int] = []
    for face in sorted(range(plan.faces), key=lambda face: -plan.wires[face]):
        cells = max(plan.wires[one] for one in [*faces, face])
        if plan.wires[face] <= LONG or (len(faces) + 1) * cells > room:
            break
        faces.append(face)
    return replace(plan, sdram=tuple(sorted(faces)), ddr3=bool(faces) and board.ddr3 is not None)


def with_buffers(plan: Plan, cells: int) -> Plan:
    """Return the plan with at most so many cells in the buffer of each switch."""
    return replace(plan, nodes=tuple(_with_buffer(shape, cells) for shape in plan.nodes))


def _with_buffer(shape: Shape, cells: int) -> Shape:
    given = dict(shape.parameters)
    return Shape.of(shape.kind, **given | {"cells": min(given["cells"], cells)}) if "cells" in given else shape


def is_within(whole: Row, board: Board, limits: Mapping[str, float]) -> bool:
    """Return whether a plan's sum takes these shares of a board's device at most."""
    return all(getattr(whole, key) <= int(share * getattr(board.has, key)) for key, share in limits.items())


def fitting_buffer(plan: Plan, board: Board, limits: Mapping[str, float] = FITTING) -> int | None:
    """Return the largest multiple of :data:`STEP` cells for the buffers of the switches with which a plan is within
    these shares of a board, for a plan that is not as it is; None if it is not even with the smallest one."""
    largest = max((dict(shape.parameters).get("cells", 0) for shape in plan.nodes), default=0)
    names = [""] * len(plan.nodes)

    def fits(steps: int) -> bool:
        return is_within(rows_of(with_buffers(plan, steps * STEP), board, names)[-1], board, limits)

    low, high = 1, (largest - 1) // STEP
    if high < low or not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low * STEP


def rows_of(plan: Plan, board: Board, names: Sequence[str]) -> list[Row]:
    """Return a row for each node with its wires and host port, one for the core, and one for the sum.

    A row that exceeds what the rows above it have left is marked. Where block memories are scarce, memories of few rows
    are made of LUTs, as a build does.
    """
    rows = _rows(plan, board, names, scarce=False)
    return rows if rows[-1].ebr < SCARCE * board.has.ebr else _rows(plan, board, names, scarce=True)


def _rows(plan: Plan, board: Board, names: Sequence[str], *, scarce: bool) -> list[Row]:
    has = board.has
    room = {name: int(share * getattr(has, name)) for name, share in FITTING.items()}
    used: Counter[str] = Counter()
    rows: list[Row] = []

    def add(name: str, shape: str, takes: dict[str, int]) -> None:
        lacks = [
            f"{takes[key]} {key.upper()} needed, {max(0, room[key] - used[key])} left"
            for key in room
            if takes[key] > room[key] - used[key]
        ]
        if not lacks:
            used.update(takes)
        rows.append(Row(name, shape, **takes, why="; ".join(lacks)))

    frames, words = plan.frame_words, len(plan.description)
    if plan.sdram:
        kind, size = ("DDR3", _DDR3) if plan.ddr3 else ("SDRAM", _SDRAM)
        add(kind, f"{len(plan.sdram)} wires of {plan.sdram_cells} cells", _takes(size, 0))
    if board.rgmii:
        add("Ethernet", "unless it is built without: --ip none", _takes(_ETHERNET, _ETHERNET_BLOCKS))
    core = Counter(_takes(_CORE, 3 * _blocks(frames) + _blocks(words)))
    if plan.is_paced:
        core.update(_takes(_PACE, 0))
    add("core", f"frames of {frames} words", dict(core))
    for index, (name, shape) in enumerate(zip(names, plan.nodes, strict=True)):
        add(name, str(shape), _node(plan, index, shape, scarce))
    add_up = {key: sum(getattr(row, key) for row in rows) for key in room}
    lost = [row.name for row in rows if row.why]
    why = f"{', '.join(lost)} left out" if lost else ""
    of = ", ".join(f"{limit} {key.upper()}" for key, limit in room.items())
    rows.append(Row("all", f"of {of}", **add_up, why=why))
    return rows


def _takes(size: tuple[int, int], ebr: int) -> dict[str, int]:
    return {"lut": size[0], "ff": size[1], "ebr": ebr, "dsp": 0}


def _blocks(rows: int) -> int:
    """Return the block memories of so many rows of 32 bits."""
    return -(-rows // _ROWS)


def _node(plan: Plan, index: int, shape: Shape, scarce: bool) -> dict[str, int]:
    """Return a node with the wires behind its outputs, and its host port."""
    takes = Counter(_measured(shape))
    for face, cells in enumerate(plan.wires_of(index), plan.bases[index]):
        if not cells:
            continue
        if face in plan.sdram:
            takes.update(_takes(_LONG_WIRE, 1 + _BOXES))
        else:
            in_luts = scarce and cells <= FEW_ROWS
            takes.update(_takes(_DUES if in_luts else (0, 0), 0 if in_luts else 2 * _blocks(cells)))
            takes.update(_takes(_WIRE, _blocks(16 * cells)))
    if shape.kind == "nic":
        takes.update(_takes(_HOST_PORT, _blocks(plan.tx_words) + _blocks(plan.rx_words)))
        if plan.patterns:
            vcs = dict(shape.parameters)["vcs"]
            takes.update(_takes(_PATTERNS, _blocks(2 * vcs) + _blocks(4 * vcs)))
        if plan.sources:
            takes.update(_takes(_SOURCES, 0))
    return dict(takes)


@cache
def _measured(shape: Shape) -> dict[str, int]:
    if (cells := dict(shape.parameters).get("cells", 0)) > _MAPPED_CELLS:
        return _measured(_with_buffer(shape, _MAPPED_CELLS)) | {"ebr": -(-cells * _CELL_BITS // _BLOCK_BITS)}
    name = "-".join([shape.kind, *(f"{key}{value}" for key, value in shape.parameters)])
    entry = Entry(name, lambda: shape.component(NARROW), str(shape))
    figures = measure(entry, cache_folder() / "sizes", quick=True)
    return {"lut": figures.lut, "ff": figures.ff, "ebr": figures.ebr, "dsp": figures.dsp}
