"""The copier against its model, on both datapaths."""

import random
from dataclasses import dataclass
from functools import partial

import pytest

from bentpipe_hdl.cell import CLOCKS_A_TICK, WIDE
from bentpipe_hdl.switch.core.injection import TAKEN
from bentpipe_hdl.switch.core.port_rate_scheduler import COMMIT
from bentpipe_hdl.switch.options.copies.replicator import MulticastReplicator
from models.copies import Copies
from unit.hdl.bench import WIDTHS
from unit.hdl.test_switch_parts import run

VCS, CELLS = 8, 4


@dataclass(frozen=True)
class Came:
    """A cell for a VC; ``inside``: one of the switch's own; ``known``: of a VC that is there."""

    vc: int
    header: int
    payload: tuple[int, ...]
    user: bool = True
    last: bool = False
    framed: bool = False
    inside: bool = False
    known: bool = True

    @classmethod
    def of(cls, rng, vc, **more):
        return cls(vc, rng.getrandbits(32), tuple(rng.getrandbits(32) for _ in range(12)), **more)


class Rig:
    """A copier whose VCs' states are kept here, as the switch keeps them, and who takes what it offers."""

    def __init__(self, ctx, part):
        self.ctx, self.part = ctx, part
        self.states = [0] * VCS
        self.words = []  # narrow: those of the last cell, that are still to come

    async def chain(self, vc, after):
        ctx, part = self.ctx, self.part
        ctx.set(part.entry_vc, vc)
        ctx.set(part.entry, {"next": after or 0, "valid": after is not None})
        ctx.set(part.entry_en, 1)
        self._word()
        await ctx.tick()
        ctx.set(part.entry_en, 0)

    async def tick(self, came=None, takes=True):
        """``(refused, the VC and the cell that were taken)``."""
        ctx, part = self.ctx, self.part
        for name in ("vc", "user", "last", "framed"):
            ctx.set(getattr(part, name), getattr(came, name) if came else 0)
        ctx.set(part.header.as_value(), came.header if came else 0)
        ctx.set(part.arrives, came is not None)
        ctx.set(part.state.as_value(), self.states[came.vc] if came else 0)
        return await (self._wide if part.width == WIDE else self._narrow)(came, takes)

    def _judged(self, came):
        """In the clock of the commit."""
        if came is None:
            return False
        if came.known:
            self.states[came.vc] = self.ctx.get(self.part.new_state.as_value())
        return bool(self.ctx.get(self.part.refuse))

    def _word(self):
        if self.part.width != WIDE:
            ctx, i = self.ctx, self.part.i
            ctx.set(i.valid, bool(self.words))
            ctx.set(i.soc, len(self.words) == 13)
            ctx.set(i.word, self.words.pop(0) if self.words else 0xDEAD)

    async def _wide(self, came, takes):
        ctx, part = self.ctx, self.part
        ctx.set(part.time.tick, 1)
        ctx.set(part.inside, came is not None and came.inside)
        ctx.set(part.i.valid, came is not None)
        ctx.set(part.i.payload, sum(word << 32 * k for k, word in enumerate(came.payload)) if came else 0)
        ctx.set(part.seen, came is not None and came.known)
        taken = None
        if takes and ctx.get(part.offer.there):
            ctx.set(part.offer.taken, 1)
            payload = ctx.get(part.offer.payload)
            words = tuple(payload >> 32 * k & 0xFFFFFFFF for k in range(12))
            taken = ctx.get(part.offer.vc), ctx.get(part.offer.header.as_value()), words
        await ctx.delay(1e-8)
        refused = self._judged(came)
        await ctx.tick()
        for port in (part.time.tick, part.offer.taken, part.seen):
            ctx.set(port, 0)
        return refused, taken

    async def _narrow(self, came, takes):
        """Play cells as the injection mux gives them: they start in clock 1, and their last words come in clock 0 of
        the next tick.
        """
        ctx, part = self.ctx, self.part
        refused, taken = False, None
        for clock in range(CLOCKS_A_TICK):
            if clock == 1:
                if takes and ctx.get(part.offer.there):
                    taken = [ctx.get(part.offer.vc), ctx.get(part.offer.header.as_value())]
                inside = came is not None and came.inside
                self.words = [came.header, *came.payload] if came else []
            if clock == 2:
                ctx.set(part.inside, inside)
            self._word()
            ctx.set(part.time.tick, clock == 0)
            ctx.set(part.seen, clock == COMMIT and came is not None and came.known)
            ctx.set(part.offer.place, clock if taken and clock < TAKEN else 0)
            ctx.set(part.offer.taken, taken is not None and clock == TAKEN)
            await ctx.delay(1e-8)
            if clock == COMMIT:
                refused = self._judged(came)
            await ctx.tick()
            if taken and clock:
                taken.append(ctx.get(part.offer.word))
        for port in (part.time.tick, part.offer.taken):
            ctx.set(port, 0)
        return refused, taken and (*taken[:2], tuple(taken[2:]))


def copy(width, test):
    async def bench(ctx, part, ticks):
        await test(Rig(ctx, part))

    run(width, partial(MulticastReplicator, width=width, ports=3, vcs=VCS, cells=CELLS), bench)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("width", WIDTHS)
