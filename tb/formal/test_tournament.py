"""The tournament's root is the VC with the least key, after any changes, if all keys are within half of their range."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.slot import Slot
from bentpipe_hdl.traffic.tournament import KEY_BITS, Tournament
from formal.proof import Probe, Proof, Spec

VCS = 4


class _Changes(wiring.Component):
    """A tournament whose VCs come, change their keys, and leave; the root is kept."""

    time: In(TimeSignature())
    vc: In(range(VCS))
    valid: In(1)
    key: In(KEY_BITS)
    change: In(1)

    def elaborate(self, platform):
        m = Module()
        slot = Slot(m, self.time, WIDE)
        self.tournament = tournament = Tournament(m, slot, VCS)
        self.root = root = Signal(tournament.entry)
        kept = slot.commit & self.change
        replayed = tournament.replay(self.vc, self.valid, self.key, kept, Const(0, 1), Const(0, 2))
        with m.If(kept):
            m.d.sync += root.eq(replayed)
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
    node = _Changes()
    probe = Probe(node)
    stores, root = node.tournament._stores, node.root
    leaves = [stores[0].read(Const(v, 2)) for v in range(VCS)]
    halves = [stores[1].read(Const(n, 1)) for n in range(VCS // 2)]
    spec = Spec(probe)
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
    assert proof.is_kept("matches", given=["window"]) is None
    assert proof.follows("least", given=["matches", "window"]) is None
    assert proof.follows("least", given=["matches"]) is not None  # keys all over the range go in circles
