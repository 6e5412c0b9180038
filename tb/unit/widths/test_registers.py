"""Every register of every node does what its declaration says, at every width: made from the declarations."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from benches.build import library_of
from benches.compiled import Compiled
from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.driver import Driver, WrongNodeError
from bentpipe_hdl.link.control import LinkDriver
from bentpipe_hdl.nic.control import NicDriver
from bentpipe_hdl.registers import Register, RegisterMap
from bentpipe_hdl.sonet.control import SonetDriver
from bentpipe_hdl.switch.control import SwitchDriver
from bentpipe_hdl.switch.options import OPTIONS
from bentpipe_sim.build import Shape

WORD = 0xFFFFFFFF
ALL = (1 << len(OPTIONS)) - 1

SHAPES = {
    "switch": Shape.of("switch", vcs=8, cells=24, ports=3),
    "optional switch": Shape.of("switch", vcs=8, cells=24, ports=3, options=ALL),
    "nic": Shape.of("nic", vcs=8),
    "link": Shape.of("link", delay_cells=16),
}
NODES: dict[str, tuple[Shape, int]] = {
    **{f"{name} {width}": (shape, width) for name, shape in SHAPES.items() for width in (WIDE, NARROW)},
    "sonet 3": (Shape.of("sonet", sts=3), WIDE),
}
SLOW = {"sonet 12": (Shape.of("sonet", sts=12), WIDE)}
"""Nodes of :mod:`soak.registers`: the same declarations as another's, in a minute of elaboration and compilation."""

DRIVERS: dict[str, Callable[[Any], Driver]] = {
    "switch": lambda bus: SwitchDriver(bus, vcs=8, cells=24, ports=3),
    "optional switch": lambda bus: SwitchDriver(bus, vcs=8, cells=24, ports=3, options=ALL),
    "nic": lambda bus: NicDriver(bus, vcs=8),
    "link": lambda bus: LinkDriver(bus, delay_cells=16),
    "sonet 3": lambda bus: SonetDriver(bus, sts=3),
    "sonet 12": lambda bus: SonetDriver(bus, sts=12),
}


class Bus:
    """The register bus of a compiled node to which nothing comes and for which no time passes."""

    def __init__(self, name: str) -> None:
        shape, width = (NODES | SLOW)[name]
        self.registers: RegisterMap = shape.component(width).registers
        self._node = Compiled(library_of(shape, width))
        self._ports = self._node.ports
        for _ in range(200_000):
            self._clock()
            if self._ports["status_idle"].get():
                return
        raise AssertionError(f"{name} never became idle after reset")

    def _clock(self) -> None:
        self._node.settle()
        self._node.edge()

    def write(self, addr: int, value: int) -> None:
        self._ports["csr_addr"].set(addr)
        self._ports["csr_w_data"].set(value)
        self._ports["csr_w_en"].set(1)
        self._clock()
        self._ports["csr_w_en"].set(0)
        self._clock()
        self._clock()

    def read(self, addr: int) -> int:
        self._ports["csr_addr"].set(addr)
        self._ports["csr_r_en"].set(1)
        self._clock()
        self._ports["csr_r_en"].set(0)
        self._clock()
        self._clock()
        self._node.settle()
        return self._ports["csr_r_data"].get()


@pytest.fixture(scope="module", params=NODES)
def bus(request: pytest.FixtureRequest) -> Bus:
    return Bus(request.param)


@pytest.fixture
def fresh(request: pytest.FixtureRequest, bus: Bus) -> Bus:
    """A node after reset."""
    return Bus(request.node.callspec.params["bus"])


def entries(register: Register) -> range:
    """Addresses of a register's entries: all, or of a large table the first and the last."""
    every = range(register.size)[:: register.words]
    return every if len(every) <= 128 else every[:: len(every) - 1]


def readable(bus: Bus) -> dict[int, Register]:
    """All words that can be read, but those of large tables."""
    return {
        addr + k: register
        for _, addr, register in bus.registers.walk()
        for k in entries(register)
        if register.access != "wo"
    }


def test_after_reset(fresh: Bus) -> None:
    expected = {addr: register.reset for addr, register in readable(fresh).items() if register.reset is not None}
    found = {addr: fresh.read(addr) for addr in expected}
    shape = fresh.registers["shape"]
    expected |= {shape.addr + k: value for k, value in enumerate(fresh.registers.shape.values())}
    assert found == expected


def test_a_setting_is_read_as_written_and_changes_no_other(bus: Bus) -> None:
    rng = random.Random(1)
    values = {addr: bus.read(addr) for addr in readable(bus)}
    settings = {addr: register for addr, register in readable(bus).items() if register.access == "rw"}
    assert settings
    for addr, register in settings.items():
        for word in (WORD, rng.getrandbits(32), 0, register.reset):
            bus.write(addr, word)
            kept = word & (1 << register.width) - 1 if register.most is None else min(word, register.most)
            assert bus.read(addr) == kept, register.name
        values[addr] = bus.read(addr)
        assert {other: bus.read(other) for other in settings} == {other: values[other] for other in settings}


def test_what_is_read_only_is_not_written(bus: Bus) -> None:
    for addr, register in readable(bus).items():
        if register.access == "ro" and not register.on_write:
            before = bus.read(addr)
            bus.write(addr, ~before & WORD)
            assert bus.read(addr) == before, register.name


def test_what_is_write_only_reads_as_nothing(bus: Bus) -> None:
    for _, addr, register in bus.registers.walk():
        if register.access == "wo" and not register.on_write:
            for k in (0, register.size - 1):
                bus.write(addr + k, WORD)
                assert bus.read(addr + k) == 0, register.name
                bus.write(addr + k, 0)


def test_a_table_ends_where_it_is_said_to(bus: Bus) -> None:
    """Behind its last word, and at each power of two from its first, is nothing of it."""
    taken = {addr + k for _, addr, register in bus.registers.walk() for k in range(register.size)}
    values = {addr: bus.read(addr) for addr in readable(bus)}
    for _, addr, register in bus.registers.walk():
        places = {addr + register.size, *(addr ^ 1 << k for k in range(register.index_bits, 20))} - taken
        for place in places:
            if place < 1 << 20:
                assert bus.read(place) == 0, f"{place:#07x}, behind {register.name}"
                bus.write(place, WORD)
    assert {addr: bus.read(addr) for addr in values} == values


def test_the_driver_knows_its_node(bus: Bus, request: pytest.FixtureRequest) -> None:
    check_driver(bus, request.node.callspec.params["bus"])


def check_driver(bus: Bus, name: str) -> None:
    """The driver of the node of this name takes it, and no other one does."""
    for kind, make in DRIVERS.items():
        if name == kind or name.rsplit(" ", 1)[0] == kind:
            make(bus).identify()
        else:
            with pytest.raises(WrongNodeError):
                make(bus).identify()
