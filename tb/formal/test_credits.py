"""Credits: of a VC never more cells are on a line and queued behind it together than its share, whatever is lost.

The parts of both ends, and between them a line that keeps order and may lose any cell: data, probes, credit cells.
Counts are modulo 2**4 and wrap; the parts are the same for 32 bits. By induction with one step.
"""

import itertools

import pytest
from amaranth.hdl import Const, Module, Mux

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.credits.gate import CreditGate
from bentpipe_hdl.switch.options.credits.credits import CreditReturn
from bentpipe_hdl.tick_schedule import TickSchedule
from formal.proof import Probe, Proof, Spec

BITS = 4
PLACES = 3
"""Cells that are on the line at once, each way."""


class Line:
    """Cells in order, the next to come out first. ``values`` has those of each place, ``count`` how many there are."""

    def __init__(self, spec, name, widths):
        self.spec, self.name = spec, name
        self.count = spec.ghost(2, f"{name}_count")
        self.values = [[spec.ghost(w, f"{name}{k}_{n}") for n, w in enumerate(widths)] for k in range(PLACES)]
        self.comes = spec.value(spec.any(1, f"{name}_moves") & (self.count != 0), f"{name}_comes")
        self.arrives = spec.value(self.comes & ~spec.any(1, f"{name}_loses"), f"{name}_arrives")
        self.room = self.count < PLACES

    def put(self, en, *new):
        m = self.spec.m
        end = self.spec.value(self.count - self.comes, f"{self.name}_end")
        m.d.sync += self.count.eq(end + en)
        for k, place in enumerate(self.values):
            behind = self.values[k + 1] if k + 1 < PLACES else place
            for mine, after, given in zip(place, behind, new, strict=True):
                m.d.sync += mine.eq(Mux(en & (end == k), given, Mux(self.comes, after, mine)))


def _slot():
    time = TimeSignature().create()
    return TickSchedule(Module(), time, WIDE), time


def _credits(share):
    slot, time = _slot()
    gate = CreditGate(slot, vcs=2, at=(3, 6, 7), count_bits=BITS)
    back = CreditReturn(slot, vcs=2, count_bits=BITS)
    spec, probe = Spec(Probe(gate)), Probe(back)
    m = spec.m
    m.submodules.back = probe.module
    spec.inputs += [*probe.inputs(), time.tick]
    sent, accepted, left = (spec.ghost(BITS, name) for name in ("sent", "accepted", "left"))
    data, credits = Line(spec, "data", (1, BITS)), Line(spec, "credits", (BITS,))
    queued = spec.value((accepted - left)[:BITS], "queued")

    # In a clock the sender sends a cell, or a probe, or nothing; the switch a cell of its queue, a credit cell, or
    # nothing
    sends = spec.value(spec.any(1, "may_send") & gate.arriving_allowed & data.room, "sends")
    asks = spec.value(spec.any(1, "may_ask") & data.room & ~sends, "asks")
    leaves = spec.value(spec.any(1, "may_leave") & (queued != 0), "leaves")
    gives = spec.value(spec.any(1, "may_give") & credits.room & ~leaves, "gives")
    is_probe, probe_count = data.values[0]
    data.put(sends | asks, asks, sent)
    credits.put(gives, back.freed)
    m.d.sync += [
        sent.eq(sent + sends),
        accepted.eq(accepted + (data.arrives & ~is_probe)),
        left.eq(left + leaves),
    ]
    update = credits.arrives
    spec.condition(
        "connected",
        time.tick,
        *(one == other for one, other in (
            (gate.clearing, 0), (back.clearing, 0),
            (gate.arriving_vc, 0), (gate.arriving_sent, sent), (gate.arriving_share, share), (gate.arriving_valid, 1),
            (gate.lookup, update), (gate.update, update), (gate.lookup_vc, 0), (gate.lookup_sent, sent),
            (gate.lookup_share, share), (gate.count, credits.values[0][0]),
            (back.probed, data.arrives & is_probe), (back.probed_vc, 0), (back.count, probe_count),
            (back.accepted, accepted), (back.vc, 0), (back.departed, left), (back.departing_valid, leaves),
        )),
    )  # fmt: skip

    # From what the sender believes to be freed on, counts come in this order: those of credit cells on their way, what
    # the switch would tell now, what it would after each probe on its way, the cells that are neither on the line nor
    # queued
    freed, lost = gate.store.read(Const(0, 1)), back.losses.read(Const(0, 1))
    order = []

    def after(value, name):
        order.append(spec.value((value - freed)[:BITS], name))

    inside = []
    for k, (count,) in enumerate(credits.values):
        there = credits.count > k
        after(Mux(there, count, order[-1] + freed if order else freed), f"credit{k}")
        inside.append(there)
    after(left + lost, "present")
    ahead = Const(0)
    for k, (kind, count) in enumerate(data.values):
        there = data.count > k
        after(Mux(there & kind, count - queued - ahead, order[-1] + freed), f"probe{k}")
        ahead = spec.value(ahead + (there & ~kind), f"ahead{k}")
    on_line = ahead
    after(sent - queued - on_line, "gone")
    outstanding = spec.value((sent - freed)[:BITS], "outstanding")
    spec.condition(
        "order",
        data.count <= PLACES,
        credits.count <= PLACES,
        *(a <= b for a, b in itertools.pairwise(order)),
        order[-1] + queued + on_line == outstanding,
        outstanding <= share,
    )
    spec.condition("never_more", queued + on_line <= share)
    spec.condition("full", queued + on_line == share, order[-1] == 0)
    return Proof(f"credits_{share}", spec)


@pytest.mark.parametrize("share", [1, 2, 3])
def test_never_more_cells_are_under_way_and_queued_than_the_share(share):
    proof = _credits(share)
    assert proof.possible("connected", "order", "full")
    assert proof.holds_at_reset("order", given=["connected"]) is None
    assert proof.is_kept("order", given=["connected"]) is None
    assert proof.follows("never_more", given=["order"]) is None
