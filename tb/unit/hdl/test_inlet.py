"""Cells that a switch makes itself between those that come in, on both datapaths."""

import random
from dataclasses import dataclass
from functools import partial

import pytest

from bentpipe_hdl.cell import CLOCKS_A_TICK, WIDE
from bentpipe_hdl.switch.core.injection import InjectionMux
from unit.hdl.bench import WIDTHS
from unit.hdl.test_switch_parts import run

OFFERS, PORTS, VCS = 2, 3, 8


@dataclass(frozen=True)
class Seen:
    """A cell behind the inlet."""

    header: int
    payload: tuple[int, ...]
    port: int
    bad: int
    inside: int
    vc: int


class Rig:
    """An inlet, with parts that offer the cells of a list each. Offers change only where they may."""

    def __init__(self, ctx, node, rng):
        self.ctx, self.node, self.rng, self.offered = ctx, node, rng, [[] for _ in range(OFFERS)]
        self.seen, self._read, self._cell = [], [0] * OFFERS, None
        self.show()

    def show(self):
        """Offer the first cell of each list."""
        for offer, cells in zip(self.node.offers, self.offered, strict=True):
            self.ctx.set(offer.there, bool(cells))
            if cells:
                self.ctx.set(offer.vc, cells[0].vc)
                self.ctx.set(offer.header.as_value(), cells[0].header)
                if self.node.width == WIDE:
                    self.ctx.set(offer.payload, sum(word << 32 * k for k, word in enumerate(cells[0].payload)))

    def _words(self, offer):
        return self.offered[offer][0].payload if self.offered[offer] else [0] * 12

    async def clock(self, tick=0, valid=0, soc=0, word=0, cell=None):
        """A clock of the narrow datapath."""
        ctx, node = self.ctx, self.node
        for name, value in {"valid": valid, "soc": soc, "word": word}.items():
            ctx.set(getattr(node.i, name), value)
        if soc:
            ctx.set(node.i.port, cell.port)
            ctx.set(node.i.hec_error, cell.bad)
        ctx.set(node.time.tick, tick)
        await ctx.delay(1e-8)
        if ctx.get(node.o.valid):
            if ctx.get(node.o.soc):
                assert self._cell is None, "a cell that began inside another"
                self._cell = [ctx.get(node.o.port), ctx.get(node.o.hec_error)]
            self._cell.append(ctx.get(node.o.word))
        else:
            assert not self._cell, "a gap in a cell"
        taken = [ctx.get(offer.taken) for offer in node.offers]
        asked = [ctx.get(offer.place) for offer in node.offers]
        await ctx.tick()
        for k, offer in enumerate(node.offers):  # as a memory with a registered output has it, and a register behind it
            ctx.set(offer.word, self._read[k])
            self._read[k] = self._words(k)[asked[k]]
        for k in range(OFFERS):
            if taken[k]:
                self.offered[k].pop(0)
                self.show()

    def ends(self, kept):
        if self._cell and len(self._cell) == 15:
            port, bad, header, *payload = self._cell
            self.seen.append(Seen(header, tuple(payload), port, bad, *kept))
            self._cell = None


def cell(rng, inside=0):
    return Seen(
        rng.getrandbits(32), tuple(rng.getrandbits(32) for _ in range(12)), 0 if inside else rng.randrange(PORTS),
        0 if inside else rng.randrange(2), inside, rng.randrange(VCS) if inside else 0,
    )  # fmt: skip


def inlet(width, test):
    rng = random.Random(5)

    async def bench(ctx, node, ticks):
        del ticks
        await test(ctx, Rig(ctx, node, rng), rng)

    run(width, partial(InjectionMux, width=width, ports=PORTS, vcs=VCS, offers=OFFERS), bench)


def plan(rng, ticks, load, own):
    """Return for each tick: the cell from outside, or None; cells newly offered before it; whether none of ours is
    taken.
    """
    for _ in range(ticks):
        outside = cell(rng) if rng.random() < load else None
        yield outside, [[cell(rng, 1)] * (rng.random() < own) for _ in range(OFFERS)], rng.random() < 0.1


