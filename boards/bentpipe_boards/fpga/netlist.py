"""Files between yosys and nextpnr: rows of a device that are kept free of logic, and settings of the router."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bentpipe_boards.devices import Device
from bentpipe_boards.fpga.errors import FpgaError

__all__ = ["KEPT_FREE", "set_for_router", "spread"]

KEPT_FREE: Final = {"from": 0.4, "to": 0.75, "every": 5}
"""A netlist that uses a share of a device's LUTs between these two is placed with each fifth row of logic kept free.

nextpnr's static placer fills 0.7 of the LUTs where it places any, and leaves the corners of the device empty. The wires
of so dense a region may not suffice. With free rows the plan `lan` has a density of 0.69 everywhere between them: a
placement that could not be routed otherwise was routed in 34 iterations (nextpnr 0.11). Carry chains lie along rows.
A larger netlist needs the free rows itself.
"""
_LUTS: Final = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
_PLACES: Final = tuple(f"SLICE{each}.K{k}" for each in "ABCD" for k in range(2))
"""Look-up tables of a tile."""
_CELLS: Final = '"cells": {'
_TOP: Final = '"top": {'


def spread(netlist: Path, spread_netlist: Path, device: Device) -> int:
    """Write a netlist of yosys once more, with look-up tables without connections in the rows that are to be free.

    Return their number. It is 0, and nothing is written, for a netlist that uses few LUTs, or almost all.

    Raises
    ------
    FpgaError
        The file has no module `top` with cells.
    """
    text = netlist.read_text()
    used = sum(luts * text.count(f'"type": "{kind}"') for kind, luts in _LUTS.items())
    if not KEPT_FREE["from"] <= used / device.lut <= KEPT_FREE["to"]:
        return 0
    begin = text.find(_CELLS, text.find(_TOP))
    if _TOP not in text or begin < 0:
        raise FpgaError(f"{netlist}: a netlist of yosys has a module with cells, this one has none")
    every = int(KEPT_FREE["every"])
    ports = "ABCD"
    cell = {
        "type": "LUT4",
        "parameters": {"INIT": "0" * 16},
        "port_directions": {**dict.fromkeys(ports, "input"), "Z": "output"},
        "connections": {**{port: ["0"] for port in ports}, "Z": []},
    }
    places = [
        f"X{x}/Y{y}/{place}"
        for y in device.logic_rows[every // 2 :: every]
        for x in device.logic_columns
        for place in _PLACES
    ]
    cells = (f'"kept_free_{n}": {json.dumps(cell | {"attributes": {"BEL": at}})},' for n, at in enumerate(places))
    begin += len(_CELLS)
    spread_netlist.write_text("\n".join([text[:begin], *cells, text[begin:]]))
    return len(places)


def set_for_router(placed: Path, settings: Mapping[str, str]) -> None:
    """Add settings to those that nextpnr has written with a placement, and reads with it.

    Raises
    ------
    FpgaError
        The placement has none.
    """
    text, begin = placed.read_text(), '"settings": {'
    if begin not in text:
        raise FpgaError(f"{placed}: a placement of nextpnr has settings, this one has none")
    lines = "".join(f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in settings.items())
    placed.write_text(text.replace(begin, f"{begin}\n{lines}", 1))
