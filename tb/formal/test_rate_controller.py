"""The rate controller of load-reactive ports by itself: from the write of a port's control on, its capacity never
leaves floor and ceiling; a port stalls until its first look has ended, while it has no capacity, and only then; what a
division leaves is never lost. By induction with one step.
"""

import pytest
from amaranth.hdl import Array, Module, Mux, Signal

from bentpipe_hdl.cell import NARROW, WIDE, TimeSignature
from bentpipe_hdl.switch.options.reactive.rate_controller import RateController, _before
from bentpipe_hdl.tick_schedule import TickSchedule
from formal.proof import Probe, Proof, Spec

PORTS = 2


def _controller(width):
    time = TimeSignature().create()
    slot = TickSchedule(Module(), time, width)
    node = RateController(slot, ports=PORTS, count_bits=3)
    probe = Probe(node)
    spec = Spec(probe)
    spec.inputs.append(time.tick)
    m = spec.m
    if not slot.wide:
        spec.inputs.append(slot.commit)  # in any clock
    busy, eval_port, eval_capacity, port = (
        probe[f"elaborate.{name}"] for name in ("busy", "eval_port", "eval_capacity", "port")
    )
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
        reactive, waits = node.reactive[p], restarts[p] | (busy & (eval_port == p))
        first = spec.ghost(1, f"first{p}")  # its first look has not ended
        with m.If(node.control_en & (node.control_port == p)):
            m.d.sync += first.eq(node.control[0])
        with m.Elif(probe["elaborate.applies"] & (eval_port == p)):
            m.d.sync += first.eq(0)
        within.append(~reactive | ((floor <= capacity) & (capacity <= ceiling)))
        within.append(~(busy & (eval_port == p)) | ((floor <= eval_capacity) & (eval_capacity <= ceiling)))
        stalled.append(~reactive | (node.stalled[p] == (first | (capacity == 0))))
        stalled.append(~first | (reactive & waits))
        stalled.append(reactive | ~node.stalled[p])
        if slot.wide:
            known = reactive & ~node.stalled[p]
            exact.append(~known | ((rests[p] < capacity) & (carried[p] < capacity)))
    if not slot.wide:
        # Clocks since a tick began, in which what looks are chosen by is as it was, unless a control is written
        spec.inputs.append(slot.clock(0))
        since, calm, committed = spec.ghost(3, "since"), spec.ghost(3, "calm"), spec.ghost(1, "committed")
        now, written = Signal.like(node.now, name="ghost_now"), probe["_written.written"]
        m.d.sync += [now.eq(node.now), committed.eq(slot.commit | (committed & ~slot.clock(0)))]
        with m.If(slot.clock(0)):
            m.d.sync += [since.eq(0), calm.eq(0)]
        with m.Else():
            m.d.sync += [since.eq(Mux(since.all(), since, since + 1)), calm.eq(Mux(calm.all(), calm, calm + 1))]
        with m.If(node.control_en | slot.commit):
            m.d.sync += calm.eq(0)
        first_wanted, lates, looks = (probe[f"elaborate.{name}"] for name in ("first", "late", "looks"))
        before = [Signal.like(port, name=f"ghost_port{k}") for k in range(2)]
        m.d.sync += [before[0].eq(port), before[1].eq(before[0])]
        floors, ceilings = Array(node.floor), Array(node.ceiling)
        new = probe["elaborate.new"]
        spec.condition("ticks", (node.now == now) | slot.clock(0), ~slot.commit | ((since >= 5) & ~committed))
        age = spec.ghost(2, "age")  # clocks since reset
        m.d.sync += age.eq(Mux(age.all(), age, age + 1))
        within += [
            committed | written | (calm == since),
            calm <= since,
            committed | ~(probe["elaborate.asked"] & busy & (since >= 1)),
            *(
                slot.clock(0) | (calm < 1) | (late == ~_before(node.now, look))
                for late, look in zip(lates, looks, strict=True)
            ),
            (calm < 2) | (port == first_wanted),
            (calm < 3) | (before[0] == port),
            (calm < 4) | (before[1] == port),
            (age < 1) | (probe["elaborate.floor"] == floors[before[0]]),
            (age < 1) | (probe["elaborate.ceiling"] == ceilings[before[0]]),
            (age < 2) | ((floors[before[1]] <= new) & (new <= ceilings[before[1]])),
            (age.all()) | (since <= age),
            port < PORTS,
            *(one < PORTS for one in before),
        ]
    strobe = time.tick if slot.wide else slot.commit
    spec.condition("promised", strobe | ~node.serve, *(node.port < PORTS, node.control_port < PORTS))
    spec.condition("sends", ~(node.serve & node.stalled.bit_select(node.port, 1)))
    spec.condition("constant", *constant)
    spec.condition("within", *within, eval_port < PORTS)
    spec.condition("stalled", *stalled)
    spec.condition("exact", *exact)
    spec.condition("moved", node.capacity[0] == 5, node.capacity[1] == 7, node.floor[0] == 3, node.ceiling[1] == 7)
    return Proof(f"rate_controller_{width}", spec)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_capacity_stays_between_floor_and_ceiling_and_a_port_stalls_without_any(width):
    """From the write of the port's control on, whatever is written to it and when: on the narrow datapath in any clock,
    too, if its commit comes once a tick, in the sixth clock after its start or later. What is divided there bit by bit
    is tested elsewhere."""
    proof = _controller(width)
    given = ["promised"] if width == WIDE else ["promised", "ticks"]
    assert proof.possible(*given, "constant", "within", "stalled", "exact", "moved")
    assert proof.holds_at_reset("within", "stalled", "exact", given=given) is None
    assert proof.is_kept("within", "stalled", given=[*given, "constant"]) is None
    assert proof.is_kept("within", given=given) is not None  # a ceiling may be lowered below the capacity
    assert proof.is_kept("exact", "within", "stalled", given=[*given, "sends", "constant"]) is None
