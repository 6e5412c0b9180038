"""Parts of nodes whose tests run in the native simulator: every signal is what Amaranth's simulator says. So a part's
tests have a witness there."""

import pytest
from amaranth.hdl import Value

from bentpipe_hdl.aal5.reassembler import Reassembler
from bentpipe_hdl.amaranth_private import PortDirection, ports
from bentpipe_hdl.cell import NARROW
from bentpipe_hdl.part_harness import PartHarness
from bentpipe_hdl.sonet.pointer import ConcatenationIndicator, PointerInterpreter
from bentpipe_hdl.switch.core.vc_table import DEPARTURE
from bentpipe_hdl.switch.options.weighted_priority.weighted_priority import WeightedPriorityScheduler
from bentpipe_hdl.traffic.pacer import Pacer
from models.simulators import BOTH, everything, unlike


def part(make, commit=11):
    return lambda: PartHarness(make, width=NARROW, commit=commit)


PARTS = {
    "pacer": part(lambda slot: Pacer(slot, vcs=4)),
    "reassembler": part(lambda slot: Reassembler(slot, width=NARROW, vcs=4)),
    "scheduler": part(lambda slot: WeightedPriorityScheduler(slot, vcs=8, ports=2, at=DEPARTURE - 2)),
    "pointers": PointerInterpreter,
    "concatenation": ConcatenationIndicator,
}


@pytest.mark.parametrize("name", PARTS)
def test_every_signal_is_the_same(name):
    found = []
    for kind in BOTH:
        node = PARTS[name]()
        inputs = [(Value.cast(value), 0.5) for value, way in ports(node).values() if way is PortDirection.Input]
        found.append(everything(kind, node, [each for each in inputs if len(each[0])], 60))
    assert unlike(*found) is None
