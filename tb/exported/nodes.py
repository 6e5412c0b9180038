"""The nodes of the check, each with registers and cells at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benches.ticks import Cell, Script, play
from bentpipe_hdl.bit_errors import scale_of
from bentpipe_hdl.kinds import registers_of
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.options.oam.control import POINT
from bentpipe_sim.build import Shape
from models.aal5 import segment
from models.cell import Header
from models.oam import octets
from models.registers import addresses, written

__all__ = ["NODES", "Node", "nic_node", "switch_node"]

VCS, PORTS, CELLS = 8, 3, 24


@dataclass(frozen=True)
class Node:
    """A node of the check: kind and shape as of ``bentpipe rtl``; ``script(rng, ticks)`` gives its traffic, with which
    its outputs change once in ``busy`` clocks."""

    kind: str
    script: Callable[[random.Random, int], Script]
    shape: dict[str, int] = field(default_factory=dict)
    width: int = 32
    busy: int = 8

    def component(self) -> Any:
        return Shape.of(self.kind, **self.shape).component(self.width)

    def play(self, recorder: Any, rng: random.Random, clocks: int, seed: int) -> None:
        """Give it its traffic for about so many clocks."""
        play(self.script(rng, clocks // 13), recorder, self.width, seed)


def _frames(rng: random.Random, ticks: int, places: list[tuple[int, int, int]]) -> dict[int, Cell]:
    """Return cells of AAL5 frames on VCs at (port, VPI, VCI), some of other types and some with a bad HEC."""
    cells = {}
    waiting: list[list[Any]] = [[] for _ in places]
    for tick in range(4, ticks):
        k = rng.choice([0, rng.randrange(len(places))])
        port, vpi, vci = places[k]
        draw = rng.random()
        if draw < 0.1:
            continue
        if draw < 0.15:
            cells[tick] = Cell(rng.getrandbits(32), rng.randbytes(48), port)
        elif draw < 0.25:
            header = Header(vpi, vci, rng.choice([4, 5]), rng.getrandbits(1))
            payload = octets(rng.choice(["ais", "rdi", "cc"]))
            cells[tick] = Cell(int(header), bytes(payload), port)
        else:
            if not waiting[k]:
                header = Header(vpi, vci, rng.choice([0, 2]), int(rng.random() < 0.2))
                sdu = rng.randbytes(rng.choice([1, 40, 41, 100, 300]))
                waiting[k] = segment(header, sdu, rng.getrandbits(8), rng.getrandbits(8))
            cell = waiting[k].pop(0)
            cells[tick] = Cell(int(cell.header), cell.payload, port, int(rng.random() < 0.03))
    return cells


def switch_node(*options: str, vcs: int = VCS, ports: int = PORTS, cells: int = CELLS) -> Node:
    """Return a switch with these options."""
    shape = {"vcs": vcs, "ports": ports, "cells": cells, "options": options_word(options)}
    registers = registers_of("switch", **shape)
    places = [(k % ports, 16 * (k // ports), 32 + k) for k in range(vcs)]

    def script(rng: random.Random, ticks: int) -> Script:
        def start(csr: Any) -> None:
            csr.processing_delay, csr.user_capacity = 1, cells
            for port in range(ports):
                csr.period[port] = rng.randrange(1 << 16, 4 << 16)
            lookup_table(vcs, {place: k for k, place in enumerate(places)}).write(csr)

        def policies(csr: Any) -> None:
            csr.epd_threshold, csr.clp_threshold = rng.randrange(4, 20), rng.randrange(4, 20)
            for k in range(vcs):
                flags = {name: rng.getrandbits(1) for name in ("ppd", "epd", "epd_own")}
                limits = {"limit": rng.choice([3, 6, 30]), "epd_threshold": rng.randrange(1, 8)}
                csr.vc_policy[k] = limits | flags | {"port": rng.randrange(ports), "enabled": int(rng.random() < 0.95)}
                csr.vc_header[k] = rng.getrandbits(28)
            for option in options:
                _SETTINGS[option](rng, csr)

        made = Script(end=ticks, cells=_frames(rng, ticks, places))
        made.writes = {1: written(registers, start)}
        for tick in (2, *range(100, ticks, 100)):
            made.writes[tick] = written(registers, policies)
        made.reads = addresses(registers, "occupancy", "unknown", "hec", "accepted", "departed", "dropped")
        return made

    return Node("switch", script, shape)


def _police(rng: random.Random, csr: Any) -> None:
    for k in range(2 * VCS):
        csr.police_limit[k] = rng.randrange(200 << 16)
        flags = {name: rng.getrandbits(1) for name in ("tag", "clp0", "packets")}
        csr.police_rate[k] = {"increment": rng.randrange(1 << 16, 20 << 16), "enabled": rng.getrandbits(1)} | flags


def _oam(rng: random.Random, csr: Any) -> None:
    csr.oam_last, csr.oam_interval, csr.oam_defects = VCS - 1, 60, rng.getrandbits(PORTS)
    for vc in range(VCS):
        flags = {register.name: rng.getrandbits(1) for register in POINT if register.width == 1}
        csr.oam_point[vc] = flags | {"port": rng.randrange(PORTS), "back": rng.randrange(VCS)}
    csr.oam_request = {"vc": rng.randrange(VCS)}


def _fifo(rng: random.Random, csr: Any) -> None:
    csr.fifo = rng.getrandbits(PORTS)


def _red(rng: random.Random, csr: Any) -> None:
    csr.red_enabled, csr.red_waits = rng.getrandbits(PORTS), rng.getrandbits(PORTS)
    for port in range(PORTS):
        csr.red_levels[port] = {"low": rng.randrange(2 << 16), "high": rng.randrange(2 << 16, 5 << 16)}
        csr.red_weights[port] = {"keep": rng.getrandbits(23), "slope": rng.getrandbits(22)}
        csr.red_idle[port] = {"rate": rng.getrandbits(30), "decay": rng.getrandbits(24)}
        csr.red_seed[port] = rng.getrandbits(64) | 1


_SETTINGS = {"police": _police, "oam": _oam, "fifo": _fifo, "red": _red}


def nic_node(vcs: int = VCS) -> Node:
    """Return an interface."""
    return Node("nic", lambda rng, ticks: _nic(rng, ticks, vcs), {"vcs": vcs})


def _nic(rng: random.Random, ticks: int, vcs: int) -> Script:
    registers = registers_of("nic", vcs=vcs)
    places = [(0, 16 * (vc % 4), 32 + vc) for vc in range(vcs)]

    def start(csr: Any) -> None:
        csr.line_period, csr.tolerance, csr.rx_timeout = 1 << 16, 7, 60
        for vc, (_, vpi, vci) in enumerate(places):
            csr.tx_header[vc] = int(Header(vpi, vci, clp=vc & 1))
            csr.tx_period[vc], csr.rx_limit[vc] = rng.randrange(1 << 16, 8 << 16), rng.choice([3, 9])
        lookup_table(vcs, {place: vc for vc, place in enumerate(places)}).write(csr)

    made = Script(end=ticks, cells=_frames(rng, ticks, places), writes={1: written(registers, start)})
    for tick in range(3, ticks, 9):
        made.posts.append((tick, rng.randrange(vcs), rng.choice([0, 1, 40, 41, 150]), tick & 255, 0))
    made.reads = addresses(registers, "tx_refused", "rx_unknown", "rx_hec", "tx_cells", "rx_cells", "rx_pdus")
    return made


def _link(rng: random.Random, ticks: int) -> Script:
    registers = registers_of("link")

    def errors(csr: Any) -> None:
        csr.error_enable = 0
        csr.error_mantissa, csr.error_shift = scale_of(rng.choice([1e-3, 1e-3, 1e-4]))
        csr.gap, csr.seed = rng.randrange(3000), rng.getrandbits(64) | 1
        csr.error_enable = 1

    made = Script(end=ticks, settle=40, cells=_frames(rng, ticks, [(0, 0, 40), (0, 3, 50)]))
    made.writes = {tick: written(registers, errors) for tick in (1, *range(100, ticks, 100))}
    made.reads = addresses(registers, "cells", "errored", "corrected", "rejected", "error_bits")
    return made


NODES: dict[str, Node] = {
    "nic": nic_node(),
    "link": Node("link", _link),
    "switch": switch_node(),
    **{f"switch-{option}": switch_node(option) for option in _SETTINGS},
}
