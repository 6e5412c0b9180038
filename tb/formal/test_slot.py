"""The narrow datapath commits once a tick, at its clock, however long a tick is."""

import pytest
from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.cell import CLOCKS_A_TICK, NARROW, TimeSignature
from bentpipe_hdl.tick_schedule import TickSchedule
from formal.proof import Probe, Proof, Spec


class _Commits(wiring.Component):
    def __init__(self, commit):
        self._commit = commit
        super().__init__({"time": In(TimeSignature()), "commit": Out(1)})

    def elaborate(self, platform):
        m = Module()
        slot = TickSchedule(m, self.time, NARROW, commit=self._commit)
        m.d.comb += self.commit.eq(slot.commit)
        return m


@pytest.mark.parametrize("commit", [9, 11, 12])
def test_commits_once_a_tick(commit):
    node = _Commits(commit)
    probe = Probe(node)
    spec = Spec(probe)
    m = spec.m
    clock = spec.ghost(range(100), "clock")  # of the tick; 99: long ago, or never
    with m.If(node.time.tick):
        m.d.sync += clock.eq(1)
    with m.Elif(clock != 99):
        m.d.sync += clock.eq(clock + 1)
    seen = spec.ghost(1, "seen")  # there was a tick
    with m.If(node.time.tick):
        m.d.sync += seen.eq(1)
    spec.condition("apart", ~node.time.tick | ~seen | (clock >= CLOCKS_A_TICK))
    strobes = probe["__init__.self"].clock
    passed = [strobes(k) == (seen & (clock == k)) for k in range(1, CLOCKS_A_TICK)]
    spec.condition("counted", clock <= 99, ~seen | (clock >= 1), *passed)
    at = Mux(node.time.tick, 0, Mux(seen, clock, 99))
    spec.condition("once", node.commit == (at == commit))
    proof = Proof(f"slot_{commit}", spec)
    assert proof.holds_at_reset("counted") is None
    assert proof.is_kept("counted", given=["apart"]) is None
    assert proof.follows("once", given=["counted", "apart"]) is None
    assert proof.follows("once", given=["apart"]) is not None
