"""Each cell that the copier takes has one copy for each leaf of its chain, in the chain's order, and then makes way for
the next: nothing is lost, doubled or mixed up, whatever the chains are and whenever copies are taken. For chains that
don't change, in a small shape, by induction with one step."""

from amaranth.hdl import Array, Const, Module, Mux

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.switch.options.copies.replicator import MulticastReplicator
from bentpipe_hdl.tick_schedule import TickSchedule
from formal.proof import Probe, Proof, Spec

VCS, CELLS = 4, 2


def _proof():
    time = TimeSignature().create()
    node = MulticastReplicator(TickSchedule(Module(), time, WIDE), width=WIDE, ports=2, vcs=VCS, cells=CELLS)
    probe = Probe(node)
    spec = Spec(probe)
    spec.inputs.append(time.tick)
    m, waiting, taken = spec.m, node.waiting, node.offer.taken
    there, before, leaf, copies = (probe[f"elaborate.{name}"] for name in ("there", "before", "leaf", "copies"))
    head, comes, goes = (probe[f"elaborate.{name}"] for name in ("head", "comes", "goes"))
    spec.condition(
        "given",
        ~node.entry_en & ~node.clearing,
        ~node.seen | (time.tick & node.arrives),
        ~taken | (time.tick & node.offer.there & node.inside),
    )

    # What waits, as a queue
    new = node.vc, node.header.as_value(), node.i.payload
    queue = [
        [spec.ghost(len(value), f"{name}{k}") for name, value in zip(("root", "header", "payload"), new, strict=True)]
        for k in range(CELLS)
    ]
    with m.If(time.tick):
        for k in range(CELLS):
            for part, (own, value) in enumerate(zip(queue[k], new, strict=True)):
                after = queue[k + 1][part] if k + 1 < CELLS else own
                m.d.sync += own.eq(Mux(comes & (waiting - goes == k), value, Mux(goes, after, own)))
    kept = []
    for k, (root, header, payload) in enumerate(queue):
        place = (head + k)[: len(head)]
        row = node.rows.read(place)
        same = (row.root == root) & (row.header.as_value() == header) & (node.payloads.read(place) == payload)
        kept.append((waiting <= k) | same)
    spec.condition(
        "queue",
        waiting <= CELLS,
        probe["elaborate.tail"] == (head + waiting)[: len(head)],
        ~probe["elaborate.written"],
        *kept,
    )

    # Where the first is in its chain: so many copies behind the root
    entries = [node.table.read(Const(v, 2)) for v in range(VCS)]
    nexts, valid = Array(e.next for e in entries), Array(e.valid for e in entries)
    at = [queue[0][0]]
    for k in range(VCS):
        at.append(spec.value(nexts[at[k]], f"at{k + 1}"))
    led = [(copies <= k) | valid[at[k]] for k in range(VCS - 1)]
    spec.condition(
        "chain",
        (waiting == 0) | ((before == Array(at)[copies]) & (probe["elaborate.header"].as_value() == queue[0][1])),
        *((waiting == 0) | step for step in led),
        ~there | ((waiting != 0) & (leaf == nexts[before]) & valid[before] & (copies < VCS - 1)),
    )
    spec.condition(
        "served",
        ~node.offer.there | (node.offer.vc == Array(at)[(copies + 1)[:3]]),
        ~node.offer.there | (node.offer.header.as_value() == queue[0][1]),
        ~node.offer.there | (node.offer.payload == queue[0][2]),
    )
    last = Mux(taken, leaf, before)
    spec.condition("complete", ~goes | ~valid[last] | (copies + taken == VCS - 1), ~goes | (waiting != 0))
    spec.condition("in_turn", ~taken | (node.offer.vc == nexts[before]))
    refused = node.arrives & ~node.inside & valid[node.vc] & (waiting == CELLS)
    spec.condition("room", ~refused | node.refuse, ~(node.refuse & ~node.framed) | refused)
    spec.condition("busy", waiting == CELLS, taken, comes == 0, goes)
    return Proof("copier", spec)


def test_each_leaf_has_one_copy_of_each_cell_in_order():
    proof = _proof()
    assert proof.possible("queue", "chain", "given", "busy")
    assert proof.holds_at_reset("queue", "chain") is None
    assert proof.is_kept("queue", "chain", given=["given"]) is None
    assert proof.follows("served", "complete", "in_turn", "room", given=["queue", "chain", "given"]) is None
    assert proof.follows("served", given=["queue", "given"]) is not None