def test_random_cells_and_chains(width, seed):
    """Frames, OAM cells and cells of the switch's own for VCs with chains that change meanwhile, lead into each other
    and into circles: what is refused and what is offered, in which tick, with which header and payload."""
    rng = random.Random(f"copies {seed}")
    model = Copies(VCS, CELLS)
    left, seen = [0] * VCS, {"refused": 0, "taken": 0}

    async def change(rig):
        vc = rng.randrange(VCS)
        after = rng.choice([None, rng.randrange(VCS), rng.randrange(VCS)])
        model.write(vc, after)
        await rig.chain(vc, after)

    async def test(rig):
        for vc, after in ((0, 1), (1, 2), (2, 3), (4, 5)):
            model.write(vc, after)
            await rig.chain(vc, after)
        for step in range(900 if width == WIDE else 500):
            if rng.random() < 0.03:
                await change(rig)
            busy = 0.75 if step % 100 < 60 else 0.2
            came = None
            if rng.random() < busy:
                vc, user = rng.randrange(VCS), rng.random() < 0.9
                if user:
                    left[vc] = (left[vc] or rng.randrange(1, 9)) - 1
                more = {"inside": rng.random() < 0.1, "known": rng.random() < 0.95, "framed": bool(vc & 1 or vc == 4)}
                came = Came.of(rng, vc, user=user, last=user and not left[vc], **more)
            takes, offer = came is None and rng.random() < 0.9, model.offer()
            refuses = False
            if came and came.known and not came.inside:
                refuses = model.refuses(came.vc, framed=came.framed, user=came.user, last=came.last)
            refused, taken = await rig.tick(came, takes)
            if came and came.known:
                assert refused == refuses, step
            expected = (offer.leaf, *offer.cell) if takes and offer else None
            assert taken == expected, step
            seen["refused"] += refused
            seen["taken"] += taken is not None
            enters = came and came.known and not came.inside and not refuses
            model.tick((came.vc, (came.header, came.payload)) if enters else None, expected is not None)
            counts = [rig.ctx.get(getattr(rig.part, name)) for name in ("waiting", "made", "endless")]
            assert counts == [len(model.waiting), model.made, model.endless], step

    copy(width, test)
    assert min(seen.values()) > 50 and model.endless


@pytest.mark.parametrize("width", WIDTHS)
def test_n_leaves_take_n_slots(width):
    """A root with two more leaves, its cells three ticks apart, each in a tick of its own: none waits any longer."""
    rng = random.Random("slots")

    async def test(rig):
        await rig.chain(0, 1)
        await rig.chain(1, 2)
        await rig.tick()
        for _ in range(20):
            came = Came.of(rng, 0)
            assert await rig.tick(came, takes=False) == (False, None)
            assert [(await rig.tick())[1] for _ in range(2)] == [(leaf, came.header, came.payload) for leaf in (1, 2)]
        assert rig.ctx.get(rig.part.waiting) == 0

    copy(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_chain_of_all_vcs_has_all_its_copies(width):
    rng = random.Random("all")

    async def test(rig):
        for vc in range(VCS - 1):
            await rig.chain(vc, vc + 1)
        await rig.tick()
        await rig.tick(Came.of(rng, 0), takes=False)
        assert [(await rig.tick())[1][0] for _ in range(VCS - 1)] == [*range(1, VCS)]
        assert [rig.ctx.get(port) for port in (rig.part.waiting, rig.part.endless)] == [0, 0]

    copy(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_circle_ends(width):
    """A VC that is its own next, two that follow each other: a copy fewer than there are VCs, then the next cell."""
    rng = random.Random("circle")

    async def test(rig):
        await rig.chain(3, 3)
        await rig.chain(4, 5)
        await rig.chain(5, 4)
        await rig.tick()
        for came in (Came.of(rng, 3), Came.of(rng, 4)):
            await rig.tick(came, takes=False)
        leaves = [(await rig.tick())[1] for _ in range(2 * (VCS - 1) + 3)]
        assert [leaf[0] for leaf in leaves if leaf] == [3] * 7 + [5, 4, 5, 4, 5, 4, 5]
        assert [rig.ctx.get(port) for port in (rig.part.waiting, rig.part.endless)] == [0, 2]

    copy(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_leaf_that_is_taken_out_gets_no_copy_more(width):
    """Between two ticks it is taken out of the chain, while it is offered: those behind it get theirs."""
    rng = random.Random("out")

    async def test(rig):
        for vc in (0, 1, 2):
            await rig.chain(vc, vc + 1)
        await rig.tick()
        await rig.tick(Came.of(rng, 0), takes=False)
        assert (await rig.tick())[1][0] == 1
        await rig.chain(1, 3)  # 2 is offered
        assert [(await rig.tick())[1] for _ in range(2)] == [None, None]
        assert (await rig.tick())[1][0] == 3
        assert rig.ctx.get(rig.part.waiting) == 0

    copy(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_saturated_input_leaves_no_slot(width):
    """No tick without a cell from outside: the FIFO fills, what finds it full is refused, and nothing is lost of what
    it has; when the input falls silent, all of it is copied."""
    rng = random.Random("saturated")

    async def test(rig):
        await rig.chain(0, 1)
        await rig.tick()
        cells = [Came.of(rng, 0) for _ in range(20)]
        refused = [(await rig.tick(cell, takes=False))[0] for cell in cells]
        assert refused == [False] * CELLS + [True] * 16
        taken = [(await rig.tick())[1] for _ in range(CELLS + 1)]
        assert taken == [*((1, cell.header, cell.payload) for cell in cells[:CELLS]), None]

    copy(width, test)
