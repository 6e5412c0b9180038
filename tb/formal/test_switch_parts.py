"""Parts of the switch by themselves, with their ports as the border: what each promises, whatever comes in that the
others promise. On the wide datapath, in tiny shapes, by induction with one step.
"""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.switch.core.admission import Admission, ClpThreshold, EarlyPacketDiscard, FullBuffer
from bentpipe_hdl.switch.core.buffer import CellBuffer
from bentpipe_hdl.switch.core.round_robin import RoundRobin
from bentpipe_hdl.switch.core.vc_table import VcField, VcTable
from bentpipe_hdl.switch.options.minimum.reserved_cells import OWN_BITS, ReservedCells
from bentpipe_hdl.tick_schedule import TickSchedule
from formal.proof import Probe, Proof, Spec


def _slot():
    time = TimeSignature().create()
    return TickSchedule(Module(), time, WIDE), time


def _total(values):
    total = Const(0)
    for value in values:
        total = total + value
    return total


def _union(masks):
    union = Const(0)
    for mask in masks:
        union = union | mask
    return union


# The buffer


def _buffer(vcs, cells):
    """Queues are known by head, tail and length, as whoever uses the buffer keeps them."""
    slot, _ = _slot()
    node = CellBuffer(slot, cells=cells, vcs=vcs, at=9)
    probe = Probe(node)
    spec = Spec(probe)
    m, places = spec.m, cells + vcs
    arriving, departing = spec.any(range(vcs), "arriving"), spec.any(range(vcs), "departing")
    heads = Array(Signal(node.place_bits, init=v, name=f"ghost_head{v}") for v in range(vcs))
    tails = Array(Signal(node.place_bits, init=v, name=f"ghost_tail{v}") for v in range(vcs))
    lengths = Array(spec.ghost(node.count_bits, f"length{v}") for v in range(vcs))
    for v in range(vcs):
        comes, goes = node.enqueue & (arriving == v), node.dequeue & (departing == v)
        m.d.sync += lengths[v].eq(lengths[v] + comes - goes)
        with m.If(comes):
            m.d.sync += tails[v].eq(node.place)
        with m.If(goes):
            m.d.sync += heads[v].eq(node.next)
    spec.condition(
        "promised",
        ~node.enqueue | ((node.occupancy < cells) & (node.tail == tails[arriving])),
        ~node.dequeue | ((lengths[departing] != 0) & (node.head == heads[departing])),
    )

    links = [node.links.read(Const(p, node.place_bits)) for p in range(places)]
    after = Array([spec.value(link.next, f"after{p}") for p, link in enumerate(links)])

    def walk(name, first, count):
        here, mask, end = first, Const(0, places), first
        for k in range(cells):
            mask = spec.value(Mux(count > k, mask | (1 << here), mask)[:places], f"{name}_mask{k}")
            here = spec.value(after[here], f"{name}_place{k}")
            end = spec.value(Mux(count > k, here, end), f"{name}_end{k}")
        return mask, end

    masks, closed = [], []
    for v in range(vcs):
        mask, end = walk(f"queue{v}", heads[v], lengths[v])
        masks += [mask, (1 << tails[v])[:places]]
        closed += [lengths[v] <= cells, end == tails[v], tails[v] < places]
    unused = spec.value(cells - node.used, "unused")
    mask, _ = walk("free", node.free_head, spec.value(node.used - node.occupancy, "free_count"))
    masks += [mask, *(Mux(unused >= places - p, 1 << p, 0) for p in range(places))]
    spec.condition("occupancy", node.occupancy == _total(lengths), node.occupancy <= cells)
    spec.condition(
        "places",  # each is in one of: the queues, those reserved, the free list, those never used
        node.occupancy <= node.used,
        node.used <= cells,
        _union(masks) == (1 << places) - 1,
        *closed,
    )
    spec.condition("full", node.occupancy == cells)
    return Proof(f"part_buffer_{vcs}_{cells}", spec)


def test_the_buffer_loses_no_place_and_gives_none_away_twice():
    proof = _buffer(2, 3)
    assert proof.possible("occupancy", "places", "promised", "full")
    assert proof.holds_at_reset("occupancy", "places") is None
    assert proof.is_kept("occupancy", "places", given=["promised"]) is None
    assert proof.is_kept("occupancy", "places") is not None


# The scheduler


