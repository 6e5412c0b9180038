"""Geo/D/1/K and N*D/D/1/K cell by cell, as something that splitting goes on with
(``bentpipe.experiment.run.splitting.Walk``)."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from bentpipe.experiment.run.splitting import grow
from bentpipe.results.splitting import Tree

NEVER = 10**12


class Counts(NamedTuple):
    queue: int = 0
    came: int = 0
    lost: int = 0
    cycles: int = 0
    most: int = 0


class _Queue:
    """The counts of a queue. Times are slots."""

    def __init__(self, seed: str):
        self._draw = random.Random(seed)
        self._now = 0
        self._counts = Counts()
        self._heights: list[int] = []

    def counts(self) -> Counts:
        return self._counts

    def heights(self) -> list[int]:
        found = [0] * (max(self._heights, default=0) + 1)
        for height in self._heights:
            found[height] += 1
        self._heights = []
        return found

    def now_ps(self) -> int:
        return self._now

    def _emptied(self) -> None:
        self._heights.append(self._counts.most)
        self._counts = self._counts._replace(queue=0)

    def _came(self, queue: int, taken: bool) -> None:
        before = self._counts
        self._counts = Counts(
            queue,
            before.came + 1,
            before.lost + (not taken),
            before.cycles + (before.queue == 0),
            max(queue, before.most if before.queue else 0),
        )


class GeoQueue(_Queue):
    """Each slot has a cell with probability ``load``; ``service`` slots each; ``places`` beside that in service. A
    moment is between a cell's coming and what follows: the next cell, or before it an empty queue."""

    def __init__(self, load: float, service: int, places: int, seed: str):
        self._empty, self._service, self._places = math.log1p(-load), service, places
        super().__init__(seed)
        self._work = 0  # slots until the server is free
        self._next: int | None = None  # slots to the next cell, once it is drawn

    def take(self):
        return self._now, self._work, self._next, self._counts

    def give(self, moment, seed: str) -> None:
        self._now, self._work, self._next, self._counts = moment
        self._draw = random.Random(seed)
        self._next = None if self._next is None else self._next and self._gap()

    def _gap(self) -> int:
        return 1 + int(math.log(1.0 - self._draw.random()) / self._empty)

    def go(self, level: int, empty: bool, until_ps: int) -> None:
        self._counts = self._counts._replace(most=self._counts.queue)
        while self._now < until_ps:
            counts = self._counts
            gap = self._gap() if self._next is None else self._next
            self._next = None
            wait = max(0, self._work - gap)
            if counts.queue and wait < self._service:  # before that cell comes the queue is empty
                self._emptied()
                ahead = max(1, self._work - self._service)
                self._now, self._work, self._next = self._now + ahead, self._work - ahead, gap - ahead
                if empty:
                    return
                continue
            self._now += gap
            taken = wait < self._service * self._places
            self._work = wait + self._service * taken
            queue = wait // self._service + taken
            self._came(queue, taken)
            if level and queue >= level:
                return


class PhaseQueue(_Queue):
    """N*D/D/1/K: each of ``sources`` has a cell in one of ``period`` slots; in the next ``period`` none has, and they
    draw again. Of the cells of a slot one is taken a slot; ``service`` slots each; ``places`` beside that in service,
    each kept for ``through`` slots after its service begins. Moments are as :class:`GeoQueue`'s."""

    def __init__(self, sources: int, period: int, service: int, places: int, through: int, seed: str):
        super().__init__(seed)
        self._sources, self._period, self._service = sources, period, service
        self._places, self._through = places, through
        self._base = -2 * period
        self._slots: list[int] = []  # of this period's cells that were not taken
        self._taken, self._free = -1, 0  # when the last one was; when the server is free
        self._begins: deque[int] = deque()  # services of those that have places

    def take(self):
        return self._now, self._base, self._slots[:], self._taken, self._free, [*self._begins], self._counts

    def give(self, moment, seed: str) -> None:
        self._now, self._base, slots, self._taken, self._free, begins, self._counts = moment
        self._draw, self._begins = random.Random(seed), deque(begins)
        first = max(self._base, self._now + (self._now == self._taken))  # of the slots to come
        last = self._base + self._period - 1
        self._slots = sorted(slot if slot < first else self._draw.randint(first, last) for slot in slots)

    def go(self, level: int, empty: bool, until_ps: int) -> None:
        self._counts = self._counts._replace(most=self._counts.queue)
        while self._now < until_ps:
            if not self._slots:
                self._base += 2 * self._period
                self._slots = sorted(self._base + self._draw.randrange(self._period) for _ in range(self._sources))
            now = max(self._slots[0], self._taken + 1)
            begins = self._begins
            if self._counts.queue and begins[-1] + self._through < now:
                self._emptied()
                self._now = begins[-1] + self._through + 1
                begins.clear()
                if empty:
                    return
                continue
            while begins and begins[0] + self._through < now:
                begins.popleft()
            self._now = self._taken = now
            self._slots.pop(0)
            taken = len(begins) < self._places
            if taken:
                begins.append(max(now, self._free))
                self._free = begins[-1] + self._service
            self._came(len(begins), taken)
            if level and len(begins) >= level:
                return


def grown(walk: GeoQueue | PhaseQueue, seed: str, cycles: int, effort: int, levels: Sequence[int]) -> Tree:
    """A batch of a plain run of so many cycles, from the next empty queue on, and its trials."""
    tree, states, inside = Tree(), [], False
    walk.go(1, False, NEVER)
    walk.go(0, True, NEVER)
    walk.heights()
    begin = walk.counts()
    while walk.counts().cycles < begin.cycles + cycles or walk.counts().queue:
        mark = walk.counts().lost
        walk.go(0 if inside else levels[0], inside, NEVER)
        inside = not inside
        if inside:
            tree.outside += walk.counts().lost - mark
            tree.excursions += 1
            states.append(walk.take())
    tree.came, tree.lost, tree.cycles = (
        now - before for now, before in zip(walk.counts()[1:4], begin[1:4], strict=True)
    )
    tree.heights = walk.heights()
    assert grow(walk, tree, states, levels, effort, seed, NEVER)
    return tree
