"""The tournament's root is the VC with the least key, after any changes, if all keys are within half of their range."""

from amaranth.hdl import Const, Signal

from bentpipe_hdl.cell import WIDE
from bentpipe_hdl.part_harness import PartHarness
from bentpipe_hdl.traffic.tournament import KEY_BITS, Tournament
from formal.proof import Probe, Proof, Spec

VCS = 4


class _Seen(Tournament):
    """A tournament with its nodes to be looked at."""

    def __init__(self, slot):
        super().__init__(slot, vcs=VCS)
        self.seen = [Signal(self.entry, name=f"node{k}") for k in range(2 * VCS)]

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += [seen.eq(self.nodes.read(Const(k, VCS))) for k, seen in enumerate(self.seen)]
        return m


def _no_later(a, b):
    """The key of ``a`` is not after that of ``b``."""
    return ~(b.key - a.key)[KEY_BITS - 1]


def _won(winner, players):
    """``winner`` is one of the players, and none is before it; it is not valid if none is."""
    someone = players[0].valid | players[1].valid
    one = Const(0, 1)
    for player in players:
        one = one | (player.valid & (player.key == winner.key) & (player.vc == winner.vc))
    unbeaten = Const(1, 1)
    for player in players:
        unbeaten = unbeaten & (~player.valid | _no_later(winner, player))
    return (winner.valid == someone) & (~someone | (one & unbeaten))


def _proof():
    node = PartHarness(_Seen, width=WIDE, commit=Tournament.ROOT)
    spec = Spec(Probe(node))
    tree, root = node.part.seen, node.part.kept
    leaves, halves = tree[VCS:], tree[VCS // 2 : VCS]
    spec.condition("used", ~node.change | node.time.tick, ~node.clearing)  # as the pacer does
    first = spec.any(KEY_BITS, "first")
    spec.condition("window", *(~leaf.valid | ~(leaf.key - first)[KEY_BITS - 1] for leaf in leaves))
    spec.condition(
        "matches",
        *(~leaf.valid | (leaf.vc == v) for v, leaf in enumerate(leaves)),
        *(_won(half, leaves[2 * n : 2 * n + 2]) for n, half in enumerate(halves)),
        _won(root, halves),
    )
    winner = Signal(root.shape(), name="winner")
    with spec.m.Switch(root.vc):
        for v, leaf in enumerate(leaves):
            with spec.m.Case(v):
                spec.m.d.comb += winner.eq(leaf)
    someone = Const(0, 1)
    for leaf in leaves:
        someone = someone | leaf.valid
    spec.condition(
        "least",
        root.valid == someone,
        ~root.valid | (winner.valid & (winner.key == root.key)),
        *(~leaf.valid | _no_later(root, leaf) for leaf in leaves),
    )
    return Proof("tournament", spec)


def test_root_is_the_least():
    proof = _proof()
    assert proof.possible("window", "matches")
    assert proof.holds_at_reset("matches") is None
    assert proof.is_kept("matches", given=["window", "used"]) is None
    assert proof.follows("least", given=["matches", "window"]) is None
    assert proof.follows("least", given=["matches"]) is not None  # keys all over the range go in circles
