"""Tests that Amaranth's private modules are as this project knows them, and that only two files use them. With another
version they tell the difference.
"""

import ast
import inspect
from importlib.metadata import requires
from pathlib import Path

import pytest
from amaranth.hdl import Fragment, Module, Signal
from amaranth.hdl import _nir as nir
from amaranth.hdl._ir import PortDirection, build_netlist
from amaranth.hdl._nir import CombinationalCycle
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.amaranth_private import (
    assignments,
    memory_reads,
    memory_writes,
    netlist,
    netlist_of_design,
    ports,
    used,
)

ROOT = Path(__file__).parents[3]
PRIVATE = ROOT / "hdl" / "bentpipe_hdl" / "amaranth_private.py"
SIMULATION = PRIVATE.with_name("amaranth_simulation.py")
ATTRIBUTES = {"_lhs_signals", "_rhs_signals", "_read_ports", "_write_ports", "subfragments"}

CELLS = {
    "Top": [],
    "Operator": ["operator", "inputs"],
    "Part": ["value", "value_signed", "width", "stride", "offset"],
    "Matches": ["value", "patterns"],
    "PriorityMatch": ["en", "inputs"],
    "AssignmentList": ["default", "assignments"],
    "FlipFlop": ["data", "init", "clk", "clk_edge", "arst", "attributes"],
    "Memory": ["width", "depth", "init", "name", "attributes"],
    "SyncWritePort": ["memory", "data", "addr", "en", "clk", "clk_edge"],
    "AsyncReadPort": ["memory", "width", "addr"],
}
"""The cells of NIR that the native engine reads, and what they are made of."""

REFUSED = {
    "SyncReadPort", "AsyncPrint", "SyncPrint", "Initial", "AnyValue", "AsyncProperty", "SyncProperty", "Instance",
    "IOBuffer",
}  # fmt: skip
"""Those that it refuses."""


def private(source: str) -> set[str]:
    """Return the private modules of Amaranth, and private attributes of its values, that Python source uses."""
    found = set()
    if "amaranth" not in source and not any(name in source for name in ATTRIBUTES):
        return found  # not parsed: that takes ten times as long
    for node in ast.walk(ast.parse(source)):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            found.add(node.attr)
        found.update(name for name in modules if name.split(".")[0] == "amaranth" and "._" in name)
    return found


@pytest.mark.parametrize("folder", ["hdl", "sim", "sw", "boards", "tb"])
def test_no_other_file_touches_them(folder):
    allowed = {PRIVATE, SIMULATION, Path(__file__)}
    files = [file for file in (ROOT / folder).rglob("*.py") if file not in allowed]
    found = {str(file.relative_to(ROOT)): taken for file in files if (taken := private(file.read_text()))}
    assert files and not found


def test_this_one_does():
    assert {"amaranth.hdl._ast.Assign", "amaranth.hdl._nir", "_rhs_signals"} <= private(PRIVATE.read_text())


def test_the_minor_version_is_pinned():
    assert "amaranth==0.5.*" in (requires("bentpipe") or [])


def test_the_cells_of_nir_are_those_that_are_known():
    found = {
        name: [p for p in inspect.signature(kind.__init__).parameters if p not in ("self", "module_idx", "src_loc")]
        for name, kind in vars(nir).items()
        if inspect.isclass(kind) and issubclass(kind, nir.Cell) and kind is not nir.Cell
    }
    assert {name: sorted(parts) for name, parts in found.items() if name not in REFUSED} == {
        name: sorted(parts) for name, parts in CELLS.items()
    }
    assert found.keys() >= REFUSED


def test_nets_are_numbers_of_a_cell_and_a_bit():
    assert (nir.Net.from_const(0), nir.Net.from_const(1), nir.Net.from_cell(5, 3)) == (0, 1, 5 << 16 | 3)


def test_assignments_and_netlists_have_what_is_read():
    assert set(inspect.signature(nir.Assignment.__init__).parameters) == {"self", "cond", "start", "value", "src_loc"}
    empty = nir.Netlist()
    assert {"signals", "cells"} <= set(vars(empty)) and {"ports_i", "ports_o"} <= set(vars(empty.top))
    assert {"Input", "Output"} <= {direction.name for direction in PortDirection}
    assert {"fragment", "ports", "name"} <= set(inspect.signature(build_netlist).parameters)


