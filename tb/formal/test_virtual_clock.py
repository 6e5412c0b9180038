"""Virtual clock, with its ports as the border: whatever comes, the VC with the least clock of the port is served. On
the wide datapath, in a tiny shape and with short times, by induction with one step.
"""

from unittest.mock import patch

from amaranth.hdl import Array, Cat, Const, Module, Mux

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.switch.options.virtual_clock.virtual_clock import VirtualClock
from bentpipe_hdl.tick_schedule import TickSchedule
from formal.proof import Probe, Proof, Spec

VCS, PORTS = 4, 2
SHORT = {"TIME_BITS": 10, "FRACTION_BITS": 2, "KEY_BITS": 12, "PERIOD_BITS": 7, "AHEAD_BITS": 5}
KEY_BITS = SHORT["KEY_BITS"]


def _total(values):
    total = Const(0)
    for value in values:
        total = total + value
    return total


def _proof():
    """A model of the VCs in each port's tree, by their joining and being served."""
    time = TimeSignature().create()
    with patch.multiple("bentpipe_hdl.switch.options.virtual_clock.virtual_clock", **SHORT):
        node = VirtualClock(TickSchedule(Module(), time, WIDE), vcs=VCS, ports=PORTS)
        probe = Probe(node)
    spec = Spec(probe)
    spec.inputs.append(time.tick)
    m, now = spec.m, Cat(Const(0, SHORT["FRACTION_BITS"]), node.now)
    there = Array(spec.ghost(1, f"there{v}") for v in range(VCS))
    at = Array(spec.ghost(1, f"at{v}") for v in range(VCS))
    with m.If(node.serve):
        m.d.sync += there[node.vc].eq(node.rejoin)
    with m.If(node.join):
        m.d.sync += [there[node.join_vc].eq(1), at[node.join_vc].eq(node.join_port)]
    clocks = [spec.value(probe["elaborate.clocks"].read(Const(v, 2)), f"clock{v}") for v in range(VCS)]
    spec.condition(
        "promised",
        ~node.clearing,
        time.tick | ~(node.serve | node.join),
        ~node.serve | node.busy.bit_select(node.port, 1),
        ~node.join | ~there[node.join_vc],
        ~node.rejoin | node.serve,
        # Times are compared modulo half their range: those of VCs with cells are within a quarter of it from now
        *(~there[v] | ((clocks[v] - now + (1 << (KEY_BITS - 2)))[:KEY_BITS][-1] == 0) for v in range(VCS)),
    )

    def least(left, right):
        first = left.valid & (~right.valid | ~(right.key - left.key)[KEY_BITS - 1])
        return Mux(first, left.as_value(), right.as_value())

    def same(entry, value):
        valid = len(value) - 1
        return (entry.valid == value[valid]) & (~entry.valid | (entry.as_value() == value))

    tree = []
    for p in range(PORTS):
        leaves = [node.nodes[1].read(Const(v | p << 2, 3)) for v in range(VCS)]
        inner = [node.nodes[0].read(Const(k | p << 1, 2)) for k in range(2)]
        for v, leaf in enumerate(leaves):
            mine = there[v] & (at[v] == p)
            tree += [leaf.valid == mine, ~mine | ((leaf.key == clocks[v]) & (leaf.vc == v))]
        tree += [same(inner[k], spec.value(least(leaves[2 * k], leaves[2 * k + 1]), f"least{p}{k}")) for k in range(2)]
        tree.append(same(node.roots[p], spec.value(least(*inner), f"least{p}")))
        count = _total(there[v] & (at[v] == p) for v in range(VCS))
        tree += [node.counts[p] == count, node.busy[p] == (count != 0)]
    spec.condition("trees", *tree)
    is_here, clock = there[node.vc] & (at[node.vc] == node.port), Array(clocks)[node.vc]
    spec.condition(
        "served",
        ~node.serve | is_here,
        *(
            ~(node.serve & there[v] & (at[v] == node.port))
            | (clock - clocks[v])[:KEY_BITS][-1]
            | ((clock == clocks[v]) & (node.vc <= v))
            for v in range(VCS)
        ),
    )
    begins = []
    for p in range(PORTS):
        stays = [there[v] & (at[v] == p) & ~(node.serve & (node.vc == v) & ~node.rejoin) for v in range(VCS)]
        begins.append(node.begins[p] == (node.join & (node.join_port == p) & ~Cat(stays).any()))
    spec.condition("begins", *begins)
    spec.condition("both", node.serve, node.join, node.rejoin, node.port == node.join_port)
    return Proof("part_virtual_clock", spec)


def test_the_vc_with_the_least_clock_of_the_port_is_served():
    proof = _proof()
    assert proof.possible("trees", "promised", "both")
    assert proof.holds_at_reset("trees") is None
    assert proof.is_kept("trees", given=["promised"]) is None
    assert proof.follows("served", "begins", given=["trees", "promised"]) is None
    assert proof.is_kept("trees") is not None
