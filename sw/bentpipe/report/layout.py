"""The layout of a network's drawing: boxes and lines in columns from sources to sinks, or in rows of a narrow page."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bentpipe.results.tables import DROP_TITLES

__all__ = [
    "LINE_HEIGHT",
    "WIDTH",
    "Box",
    "Drawing",
    "Joint",
    "Line",
    "Network",
    "Node",
    "Way",
    "course",
    "dropped",
    "lay_out",
    "overlaps",
    "percent",
    "text_height",
    "text_width",
    "width_of_texts",
]

WIDTH: Final = 176
LINE_HEIGHT: Final = 16
_BETWEEN: Final = 18
"""Pixels: width of a box, height of a line of text, least distance of boxes."""
_STEP: Final = 6
"""Pixels by which overlapping texts are moved."""
_SAMPLES: Final = 16
"""Points of a curve that are looked at."""
_PILE: Final = {False: 6, True: 1}
"""So many equal hosts at a switch have a box each, along the page and upright; more are one."""


@dataclass(slots=True)
class Way:
    """One direction of a line: share of its rate that was used (None: unknown), cells lost."""

    use: float | None = None
    lost: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Node:
    """A switch or a host; a host has its line: what it sends, what comes."""

    name: str
    facts: list[str]
    lossy: list[str]
    switch: str = ""
    rate: str = ""
    out: Way = field(default_factory=Way)
    back: Way = field(default_factory=Way)

    @property
    def host(self) -> bool:
        return bool(self.switch)


@dataclass(slots=True)
class Line:
    """Between two switches, or in loop-back at one."""

    name: str
    ends: tuple[str, str]
    facts: list[str]
    out: Way
    back: Way


@dataclass(slots=True)
class Network:
    """The switches, hosts and lines of a drawing."""

    switches: list[Node]
    hosts: list[Node]
    lines: list[Line]
    paths: list[tuple[str, ...]]


def dropped(reasons: Mapping[str, int]) -> list[str]:
    """Return losses by reason as texts that are short enough for a box."""
    return [f"{cells:,} lost: {DROP_TITLES.get(reason, reason)}" for reason, cells in reasons.items()]


def percent(use: float | None) -> str:
    """Return a share as text; ``?`` where it is not known."""
    if use is None:
        return "?"
    return f"{100 * use:.0f} %" if use >= 0.1 or not use else f"{100 * use:.1f} %" if use >= 0.001 else "< 0.1 %"


@dataclass(slots=True)
class Box:
    """A box of the drawing: its left upper corner, its height, its lines of text with their classes."""

    name: str
    kind: str
    texts: list[tuple[str, str]]
    members: list[Node]
    x: float = 0
    y: float = 0
    height: float = 0

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + WIDTH / 2, self.y + self.height / 2


@dataclass(slots=True)
class Joint:
    """A line of the drawing: the boxes that it joins (one twice: a loop), where its texts' middle is."""

    ends: tuple[Box, Box]
    out: Way
    back: Way
    texts: list[tuple[str, str]]
    title: str
    at: tuple[float, float] = (0, 0)


@dataclass(slots=True)
class Drawing:
    """A drawing of a network, with its size."""

    width: float
    height: float
    upright: bool
    boxes: list[Box]
    joints: list[Joint]


def _columns(network: Network) -> dict[str, int]:
    """Return a column for each node, with hosts beside their switch.

    A path leads from left to right, unless another one already leads the other way.
    """
    names = [node.name for node in network.switches]
    after: dict[str, set[str]] = {name: set() for name in names}

    def reaches(a: str, b: str) -> bool:
        return a == b or any(reaches(c, b) for c in after[a])

    ways = [pair for path in network.paths for pair in itertools.pairwise(path[1:-1])]
    ways += [line.ends for line in network.lines]
    for a, b in dict.fromkeys(ways):
        if a in after and b in after and b not in after[a] and not reaches(b, a):
            after[a].add(b)
    column = dict.fromkeys(names, 1)
    for _ in names:
        for a in names:
            for b in after[a]:
                column[b] = max(column[b], column[a] + 1)
    side = {path[end]: -1 if end == 0 else 1 for path in reversed(network.paths) for end in (-1, 0)}  # where first met
    for host in network.hosts:
        column[host.name] = column[host.switch] + side.get(host.name, -1)
    least = min(column.values(), default=0)
    return {name: place - least for name, place in column.items()}


