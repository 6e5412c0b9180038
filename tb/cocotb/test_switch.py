"""The switch in cocotb on Verilator, against the models."""

from functools import partial

import pytest

from benches.run import run
from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.nodes import Switch
from cocotb_nodes.bench_switch import CELLS, PORTS, VCS


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_switch(width, tmp_path):
    node = partial(Switch, width=width, vcs=VCS, cells=CELLS, ports=PORTS)
    run(node, "cocotb_nodes.bench_switch", tmp_path)
