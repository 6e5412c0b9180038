"""The traffic of ``make rtl-check`` plays in Amaranth's simulator, without the other simulators."""

from __future__ import annotations

from itertools import pairwise

import pytest

from exported.cores import CORE_NODES
from exported.nodes import NODES
from exported.reference import trace

CLOCKS = 600


@pytest.mark.parametrize("name", ["link", "aal5-segmenter", "gcra", "hec", "lookup-416", "utopia-atm-8"])
def test_traffic_reaches_the_outputs(name):
    node = {**NODES, **CORE_NODES}[name]
    got = trace(node, CLOCKS, seed=1)
    assert len(got.given) == len(got.got) == CLOCKS
    assert sum(one != other for one, other in pairwise(got.got)) > CLOCKS // node.busy
