"""The weighted priority scheduler, with its ports as the border: what any scheduler promises, of FIFO, weights and
priorities. On the wide datapath, in tiny shapes, by induction with one step.
"""

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.switch.options.weighted_priority.weighted_priority import WeightedPriorityScheduler
from bentpipe_hdl.tick_schedule import TickSchedule
from formal.proof import Probe, Proof, Spec


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


def _proof(name, *, vcs, ports, places=0, weighted=False, priorities=1):
    """A model of the turns in each list, by joining and being served. A VC's turn has the number of the VC, and a
    cell's turn that of its place after those.
    """
    time = TimeSignature().create()
    node = WeightedPriorityScheduler(
        TickSchedule(Module(), time, WIDE),
        vcs=vcs,
        ports=ports,
        at=4,
        places=places,
        weighted=weighted,
        priorities=priorities,
    )
    probe = Probe(node)
    spec = Spec(probe)
    spec.inputs.append(time.tick)
    m, count = spec.m, vcs + places
    bits, level_bits = (count - 1).bit_length(), (priorities - 1).bit_length()
    lists, list_bits = ports * priorities, level_bits + 1
    there = Array(spec.ghost(1, f"there{t}") for t in range(count))
    where = Array(spec.ghost(list_bits, f"where{t}") for t in range(count))
    whose = Array([*(Const(v, 4) for v in range(vcs)), *(spec.ghost(4, f"whose{t}") for t in range(places))])
    kept = Array(spec.ghost(node.Kept, f"kept{v}").as_value() for v in range(vcs))
    come, gone = (Array(spec.ghost(4, f"{name}{v}") for v in range(vcs)) for name in ("come", "gone"))
    shares = [node.shares.read(Const(v, (vcs - 1).bit_length())) for v in range(vcs)] if priorities > 1 else []

    def list_of(port, level):
        return Cat(level[:level_bits], port)

    def priority(vc):
        return Array(share.priority for share in shares)[vc] if shares else Const(0, 2)

    now = probe["elaborate.now"]
    of_vc = spec.value(now < vcs, "of_vc")
    again = spec.value(node.serve & node.rejoin & of_vc, "served_again")
    held = spec.value(kept[node.join_vc], "held")
    by_cell = spec.value(
        Mux(node.empty, node.fifo.bit_select(node.join_port, 1), node.kept.by_cell) if places else 0, "by_cell"
    )
    joins = spec.value(node.join | (node.queued & by_cell), "joins")
    joining = spec.value(Mux(by_cell, vcs + node.cell, node.join_vc)[:bits], "joining_turn")
    stays_in = node.queued & ~node.empty & by_cell
    join_list = spec.value(
        list_of(
            Mux(stays_in, node.kept.port, node.join_port),
            Mux(stays_in, node.kept.priority, priority(node.join_vc)),
        ),
        "join_list",
    )
    with m.If(node.serve):
        m.d.sync += [there[now].eq(again), gone[node.vc].eq(gone[node.vc] + 1)]
        with m.If(again):
            m.d.sync += where[now].eq(list_of(node.rejoin_port, priority(node.vc)))
    with m.If(joins):
        m.d.sync += [there[joining].eq(1), where[joining].eq(join_list)]
        for t in range(places):
            with m.If(joining == vcs + t):
                m.d.sync += whose[vcs + t].eq(node.join_vc)
    with m.If(node.queued):
        m.d.sync += [kept[node.join_vc].eq(node.new_kept.as_value()), come[node.join_vc].eq(come[node.join_vc] + 1)]

    queued = Array(spec.value((come[v] - gone[v])[:4], f"queued{v}") for v in range(vcs))
    spec.condition(
        "promised",
        time.tick | ~(node.serve | node.join | node.queued),
        ~node.serve | node.busy.bit_select(node.port, 1),
        ~node.join | (node.queued & node.empty),
        ~node.queued | (node.empty == (queued[node.join_vc] == 0)),
        ~(node.queued & node.empty) | node.join,
        ~node.queued | (node.kept.as_value() == held),
        ~node.queued | (_total(queued) < (places or 14)),
        # of the place of a VC's next cell: no cell is there
        *(~node.queued | (node.cell != t) | ~there[vcs + t] for t in range(places)),
        node.cell < max(places, 2),
        ~node.rejoin | node.serve,
        ~node.serve | (node.rejoin == ((queued[node.vc] + (node.queued & (node.join_vc == node.vc)))[:4] > 1)),
        *(port < ports for port in (node.port, node.join_port, node.rejoin_port)),
    )

    follows = Array(spec.value(node.follows.read(Const(t, bits)), f"after{t}") for t in range(count))
    masks, closed, counts = [], [], []
    for k in range(lists):
        number = spec.value(_total(there[t] & (where[t] == k) for t in range(count)), f"count{k}")
        here, mask, end = node.first[k], Const(0, count), node.first[k]
        for step in range(count):
            mask = spec.value(Mux(number > step, mask | (1 << here), mask)[:count], f"list{k}_mask{step}")
            end = spec.value(Mux(number > step, here, end), f"list{k}_end{step}")
            here = spec.value(follows[here], f"list{k}_turn{step}")
        masks.append(mask)
        counts.append(number)
        closed.append(~node.listed[k] | (end == node.last[k]))
        closed.append(node.listed[k] == (number != 0))
    spec.condition(
        "lists",
        *closed,
        *(masks[k] == Cat(there[t] & (where[t] == k) for t in range(count)) for k in range(lists)),
        *(~there[t] | (where[t] < lists) for t in range(count)),
        *(node.busy[p] == Cat(counts[k] != 0 for k in range(p * priorities, (p + 1) * priorities)).any()
          for p in range(ports)),
    )  # fmt: skip
    owned = []
    if places:
        for t in range(count):
            vc = node.cell_vcs.read(Const(t, bits))
            owned.append(vc == t if t < vcs else ~there[t] | ((vc == whose[t]) & (whose[t] < vcs)))
    # A VC that has cells has one turn, or each of its cells has one
    for v in range(vcs):
        cells = [there[vcs + t] & (whose[vcs + t] == v) for t in range(places)]
        mine = spec.value(_total(cells), f"cells_of{v}")
        if places:
            own = kept[v][0]  # by_cell
            owned += [
                mine == Mux(own, queued[v], 0),
                there[v] == (~own & (queued[v] != 0)),
            ]
        else:
            owned.append(there[v] == (queued[v] != 0))
    if places:
        owned.append(_total(queued) <= places)
    spec.condition("owned", *owned)
    spec.condition(
        "served",
        ~node.serve | there[now],
        ~node.serve | ((where[now] >> level_bits) == node.port),
        ~node.serve | (whose[now] == node.vc),
        ~node.serve | (queued[node.vc] != 0),
        *(
            ~(node.serve & there[t]) | ((where[t] >> level_bits) != node.port) | (where[now] >= where[t])
            for t in range(count)
        ),
    )
    begins = []
    for p in range(ports):
        back = again & (node.rejoin_port == p)
        stays = [there[t] & ((where[t] >> level_bits) == p) & ~(node.serve & (now == t) & ~back) for t in range(count)]
        comes = (joins & ((join_list >> level_bits) == p)) | (back & (node.port != p))
        begins.append(node.begins[p] == (comes & ~Cat(stays).any()))
    spec.condition("begins", *begins)
    spec.condition("two", node.serve, node.queued, node.rejoin)
    return Proof(name, spec)


SHAPES = {
    "weighted": {"vcs": 4, "ports": 2, "weighted": True},
    "priority": {"vcs": 4, "ports": 2, "priorities": 2},
    "fifo": {"vcs": 2, "ports": 2, "places": 3},
    "all": {"vcs": 2, "ports": 2, "places": 3, "weighted": True, "priorities": 2},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_has_cells_has_a_turn_in_one_list_and_those_alone_are_served(shape):
    proof = _proof(f"part_turns_{shape}", **SHAPES[shape])
    assert proof.possible("lists", "owned", "promised", "two")
    assert proof.holds_at_reset("lists", "owned") is None
    assert proof.is_kept("lists", "owned", given=["promised"]) is None
    assert proof.follows("served", "begins", given=["lists", "owned", "promised"]) is None
    assert proof.is_kept("lists", "owned") is not None
