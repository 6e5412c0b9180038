"""What the native engine knows of Amaranth's private modules: another version says here what it does differently."""

import inspect

from amaranth.hdl import _nir as nir
from amaranth.hdl._ir import PortDirection, build_netlist

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
"""The cells that it reads, and what they are made of."""

REFUSED = {
    "SyncReadPort", "AsyncPrint", "SyncPrint", "Initial", "AnyValue", "AsyncProperty", "SyncProperty", "Instance",
    "IOBuffer",
}  # fmt: skip
"""Those that it refuses."""


def test_the_cells_of_nir_are_those_that_it_knows():
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
    netlist = nir.Netlist()
    assert {"signals", "cells"} <= set(vars(netlist)) and {"ports_i", "ports_o"} <= set(vars(netlist.top))
    assert {"Input", "Output"} <= {direction.name for direction in PortDirection}
    assert {"fragment", "ports", "name"} <= set(inspect.signature(build_netlist).parameters)