def _host_texts(nodes: Sequence[Node], upright: bool) -> list[tuple[str, str]]:
    """Return the lines of text of a host, or of several that are equal."""
    first, count = nodes[0], len(nodes)
    name = first.name if count == 1 else f"{count} hosts"
    texts = [("name", name)]
    if count > 1:
        texts.append(("fact", _shorter(f"{nodes[0].name} … {nodes[-1].name}", 26)))
    texts.append(("fact", first.rate + (" each" if count > 1 else "")))
    ways = []
    for word, uses in (("sends", [n.out.use for n in nodes]), ("gets", [n.back.use for n in nodes])):
        known = [use for use in uses if use is not None]
        if known:
            low, high = percent(min(known)), percent(max(known))
            ways.append(f"{word} {low}" if low == high else f"{word} {low.removesuffix(' %')} to {high}")
    texts += [("fact", ", ".join(ways))] if len(", ".join(ways)) < 27 and ways else [("fact", way) for way in ways]
    return texts + [("lossy", text) for node in nodes[:1] for text in node.lossy] if count == 1 else texts


def _shorter(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _boxes(network: Network, upright: bool, column: Mapping[str, int]) -> dict[str, Box]:
    """Return the box of each node by its name; equal hosts share one if there are many."""
    found: dict[str, Box] = {}
    for switch in network.switches:
        texts = [("name", switch.name), *(("fact", f) for f in switch.facts), *(("lossy", f) for f in switch.lossy)]
        found[switch.name] = Box(switch.name, "switch", texts, [switch])
    alike: dict[tuple[Any, ...], list[Node]] = {}
    for host in network.hosts:
        alike.setdefault((column[host.name], host.switch, host.rate), []).append(host)
    for hosts in alike.values():
        piles = [hosts] if len(hosts) > _PILE[upright] else [[host] for host in hosts]
        for pile in piles:
            kind = "host" if len(pile) == 1 else "hosts"
            box = Box(pile[0].name, kind, _host_texts(pile, upright), pile)
            found.update((host.name, box) for host in pile)
    for box in found.values():
        box.height = 14 + LINE_HEIGHT * len(box.texts)
    return found


def _line_texts(line: Line, forth: str, back: str) -> list[tuple[str, str]]:
    texts = [("name", line.name)]
    facts = list(line.facts)
    if len(facts) > 1 and len(f"{facts[0]}, {facts[1]}") < 24:
        facts[:2] = [f"{facts[0]}, {facts[1]}"]
    texts += [("fact", fact) for fact in facts]
    ways = [(forth, line.out)] if line.ends[0] == line.ends[1] else [(forth, line.out), (back, line.back)]
    texts.append(("fact", "   ".join(f"{sign} {percent(way.use)}" for sign, way in ways)))
    for sign, way in ways:
        texts += [("lossy", f"{sign} {text}") for text in dropped(way.lost)]
    return texts


def lay_out(network: Network, upright: bool = False) -> Drawing:
    """Lay out boxes in columns from sources to sinks (``upright``: in rows), ordered so that few lines cross."""
    column = _columns(network)
    boxes = _boxes(network, upright, column)
    ranks: list[list[Box]] = [[] for _ in range(max(column.values(), default=0) + 1)]
    for name, place in column.items():
        if boxes[name] not in ranks[place]:
            ranks[place].append(boxes[name])
    ranks = [rank for rank in ranks if rank]
    joints = _joints(network, boxes, ranks, upright)
    _order(ranks, joints)
    loops = [joint for joint in joints if joint.ends[0] is joint.ends[1]]
    if upright:
        width, height = _stack(ranks, joints, loops)
    else:
        width, height = _spread(ranks, joints, loops)
    _label(joints, ranks, upright, width, height)
    drawing = Drawing(width, height, upright, list({id(box): box for box in boxes.values()}.values()), joints)
    _clear(drawing)
    return drawing


def _joints(network: Network, boxes: Mapping[str, Box], ranks: Sequence[Sequence[Box]], upright: bool) -> list[Joint]:
    place = {id(box): at for at, rank in enumerate(ranks) for box in rank}
    joints = []
    for box in {id(box): box for box in boxes.values()}.values():
        if box.kind == "switch":
            continue
        out = Way(max((n.out.use or 0 for n in box.members), default=0))
        back = Way(max((n.back.use or 0 for n in box.members), default=0))
        joints.append(Joint((box, boxes[box.members[0].switch]), out, back, [], f"line of {box.texts[0][1]}"))
    for line in network.lines:
        a, b = (boxes[name] for name in line.ends)
        forward = place[id(a)] <= place[id(b)]
        signs = ("↓", "↑") if upright else ("→", "←")
        if a is b:
            signs = ("used", "")
        texts = _line_texts(line, *(signs if forward else signs[::-1]))
        joints.append(Joint((a, b), line.out, line.back, texts, f"line {line.name}"))
    return joints


def _order(ranks: Sequence[list[Box]], joints: Sequence[Joint]) -> None:
    """Order the boxes of each rank by the mean place of their neighbours, in several passes."""
    place = {id(box): at / len(rank) for rank in ranks for at, box in enumerate(rank)}
    near: dict[int, list[int]] = {}
    for joint in joints:
        a, b = map(id, joint.ends)
        if a != b:
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    for rank in [*ranks, *reversed(ranks), *ranks]:
        mean = {
            id(box): sum(place[other] for other in near[id(box)]) / len(near[id(box)])
            for box in rank
            if id(box) in near
        }
        rank.sort(key=lambda box: mean.get(id(box), place[id(box)]))
        place.update((id(box), (at + 0.5) / len(rank)) for at, box in enumerate(rank))


def width_of_texts(joint: Joint) -> float:
    """Return the width of the widest of a joint's texts, in pixels."""
    return max((text_width(text, kind) for kind, text in joint.texts), default=0.0)


def text_width(text: str, kind: str) -> float:
    """Return about how many pixels wide a text is drawn, rather too many."""
    return (8.6 if kind == "name" else 6.9) * len(text)


def text_height(joint: Joint) -> float:
    """Return the height of a joint's texts, in pixels."""
    return LINE_HEIGHT * len(joint.texts)


def _spread(ranks: list[list[Box]], joints: list[Joint], loops: list[Joint]) -> tuple[float, float]:
    """Place boxes in columns; the space that loops need is above their box."""
    above = {id(joint.ends[0]): text_height(joint) + 34 for joint in loops}
    heights = [sum(b.height + above.get(id(b), 0) for b in rank) + _BETWEEN * (len(rank) - 1) for rank in ranks]
    rank_of = {id(box): at for at, rank in enumerate(ranks) for box in rank}
    height = max(heights, default=0) + 8
    gaps = [56.0] * max(0, len(ranks) - 1)
    labelled: dict[int, float] = {}
    for joint in joints:
        a, b = sorted(rank_of[id(box)] for box in joint.ends)
        if joint.texts and a != b:
            gaps[a] = max(gaps[a], width_of_texts(joint) + 64)
            labelled[a] = labelled.get(a, 0) + text_height(joint) + 12
    height = max([height, *labelled.values()])
    x = 4.0
    for at, rank in enumerate(ranks):
        free = (height - heights[at]) / (len(rank) + 1)
        y = free
        for box in rank:
            y += above.get(id(box), 0)
            box.x, box.y = x, y
            y += box.height + _BETWEEN + free
        x += WIDTH + (gaps[at] if at < len(gaps) else 0)
    low = min((b.y - above.get(id(b), 0) for rank in ranks for b in rank), default=0)
    for rank in ranks:
        for box in rank:
            box.y += 4 - min(low, 4)
    return x + 4, max([height, *(box.y + box.height + 4 for rank in ranks for box in rank)])


def _stack(ranks: list[list[Box]], joints: list[Joint], loops: list[Joint]) -> tuple[float, float]:
    """Place boxes in rows, at most two beside each other; the space that a loop needs is to the right of its box."""
    width = 2 * WIDTH + _BETWEEN + 8
    rank_of = {id(box): at for at, rank in enumerate(ranks) for box in rank}
    looped = {id(joint.ends[0]) for joint in loops}
    need = {id(joint.ends[0]): text_height(joint) for joint in loops}
    gaps = [30.0] * len(ranks)
    labels: dict[int, int] = {}
    for joint in joints:
        a, b = sorted(rank_of[id(box)] for box in joint.ends)
        if joint.texts and a != b:
            labels[a] = labels.get(a, 0) + 1
            gaps[a] = max(gaps[a], text_height(joint) + 10)
    for at, count in labels.items():  # more than two do not fit beside each other
        gaps[at] = gaps[at] * ((count + 1) // 2) + 30
    y = 4.0
    for at, rank in enumerate(ranks):
        for pair in _pairs(rank, looped):
            tall = max(box.height for box in pair)
            for n, box in enumerate(pair):
                free = len(pair) == 1 and id(box) not in looped
                box.x = (width - WIDTH) / 2 if free else 4 + n * (WIDTH + _BETWEEN)
                box.y = y + max(0.0, need.get(id(box), 0) - box.height) / 2
            y += max(tall, *(need.get(id(box), 0) for box in pair)) + _BETWEEN
        y += gaps[at] - _BETWEEN if at < len(ranks) - 1 else 0
    return width, y - _BETWEEN + 4


def _pairs(rank: Sequence[Box], looped: set[int]) -> Iterable[list[Box]]:
    """Yield the boxes that are beside each other; one with a loop is alone."""
    pair: list[Box] = []
    for box in rank:
        if pair and (len(pair) == 2 or id(box) in looped or id(pair[0]) in looped):
            yield pair
            pair = []
        pair.append(box)
    if pair:
        yield pair


def _label(joints: Sequence[Joint], ranks: Sequence[Sequence[Box]], upright: bool, width: float, height: float) -> None:
    """Place the texts of lines: between the ranks of their ends, in the order of the lines, without overlap."""
    rank_of = {id(box): at for at, rank in enumerate(ranks) for box in rank}
    between: dict[int, list[Joint]] = {}
    for joint in joints:
        a, b = joint.ends
        if a is b and upright:
            joint.at = (a.x + WIDTH + 26 + width_of_texts(joint) / 2, a.y + a.height / 2)
        elif a is b:
            joint.at = (a.x + WIDTH / 2, a.y - 30 - text_height(joint) / 2)
        elif joint.texts:
            between.setdefault(min(rank_of[id(box)] for box in joint.ends), []).append(joint)
    for at, own in between.items():
        middles = {id(joint): _middle(joint, upright) for joint in own}
        own.sort(key=lambda joint: middles[id(joint)][0 if upright else 1])
        if upright:
            top = max(box.y + box.height for box in ranks[at])
            row = max(map(text_height, own)) + 10
            for n, joint in enumerate(own):
                alone = n % 2 == 0 and n == len(own) - 1
                x = width / 2 if alone else width * (1 + 2 * (n % 2)) / 4
                joint.at = (x, top + 15 + row * (n // 2 + 0.5))
        else:
            x = (ranks[at][0].x + WIDTH + ranks[min(at + 1, len(ranks) - 1)][0].x) / 2
            low, places = 2.0, []
            for joint in own:
                half = text_height(joint) / 2
                places.append(max(middles[id(joint)][1], low + half))
                low = places[-1] + half + 6
            over = max(0.0, low - 6 + 2 - height)
            wanted = sum(middles[id(joint)][1] for joint in own) / len(own)
            shift = min(max(over, sum(places) / len(places) - wanted), places[0] - text_height(own[0]) / 2 - 2)
            for joint, y in zip(own, places, strict=True):
                joint.at = (x, y - shift)


def _middle(joint: Joint, upright: bool) -> tuple[float, float]:
    (ax, ay), (bx, by) = _anchors(*joint.ends, upright)
    return (ax + bx) / 2, (ay + by) / 2


def _anchors(a: Box, b: Box, upright: bool) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the points at which a line leaves its two boxes."""
    if upright:
        first, second = (a, b) if a.y <= b.y else (b, a)
        ends = ((first.middle[0], first.y + first.height), (second.middle[0], second.y))
        return ends if first is a else (ends[1], ends[0])
    first, second = (a, b) if a.x <= b.x else (b, a)
    if first.x == second.x:
        return a.middle, b.middle
    ends = ((first.x + WIDTH, first.middle[1]), (second.x, second.middle[1]))
    return ends if first is a else (ends[1], ends[0])


_Point = tuple[float, float]


def course(joint: Joint, upright: bool) -> list[tuple[_Point, _Point, _Point, _Point]]:
    """Return a line between two boxes as Bézier curves, straight behind its texts: from, two bends, to."""
    first, last = _anchors(*joint.ends, upright)
    stations = [first, last]
    if joint.texts:
        place, (x, y) = _Place.of(joint), joint.at
        sides = [(x, place.top), (x, place.bottom)] if upright else [(place.left, y), (place.right, y)]
        axis = 1 if upright else 0
        stations[1:1] = sides if first[axis] <= last[axis] else sides[::-1]
    curves = []
    for (ax, ay), (bx, by) in itertools.pairwise(stations):
        mx, my = (ax + bx) / 2, (ay + by) / 2
        bends = ((ax, my), (bx, my)) if upright else ((mx, ay), (mx, by))
        curves.append(((ax, ay), *bends, (bx, by)))
    return curves


@dataclass(frozen=True)
class _Place:
    """The area that a box, or the texts of a line, covers."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def of(cls, thing: Box | Joint) -> _Place:
        if isinstance(thing, Box):
            return cls(thing.x, thing.y, thing.x + WIDTH, thing.y + thing.height)
        (x, y), half, tall = thing.at, width_of_texts(thing) / 2 + 3, text_height(thing) / 2 + 2
        return cls(x - half, y - tall, x + half, y + tall)

    def meets(self, other: _Place) -> bool:
        beside = self.left < other.right and other.left < self.right
        return beside and self.top < other.bottom and other.top < self.bottom

    def crossed(self, points: Iterable[_Point]) -> bool:
        return any(self.left < x < self.right and self.top < y < self.bottom for x, y in points)


def _points(joint: Joint, upright: bool) -> list[_Point]:
    if joint.ends[0] is joint.ends[1]:
        return []
    found = []
    for curve in course(joint, upright):
        for n in range(_SAMPLES + 1):
            t = n / _SAMPLES
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            x, y = (sum(w * point[axis] for w, point in zip(weights, curve, strict=True)) for axis in (0, 1))
            found.append((x, y))
    return found


def overlaps(joint: Joint, drawing: Drawing) -> int:
    """Return the overlaps of a line with texts: lines under its texts, boxes and texts on it."""
    return _Others(joint, drawing).count(joint, drawing.upright)


class _Others:
    """All of a drawing but one line."""

    def __init__(self, joint: Joint, drawing: Drawing) -> None:
        rest = [other for other in drawing.joints if other is not joint]
        self._lines = [_points(other, drawing.upright) for other in rest]
        self._texts = [_Place.of(other) for other in rest if other.texts]
        self._boxes = [(box, _Place.of(box)) for box in drawing.boxes]

    def count(self, joint: Joint, upright: bool) -> int:
        own, line = _Place.of(joint), _points(joint, upright)
        over = [*self._texts, *(place for box, place in self._boxes if box not in joint.ends)]
        solid = sum(map(own.meets, [*self._texts, *(place for _, place in self._boxes)]))
        return 10 * solid + sum(map(own.crossed, self._lines)) + sum(place.crossed(line) for place in over)


def _clear(drawing: Drawing) -> None:
    """Move texts aside where lines pass under them, or where they make their own line pass under others."""
    axis, end = (0, drawing.width) if drawing.upright else (1, drawing.height)
    texts = [joint for joint in drawing.joints if joint.texts and joint.ends[0] is not joint.ends[1]]
    for joint in [*texts, *texts]:
        others = _Others(joint, drawing)
        least = others.count(joint, drawing.upright)
        half = (width_of_texts(joint) / 2 + 3) if drawing.upright else (text_height(joint) / 2 + 2)
        best = here = joint.at
        free = [here[axis] + sign * step for step in range(_STEP, int(end), _STEP) for sign in (-1, 1)]
        for place in free:
            if not least:
                break
            if half <= place <= end - half:
                joint.at = (place, here[1]) if axis == 0 else (here[0], place)
                if (found := others.count(joint, drawing.upright)) < least:
                    least, best = found, joint.at
        joint.at = best
