"""The switch's shared buffer loses no place and gives none away twice, whatever comes in and whatever is set.

On the wide datapath, in tiny shapes: every state that meets the invariant, with memories of any content otherwise,
keeps it at every clock (induction with one step). The narrow datapath shares the code of the control.
"""

from unittest.mock import patch

import pytest
from amaranth.hdl import Array, Cat, Const, Mux, Signal

from bentpipe_hdl.lookup import Lookup
from bentpipe_hdl.nodes import Switch
from formal.proof import Probe, Proof, Spec


def _total(values):
    values = list(values)
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _union(masks):
    union = Const(0, 1)
    for mask in masks:
        union = union | mask
    return union


def _proof(*, vcs, cells, ports):
    node = Switch(vcs=vcs, cells=cells, ports=ports)
    found = Signal(), Signal(range(vcs))  # the look-up is much logic: let it find any VC, or none
    with patch.object(Lookup, "find", lambda lookup, header, port: found):
        probe = Probe(node)
    places = cells + vcs

    capacity = probe["elaborate.settings"]["capacity"]
    buffer, context, scheduler = (probe.parts[name] for name in ("buffer", "context", "scheduler"))
    vc_bits = (vcs - 1).bit_length()
    occupancy, clearing, clear = buffer.occupancy, context.clearing, context.clear
    links = [buffer.links.read(Const(p, buffer.place_bits)) for p in range(places)]
    arrivals = [context.stores["arrival"].read(Const(v, vc_bits)) for v in range(vcs)]
    departures = [context.stores["departure"].read(Const(v, vc_bits)) for v in range(vcs)]
    rings = [scheduler.rounds.read(Const(k, vc_bits + (ports - 1).bit_length())) for k in range(ports * vcs)]

    spec = Spec(probe)
    spec.inputs += found
    after = Array([spec.value(link.next, f"after{p}") for p, link in enumerate(links)])

    def walk(name, first, count):
        """The places on a list of ``count`` links from ``first`` on, and the one that its last link points to."""
        here, mask, end = first, Const(0, places), first
        for k in range(cells):
            mask = spec.value(Mux(count > k, mask | (1 << here), mask)[:places], f"{name}_mask{k}")
            here = spec.value(after[here], f"{name}_place{k}")
            end = spec.value(Mux(count > k, here, end), f"{name}_end{k}")
        return mask, end

    # A VC's list: its queued cells, and the place reserved for its next
    lengths = [spec.value((a.accepted - d.departed)[:32], f"length{v}") for v, (a, d) in
               enumerate(zip(arrivals, departures, strict=True))]  # fmt: skip
    masks, queues_closed, cleared = [], [], []
    for v in range(vcs):
        mask, end = walk(f"queue{v}", departures[v].head, lengths[v])
        masks += [mask, (1 << arrivals[v].tail)[:places]]
        queues_closed += [lengths[v] <= cells, end == arrivals[v].tail, arrivals[v].tail < places]
        cleared.append(
            (clear <= v)
            | (
                (arrivals[v].tail == v)
                & (arrivals[v].accepted == 0)
                & (departures[v].head == v)
                & (departures[v].departed == 0)
            )
        )
    # Free places: a list, and those never used yet
    used = buffer.used
    free_count, unused = spec.value(used - occupancy, "free_count"), spec.value(cells - used, "unused")
    mask, _ = walk("free", buffer.free_head, free_count)
    masks += [mask, *(Mux(unused >= places - p, 1 << p, 0) for p in range(places))]

    # Rounds: the VCs with cells, each in one port's round, once
    counts, members = [], []
    for p in range(ports):
        read, write = scheduler.first[p], scheduler.end[p]
        count = spec.value((write - read)[: len(read)], f"round{p}")
        counts.append(count)
        for k in range(vcs):
            at = Array(rings[p * vcs : (p + 1) * vcs])[(read + k)[:vc_bits]]
            members.append(Mux(count > k, (1 << at)[:vcs], 0))
    queued = spec.value(Cat(length != 0 for length in lengths), "queued")

    running = spec.value(~clearing, "running")
    spec.condition("running", running)
    spec.condition("occupancy", clearing | (occupancy == _total(lengths)), occupancy <= cells)
    spec.condition(
        "places",
        occupancy <= used,
        used <= cells,
        clearing | (_union(masks) == (1 << places) - 1),
        *(clearing | closed for closed in queues_closed),
    )
    spec.condition(
        "rounds",
        *(count <= vcs for count in counts),
        *(scheduler.busy[p] == (count != 0) for p, count in enumerate(counts)),
        clearing | (_union(members) == queued),
        clearing | (_total(counts) == _total(queued[v] for v in range(vcs))),
    )
    clock = probe.parts["port_clock"]
    spec.condition("first", ~clock.busy.any() | clock.busy.bit_select(clock.first, 1))
    spec.condition(
        "clearing",
        capacity <= cells,
        running | (occupancy == 0),
        running | (free_count == 0),
        running | (unused == cells),
        *(running | (count == 0) for count in counts),
        *(running | done for done in cleared),
    )

    # What follows for every single cell
    counters, admission = probe.parts["counters"], probe.parts["admission"]
    spec.condition("counted", buffer.enqueue + counters.lost + counters.stray == context.arrives)
    room = (occupancy < capacity) & (admission.length < context.a_policy.limit)
    spec.condition("admitted", ~buffer.enqueue | room)
    spec.condition("served", ~buffer.dequeue | queued.bit_select(context.departing, 1))
    spec.condition("full", occupancy == cells)
    written = [(buffer.enqueue, buffer.tail), (buffer.dequeue, buffer.head)]
    spec.condition("rows", *(~writes | (row < places) for writes, row in written))
    policies = [context.policies.read(Const(v, vc_bits)) for v in range(vcs)]
    spec.condition("ports", *(~policy.enabled | (policy.port < ports) for policy in policies))
    return Proof(f"switch_buffer_{vcs}_{cells}_{ports}", spec)


INVARIANT = ("occupancy", "places", "rounds", "first", "clearing", "ports")


@pytest.mark.parametrize(("vcs", "cells", "ports"), [(2, 2, 2), (2, 3, 1), (2, 4, 2)])
def test_buffer(vcs, cells, ports):
    proof = _proof(vcs=vcs, cells=cells, ports=ports)
    assert proof.possible(*INVARIANT, "running", "full")
    assert proof.holds_at_reset(*INVARIANT) is None
    assert proof.is_kept(*INVARIANT) is None
    assert proof.follows("counted", "admitted", "served", "rows", given=INVARIANT) is None
    assert proof.is_kept("occupancy") is not None  # not without the rest
