"""While a node is idle and its due tick has not come, no clock changes any of its state: it may be skipped.

The wide datapath, where the native harness skips nodes. Each proof is of any state that meets the node's invariant,
and the invariant is proved by induction: it holds after reset, and every clock with whatever inputs keeps it. The
shapes are small, but memories have any content and registers any value. Excepted are the outputs that are high for
one clock: they fall, and stay low.
"""

from unittest.mock import patch

import pytest
from amaranth.hdl import Const, Mux, Signal

from bentpipe_hdl.aal5.crc32 import CrcTables
from bentpipe_hdl.cell import FRACTION_BITS, NEVER, TIME_BITS, due_tick, earlier
from bentpipe_hdl.nodes import Link, Nic, Switch
from bentpipe_hdl.switch.options import options_word
from formal.proof import Probe, Proof, Spec


def _quiet(spec, probe):
    """Conditions of a node that nothing happens to: no cell, no PDU, no access to a register now or just before."""
    node = probe.component
    arrivals = [node.i.valid]
    if isinstance(node, Nic):
        arrivals.append(node.post_valid)
    if isinstance(node, Link) and node.lets_pass:
        arrivals.append(node.passed)
    csr = probe["elaborate.csr"]
    accesses = [node.csr.w_en, node.csr.r_en, csr._reading, csr._strobed]
    spec.condition("quiet", *(value == 0 for value in (*arrivals, *accesses)))
    spec.condition("idle", node.status.idle)


def _early(spec, node):
    spec.condition("early", node.time.now < node.status.due)


def _pulses(spec, *outputs):
    spec.condition("fallen", *(output == 0 for output in outputs))
    return "|".join(rf"(\w+\.)*{output.name}" for output in outputs)


def _switch(*options):
    node = Switch(vcs=4, cells=4, ports=2, options=options_word(options))
    probe = Probe(node)
    spec = Spec(probe)
    _quiet(spec, probe)
    now = node.time.now
    soonest, found = Const(NEVER, TIME_BITS), Const(0)
    near, punctual, asleep = [], [], []
    for p in range(node.ports):
        tick = probe.parts["port_clock"].next[p][FRACTION_BITS:]
        busy = probe.parts["scheduler"].busy[p]
        if "shape" in options:  # a port that sleeps
            sleeps = probe.parts["shaper"].stalled[p]
            tick = Mux(sleeps, probe["_sleep.wake"][p], tick)
            asleep.append(~sleeps | busy)
            near.append(tick != NEVER)
        if "oam" in options:  # due besides the ports: the last tick of all is none
            near.append(tick != NEVER)
        soonest = Mux(busy & (~found | (tick - soonest)[TIME_BITS - 1]), tick, soonest)
        found = found | busy
        near.append(~busy | ~(tick - now + (1 << (TIME_BITS - 2)))[TIME_BITS - 1])
        punctual.append(~busy | (now - tick)[TIME_BITS - 1] | ~(now - node.status.due)[TIME_BITS - 1])
    pulses, kept = [node.o.valid, node.drop], []
    clock, rounds = probe.parts["port_clock"], probe.parts["scheduler"]
    if "shape" not in options:  # whose due it is, and when the other port's is
        of_first, of_other = (Mux(clock.first ^ k, clock.next[1], clock.next[0])[FRACTION_BITS:] for k in (0, 1))
        kept.append(~found | (rounds.busy.bit_select(clock.first, 1) & (of_first == clock.due)))
        kept += [~rounds.busy.all() | (of_other == clock.rest), clock.several == rounds.busy.all()]
    if hasattr(rounds, "listed"):  # a port is busy with its lists that have turns
        priorities = len(rounds.listed) // node.ports
        kept += [rounds.busy[p] == rounds.listed.word_select(p, priorities).any() for p in range(node.ports)]
    if "oam" in options:  # what is to be done at once is due since a tick that is past
        oam = probe.parts["oam"]
        for time in (probe["_due.at_once"], probe["_due.next_scan"]):
            near.append(~(time - now + (1 << (TIME_BITS - 2)))[TIME_BITS - 1])
            kept.append(time != NEVER)
        punctual.append(~probe["_due.works"] | ~(now - node.status.due)[TIME_BITS - 1])
        near.append(~(now - probe["_due.at_once"])[TIME_BITS - 1])
        kept.append(probe.parts["port_clock"].due == soonest)
        soonest = earlier(soonest, oam.due)
        found = found | (oam.due != NEVER)
        pulses += [node.report_valid, node.report_own, node.report_consumed]
    due, busy = node.status.due, Const(0)
    if "copies" in options:  # while it is busy with them it is due at once
        due, busy = probe.parts["port_clock"].due, probe.parts["copier"].busy
    spec.condition("invariant", due == soonest, *asleep, *kept)
    # Times are compared modulo half their range, and a busy port's next is less than a quarter of it from now
    spec.condition("near", *near)
    spec.condition("early", ~busy, ~found | (now - node.status.due)[TIME_BITS - 1])
    spec.condition("punctual", *punctual)
    names = _pulses(spec, *pulses)
    return Proof("_".join(("idle_switch", *options)), spec), names


def _nic():
    with patch.object(CrcTables, "cell", lambda tables, m, octets, start, name: crcs[name]):
        return _nic_with(crcs := {name: Signal(32, name=f"{name}_crc") for name in ("tx", "rx")})


