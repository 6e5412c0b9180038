"""An experiment in words, for ``bentpipe show``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from bentpipe.apps.registry import APPLICATIONS
from bentpipe.experiment.document.tables import CaseTable, RareTimeoutTable, SplittingTable
from bentpipe.experiment.document.tcp_options import options_text
from bentpipe.experiment.resolve.specs import Experiment, GroupSpec, LineSpec
from bentpipe.hosts.config import HostConfig
from bentpipe.results.tables import change_text, figure_text
from bentpipe_hdl.settings import Settings, key_of, shown
from bentpipe_hdl.switch.control import SwitchSettings
from bentpipe_hdl.units import format_rate, format_size, format_time

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["describe"]


def _ports(rates: Sequence[int]) -> str:
    """Return the rates port by port, equal neighbours together: ``"4 x 149.76 Mb/s"``."""
    runs = [(rate, len(list(same))) for rate, same in itertools.groupby(rates)]
    return ", ".join(f"{count} x {format_rate(rate)}" for rate, count in runs)


def _order(e: Experiment, group: GroupSpec) -> str:
    """Return a schedule on one line: ``serial (a, parallel (b, c))``."""
    parts = [e.flows[m].name if isinstance(m, int) else _order(e, m) for m in group.members]
    delay = f" after {format_time(group.delay_ps)}" if group.delay_ps else ""
    return f"{'serial' if group.serial else 'parallel'}{delay} ({', '.join(parts)})"


_SHOWN_OF_SWITCH: Final = (
    "buffer_cells",
    "policy",
    "epd_threshold",
    "clp_threshold",
    "vc_limit",
    "processing_delay_ps",
)


def _also(settings: Settings, shown_already: Sequence[str] = ()) -> str:
    """Return a node's settings, except those that have a column and those at their defaults."""
    parts = []
    for name, value in settings.members().items():
        field = type(settings).model_fields[name]
        if name not in shown_already and value != field.default:
            if isinstance(value, Settings):
                inner = _also(value)
                text = f"({inner})" if inner else ""
            else:
                text = str(value).lower() if isinstance(value, bool) else shown(field, value)
            parts.append(f"{key_of(name)} {text}".rstrip())
    return ", ".join(parts)


def _also_line(line: LineSpec) -> str:
    ways = [way for way, down in zip(("out", "back"), line.outage, strict=True) if down]
    outage = f"outage {', '.join(ways[:1] if line.looped else ways)}" if ways else ""
    return ", ".join(filter(None, (outage, _also(line.ways[0], ("delay_ps", "ber", "outage")))))


def _thresholds(settings: SwitchSettings) -> tuple[tuple[str, int], ...]:
    return ("EPD", settings.epd_cells), ("CLP", settings.clp_threshold), ("VC", settings.vc_limit)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table without the columns that have no value in any row."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    filled = [any(row[k] != "-" for row in rows) for k in range(len(columns))]
    for name in itertools.compress(columns, filled):
        made.add_column(name, overflow="fold")
    for row in rows:
        made.add_row(*itertools.compress(row, filled))
    return made


