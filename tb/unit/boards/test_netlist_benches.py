"""The benches that compare netlists with their RTL (`make test-netlist`), on RTL alone: no synthesis is needed."""

from __future__ import annotations

import pytest

from netlist.nodes import DUTS, Beside, Different, library

CLOCKS = 3_000


@pytest.mark.parametrize("name", ["link", "bridge"])
def test_traffic_goes_into_both_nodes(name: str) -> None:
    dut = DUTS[name]
    made = library(dut.make())
    beside = Beside(made, made, dut.outputs())
    dut.traffic(beside, CLOCKS, 1)
    assert beside.clocks >= CLOCKS and sum(moves > 0 for moves in beside.moves.values()) >= 4


def test_an_output_that_differs_is_found() -> None:
    dut = DUTS["bridge"]
    made = library(dut.make())
    beside = Beside(made, made, dut.outputs())
    beside.clocks = 0
    beside.ports["rx"]._other.set = lambda _value: None  # the second node's line stays silent
    with pytest.raises(Different, match=r"clock \d+: "):
        dut.traffic(beside, CLOCKS, 1)
