"""A tournament of due times: which of many VCs is due first."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["KEY_BITS", "Tournament", "entry_layout"]

KEY_BITS = 56
"""Bits of a key: a time in ticks modulo 2**40 with 16 fraction bits, compared modulo 2**56."""

WORD = 64


def entry_layout(vcs, marks=0):
    """Return the layout of a VC's entry in the tournament.

    An entry that is not ``valid`` takes no part; it keeps its ``key`` and ``marks``.
    """
    layout = {"key": KEY_BITS, "vc": (vcs - 1).bit_length(), "valid": 1}
    return data.StructLayout(layout | ({"marks": marks} if marks else {}))


class Tournament(wiring.Component):
    """The tournament: it keeps the VC with the least key, exactly; one VC's key may change in a tick.

    A binary tree of winners: node 1 is the root, nodes ``2n`` and ``2n + 1`` play for node ``n``, and VC ``v`` is node
    ``vcs + v``. A change replays the matches on its way to the root, whose opponents are known from the VC's number. Of
    equal keys the winner is the VC whose key did not change now. Keys that are compared are to be less than half their
    range apart.

    On the wide datapath all levels are played in one clock. On the narrow one the nodes are in one memory, and one
    comparator plays level after level, a clock each. With more than ``2**LEVELS`` VCs it is two levels a clock, with
    three comparators side by side and the nodes of every other level in a memory of their own: so 12 levels take six
    clocks, too.

    Parameters
    ----------
    slot : TickSchedule
        The node's.
    vcs : int
        A power of two, 2 to 4096.
    marks : int
        Bits that go with a VC's entry.

    Members
    -------
    vc : In
        The VC that may change in this tick; valid from clock ``ASK`` on (narrow).
    leaf : Out
        Its entry as it is: in the same clock (wide); in the clocks ``CHANGE - 1`` and ``CHANGE`` (narrow).
    change, valid, key, marks : In
        It gets ``key``, or leaves (``valid`` low), and ``marks`` where there are any: with the tick (wide); in clock
        ``CHANGE`` (narrow).
    root : Out
        The VC that is first after that change: in the same clock (wide); from clock ``ROOT`` on, until the next change
        (narrow).
    clearing, clear : In
        While ``clearing`` is high, node ``clear`` is made empty, and nothing changes.
    """

    LEVELS = 6
    ASK, CHANGE, ROOT = 1, 4, 11

    def __init__(self, slot, *, vcs, marks=0):
        self._slot, self.vcs, self._marks = slot, vcs, marks
        self.levels = (vcs - 1).bit_length()
        entry = self.entry = entry_layout(vcs, marks)
        self.kept = Signal(entry)  # wide: the root
        super().__init__(
            {
                "vc": In(self.levels),
                "leaf": Out(entry),
                "change": In(1),
                "valid": In(1),
                "key": In(KEY_BITS),
                "root": Out(entry),
                "clearing": In(1),
                "clear": In(self.levels + 1),
                **({"marks": In(marks)} if marks else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        slot = self._slot.within(m)
        changed = Signal(self.entry)
        m.d.comb += [changed.key.eq(self.key), changed.vc.eq(self.vc), changed.valid.eq(self.valid)]
        if self._marks:
            m.d.comb += changed.marks.eq(self.marks)
        (self._wide if slot.wide else self._narrow)(m, slot, changed)
        return m

    def _wide(self, m, slot, changed):
        # A node is a word of the machine that simulates it. It has of its VC's number what fits: the rest is the node's
        # own number, or is kept beside where the node is that of more VCs
        own = min(self.levels, WORD - KEY_BITS - 1 - self._marks)
        rest = self.levels - own
        entry, leaf = entry_layout(1 << own, self._marks), Cat(self.vc, Const(1, 1))
        self.nodes = nodes = slot.store("nodes", entry, 2 * self.vcs, whole=True)
        highs = slot.store("node_highs", rest, 1 << rest) if rest > 1 else None
        current, high, node = Signal(entry), self.vc[own:], leaf
        m.d.comb += [_copied(self.leaf, nodes.read(leaf), self.vc), _copied(current, changed, changed.vc)]
        for k in range(self.levels):
            beside, opponent, winner = (
                Signal(shape, name=f"{name}{k}")
                for name, shape in (("beside", len(node)), ("opponent", entry), ("winner", entry))
            )
            nodes.write(node, current, self.change, clear=None if k else (self.clearing, self.clear, entry.const(None)))
            m.d.comb += [beside.eq(node ^ 1), opponent.eq(nodes.read(beside)), winner.eq(current)]
            theirs = high
            if k == own:
                theirs = beside[:-1]
            elif k > own:
                highs.write(node, high, self.change)
                theirs = highs.read(beside)
            won = high
            if k >= own:
                won = Signal(rest, name=f"won{k}")
                m.d.comb += won.eq(high)
            with m.If(_beats(opponent, current)):
                m.d.comb += winner.eq(opponent)
                if k >= own:
                    m.d.comb += won.eq(theirs)
            current, high, node = winner, won, beside[1:]
        m.d.comb += self.root.eq(self.kept)
        with m.If(self.change):
            m.d.comb += _copied(self.root, current, Cat(current.vc, high))
        with m.If(slot.commit):
            m.d.sync += self.kept.eq(self.root)

    def _narrow(self, m, slot, changed):
        pairs = self.levels > self.LEVELS
        step = 2 if pairs else 1
        last = self.CHANGE + -(-self.levels // step)
        assert last < self.ROOT
        leaf = Cat(self.vc, Const(1, 1))
        # The nodes on the way to the root: their opponents are read two clocks before they are played
        asks, reads, found, plays = Signal(), *(Signal(self.levels + 1, name=n) for n in ("reads", "found", "plays"))
        m.d.comb += asks.eq(slot.clock(self.ASK) | slot.clock(self.ASK + 1))
        m.d.sync += [reads.eq(Mux(asks, leaf, reads >> step)), found.eq(reads), plays.eq(found)]
        current, winner, running = Signal(self.entry), Signal(self.entry), Signal()
        opponent = self._level(m, slot, "nodes", 2 * self.vcs, Mux(asks, leaf, reads ^ 1), plays, current, running)
        m.d.comb += [self.leaf.eq(opponent), winner.eq(current)]
        with m.If(_beats(opponent, current)):
            m.d.comb += winner.eq(opponent)
        after = winner
        if pairs:  # node 0 is always empty: the opponent at the root, which a way of an odd number of levels gets to
            after, ahead = Signal(self.entry, name="after"), (reads >> 1) ^ 1
            second = self._level(m, slot, "odd_nodes", self.vcs, ahead, plays >> 1, winner, running)
            m.d.comb += after.eq(winner)
            with m.If(Mux(_beats(opponent, current), _beats(second, opponent), _beats(second, current))):
                m.d.comb += after.eq(second)
        with m.If(running):
            m.d.sync += [current.eq(after), running.eq(~slot.clock(last))]
        with m.If(slot.clock(self.CHANGE)), m.If(self.change):
            m.d.sync += [current.eq(changed), running.eq(1)]
        m.d.comb += self.root.eq(current)
        slot.clocks.needs(leaf, self.ASK, "a leaf's address")
        slot.clocks.strobe(running, self.CHANGE + 1)
        slot.clocks.holds(self.root, self.ROOT)
        for register in (reads, found, plays, current):
            slot.clocks.holds(register, 0)

    def _level(self, m, slot, name, depth, addr, node, entry, en):
        """Make a memory of nodes that is read in two clocks; return its data.

        A node is never read in the clock in which it is written, except where the result is not used. So the memory
        needs no logic for that case.
        """
        m.submodules[name] = nodes = memory.Memory(shape=self.entry, depth=depth, init=[], attrs={"no_rw_check": 1})
        read, write = nodes.read_port(domain="comb"), nodes.write_port()
        fetched, there = (Signal(self.entry, name=f"{name}_{n}", reset_less=True) for n in ("read", "there"))
        m.d.sync += [fetched.eq(read.data), there.eq(fetched)]
        slot.clocks.follows(fetched)
        slot.clocks.follows(there)
        m.d.comb += [read.addr.eq(addr), write.addr.eq(node), write.data.eq(entry), write.en.eq(en)]
        with m.If(self.clearing):
            m.d.comb += [write.addr.eq(self.clear), write.data.eq(self.entry.const(None)), write.en.eq(1)]
        return there


def _copied(entry, other, vc):
    """Return assignments that copy another entry to this one, with this VC."""
    if entry.shape() == other.shape():
        return [entry.eq(other)]
    return [
        entry.vc.eq(vc),
        *(getattr(entry, name).eq(getattr(other, name)) for name, _ in other.shape() if name != "vc"),
    ]


def _beats(opponent, current):
    """Return whether the opponent wins: its key is not after the other's."""
    return opponent.valid & ~(current.valid & (current.key - opponent.key)[KEY_BITS - 1])