def describe(console: Console, experiment: Experiment, cases: Sequence[CaseTable] = ()) -> None:
    """Print network, channels, flows, cases and published figures."""

    def table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]], also: Sequence[str] = ()) -> None:
        if any(also):
            columns, rows = (*columns, "also"), [(*row, text) for row, text in zip(rows, also, strict=True)]
        console.print()
        console.print(_table(title, columns, rows))

    e = experiment
    console.print(f"[bold]{e.id}[/bold]: {e.title}", highlight=False)
    source = ", ".join(filter(None, (e.paper, e.figure)))
    length = f"at most {format_time(e.duration_ps)}"
    if e.quick_ps:
        length += f", --quick {format_time(e.quick_ps)}"
    console.print("; ".join(filter(None, (source, length, f"seed {e.seed}"))), highlight=False)
    if e.description:
        console.print()
        console.print(" ".join(e.description.split()), highlight=False)
    table(
        "Switches",
        ("switch", "ports", "buffer", "policy", "thresholds", "processing"),
        [
            (
                s.name,
                _ports([port.rate_bps for port in s.ports]),
                f"{s.settings.buffer_cells} cells",
                s.settings.policy,
                ", ".join(
                    f"{name} {value}"
                    for name, value in _thresholds(s.settings)
                    if value and (name != "EPD" or s.settings.policy == "epd")
                ),
                format_time(s.settings.processing_delay_ps),
            )
            for s in e.network.switches
        ],
        [_also(s.settings, _SHOWN_OF_SWITCH) for s in e.network.switches],
    )
    ports = [
        (f"{s.name}:{number}", changed)
        for s in e.network.switches
        for number, port in enumerate(s.ports)
        if (changed := _also(port.settings))
    ]
    if ports:
        table("Ports", ("port", "has"), ports)
    table(
        "Lines",
        ("line", "ends", "cells", "clocks, ppm", "delay one way", "bit errors out, back"),
        [
            (
                line.name,
                f"{line.ends[0]}, in loop-back" if line.looped else f"{line.ends[0]} - {line.ends[1]}",
                ", ".join(map(format_rate, dict.fromkeys(line.rates_bps))),
                _line_clocks(line.clock_ppm[:1] if line.looped else line.clock_ppm),
                ", ".join(map(format_time, dict.fromkeys(line.delays_ps))),
                f"{line.ber[0]:g}, {line.ber[1]:g}",
            )
            for line in e.network.lines
        ],
        [_also_line(line) for line in e.network.lines],
    )
    table(
        "Hosts",
        ("host", "port", "cells", "line's clocks, ppm", "cost a segment", "clock", "MTU"),
        [
            (
                h.name,
                str(h.port),
                format_rate(h.rate_bps),
                _line_clocks(h.line_clock_ppm),
                _cost(h.config),
                _clock(h.config),
                str(h.config.mtu),
            )
            for h in e.network.hosts
        ],
        [_also(h.interface) for h in e.network.hosts],
    )
    if e.network.vps:
        table(
            "Virtual paths",
            ("path", "VPI", "nodes", "VCs"),
            [
                (vp.name, str(vp.vpi), " - ".join(vp.path), ", ".join(vc.name for vc in e.vcs if vp.name in vc.vps))
                for vp in e.network.vps
            ],
            [_also(vp.settings) for vp in e.network.vps],
        )
    table(
        "Virtual channels",
        ("VC", "VPI/VCI", "path"),
        [(vc.name, f"{vc.vpi}/{vc.vci}", " - ".join(vc.path)) for vc in e.vcs],
        [", ".join(filter(None, (_also(vc.pacing), _also(vc.settings)))) for vc in e.vcs],
    )
    table(
        "Flows",
        ("flow", "from - to", "app", "size", "duration", "protocol", "send buffer", "receive buffer", "start"),
        [
            (
                f.name,
                f"{f.source} - {f.sink}",
                f"{f.app} {APPLICATIONS[f.app].settings_text(f.settings)}".strip(),
                "endless" if f.size is None else format_size(f.size),
                "-" if f.duration_ps is None else format_time(f.duration_ps),
                "UDP" if f.tcp is None else f"TCP {options_text(f.tcp)}",
                "-" if f.tcp is None else format_size(f.tcp.send_buffer),
                "-" if f.tcp is None else format_size(f.tcp.receive_buffer),
                format_time(f.start_ps),
            )
            for f in e.flows
        ],
    )
    if e.schedule is not None:
        console.print()
        console.print(f"Order: {_order(e, e.schedule)}", highlight=False)
    _changes(e, table)
    if e.losses:
        table(
            "Listed losses",
            ("VC", "from - to", "lost"),
            [
                (
                    e.vcs[loss.vc].name,
                    " - ".join(loss.way),
                    ("PDU " if loss.pdus else "cell ") + ", ".join(map(str, loss.pdus or loss.cells)),
                )
                for loss in e.losses
            ],
        )
    if cases:
        table(
            "Cases",
            ("case", "changes"),
            [
                (case.name, "; ".join(f"{key} = {json.dumps(value)}" for key, value in case.set.items()) or "-")
                for case in cases
            ],
        )
    if e.splits:
        console.print()
        console.print(_rare_text(e), highlight=False)
    if e.theory:
        table(
            "Theory",
            ("quantity", "unit", "predicted", "ours", "source"),
            [
                (
                    t.quantity,
                    t.unit,
                    f"{t.predicted:.4g}",
                    (t.metric or f"{t.growth} / {t.per}") + (f" x {t.scale:.4g}" if t.scale != 1 else ""),
                    t.source,
                )
                for t in e.theory
            ],
        )
    if e.published:
        table(
            "Published",
            ("quantity", "case", "unit", "measured", "predicted", "source"),
            [
                (p.quantity, p.case, p.unit, figure_text(p.measured), figure_text(p.predicted), p.source)
                for p in e.published
            ],
        )