def _scheduler(vcs, ports):
    """A model of the VCs in a round and the port of the round, by their joining and being served."""
    slot, time = _slot()
    node = RoundRobin(slot, vcs=vcs, ports=ports, at=5)
    probe = Probe(node)
    spec = Spec(probe)
    spec.inputs.append(time.tick)
    m = spec.m
    there, where = spec.ghost(vcs, "there"), [spec.ghost(range(ports), f"where{v}") for v in range(vcs)]
    for v in range(vcs):
        with m.If(node.serve & (node.vc == v)):
            m.d.sync += there[v].eq(node.rejoin)
            m.d.sync += where[v].eq(node.rejoin_port)
        with m.If(node.join & (node.join_vc == v)):
            m.d.sync += [there[v].eq(1), where[v].eq(node.join_port)]
    spec.condition(
        "promised",
        time.tick | ~(node.serve | node.join),
        ~node.serve | node.busy.bit_select(node.port, 1),
        ~node.join | ~there.bit_select(node.join_vc, 1),
        ~node.rejoin | node.serve,
        *(port < ports for port in (node.port, node.join_port, node.rejoin_port)),
    )
    vc_bits, port_bits = (vcs - 1).bit_length(), (ports - 1).bit_length()
    rounds = [node.rounds.read(Const(k, vc_bits + port_bits)) for k in range(ports * vcs)]
    members, counts = [], []
    for p in range(ports):
        count = spec.value((node.end[p] - node.first[p])[: vc_bits + 1], f"count{p}")
        counts.append(count)
        inside = []
        for k in range(vcs):
            at = Array(rounds[p * vcs : (p + 1) * vcs])[(node.first[p] + k)[:vc_bits]]
            inside.append(Mux(count > k, (1 << at)[:vcs], 0))
        members.append(spec.value(_union(inside), f"members{p}"))
    spec.condition(
        "rounds",
        *(count <= vcs for count in counts),
        *(node.busy[p] == (count != 0) for p, count in enumerate(counts)),
        *(members[p] == Cat(there[v] & (where[v] == p) for v in range(vcs)) for p in range(ports)),
        _total(counts) == _total(there[v] for v in range(vcs)),
    )
    spec.condition(
        "served", ~node.serve | (Array(where)[node.vc] == node.port), ~node.serve | there.bit_select(node.vc, 1)
    )
    begins = []
    for p in range(ports):
        again = node.rejoin & (node.rejoin_port == p)
        stays = [there[v] & (where[v] == p) & ~(node.serve & (node.vc == v) & ~again) for v in range(vcs)]
        comes = (node.join & (node.join_port == p)) | (again & (node.port != p))
        begins.append(node.begins[p] == (comes & ~Cat(stays).any()))
    spec.condition("begins", *begins)
    return Proof(f"part_scheduler_{vcs}_{ports}", spec)


def test_the_scheduler_keeps_each_vc_in_one_round_and_serves_those_alone():
    proof = _scheduler(4, 2)
    assert proof.possible("rounds", "promised")
    assert proof.holds_at_reset("rounds") is None
    assert proof.is_kept("rounds", given=["promised"]) is None
    assert proof.follows("served", "begins", given=["rounds", "promised"]) is None
    assert proof.is_kept("rounds") is not None


# The rows of the VCs


def _context(vcs, ports):
    """A read returns the word that was last written by a writer that may write it."""
    slot, _ = _slot()
    fields = (
        VcField("tail", 2, "arrival", starts_as_index=True),
        VcField("head", 2, "departure", starts_as_index=True),
        VcField("frame", 3, "state"),
    )
    node = VcTable(slot, vcs=vcs, ports=ports, clears=2 * vcs, fields=fields)
    probe = Probe(node)
    spec = Spec(probe)
    m, bits = spec.m, (vcs - 1).bit_length()
    initial = {"arrival": range(vcs), "departure": range(vcs), "state": [0] * vcs}
    rows = {
        row: Array(Signal(3 if row == "state" else 2, init=first[v], name=f"ghost_{row}{v}") for v in range(vcs))
        for row, first in initial.items()
    }
    with m.If(node.arrival_en):
        m.d.sync += rows["arrival"][node.arriving].eq(node.arrival)
    with m.If(node.departure_en):
        m.d.sync += rows["departure"][node.departing].eq(node.departure)
    with m.If(node.state_en):
        m.d.sync += rows["state"][node.arriving].eq(node.state)
    with m.If(node.policy_en & ~(node.policy.enabled & (node.policy.port < ports))):
        m.d.sync += rows["state"][node.policy_vc].eq(0)
    busy = node.arrival_en | node.departure_en | node.state_en | node.policy_en
    spec.condition("promised", ~(node.clearing & busy), node.arrives, node.departs)
    kept, cleared = [], []
    for row, ghosts in rows.items():
        for v in range(vcs):
            word = node.stores[row].read(Const(v, bits)).as_value()
            kept.append(word == ghosts[v])
            cleared.append((node.clear <= v) | (word == ghosts[v]))
    untouched = [ghosts[v] == initial[row][v] for row, ghosts in rows.items() for v in range(vcs)]
    spec.condition(
        "rows",
        *(node.clearing | one for one in kept),
        *(~node.clearing | one for one in (*cleared, *untouched)),
    )
    spec.condition(
        "read",
        node.clearing
        | Cat(
            node.a_arrival.as_value() == rows["arrival"][node.arriving],
            node.a_departure.as_value() == rows["departure"][node.arriving],
            node.a_state.as_value() == rows["state"][node.arriving],
            node.d_arrival.as_value() == rows["arrival"][node.departing],
            node.d_departure.as_value() == rows["departure"][node.departing],
        ).all(),
    )
    return Proof(f"part_context_{vcs}", spec)


