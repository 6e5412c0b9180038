"""The link in cocotb on Verilator, against the models."""

from functools import partial

import pytest

from benches.run import run
from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.nodes import Link


@pytest.mark.parametrize("delay_cells", [0, 64])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_link(width, delay_cells, tmp_path):
    node = partial(Link, width=width, delay_cells=delay_cells)
    run(node, "cocotb_nodes.bench_link", tmp_path, BENTPIPE_DELAY_CELLS=str(delay_cells))