def _changes(e: Experiment, table: Callable[[str, Any, list[Any]], None]) -> None:
    """Print what changes in the run: events, and profiles."""
    if e.events:
        table(
            "Changes in the run",
            ("at", "change"),
            [(format_time(event.at_ps), change_text(asdict(c))) for event in e.events for c in event.changes],
        )
    if e.profiles:
        table(
            "Profiles",
            ("file", "drives", "rows", "from", "to", "repeated"),
            [
                (
                    p.file,
                    ", ".join(p.keys) + ("" if p.direction == "both" else f" ({p.direction})"),
                    f"{len(p.times_ps):,}",
                    format_time(p.times_ps[0]),
                    format_time(p.times_ps[-1]),
                    "no" if p.period_ps is None else f"each {format_time(p.period_ps)}",
                )
                for p in e.profiles
            ],
        )


def _cost(host: HostConfig) -> str:
    if host.send_cost_ps is None and host.profile:
        text = host.profile
    else:
        text = f"{format_time(host.send_cost_ps or 0)} sent, {format_time(host.receive_cost_ps or 0)} received"
    if host.cost_spread:
        text += f", ± {100 * host.cost_spread:g} %"
    return text


def _rare_text(e: Experiment) -> str:
    if e.splitting is not None:
        return _splitting_text(e.splitting)
    return "" if e.rare_timeout is None else _timeout_text(e.rare_timeout)


def _splitting_text(s: SplittingTable) -> str:
    levels = f"{', '.join(map(str, s.levels))} cells" if s.levels else "of a pilot"
    rare = "losses" if s.delay_ps is None else f"waits of {s.delay_ps / 1e6:g} us and longer"
    trials = f"{s.repeats} batches, {s.effort} trials a level"
    return f"Splitting: {rare} by the queue of {s.port}, levels {levels}; {trials}"


def _timeout_text(s: RareTimeoutTable) -> str:
    levels = f"{', '.join(map(str, s.levels))} cells" if s.levels else "of a pilot"
    trials = f"{s.repeats} batches, {s.effort} trials a level"
    lost = ", ".join(map(str, s.losses))
    return f"Rare time-outs of {s.flow}: by the queue of {s.port}, levels {levels}, then {lost} PDUs lost; {trials}"


def _line_clocks(offsets: Sequence[float]) -> str:
    return ", ".join(f"{offset:+.1f}" for offset in offsets) if any(offsets) else "exact"


def _clock(host: HostConfig) -> str:
    text = f"{host.clock_hz:g} Hz x {format_time(host.clock_cost_ps or 0)}" if host.clock_hz else ""
    if host.clock_tolerance_ppm:
        text += f"{', ' if text else ''}± {host.clock_tolerance_ppm:g} ppm"
    return text or "-"
