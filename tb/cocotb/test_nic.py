"""The NIC in cocotb on Verilator, against the models."""

from functools import partial

import pytest

from benches.run import run
from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.nodes import Nic
from cocotb_nodes.bench_nic import VCS


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_nic(width, tmp_path):
    run(partial(Nic, width=width, vcs=VCS), "cocotb_nodes.bench_nic", tmp_path)
