"""The network of a run as a drawing: rates, delays, use and losses at each hop.

:func:`network_of` makes of a run what there is to draw; :func:`lay_out` gives it places by its graph, columns from
sources to sinks; :func:`network_svg` draws it, along the page for wide screens and upright for narrow ones.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bentpipe.results.metrics import CELL_BITS, port_rates
from bentpipe_hdl.units import format_rate, format_time

__all__ = ["Box", "Drawing", "Joint", "Network", "lay_out", "network_of", "network_svg"]

_WIDTH: Final = 176
_LINE: Final = 16
_BETWEEN: Final = 18
"""Pixels: width of a box, height of a line of text, least distance of boxes."""
_FULL: Final = 0.95
"""A way used more than this is drawn as full."""
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
    switches: list[Node]
    hosts: list[Node]
    lines: list[Line]
    paths: list[tuple[str, ...]]


def network_of(summary: Mapping[str, Any]) -> Network:
    """The network of a run, of its summary: how much of each line was used, and what was lost where.

    Use is what a way's cells are of all that its port may send (:func:`bentpipe.results.metrics.port_rates`).
    """
    resolved, counters, drops = summary["resolved"], summary["counters"], summary["drops"]
    time_s = summary["time"]["simulated_s"]

    def used(cells: Any, rate: float) -> float | None:
        if cells is None or not time_s:
            return None
        return (sum(cells) if isinstance(cells, list) else cells) * CELL_BITS / time_s / rate

    def lost(*nodes: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for node in nodes:
            for reason, cells in drops.get(node, {}).items():
                if cells:
                    found[reason] = found.get(reason, 0) + cells
        return found

    network = resolved["network"]
    ports = port_rates(summary)
    switches = []
    for s in network["switches"]:
        facts = [f"buffer {s['buffer_cells']:,} cells", _policy(s)]
        peak = counters.get(s["name"], {}).get("high_water")
        if peak is not None:
            facts.append(f"most queued {peak:,} ({100 * peak / s['buffer_cells']:.0f} %)")
        switches.append(Node(s["name"], facts, _dropped(lost(s["name"]))))
    hosts = []
    for h in network["hosts"]:
        own = counters.get(h["name"], {})
        delay = f", {format_time(h['delay_ps'])}" if h["delay_ps"] else ""
        hosts.append(
            Node(
                h["name"],
                [],
                _dropped(lost(h["name"], f"{h['name']}.line")),
                switch=h["port"]["switch"],
                rate=f"{format_rate(h['rate_bps'])}{delay}",
                out=Way(used(own.get("tx_cells"), h["rate_bps"])),
                back=Way(used(own.get("rx_cells"), ports[h["port"]["switch"]][h["port"]["port"]])),
            )
        )
    reactive = {s["name"]: [own.get("reactive") for own in s["port_settings"]] for s in network["switches"]}
    lines = []
    for line in network["lines"]:
        one, two = line["ends"]
        looped = one == two
        ways = []
        for end, way in ((one, "out"), (two, "back")):
            name = f"{line['name']}.{way}"
            cells = counters.get(name, {}).get("cells")
            ways.append(Way(used(cells, ports[end["switch"]][end["port"]]), lost(name)))
        facts = [format_rate(line["rate_bps"]), format_time(line["delay_ps"])]
        if any(line["ber"]):
            facts.append(f"BER {' / '.join(f'{ber:g}' for ber in dict.fromkeys(line['ber']))}")
        follow = [of for end in (one, two) if (of := reactive[end["switch"]][end["port"]])]
        bounds = dict.fromkeys(f"{format_rate(of['floor_bps'])} to {format_rate(of['ceiling_bps'])}" for of in follow)
        if bounds:
            facts += ["by load", *bounds]
        elif (mean := ports[one["switch"]][one["port"]]) != line["rate_bps"]:
            facts.append(f"{mean / 1e6:.4g} Mb/s on average")
        if looped:
            facts.append("in loop-back")
        lines.append(Line(line["name"], (one["switch"], two["switch"]), facts, ways[0], Way() if looped else ways[1]))
    vcs = resolved["vcs"]
    paths = dict.fromkeys(tuple(vcs[f["vc"]]["path"]) for f in resolved["flows"])
    return Network(switches, hosts, lines, list(paths))


def _policy(switch: Mapping[str, Any]) -> str:
    names = {"epd": f"EPD at {switch['epd_threshold']:,} cells", "ppd": "PPD", "tail": "tail drop"}
    return names.get(switch["policy"]) or str(switch["policy"])


def _dropped(reasons: Mapping[str, int]) -> list[str]:
    """Short enough for a box."""
    return [f"{cells:,} lost: {reason.upper() if len(reason) < 4 else reason}" for reason, cells in reasons.items()]


def _percent(use: float | None) -> str:
    if use is None:
        return "?"
    return f"{100 * use:.0f} %" if use >= 0.1 or not use else f"{100 * use:.1f} %" if use >= 0.001 else "< 0.1 %"


# Layout: columns by the graph


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
        return self.x + _WIDTH / 2, self.y + self.height / 2


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
    width: float
    height: float
    upright: bool
    boxes: list[Box]
    joints: list[Joint]


def _columns(network: Network) -> dict[str, int]:
    """A column for each node: a path leads from left to right where no other leads back; hosts beside their switch."""
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
    """The lines of text of a host, or of several that are equal."""
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
            low, high = _percent(min(known)), _percent(max(known))
            ways.append(f"{word} {low}" if low == high else f"{word} {low.removesuffix(' %')} to {high}")
    texts += [("fact", ", ".join(ways))] if len(", ".join(ways)) < 27 and ways else [("fact", way) for way in ways]
    return texts + [("lossy", text) for node in nodes[:1] for text in node.lossy] if count == 1 else texts


def _shorter(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _boxes(network: Network, upright: bool, column: Mapping[str, int]) -> dict[str, Box]:
    """The box of each node by its name; equal hosts share one if there are many."""
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
        box.height = 14 + _LINE * len(box.texts)
    return found


def _line_texts(line: Line, forth: str, back: str) -> list[tuple[str, str]]:
    texts = [("name", line.name)]
    facts = list(line.facts)
    if len(facts) > 1 and len(f"{facts[0]}, {facts[1]}") < 24:
        facts[:2] = [f"{facts[0]}, {facts[1]}"]
    texts += [("fact", fact) for fact in facts]
    ways = [(forth, line.out)] if line.ends[0] == line.ends[1] else [(forth, line.out), (back, line.back)]
    texts.append(("fact", "   ".join(f"{sign} {_percent(way.use)}" for sign, way in ways)))
    for sign, way in ways:
        texts += [("lossy", f"{sign} {text}") for text in _dropped(way.lost)]
    return texts


def lay_out(network: Network, upright: bool = False) -> Drawing:
    """Boxes in columns from sources to sinks (``upright``: in rows), ordered so that few lines cross."""
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
    unique = list({id(box): box for box in boxes.values()}.values())
    return Drawing(width, height, upright, unique, joints)


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
    """Boxes of a rank by the mean place of those that they are joined to, some times to and fro."""
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


def _text_width(joint: Joint) -> float:
    return max((text_width(text, kind) for kind, text in joint.texts), default=0.0)


def text_width(text: str, kind: str) -> float:
    """About how many pixels wide a text is drawn, rather too many."""
    return (8.6 if kind == "name" else 6.9) * len(text)


def _text_height(joint: Joint) -> float:
    return _LINE * len(joint.texts)


def _spread(ranks: list[list[Box]], joints: list[Joint], loops: list[Joint]) -> tuple[float, float]:
    """Places of boxes in columns; what loops need is above their box."""
    above = {id(joint.ends[0]): _text_height(joint) + 34 for joint in loops}
    heights = [sum(b.height + above.get(id(b), 0) for b in rank) + _BETWEEN * (len(rank) - 1) for rank in ranks]
    rank_of = {id(box): at for at, rank in enumerate(ranks) for box in rank}
    height = max(heights, default=0) + 8
    gaps = [56.0] * max(0, len(ranks) - 1)
    labelled: dict[int, float] = {}
    for joint in joints:
        a, b = sorted(rank_of[id(box)] for box in joint.ends)
        if joint.texts and a != b:
            gaps[a] = max(gaps[a], _text_width(joint) + 44)
            labelled[a] = labelled.get(a, 0) + _text_height(joint) + 12
    height = max([height, *labelled.values()])
    x = 4.0
    for at, rank in enumerate(ranks):
        free = (height - heights[at]) / (len(rank) + 1)
        y = free
        for box in rank:
            y += above.get(id(box), 0)
            box.x, box.y = x, y
            y += box.height + _BETWEEN + free
        x += _WIDTH + (gaps[at] if at < len(gaps) else 0)
    low = min((b.y - above.get(id(b), 0) for rank in ranks for b in rank), default=0)
    for rank in ranks:
        for box in rank:
            box.y += 4 - min(low, 4)
    return x + 4, max([height, *(box.y + box.height + 4 for rank in ranks for box in rank)])


def _stack(ranks: list[list[Box]], joints: list[Joint], loops: list[Joint]) -> tuple[float, float]:
    """Places of boxes in rows, at most two beside each other; what a loop needs is to the right of its box."""
    width = 2 * _WIDTH + _BETWEEN + 8
    rank_of = {id(box): at for at, rank in enumerate(ranks) for box in rank}
    looped = {id(joint.ends[0]) for joint in loops}
    need = {id(joint.ends[0]): _text_height(joint) for joint in loops}
    gaps = [30.0] * len(ranks)
    labels: dict[int, int] = {}
    for joint in joints:
        a, b = sorted(rank_of[id(box)] for box in joint.ends)
        if joint.texts and a != b:
            labels[a] = labels.get(a, 0) + 1
            gaps[a] = max(gaps[a], _text_height(joint) + 10)
    for at, count in labels.items():  # more than two don't fit beside each other
        gaps[at] = gaps[at] * ((count + 1) // 2) + 30
    y = 4.0
    for at, rank in enumerate(ranks):
        for pair in _pairs(rank, looped):
            tall = max(box.height for box in pair)
            for n, box in enumerate(pair):
                free = len(pair) == 1 and id(box) not in looped
                box.x = (width - _WIDTH) / 2 if free else 4 + n * (_WIDTH + _BETWEEN)
                box.y = y + max(0.0, need.get(id(box), 0) - box.height) / 2
            y += max(tall, *(need.get(id(box), 0) for box in pair)) + _BETWEEN
        y += gaps[at] - _BETWEEN if at < len(ranks) - 1 else 0
    return width, y - _BETWEEN + 4


def _pairs(rank: Sequence[Box], looped: set[int]) -> Iterable[list[Box]]:
    """Boxes that stand beside each other; one with a loop stands alone."""
    pair: list[Box] = []
    for box in rank:
        if pair and (len(pair) == 2 or id(box) in looped or id(pair[0]) in looped):
            yield pair
            pair = []
        pair.append(box)
    if pair:
        yield pair


def _label(joints: Sequence[Joint], ranks: Sequence[Sequence[Box]], upright: bool, width: float, height: float) -> None:
    """Where the texts of lines stand: between their ranks, in their lines' order, none on another."""
    rank_of = {id(box): at for at, rank in enumerate(ranks) for box in rank}
    between: dict[int, list[Joint]] = {}
    for joint in joints:
        a, b = joint.ends
        if a is b and upright:
            joint.at = (a.x + _WIDTH + 26 + _text_width(joint) / 2, a.y + a.height / 2)
        elif a is b:
            joint.at = (a.x + _WIDTH / 2, a.y - 30 - _text_height(joint) / 2)
        elif joint.texts:
            between.setdefault(min(rank_of[id(box)] for box in joint.ends), []).append(joint)
    for at, own in between.items():
        middles = {id(joint): _middle(joint, upright) for joint in own}
        own.sort(key=lambda joint: middles[id(joint)][0 if upright else 1])
        if upright:
            top = max(box.y + box.height for box in ranks[at])
            row = max(map(_text_height, own)) + 10
            for n, joint in enumerate(own):
                alone = n % 2 == 0 and n == len(own) - 1
                x = width / 2 if alone else width * (1 + 2 * (n % 2)) / 4
                joint.at = (x, top + 15 + row * (n // 2 + 0.5))
        else:
            x = (ranks[at][0].x + _WIDTH + ranks[min(at + 1, len(ranks) - 1)][0].x) / 2
            low, places = 2.0, []
            for joint in own:
                half = _text_height(joint) / 2
                places.append(max(middles[id(joint)][1], low + half))
                low = places[-1] + half + 6
            over = max(0.0, low - 6 + 2 - height)
            wanted = sum(middles[id(joint)][1] for joint in own) / len(own)
            shift = min(max(over, sum(places) / len(places) - wanted), places[0] - _text_height(own[0]) / 2 - 2)
            for joint, y in zip(own, places, strict=True):
                joint.at = (x, y - shift)


def _middle(joint: Joint, upright: bool) -> tuple[float, float]:
    (ax, ay), (bx, by) = _anchors(*joint.ends, upright)
    return (ax + bx) / 2, (ay + by) / 2


def _anchors(a: Box, b: Box, upright: bool) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where a line leaves its two boxes."""
    if upright:
        first, second = (a, b) if a.y <= b.y else (b, a)
        ends = ((first.middle[0], first.y + first.height), (second.middle[0], second.y))
        return ends if first is a else (ends[1], ends[0])
    first, second = (a, b) if a.x <= b.x else (b, a)
    if first.x == second.x:
        return a.middle, b.middle
    ends = ((first.x + _WIDTH, first.middle[1]), (second.x, second.middle[1]))
    return ends if first is a else (ends[1], ends[0])


# Drawing


def network_svg(summary: Mapping[str, Any]) -> str:
    """Both forms of the drawing of a run's network; a style sheet shows the one that fits the screen."""
    network = network_of(summary)
    said = "; ".join(_sentences(network))
    drawings = [lay_out(network), lay_out(network, upright=True)]
    return "".join(_svg(drawing, said) for drawing in drawings)


def _sentences(network: Network) -> Iterable[str]:
    """The drawing in words."""
    for line in network.lines:
        a, b = line.ends
        where = f"in loop-back at {a}" if a == b else f"from {a} to {b}"
        ways = f"used {_percent(line.out.use)}" + ("" if a == b else f" and back {_percent(line.back.use)}")
        yield f"Line {line.name} {where}, {', '.join(line.facts)}, {ways}"
    for host in network.hosts[:50]:
        yield f"host {host.name} at {host.switch}, {host.rate}"


def _svg(drawing: Drawing, said: str) -> str:
    kind = "upright" if drawing.upright else "along"
    parts = [
        f'<svg class="network {kind}" role="img" viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}" '
        f'width="{drawing.width:.0f}" height="{drawing.height:.0f}" aria-label="{html.escape(said)}">'
    ]
    parts += [_joint_svg(joint, drawing.upright) for joint in drawing.joints]
    parts += [_box_svg(box) for box in drawing.boxes]
    for joint in drawing.joints:
        if joint.texts:
            parts.append(_label_svg(joint))
    return "".join(parts) + "</svg>"


def _joint_svg(joint: Joint, upright: bool) -> str:
    """Both ways of a line side by side, thicker where more of the rate is used."""
    a, b = joint.ends
    title = f"<title>{html.escape(joint.title)}</title>"
    if a is b:
        x, y = (a.x + _WIDTH, a.y + a.height / 2) if upright else (a.x + _WIDTH / 2, a.y)
        path = f"M{x} {y - 12:.1f}h22v24h-22" if upright else f"M{x - 30:.1f} {y:.1f}v-22h60v22"
        return f"<g>{title}{_way_svg(path, joint.out)}</g>"
    stations = [_anchors(a, b, upright)[0], *([joint.at] if joint.texts else []), _anchors(a, b, upright)[1]]
    ways = []
    for way, shift in ((joint.out, -3.5), (joint.back, 3.5)):
        dx, dy = (shift, 0) if upright else (0, shift)
        path = f"M{stations[0][0] + dx:.1f} {stations[0][1] + dy:.1f}"
        for (ax, ay), (bx, by) in itertools.pairwise((x + dx, y + dy) for x, y in stations):
            mx, my = (ax + bx) / 2, (ay + by) / 2
            bends = (ax, my, bx, my) if upright else (mx, ay, mx, by)
            path += "C" + " ".join(f"{value:.1f}" for value in (*bends, bx, by))
        ways.append(_way_svg(path, way))
    return f"<g>{title}{''.join(ways)}</g>"


def _way_svg(path: str, way: Way) -> str:
    use = min(1.0, way.use or 0.0)
    kind = "full" if use > _FULL else "used"
    base = f'<path class="way" d="{path}" stroke-width="1"/>'
    return base + (f'<path class="{kind}" d="{path}" stroke-width="{1.2 + 4.3 * use:.1f}"/>' if use > 0.0005 else "")


def _box_svg(box: Box) -> str:
    kind = "switch" if box.kind == "switch" else "host"
    corner = 3 if kind == "switch" else 12
    rect = f'width="{_WIDTH}" height="{box.height}" rx="{corner}"'
    parts = [f'<g class="{kind}" transform="translate({box.x:.1f} {box.y:.1f})">']
    if box.kind == "hosts":
        parts.append(f'<rect class="pile" x="5" y="-5" {rect}/>')
        names = ", ".join(node.name for node in box.members)
        parts.append(f"<title>{html.escape(names)}</title>")
    parts.append(f'<rect class="box" {rect}/>')
    parts += [_text_svg(_WIDTH / 2, 20 + _LINE * n, kind, text) for n, (kind, text) in enumerate(box.texts)]
    return "".join(parts) + "</g>"


def _label_svg(joint: Joint) -> str:
    width, height = _text_width(joint) + 6, _text_height(joint)
    x, y = joint.at
    parts = [f'<rect class="ground" x="{x - width / 2:.1f}" y="{y - height / 2 - 2:.1f}" width="{width:.1f}" '
             f'height="{height + 4:.1f}"/>']  # fmt: skip
    parts += [_text_svg(x, y - height / 2 + 12 + _LINE * n, kind, text) for n, (kind, text) in enumerate(joint.texts)]
    return "<g>" + "".join(parts) + "</g>"


def _text_svg(x: float, y: float, kind: str, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{html.escape(text)}</text>'