def _nic_with(crcs):
    """The tables of the CRC are much logic, and no state: ``crcs`` are inputs, of any value."""
    node = Nic(vcs=4)
    probe = Probe(node)
    spec = Spec(probe)
    spec.inputs += crcs.values()
    m = spec.m
    _quiet(spec, probe)
    _early(spec, node)
    pacer = node.pacer
    now, tick, due, visit = node.time.now, node.time.tick, pacer.due, node.reassembler.timer.visit
    line = pacer.line.next[FRACTION_BITS:]
    root, fetched, sends = pacer.tournament.kept, pacer.fetched, pacer.sends

    # Time: ticks go up, within a quarter of their range; between them it stands
    last, started = spec.ghost(TIME_BITS, "last"), spec.ghost(1, "started")
    m.d.sync += last.eq(now)
    with m.If(tick):
        m.d.sync += started.eq(1)
    goes_on = Mux(started, Mux(tick, now > last, now == last), now >= last)
    spec.condition("time", goes_on, now[-2:] == 0, last[-2:] == 0)

    decided = spec.ghost(TIME_BITS, "decided")  # the tick at which the due tick was last decided on
    with m.If(tick & (sends | ~fetched)):
        m.d.sync += decided.eq(now)

    def later(a, b):
        return Mux(a > b, a, b)

    soonest = later(line, (decided + 1)[:TIME_BITS])
    gap = (soonest - root.key[FRACTION_BITS:])[: len(root.key) - FRACTION_BITS].as_signed()
    spec.condition(
        "invariant",
        decided <= last,
        last[-2:] == 0,
        ~probe["elaborate.core"].clearing | (~fetched & ~root.valid),
        started | ((decided == 0) & (due == NEVER) & ~fetched & ~root.valid),
        line <= last + (1 << 24),
        visit <= last + (1 << 31),
        # A cell is fetched: the line is due. None is, but a VC has a PDU: it is due for its fetch a tick before its key
        Mux(
            fetched,
            due == soonest,
            (~started | (decided == last))
            & Mux(root.valid, (gap < 0) & (due == (soonest + ~gap)[:TIME_BITS]), due == NEVER),
        ),
    )
    pulses = _pulses(spec, node.o.valid, node.fetch, node.done, node.post_taken, node.rx_valid, node.rx_last)
    pulses += r"|dut\.(pacer\.fetch|segmenter\.(done|o__valid)|reassembler\.o__(valid|last))"  # the same, in the parts
    return Proof("idle_nic", spec), pulses


def _link(delay_cells, faults=0):
    node = Link(delay_cells=delay_cells, faults=faults)
    probe = Probe(node)
    spec = Spec(probe)
    _quiet(spec, probe)
    # Times are compared modulo half their range; the next cell is due, and the next state, in less than a quarter of it
    times = [node.status.due]
    if faults:
        times.append(next(plugin.due for plugin in probe["elaborate.plugins"] if plugin.due is not None))
        if delay_cells:
            times.append(Mux(probe["wide.used"] != 0, due_tick(probe["wide.due"]), NEVER))
    spec.condition("early", *((due == NEVER) | (node.time.now - due)[TIME_BITS - 2 :][:2].all() for due in times))
    spec.condition("invariant", 1)
    pulses = _pulses(spec, node.o.valid, node.error)
    return Proof(f"idle_link_{delay_cells}_{faults}", spec), pulses


def _check(proof, pulses, *environment):
    assert proof.possible("quiet", "idle", "early", "invariant", *environment)
    assert proof.holds_at_reset("invariant") is None
    assert proof.is_kept("invariant", given=environment) is None
    given = ["quiet", "idle", "early", "invariant", *environment]
    assert proof.changes_nothing(*given, but=pulses) is None
    assert proof.leads_to("fallen", given=given) is None


def test_switch():
    proof, pulses = _switch()
    _check(proof, pulses, "near")
    # Each of the conditions is needed. Before the due tick no port sends: that keeps none from sending which may
    for missing in ("quiet", "early", "idle"):
        given = {"quiet", "idle", "early", "invariant", "near"} - {missing}
        assert proof.changes_nothing(*given, but=pulses) is not None, missing
    assert proof.follows("punctual", given=["invariant", "near"]) is None
    assert proof.follows("punctual", given=["near"]) is not None


WITH = [
    ("red", "queue_limit"),
    ("port_epd", "fair", "minimum", "efci"),
    ("fifo", "shares", "histograms"),
    ("virtual-clock", "vp"),
    ("police", "shape"),
    ("oam",),
    ("copies",),
]


@pytest.mark.parametrize("options", WITH, ids="+".join)
def test_switch_with_options(options):
    proof, pulses = _switch(*options)
    _check(proof, pulses, "near")


def test_nic():
    proof, pulses = _nic()
    _check(proof, pulses, "time")
    for missing in ("quiet", "early", "invariant", "idle", "time"):
        given = {"quiet", "idle", "early", "invariant", "time"} - {missing}
        assert proof.changes_nothing(*given, but=pulses) is not None, missing


def test_link_without_delay():
    proof, pulses = _link(0)
    _check(proof, pulses)
    assert proof.changes_nothing("idle", "early", "invariant", but=pulses) is not None


@pytest.mark.parametrize("delay_cells", [0, 4])
def test_link_with_faults(delay_cells):
    proof, pulses = _link(delay_cells, 1)
    _check(proof, pulses)
    for missing in ("quiet", "early"):
        given = {"quiet", "idle", "early", "invariant"} - {missing}
        assert proof.changes_nothing(*given, but=pulses) is not None, missing


def test_link_with_delay():
    proof, pulses = _link(4)
    _check(proof, pulses)
    assert proof.changes_nothing("quiet", "idle", "invariant", but=pulses) is not None
