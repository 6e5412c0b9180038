"""Geo/D/1/K cell by cell, as something that splitting goes on with (``bentpipe.experiment.splitting.Walk``)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from bentpipe.experiment.splitting import grow
from bentpipe.results.splitting import Tree

NEVER = 10**12


class Counts(NamedTuple):
    queue: int = 0
    came: int = 0
    lost: int = 0
    cycles: int = 0
    most: int = 0


class GeoQueue:
    """Each slot has a cell with probability ``load``; ``service`` slots each; ``places`` beside that in service. Times
    are slots. A moment is between a cell's coming and what follows: the next cell, or before it an empty queue."""

    def __init__(self, load: float, service: int, places: int, seed: str):
        self._empty, self._service, self._places = math.log1p(-load), service, places
        self._draw = random.Random(seed)
        self._now, self._work = 0, 0  # work: slots until the server is free
        self._next: int | None = None  # slots to the next cell, once it is drawn
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

    def take(self):
        return self._now, self._work, self._next, self._counts

    def give(self, moment, seed: str) -> None:
        self._now, self._work, self._next, self._counts = moment
        self._draw = random.Random(seed)
        self._next = None if self._next is None else self._next and self._gap()

    def now_ps(self) -> int:
        return self._now

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
                self._heights.append(counts.most)
                self._counts = counts._replace(queue=0)
                ahead = max(1, self._work - self._service)
                self._now, self._work, self._next = self._now + ahead, self._work - ahead, gap - ahead
                if empty:
                    return
                continue
            self._now += gap
            taken = wait < self._service * self._places
            self._work = wait + self._service * taken
            queue = wait // self._service + taken
            self._counts = Counts(
                queue,
                counts.came + 1,
                counts.lost + (not taken),
                counts.cycles + (counts.queue == 0),
                max(queue, counts.most if counts.queue else 0),
            )
            if level and queue >= level:
                return


def grown(walk: GeoQueue, seed: str, cycles: int, effort: int, levels: Sequence[int]) -> Tree:
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