def test_the_rows_of_a_vc_are_what_was_last_written_and_its_state_ends_with_it():
    proof = _context(4, 3)
    assert proof.possible("rows", "promised")
    assert proof.holds_at_reset("rows") is None
    assert proof.is_kept("rows", given=["promised"]) is None
    assert proof.follows("read", given=["rows", "promised"]) is None
    assert proof.is_kept("rows") is not None


# Admission


def test_what_is_admitted_has_room_and_what_is_dropped_a_reason():
    slot, _ = _slot()
    settings = [Signal(4, name=name) for name in ("capacity", "epd_threshold", "clp_threshold")]
    capacity, epd_threshold, clp_threshold = settings
    stages = EarlyPacketDiscard(epd_threshold), FullBuffer(capacity), ClpThreshold(clp_threshold)
    (frame,) = Admission.fields(stages)
    node = Admission(slot, vcs=4, count_bits=4, state=data.StructLayout({frame.name: frame.shape}), stages=stages)
    probe = Probe(node)
    spec = Spec(probe)
    spec.inputs += settings
    full = (node.occupancy >= capacity) | (node.length >= node.policy.limit)
    user, now = ~node.pti[2], node.state.frame
    framed = user & (node.policy.ppd | node.policy.epd)
    spec.condition("arrives", node.arrives)
    spec.condition("room", node.drop | ~full)
    spec.condition("low", node.drop | framed | ~node.clp | (node.occupancy < clp_threshold))
    spec.condition("whole", node.drop | ~(framed & now.inside & now.refused))
    spec.condition("rest", node.drop | ~(framed & now.inside & now.cut & ~node.pti[0]))
    spec.condition("alone", user | (node.new_state.as_value() == node.state.as_value()))
    proof = Proof("part_admission", spec)
    assert proof.possible("arrives", "room")
    for condition in ("room", "low", "whole", "rest", "alone"):
        assert proof.follows(condition, given=["arrives"]) is None
    assert proof.follows("room", given=["room"]) is None


# Guaranteed cells


def _guaranteed(vcs, cells):
    """A model of the VCs' own places and of the shared ones that are taken, by cells that come and leave."""
    slot, _ = _slot()
    node = ReservedCells(slot, vcs=vcs, count_bits=(cells + 1).bit_length())
    probe = Probe(node)
    spec = Spec(probe)
    m = spec.m
    leaving = spec.any(range(vcs), "leaving")
    own = Array(spec.ghost(OWN_BITS, f"own{v}") for v in range(vcs))  # cells in own places
    shared, capacity = spec.ghost(len(node.shared), "shared"), spec.ghost(len(node.capacity), "capacity")
    takes, leaves = node.enqueue & node.guaranteed, node.dequeue & ~node.was_shared
    for v in range(vcs):
        comes, goes = takes & (node.vc == v), leaves & (leaving == v)
        m.d.sync += own[v].eq(own[v] + comes - goes)
    m.d.sync += capacity.eq(node.capacity)  # it stays
    m.d.sync += shared.eq(shared + (node.enqueue & ~node.guaranteed) - (node.dequeue & node.was_shared))
    minima = [spec.value(node.minima.read(Const(v, (vcs - 1).bit_length())), f"minimum{v}") for v in range(vcs)]
    spec.condition("settings", ~node.minimum_en, ~node.clearing, node.capacity == capacity)
    spec.condition("fits", capacity + _total(minima) <= cells)
    spec.condition("rows", (node.came - node.left)[:OWN_BITS] == own[node.vc])
    spec.condition(
        "promised",
        ~node.enqueue | node.guaranteed | ~node.full,
        ~node.dequeue | Mux(node.was_shared, shared != 0, own[leaving] != 0),
    )
    spec.condition("places", node.shared == shared, shared <= capacity, *(own[v] <= minima[v] for v in range(vcs)))
    spec.condition("room", ~node.guaranteed | (shared + _total(own) < cells))
    spec.condition("below", node.guaranteed == (own[node.vc] < Array(minima)[node.vc]))
    spec.condition("full", node.guaranteed, shared == capacity, capacity != 0)
    return Proof(f"part_guaranteed_{vcs}_{cells}", spec)


def test_a_vc_below_its_minimum_finds_room_whatever_the_others_have():
    proof = _guaranteed(4, 6)
    given = ["settings", "fits", "rows", "promised"]
    assert proof.possible(*given, "places", "full")
    assert proof.is_kept("places", given=given) is None
    assert proof.follows("room", "below", given=[*given, "places"]) is None
    assert proof.follows("room", given=["settings", "rows", "promised", "places"]) is not None
    assert proof.is_kept("places", given=["settings", "fits", "rows"]) is not None
