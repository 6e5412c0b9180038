"""The policer finds a cell not conforming exactly when GCRA says so in virtual scheduling form (I.371), with a
theoretical arrival time that never wraps; and discarded cells use nothing. For any contract, in small sizes of times,
by induction with one step."""

from amaranth.hdl import Cat, Const, Module, Mux

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.switch.options.police.policer import BUCKETS, Policer
from bentpipe_hdl.tick_schedule import TickSchedule
from bentpipe_hdl.traffic.gcra import Sizes
from formal.proof import Probe, Proof, Spec

SIZES = Sizes(fraction=2, time=12, increment=5, limit=6)
AGE_BITS = SIZES.ticks - 1
"""Of the times of the proof: it ends before they wrap."""


def _proof():
    time = TimeSignature().create()
    node = Policer(TickSchedule(Module(), time, WIDE), vcs=2, sizes=SIZES)
    probe = Probe(node)
    spec = Spec(probe)
    m, now = spec.m, node.now
    instant = Cat(Const(0, SIZES.fraction), now)
    state, last = spec.ghost(node.state.shape(), "state"), spec.ghost(AGE_BITS, "last")
    comes = spec.value(node.arrives & node.seen & (node.vc == 0), "comes")
    with m.If(comes):
        m.d.sync += [state.eq(node.new_state), last.eq(now)]
    spec.condition("given", ~node.seen | node.arrives, ~comes | (node.state.as_value() == state.as_value()))
    spec.condition("time", now >= last, now < 1 << AGE_BITS)
    spec.condition("kept_contract", ~node.rate_en, ~node.limit_en, ~node.clearing)
    spec.condition("comes", comes)
    known, exact, alone = [], [], []
    for k in range(BUCKETS):
        contract, limit = node.rates[k].read(Const(0, 1)), node.limits[k].read(Const(0, 1))
        earliest = node.times[k].read(Const(0, 1))
        tat = spec.ghost(AGE_BITS + SIZES.fraction + 4, f"tat{k}")
        asked = contract.enabled & ~(contract.clp0 & node.clp)
        early = spec.value(state.started[k] & (instant + limit < tat), f"early{k}")
        uses = comes & asked & ~early & ~node.discard & ~(contract.clp0 & node.new_clp)
        with m.If(uses):
            m.d.sync += tat.eq(Mux(state.started[k] & (tat > instant), tat, instant) + contract.increment)
        age = Cat(Const(0, SIZES.fraction), last)
        known += [
            ~state.started[k] | (earliest == (tat - limit)[: len(earliest)]),
            ~state.started[k] | (tat <= age + limit + contract.increment),
        ]
        exact.append(~comes | (probe["elaborate.objects"][k] == (asked & early)))
        alone.append(~comes | ~node.discard | (node.new_state.started[k] <= state.started[k]))
    spec.condition("known", *known)
    spec.condition("exact", *exact)
    spec.condition("alone", *alone)
    spec.condition("discards", node.discard, comes)
    spec.condition("tags", node.new_clp & ~node.clp, comes)
    return Proof("policer", spec)


def test_a_cell_conforms_when_its_theoretical_arrival_time_says_so():
    proof = _proof()
    context = ["given", "time", "kept_contract"]
    assert proof.possible("known", "discards", *context)
    assert proof.possible("known", "tags", *context)
    assert proof.holds_at_reset("known") is None
    assert proof.is_kept("known", given=context) is None
    assert proof.follows("exact", given=["known", *context]) is None
    assert proof.follows("alone", given=["known", *context]) is None
    assert proof.follows("exact", given=context) is not None
