"""Proofs that shaped cells conform to the same contract by GCRA in virtual scheduling form (I.371), with theoretical
arrival times that never wrap, and that a cell which is held would not conform. They hold for any contract, in small
sizes, by induction with one step.
"""

from amaranth.hdl import Cat, Const, Module, Mux

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.switch.options.shape.shaper import BUCKETS, Shaper
from bentpipe_hdl.tick_schedule import TickSchedule
from bentpipe_hdl.traffic.gcra import Sizes
from formal.proof import Probe, Proof, Spec

SIZES = Sizes(fraction=2, time=50, increment=5, limit=6)
AGE_BITS = 10
"""Of the times of the proof, in ticks."""


def _proof():
    time = TimeSignature().create()
    node = Shaper(TickSchedule(Module(), time, WIDE), vcs=2, ports=1, sizes=SIZES)
    spec = Spec(Probe(node))
    spec.inputs.append(time.tick)
    m, now = spec.m, node.now
    instant, last = Cat(Const(0, SIZES.fraction), now), spec.ghost(AGE_BITS, "last")
    asked = spec.value(node.serve & (node.vc == 0), "asked")
    sent = spec.value(asked & node.sent, "goes")
    with m.If(sent):
        m.d.sync += last.eq(now)
    spec.condition("given", ~node.serve | time.tick, ~node.sent | (node.serve & ~node.held & ~node.gone))
    spec.condition("time", now >= last, now < 1 << AGE_BITS)
    spec.condition("kept_contract", ~node.rate_en, ~node.limit_en, ~node.clearing)
    known, conforms, late = [], [], Const(0)
    for k in range(BUCKETS):
        rate, bucket = node.rates[k].read(Const(0, 1)), node.buckets[k].read(Const(0, 1))
        limit = node.limits[k].read(Const(0, 1))
        tat, started = spec.ghost(SIZES.time + 1, f"tat{k}"), spec.ghost(1, f"started{k}")
        early = spec.value(rate.enabled & started & (instant + limit < tat), f"early{k}")
        with m.If(sent & rate.enabled):
            m.d.sync += [tat.eq(Mux(started & (tat > instant), tat, instant) + rate.increment), started.eq(1)]
        known += [
            started == bucket.started,
            ~started | (bucket.time == (tat - limit)[: SIZES.time]),
            ~started | (tat <= Cat(Const(0, SIZES.fraction), last) + limit + rate.increment),
        ]
        conforms.append(~(sent & early))
        late = late | early
    spec.condition("known", *known)
    spec.condition("conforms", *conforms)
    spec.condition("no_sooner", ~(asked & node.held) | late)
    spec.condition("holds", asked, node.held)
    return Proof("shaper", spec)


def test_what_is_sent_conforms_and_what_is_held_does_not():
    proof = _proof()
    context = ["given", "time", "kept_contract"]
    assert proof.possible("known", "holds", *context)
    assert proof.holds_at_reset("known") is None
    assert proof.is_kept("known", given=context) is None
    assert proof.follows("conforms", "no_sooner", given=["known", *context]) is None
    assert proof.follows("conforms", given=context) is not None
