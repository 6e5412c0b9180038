"""Tests of the layout of the native engine's registers and memories: each has one place, those used together are in few
cache lines, and a clock has the same effect with any layout.
"""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.amaranth_private import netlist
from bentpipe_sim.build import Shape
from bentpipe_sim.native import node
from bentpipe_sim.native.design import Register, design
from bentpipe_sim.native.layout import LINE, ordered
from bentpipe_sim.native.library import compiled, source
from bentpipe_sim.native.netlist import read, read_netlist
from bentpipe_sim.native.node import members
from bentpipe_sim.wave.state import Layout
from models.lockstep import side_by_side
from models.random_design import RandomShape, stimulus

SHAPES = (
    RandomShape(1),
    Shape.of("switch", vcs=16, cells=64, ports=4),
    Shape.of("nic", vcs=16),
    Shape.of("link"),
)


def octets(place):
    return (place.width + 7) // 8


def in_a_line(octet, size):
    return octet // LINE == (octet + size - 1) // LINE


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.kind)
def test_each_register_and_each_row_has_octets_of_its_own(shape):
    cells = netlist(shape.component(), shape.kind)
    plain = read_netlist(cells)
    whole, layout = design(plain), Layout(cells)
    depths = {int(memory.name[1:]): memory.depth for memory in whole.memories}
    registers = [place for cell, each in layout.registers.items() if cell not in plain.banked for place in each]
    assert len(registers) == len(whole.registers) and layout.memories.keys() == depths.keys()
    taken = [(place.octet, octets(place)) for place in registers]
    for cell, fields in layout.memories.items():
        first, last = min(field.octet for field in fields), max(field.octet + octets(field) for field in fields)
        for row in range(depths[cell]):
            here = row * fields[0].step
            assert last - first > LINE or in_a_line(first + here, last - first)
            taken += [(field.octet + here, octets(field)) for field in fields]
    assert all(in_a_line(octet, size) for octet, size in taken if size <= 8)
    before = 0
    for octet, size in sorted(taken):
        assert before <= octet
        before = octet + size
    assert before <= layout.length


class Rows(wiring.Component):
    """Memories: two of which a clock wants the same rows, one of other rows, one of the same rows with fewer of them;
    registers: one that all clocks want, one that is written by an access only."""

    i_valid: In(1)
    csr_w_en: In(1)
    a: In(4)
    b: In(4)
    seldom: Out(1)
    o: Out(40)

    def elaborate(self, platform):
        m = Module()
        total = self.i_valid
        cold, hot = Signal(39), Signal(40)
        for k, (depth, address) in enumerate([(16, self.a), (16, self.a), (16, self.b), (8, self.a[:3])]):
            m.submodules[f"memory{k}"] = memory = Memory(shape=20 + k, depth=depth, init=[])
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [write.addr.eq(address), read.addr.eq(address), write.en.eq(1)]
            m.d.comb += write.data.eq(read.data + hot + k)
            total = total ^ read.data
        with m.If(self.csr_w_en):
            m.d.sync += [cold.eq(cold + self.a + 1), self.seldom.eq(cold[3])]
        m.d.sync += [hot.eq(hot + total), self.o.eq(total ^ hot)]
        return m


ALTERED = (lambda memories, clocks: [list(memories)], lambda memories, clocks: [[memory] for memory in memories])
"""Groups of memories: all of a random design, which have as many rows; none with another."""


def test_memories_of_the_same_rows_are_one_array():
    found = members(design(read(Rows(), "rows")))
    arrays = {memory.fields[0][1]: rows.array for memory, rows in found.memories.items()}
    assert arrays[20] == arrays[21]
    assert len({arrays[width] for width in (20, 22, 23)}) == 3


def test_registers_that_clocks_want_are_before_those_that_an_access_wants():
    found = members(design(read(Rows(), "rows")))
    hot = next(name for register, name in found.registers.items() if register.width == 40 and name != "o")
    cold = next(name for register, name in found.registers.items() if register.width == 39)
    assert found.text.index(f" {hot}{{}}") < found.text.index(f" {cold}{{}}")


def test_registers_are_in_lines_by_how_often_they_are_wanted_and_the_large_ones_of_a_line_first():
    line = [(8, 3), (40, 2), (1, 5)]  # of 4, 8 and 1 octets
    fill = [(64, 4)] * 5
    next_line = [(64, 0.5), (300, 1), (8, 0)]  # 40 octets don't fit behind these
    heat = {Register(f"q{k}", width, 0, None): often for k, (width, often) in enumerate([*next_line, *fill, *line])}
    found = [(register.width, often) for register, often in ((each, heat[each]) for each in ordered(heat, heat))]
    assert found == [*fill, (40, 2), (8, 3), (1, 5), (300, 1), (64, 0.5), (8, 0)]


@pytest.mark.parametrize("seed", range(2))
def test_a_clock_does_the_same_wherever_they_are(seed, tmp_path, monkeypatch):
    """Another layout is compared with Amaranth's simulator, as the usual one is (`test_native`)."""
    usual = source(RandomShape(seed).component(), "random")
    monkeypatch.setattr(node, "ordered", lambda registers, heat: reversed(ordered(registers, heat)))
    monkeypatch.setattr(node, "together", ALTERED[seed])
    text = source(RandomShape(seed).component(), "random")
    assert text != usual
    rng = random.Random(seed)
    path = compiled(text, tmp_path, "a node that lies otherwise")
    side_by_side(RandomShape(seed), 120, lambda clock, before: stimulus(rng), path)
