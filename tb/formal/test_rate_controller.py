"""The rate controller of load-reactive ports by itself: capacity never leaves floor and ceiling, a port stalls while it
has none and only then, and what a division leaves is never lost. On the wide datapath, by induction with one step.
"""

from amaranth.hdl import Module, Signal

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.slot import Slot
from bentpipe_hdl.switch.rate_controller import RateController
from formal.proof import Probe, Proof, Spec

PORTS = 2


def _controller():
    time = TimeSignature().create()
    node = RateController(Slot(Module(), time, WIDE), ports=PORTS, count_bits=3)
    probe = Probe(node)
    spec = Spec(probe)
    spec.inputs.append(time.tick)
    m = spec.m
    busy, its_port, its_capacity = (probe[f"elaborate.{name}"] for name in ("busy", "its_port", "its_capacity"))
    restarts, applies, rests, carried = (
        probe[f"elaborate.{name}"] for name in ("restarts", "applies", "rests", "carried")
    )

    # Floors and ceilings are as they were a clock ago
    constant, within, stalled, exact = [], [], [], []
    for name in ("floor", "ceiling"):
        for p, setting in enumerate(getattr(node, name)):
            before = Signal.like(setting, name=f"ghost_{name}{p}")
            m.d.sync += before.eq(setting)
            constant.append(before == setting)
    constant += [floor <= ceiling for floor, ceiling in zip(node.floor, node.ceiling, strict=True)]
    for p in range(PORTS):
        looked = spec.ghost(1, f"looked{p}")  # its capacity is one that a look gave, since it is reactive
        written = node.control_en & (node.control_port == p)
        with m.If(written):
            m.d.sync += looked.eq(0)
        with m.Elif(applies & (its_port == p) & ~restarts[p] & node.reactive[p]):
            m.d.sync += looked.eq(1)
        floor, capacity, ceiling = node.floor[p], node.capacity[p], node.ceiling[p]
        within.append(~looked | ((floor <= capacity) & (capacity <= ceiling) & node.reactive[p]))
        pending = busy & (its_port == p)
        within.append(~pending | ((floor <= its_capacity) & (its_capacity <= ceiling)))
        stalled.append(~looked | (node.stalled[p] == (capacity == 0)))
        stalled.append(node.reactive[p] | ~node.stalled[p])
        exact.append((capacity == 0) | ((rests[p] < capacity) & (carried[p] < capacity)))
        exact.append((capacity != 0) | (rests[p] == 0))
    spec.condition("promised", time.tick | ~node.serve, *(node.port < PORTS, node.control_port < PORTS))
    spec.condition("sends", ~(node.serve & node.stalled.bit_select(node.port, 1)))
    spec.condition("constant", *constant)
    spec.condition("within", *within, its_port < PORTS)
    spec.condition("stalled", *stalled)
    spec.condition("exact", *exact)
    spec.condition("moved", node.capacity[0] == 5, node.capacity[1] == 7, node.floor[0] == 3, node.ceiling[1] == 7)
    return Proof("rate_controller", spec)


def test_capacity_stays_between_floor_and_ceiling_and_a_port_stalls_without_any():
    proof = _controller()
    assert proof.possible("promised", "constant", "within", "stalled", "exact", "moved")
    assert proof.holds_at_reset("within", "stalled", "exact", given=["promised"]) is None
    assert proof.is_kept("within", "stalled", given=["promised", "constant"]) is None
    assert proof.is_kept("within", given=["promised"]) is not None  # a ceiling may be lowered below the capacity
    assert proof.is_kept("exact", "within", given=["promised", "sends", "constant"]) is None
