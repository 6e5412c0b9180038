"""The rate controller of load-reactive ports by itself: from the write of a port's control on, its capacity never
leaves floor and ceiling; a port stalls until its first look has ended, while it has no capacity, and only then; what a
division leaves is never lost. On the wide datapath, by
induction with one step.
"""

import pytest
from amaranth.hdl import Module, Signal

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.slot import Slot
from bentpipe_hdl.switch.rate_controller import RateController
from formal.proof import Probe, Proof, Spec

PORTS = 2


def _controller(width):
    time = TimeSignature().create()
    slot = Slot(Module(), time, width)
    node = RateController(slot, ports=PORTS, count_bits=3)
    probe = Probe(node)
    spec = Spec(probe)
    spec.inputs.append(time.tick)
    m = spec.m
    busy, its_port, its_capacity = (probe[f"elaborate.{name}"] for name in ("busy", "its_port", "its_capacity"))
    restarts, rests, carried = (probe[f"elaborate.{name}"] for name in ("restarts", "rests", "carried"))

    # Floors and ceilings are as they were a clock ago
    constant, within, stalled, exact = [], [], [], []
    for name in ("floor", "ceiling"):
        for p, setting in enumerate(getattr(node, name)):
            before = Signal.like(setting, name=f"ghost_{name}{p}")
            m.d.sync += before.eq(setting)
            constant.append(before == setting)
    constant += [floor <= ceiling for floor, ceiling in zip(node.floor, node.ceiling, strict=True)]
    for p in range(PORTS):
        floor, capacity, ceiling = node.floor[p], node.capacity[p], node.ceiling[p]
        reactive, waits = node.reactive[p], restarts[p] | (busy & (its_port == p))
        first = spec.ghost(1, f"first{p}")  # its first look has not ended
        with m.If(node.control_en & (node.control_port == p)):
            m.d.sync += first.eq(node.control[0])
        with m.Elif(probe["elaborate.applies"] & (its_port == p)):
            m.d.sync += first.eq(0)
        within.append(~reactive | ((floor <= capacity) & (capacity <= ceiling)))
        within.append(~(busy & (its_port == p)) | ((floor <= its_capacity) & (its_capacity <= ceiling) & reactive))
        stalled.append(~reactive | (node.stalled[p] == (first | (capacity == 0))))
        stalled.append(~first | (reactive & waits))
        stalled.append(reactive | ~node.stalled[p])
        if slot.wide:
            known = reactive & ~node.stalled[p]
            exact.append(~known | ((rests[p] < capacity) & (carried[p] < capacity)))
    spec.condition("promised", time.tick | ~node.serve, *(node.port < PORTS, node.control_port < PORTS))
    spec.condition("sends", ~(node.serve & node.stalled.bit_select(node.port, 1)))
    spec.condition("constant", *constant)
    spec.condition("within", *within, its_port < PORTS)
    spec.condition("stalled", *stalled)
    spec.condition("exact", *exact)
    spec.condition("moved", node.capacity[0] == 5, node.capacity[1] == 7, node.floor[0] == 3, node.ceiling[1] == 7)
    return Proof(f"rate_controller_{width}", spec)


@pytest.mark.parametrize("width", [WIDE])
def test_capacity_stays_between_floor_and_ceiling_and_a_port_stalls_without_any(width):
    """From the write of the port's control on, whatever is written to it and when."""
    proof = _controller(width)
    given = ["promised"]
    assert proof.possible(*given, "constant", "within", "stalled", "exact", "moved")
    assert proof.holds_at_reset("within", "stalled", "exact", given=given) is None
    assert proof.is_kept("within", "stalled", given=[*given, "constant"]) is None
    assert proof.is_kept("within", given=given) is not None  # a ceiling may be lowered below the capacity
    assert proof.is_kept("exact", "within", "stalled", given=[*given, "sends", "constant"]) is None
