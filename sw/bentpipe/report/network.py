"""The network of a run as a drawing: rates, delays, use and losses at each hop.

:func:`network_of` makes of a run what there is to draw, :mod:`bentpipe.report.layout` gives it places, and
:func:`network_svg` draws it, along the page for wide screens and upright for narrow ones.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bentpipe.report.layout import (
    LINE_HEIGHT,
    WIDTH,
    Box,
    Drawing,
    Joint,
    Line,
    Network,
    Node,
    Way,
    course,
    dropped,
    lay_out,
    percent,
    text_height,
    width_of_texts,
)
from bentpipe.results.metrics import CELL_BITS, port_rates
from bentpipe_hdl.units import format_rate, format_time

__all__ = ["network_of", "network_svg"]

_FULL: Final = 0.95
"""A way used more than this is drawn as full."""


def network_of(summary: Mapping[str, Any]) -> Network:
    """Return the network of a run from its summary: with the use of each line, and losses by place.

    Use is what a way's cells are of all that its port may send (:func:`bentpipe.results.metrics.port_rates`).
    """
    counters, drops = summary["counters"] or {}, summary["drops"] or {}
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

    network = _as_configured(summary)
    ports = port_rates(summary)
    switches = []
    for s in network["switches"]:
        facts = [f"buffer {s['buffer_cells']:,} cells", _policy(s)]
        peak = counters.get(s["name"], {}).get("high_water")
        if peak is not None:
            facts.append(f"most queued {peak:,} ({100 * peak / s['buffer_cells']:.0f} %)")
        switches.append(Node(s["name"], facts, dropped(lost(s["name"]))))
    hosts = []
    for h in network["hosts"]:
        own = counters.get(h["name"], {})
        delay = f", {format_time(h['delay_ps'])}" if h["delay_ps"] else ""
        hosts.append(
            Node(
                h["name"],
                [],
                dropped(lost(h["name"], f"{h['name']}.line")),
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
        facts = _rate_and_delay(line)
        if any(line["ber"]):
            facts.append(f"BER {' / '.join(f'{ber:g}' for ber in dict.fromkeys(line['ber']))}")
        follow = [of for end in (one, two) if (of := reactive[end["switch"]][end["port"]])]
        bounds = dict.fromkeys(f"{format_rate(of['floor_bps'])} to {format_rate(of['ceiling_bps'])}" for of in follow)
        if bounds:
            facts += ["by load", *bounds]
        elif (mean := ports[one["switch"]][one["port"]]) != line.get("rates_bps", (line["rate_bps"],))[0]:
            facts.append(f"{mean / 1e6:.4g} Mb/s on average")
        if looped:
            facts.append("in loop-back")
        lines.append(Line(line["name"], (one["switch"], two["switch"]), facts, ways[0], Way() if looped else ways[1]))
    return Network(switches, hosts, lines, _paths(summary))


def _rate_and_delay(line: Mapping[str, Any]) -> list[str]:
    """Return rate and delay of a line, each with that of the way back if it differs."""
    rates = dict.fromkeys(line.get("rates_bps", (line["rate_bps"],)))
    delays = dict.fromkeys(line.get("delays_ps", (line["delay_ps"],)))
    return [" / ".join(map(format_rate, rates)), " / ".join(map(format_time, delays))]


def _paths(summary: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the paths of flows; of a session those between its real hosts, that of the first flow's source first."""
    vcs = summary["resolved"]["vcs"]
    paths = dict.fromkeys(tuple(vcs[f["vc"]]["path"]) for f in summary["resolved"]["flows"])
    ends = [end["host"] for end in summary.get("attached", {}).get("ends", ())]
    for vc in vcs:
        near, far = vc["path"][0], vc["path"][-1]
        if near in ends and far in ends and ends.index(near) < ends.index(far):
            paths[tuple(vc["path"])] = None
    return list(paths)


