"""Nodes and the bridge after synthesis for an ECP5: each output equal to the RTL's in each of 30,000 clocks."""

from __future__ import annotations

import pytest

from netlist.nodes import CLOCKS, DUTS, played


@pytest.mark.parametrize("name", DUTS)
def test_a_netlist_does_what_its_rtl_does(name: str) -> None:
    beside = played(name, CLOCKS, 1)
    assert beside.clocks >= CLOCKS
    still = {output for output, moves in beside.moves.items() if not moves}
    assert still <= {"o_hec_error"}, "these outputs never moved"  # which interfaces and switches drop