class Chain(wiring.Component):
    """Each bit of a signal is the one below and an input's; the lowest one is the highest, if it is ``closed``."""

    i: In(4)
    o: Out(4)

    def __init__(self, closed):
        super().__init__()
        self._closed = closed

    def elaborate(self, platform):
        m = Module()
        bits = Signal(4)
        m.d.comb += [bits[k].eq(bits[k - 1] ^ self.i[k]) for k in range(1, 4)]
        m.d.comb += [bits[0].eq(bits[3] if self._closed else self.i[0]), self.o.eq(bits)]
        return m


def test_a_bit_that_depends_on_itself_is_amaranths_error():
    with pytest.raises(CombinationalCycle, match="signal bits"):
        netlist(Chain(closed=True), "chain")


def test_bits_of_a_signal_may_depend_on_others_of_it():
    """The cell of these bits depends on itself, so that Amaranth has to look at single bits."""
    assert set(netlist(Chain(closed=False), "chain").top.ports_o) == {"o"}


@pytest.mark.parametrize("registered", [False, True])
def test_a_netlist_is_amaranths_but_for_ports_of_modules(registered):
    prepared = Fragment.get(Design(), None).prepare(ports=ports(Design()), hierarchy=("design",))
    ours = netlist_of_design(prepared, all_undef_to_ff=registered)
    theirs = build_netlist(prepared, all_undef_to_ff=registered)
    assert [*map(repr, ours.cells)] == [*map(repr, theirs.cells)]
    assert [(module.parent, module.name, module.cells) for module in ours.modules] == [
        (module.parent, module.name, module.cells) for module in theirs.modules
    ]
    assert [*ours.signals.values()] == [*theirs.signals.values()]


class Design(wiring.Component):
    """One of each: a choice, an assignment to a part, memory ports of both kinds."""

    i: In(wiring.Signature({"valid": Out(1), "word": Out(8)}))
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=8, depth=16, init=[])
        self.write, self.now, self.later = memory.write_port(), memory.read_port(domain="comb"), memory.read_port()
        self.place, self.register = Signal(3, name="place"), Signal(8, name="register")
        m.d.comb += [self.write.addr.eq(self.place), self.write.data.eq(self.i.word), self.write.en.eq(self.i.valid)]
        with m.If(self.i.valid):
            m.d.sync += self.register.bit_select(self.place, 1).eq(self.i.word[0])
            m.d.comb += self.o.eq(self.now.data ^ self.later.data)
        return m


@pytest.fixture
def design():
    return Design()


def names(signals):
    return {signal.name for signal in signals}


def test_ports_have_names_and_directions(design):
    assert {name: (len(value), direction.name) for name, (value, direction) in ports(design).items()} == {
        "i_valid": (1, "Input"),
        "i_word": (8, "Input"),
        "o": (8, "Output"),
    }


def test_an_assignment_has_targets_sources_and_conditions(design):
    found = {
        (domain, *names(targets)): (names(sources), names(conditions))
        for domain, targets, sources, conditions in assignments(Fragment.get(design, None))
    }
    assert found["sync", "register"] == ({"i__word", "place", "i__valid"}, {"i__valid"})
    data = names(used(design.now.data)) | names(used(design.later.data))
    assert found["comb", "o"] == ({*data, "i__valid"}, {"i__valid"})


def test_memory_ports_have_signals_and_domains(design):
    fragment = Fragment.get(design, None)
    reads = list(memory_reads(fragment))
    assert {domain: (names(data), names(address)) for _, domain, data, address in reads} == {
        "comb": (names(used(design.now.data)), names(used(design.now.addr))),
        "sync": (names(used(design.later.data)), names(used(design.later.addr))),
    }
    write = design.write
    [(memory, name, signals)] = memory_writes(fragment)
    assert all(other is memory for other, *_ in reads)
    assert name in names(used(write.data))
    assert names(signals) == names(used(write.addr)) | names(used(write.data)) | names(used(write.en))


def test_a_netlist_has_the_ports_names(design):
    top = netlist(design, "design").top
    assert set(top.ports_i) == {"i_valid", "i_word", "clk", "rst"} and set(top.ports_o) == {"o"}
