"""A switch with random settings and traffic at both widths: what it does is compared at every step."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from benches.build import library_of
from benches.compiled import Compiled
from benches.ticks import Cell, Record, Script, play
from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.registers import Recorder, RegisterMap, Registers
from bentpipe_hdl.switch.control import SwitchDriver, options_for, switch_registers
from bentpipe_hdl.switch.options import OPTIONS, Setup, options_word
from bentpipe_sim.build import Shape
from models import credits, oam
from models.aal5 import segment
from models.cell import Header, Interface
from models.switch_options import CELLS, PORTS, VCS, changed

__all__ = ["same_at_both_widths", "script_of"]

STEP = 250
"""Ticks from a look at all counters to the next."""

DRAIN = 1000
"""Ticks at the end in which nothing comes."""

LATE = {"red_average"} | {register.name for option in OPTIONS if option.name == "histograms" for register in
    option.registers(vcs=VCS, cells=CELLS, ports=PORTS)}  # fmt: skip
"""Registers that the narrow datapath updates one tick later; they are compared at the end. RED's average is one of them
because a frame that ends an idle time changes it in the next tick (``switch/options/red``)."""


class Words:
    """A bus on which words that were read before are read again; what is written goes nowhere."""

    def __init__(self, words: dict[int, int]) -> None:
        self._words = words

    def read(self, addr: int) -> int:
        return self._words[addr]

    def write(self, addr: int, value: int) -> None:
        pass


@cache
def _library(width: int, options: int) -> Path:
    return library_of(Shape.of("switch", vcs=VCS, cells=CELLS, ports=PORTS, options=options), width)


def same_at_both_widths(rng: random.Random, names: Sequence[str], setup: Setup, end: int, more: int = 0) -> Record:
    """Play the same script on both widths, and compare; the wide record.

    Parameters
    ----------
    names : sequence of str
        Options of which the settings that change are drawn.
    end : int
        The tick from which nothing comes any more.
    more : int
        Options that the switch is built with besides those that its settings ask for: nothing of them is set.
    """
    shape = {"vcs": VCS, "cells": CELLS, "ports": PORTS, "options": options_for(setup)}
    script = script_of(rng, names, setup, shape, end)
    options = shape["options"] | more
    wide, narrow = (play(script, Compiled(_library(width, options)), width, 1) for width in (WIDE, NARROW))
    for expected, got in zip(wide.verdicts, narrow.verdicts, strict=False):
        assert got == expected, f"verdict of tick {got[0]}: {got}, not {expected}"
    assert len(narrow.verdicts) == len(wide.verdicts)
    for (tick, expected), (now, got) in zip(wide.came_out, narrow.came_out, strict=False):
        assert (now, got) == (tick, expected), f"cell in tick {now}: {got}, not in {tick}: {expected}"
    assert len(narrow.came_out) == len(wide.came_out)
    assert narrow.ends == wide.ends
    steps = [*((tick, *wide.steps[tick], narrow.steps[tick][1]) for tick in wide.steps),
             (script.end, len(wide.came_out), wide.counters, narrow.counters)]  # fmt: skip
    for tick, gone, words, others in steps:
        different = _different(switch_registers(**shape), words, others)
        assert not different, f"before tick {tick}: {different}"
        driver = SwitchDriver(Words({**wide.counters, **words}), **shape)
        driver.configure(setup.settings, setup.ports, setup.vcs, setup.seed, setup.name)
        for balance in driver.account(sum(at < tick for at in script.cells), gone):
            assert balance, f"before tick {tick}: {balance}"
    return wide


def _different(registers: RegisterMap, words: dict[int, int], others: dict[int, int]) -> dict[str, tuple[int, int]]:
    """Return the differences, as ``name[index]``."""
    found = {addr: (words[addr], others[addr]) for addr in words if words[addr] != others[addr]}
    return {
        f"{name}[{addr - start}]": found[addr]
        for name, start, register in registers.walk()
        for addr in range(start, start + register.size)
        if addr in found
    }


def script_of(rng: random.Random, names: Sequence[str], setup: Setup, shape: dict[str, int], end: int) -> Script:
    """Frames of all VCs, OAM cells, credit cells, other cells; VCs that end and are set up again; settings that change
    as a run may change them."""
    script = Script(end=end + DRAIN)
    driver = SwitchDriver(Recorder(), **shape)
    registers = driver.csr.map

    def writes(tick: int, *actions):
        csr = Registers(recorder := Recorder(), registers)
        for action in actions:
            action(csr)
        script.writes.setdefault(tick, []).extend(recorder.writes)

    def configure(given: Setup):
        return lambda one: one.configure(given.settings, given.ports, given.vcs, given.seed, given.name)

    recorder = Recorder()
    configure(setup)(SwitchDriver(recorder, **shape))
    script.writes[1] = recorder.writes
    now = setup
    for tick in sorted(rng.sample(range(3, end), 8)):
        before, now = now, changed(rng, now, names)
        bus = Recorder()
        SwitchDriver(bus, **shape).change(configure(before), configure(now))
        script.writes.setdefault(tick, []).extend(bus.writes)
    for _ in range(6):
        tick, vc = rng.randrange(3, end), rng.randrange(VCS)
        writes(tick, lambda csr, vc=vc: csr.vc_policy.__setitem__(vc, 0))
        again = tick + rng.randrange(1, 60)
        of_vc = {"limit": 5, "port": setup.vcs[vc].out_port, "ppd": 1, "enabled": 1}
        writes(again, lambda csr, vc=vc, given=of_vc: csr.vc_policy.__setitem__(vc, given))
    if shape["options"] & options_word(["oam"]):
        _oam(rng, end, writes)
    _traffic(rng, end, setup, script, bool(shape["options"] & options_word(["credits"])))
    read_only = [register for register in registers.registers if register.access == "ro"]
    script.reads = [addr for register in read_only for addr in range(register.addr, register.addr + register.size)]
    at_steps = [
        addr
        for register in read_only
        if register.name not in LATE
        for addr in range(register.addr, register.addr + register.size)
    ]
    script.steps = dict.fromkeys(range(STEP, end + DRAIN, STEP), at_steps)
    return script


def _oam(rng, end, writes):
    """Short half seconds, interrupted lines, loopback cells that software asks for."""
    writes(2, lambda csr: setattr(csr, "oam_interval", 60))
    for tick in rng.sample(range(3, end), 20):
        request = {"segment": rng.getrandbits(1), "path": rng.getrandbits(1), "vc": rng.randrange(VCS)}
        writes(tick, lambda csr, request=request: setattr(csr, "oam_request", request))
        writes(tick, lambda csr: setattr(csr, "oam_defects", rng.choice([0, 0, rng.getrandbits(PORTS)])))


def _traffic(rng, end, setup, script, messages):
    """``messages``: credit cells, too, which a switch that is built with credits takes, whether they are set or not."""
    frames = [[] for _ in setup.vcs]
    roots = [k for k, vc in enumerate(setup.vcs) if vc.in_port >= 0]
    load = 0.6
    for tick in range(3, end):
        if tick % 150 == 0:
            load = rng.choice([0.05, 0.3, 0.6, 1.0])
        if rng.random() >= load:
            continue
        k = rng.choice(roots)
        vc = setup.vcs[k]
        vci = rng.choice([vc.in_vci, 3, 4, rng.randrange(32, 99)]) if vc.vpc else vc.in_vci
        clp, kind, octets = int(rng.random() < 0.2), rng.random(), rng.randbytes(48)
        if kind < 0.03:
            script.cells[tick] = Cell(rng.getrandbits(32), octets, vc.in_port)
            continue
        if kind < 0.15:
            pti, octets = rng.choice([4, 5]), oam.octets(rng.choice(["ais", "rdi", "cc", "loopback"]))
        elif kind < 0.2 and messages:
            pti, octets = 6, credits.payload(rng.getrandbits(1), rng.randrange(60))
        else:
            if not frames[k]:
                header = Header(vc.in_vpi, vci, rng.choice([0, 2]), clp, interface=Interface.NNI)
                frames[k] = segment(header, rng.randbytes(rng.choice([1, 40, 41, 100, 200])))
            cell = frames[k].pop(0)
            script.cells[tick] = Cell(int(cell.header), cell.payload, vc.in_port, int(rng.random() < 0.02))
            continue
        if rng.random() < 0.1:
            octets = bytes([octets[0] ^ 1]) + octets[1:]
        header = Header(vc.in_vpi, vci, pti, clp, interface=Interface.NNI)
        script.cells[tick] = Cell(int(header), octets, vc.in_port)
