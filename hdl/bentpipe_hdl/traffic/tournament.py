"""A tournament of due times: which of many VCs is due first."""

from amaranth.hdl import Signal
from amaranth.lib import data

__all__ = ["KEY_BITS", "Tournament"]

KEY_BITS = 56
"""Bits of a key: a time in ticks modulo 2**40 with 16 fraction bits, compared modulo 2**56."""


class Tournament:
    """Keeps the VC with the least key, exactly, in one look-up a level for each change.

    A binary tree of winners in one small memory a level. A change of a VC's key replays the matches on its way to
    the root: the opponents' addresses are known from the VC's number, so all are read at once. Of equal keys the
    winner is the VC whose key did not change now.

    Parameters
    ----------
    m : Module
    slot : Slot
    vcs : int
        A power of two.

    Attributes
    ----------
    levels : int
        The narrow datapath has the new root as many clocks after the change is stable, or half as many where there
        are more than ``STEPS``.
    """

    STEPS = 6

    def __init__(self, m, slot, vcs):
        self._m, self._slot, self._vcs = m, slot, vcs
        self.levels = (vcs - 1).bit_length()
        self.entry = data.StructLayout({"key": KEY_BITS, "vc": self.levels, "valid": 1})
        self._stores = [slot.store(f"winners{k}", self.entry, vcs >> k) for k in range(self.levels)]

    def leaf(self, vc):
        """The entry of ``vc`` itself: ``key`` is kept while it is not ``valid``."""
        return self._stores[0].read(vc)

    def replay(self, vc, valid, key, commit, clearing, clear_vc):
        """The root after VC ``vc`` gets ``key`` (or, with ``valid`` low, leaves); kept at ``commit``."""
        m = self._m
        current = Signal(self.entry, name="winner_leaf")
        m.d.comb += [current.key.eq(key), current.vc.eq(vc), current.valid.eq(valid)]
        for k, store in enumerate(self._stores):
            at = Signal(self.levels - k, name=f"winner_at{k}")
            m.d.comb += at.eq(vc[k:])
            opponent = Signal(self.entry, name=f"opponent{k}")
            m.d.comb += opponent.eq(self._slot.settle(store.read(at ^ 1), f"opponent{k}_held"))
            store.write(at, current, commit, clear=(clearing, clear_vc[k:], self.entry.const(None)))
            later = Signal(KEY_BITS, name=f"later{k}")
            m.d.comb += later.eq(opponent.key - current.key)
            winner = Signal(self.entry, name=f"winner{k}")
            m.d.comb += winner.eq(current)
            with m.If(opponent.valid & (~current.valid | later[-1] | (later == 0))):
                m.d.comb += winner.eq(opponent)
            settles = k % 2 or self.levels <= self.STEPS
            current = self._slot.settle(winner, f"winner{k}_held") if settles else winner
        return current