def _as_configured(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the network with the delays of the file; a session's lines are shorter or longer."""
    network, slack = summary["resolved"]["network"], summary.get("attached", {}).get("slack")
    if not slack:
        return network

    def configured(each: Mapping[str, Any]) -> dict[str, Any]:
        more = slack["lines"].get(each["name"], 0) - slack["longer"].get(each["name"], 0)
        both = {"delays_ps": [delay_ps + more for delay_ps in each["delays_ps"]]} if "delays_ps" in each else {}
        return {**each, "delay_ps": each["delay_ps"] + more, **both}

    return network | {kind: [*map(configured, network[kind])] for kind in ("lines", "hosts")}


def _policy(switch: Mapping[str, Any]) -> str:
    names = {"epd": f"EPD at {switch['epd_threshold']:,} cells", "ppd": "PPD", "tail": "tail drop"}
    return names.get(switch["policy"]) or str(switch["policy"])


# Drawing


def network_svg(summary: Mapping[str, Any]) -> str:
    """Return both forms of the drawing of a run's network; a style sheet shows the one that fits the screen."""
    network = network_of(summary)
    label = "; ".join(_sentences(network))
    drawings = [lay_out(network), lay_out(network, upright=True)]
    return "".join(_svg(drawing, label) for drawing in drawings)


def _sentences(network: Network) -> Iterable[str]:
    """Yield the drawing in words."""
    for line in network.lines:
        a, b = line.ends
        where = f"in loop-back at {a}" if a == b else f"from {a} to {b}"
        ways = f"used {percent(line.out.use)}" + ("" if a == b else f" and back {percent(line.back.use)}")
        yield f"Line {line.name} {where}, {', '.join(line.facts)}, {ways}"
    for host in network.hosts[:50]:
        yield f"host {host.name} at {host.switch}, {host.rate}"


def _svg(drawing: Drawing, label: str) -> str:
    kind = "upright" if drawing.upright else "along"
    parts = [
        f'<svg class="network {kind}" role="img" viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}" '
        f'width="{drawing.width:.0f}" height="{drawing.height:.0f}" aria-label="{html.escape(label)}">'
    ]
    parts += [_joint_svg(joint, drawing.upright) for joint in drawing.joints]
    parts += [_box_svg(box) for box in drawing.boxes]
    for joint in drawing.joints:
        if joint.texts:
            parts.append(_label_svg(joint))
    return "".join(parts) + "</svg>"


def _joint_svg(joint: Joint, upright: bool) -> str:
    """Return both directions of a line side by side, thicker where more of the rate is used."""
    a, b = joint.ends
    title = f"<title>{html.escape(joint.title)}</title>"
    if a is b:
        x, y = (a.x + WIDTH, a.y + a.height / 2) if upright else (a.x + WIDTH / 2, a.y)
        path = f"M{x} {y - 12:.1f}h22v24h-22" if upright else f"M{x - 30:.1f} {y:.1f}v-22h60v22"
        return f"<g>{title}{_way_svg(path, joint.out)}</g>"
    curves = course(joint, upright)
    ways = []
    for way, shift in ((joint.out, -3.5), (joint.back, 3.5)):
        dx, dy = (shift, 0.0) if upright else (0.0, shift)
        moved = [[f"{x + dx:.1f} {y + dy:.1f}" for x, y in curve] for curve in curves]
        ways.append(_way_svg(f"M{moved[0][0]}" + "".join(f"C{' '.join(curve[1:])}" for curve in moved), way))
    return f"<g>{title}{''.join(ways)}</g>"


def _way_svg(path: str, way: Way) -> str:
    use = min(1.0, way.use or 0.0)
    kind = "full" if use > _FULL else "used"
    base = f'<path class="way" d="{path}" stroke-width="1"/>'
    return base + (f'<path class="{kind}" d="{path}" stroke-width="{1.2 + 4.3 * use:.1f}"/>' if use > 0.0005 else "")


def _box_svg(box: Box) -> str:
    kind = "switch" if box.kind == "switch" else "host"
    corner = 3 if kind == "switch" else 12
    rect = f'width="{WIDTH}" height="{box.height}" rx="{corner}"'
    parts = [f'<g class="{kind}" transform="translate({box.x:.1f} {box.y:.1f})">']
    if box.kind == "hosts":
        parts.append(f'<rect class="pile" x="5" y="-5" {rect}/>')
        names = ", ".join(node.name for node in box.members)
        parts.append(f"<title>{html.escape(names)}</title>")
    parts.append(f'<rect class="box" {rect}/>')
    parts += [_text_svg(WIDTH / 2, 20 + LINE_HEIGHT * n, kind, text) for n, (kind, text) in enumerate(box.texts)]
    return "".join(parts) + "</g>"


def _label_svg(joint: Joint) -> str:
    width, height = width_of_texts(joint) + 6, text_height(joint)
    x, y = joint.at
    parts = [f'<rect class="ground" x="{x - width / 2:.1f}" y="{y - height / 2 - 2:.1f}" width="{width:.1f}" '
             f'height="{height + 4:.1f}"/>']  # fmt: skip
    parts += [
        _text_svg(x, y - height / 2 + 12 + LINE_HEIGHT * n, kind, text) for n, (kind, text) in enumerate(joint.texts)
    ]
    return "<g>" + "".join(parts) + "</g>"


def _text_svg(x: float, y: float, kind: str, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{html.escape(text)}</text>'