def expected(steps):
    """Return the cells behind the injection mux by its rule, tick by tick."""
    waiting = [[] for _ in range(OFFERS)]
    for outside, new, hold in steps:
        for queue, more in zip(waiting, new, strict=True):
            queue += more
        if outside:
            yield outside
        elif not hold:
            queue = next((queue for queue in waiting if queue), None)
            if queue:
                yield queue.pop(0)


@pytest.mark.parametrize(("load", "own"), [(0.5, 0.2), (0.0, 0.7), (0.95, 0.05), (1.0, 0.1)])
@pytest.mark.parametrize("width", WIDTHS)
def test_cells_of_its_own_take_the_ticks_without_one(width, load, own):
    steps = list(plan(random.Random(int(100 * load)), 300, load, own))

    async def wide(ctx, rig, rng):
        del rng
        node = rig.node
        for outside, new, hold in steps:
            for queue, more in zip(rig.offered, new, strict=True):
                queue += more
            rig.show()
            ctx.set(node.hold, hold)
            ctx.set(node.i.valid, outside is not None)
            if outside:
                for name, value in (("port", outside.port), ("hec_error", outside.bad)):
                    ctx.set(getattr(node.i, name), value)
                ctx.set(node.i.header.as_value(), outside.header)
                ctx.set(node.i.payload, sum(word << 32 * k for k, word in enumerate(outside.payload)))
            ctx.set(node.time.tick, 1)
            await ctx.delay(1e-8)
            o = node.o
            assert ctx.get(node.waits) == any(rig.offered)
            if ctx.get(o.valid):
                payload = tuple(ctx.get(o.payload) >> 32 * k & 0xFFFFFFFF for k in range(12))
                inside = ctx.get(node.inside)
                rig.seen.append(
                    Seen(ctx.get(o.header.as_value()), payload, ctx.get(o.port), ctx.get(o.hec_error), inside,
                         ctx.get(node.vc) if inside else 0)
                )  # fmt: skip
            taken = [ctx.get(offer.taken) for offer in node.offers]
            await ctx.tick()
            ctx.set(node.time.tick, 0)
            await ctx.tick()  # a clock in which no tick begins: nothing happens
            for queue, was in zip(rig.offered, taken, strict=True):
                if was:
                    queue.pop(0)

    async def narrow(ctx, rig, rng):
        node, kept, rest = rig.node, (0, 0), []
        for outside, new, hold in steps:
            for queue, more in zip(rig.offered, new, strict=True):
                queue += more
            rig.show()
            first = 1 if rest else rng.randrange(2)
            words = [outside.header, *outside.payload] if outside else []
            length = CLOCKS_A_TICK + rng.choice((0, 0, 0, 1, 3))
            held = kept
            for clock in range(length):
                ctx.set(node.hold, hold)
                if rest:
                    await rig.clock(clock == 0, 1, 0, rest.pop())
                elif words and clock >= first and len(words) > 12:
                    await rig.clock(clock == 0, 1, 1, words.pop(0), outside)
                elif words and clock >= first:
                    await rig.clock(clock == 0, 1, 0, words.pop(0))
                else:
                    await rig.clock(clock == 0, 0, 0, rng.getrandbits(32))
                if clock == 1:
                    inside = ctx.get(node.inside)
                    kept = inside, ctx.get(node.vc) if inside else 0
                rig.ends(held if clock == 0 else kept)
            rest = words
        for _ in range(3):
            await rig.clock(0, bool(rest), 0, rest.pop() if rest else 0)
            rig.ends(kept)

    async def test(ctx, rig, rng):
        await (wide if width == WIDE else narrow)(ctx, rig, rng)
        found = list(expected(steps))
        assert rig.seen == found
        ours = sum(one.inside for one in found)
        assert ctx.get(rig.node.injected) == ours
        assert ours > 10 or load == 1.0

    inlet(width, test)
