"""The tables of a run, on the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bentpipe.apps.registry import REPORTS
from bentpipe.apps.settings import BARE
from bentpipe.results.declared import Metric, metric_of, metrics_of, scale_of
from bentpipe.results.splitting import ratio_of
from bentpipe_hdl.switch.registers import REASON_TITLES
from bentpipe_hdl.units import format_time

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "CONGESTED_COLUMNS",
    "DROP_COLUMNS",
    "DROP_TITLES",
    "EXPECTED_COLUMNS",
    "LOSS_COLUMNS",
    "OAM_COLUMNS",
    "PUBLISHED_COLUMNS",
    "RARE_COLUMNS",
    "TEXTS",
    "THEORY_COLUMNS",
    "TIMEOUT_COLUMNS",
    "FigureTable",
    "apart_text",
    "board_text",
    "broken_text",
    "cell_tables",
    "change_text",
    "congested_rows",
    "drop_rows",
    "expected_rows",
    "figure_text",
    "flow_tables",
    "lines_text",
    "loss_rows",
    "loss_text",
    "metric_text",
    "note_texts",
    "oam_rows",
    "print_notes",
    "print_run",
    "print_table",
    "published_rows",
    "rare_rows",
    "rare_words",
    "splitting_columns",
    "splitting_rows",
    "splitting_text",
    "theory_rows",
    "time_text",
    "timeout_rows",
    "timeout_text",
    "together_text",
]

PUBLISHED_COLUMNS = ("quantity", "case", "unit", "measured", "predicted", "ours", "ours : measured", "source")

TEXTS = frozenset({"source", "remark"})
"""Columns that are read as texts, wherever they stand."""

_LONGEST: Final = 60
"""Characters of a changed value."""

_APART: Final = 0.05
"""Share by which two rates of all flows may differ without a reason."""


def figure_text(value: float | None) -> str:
    """Return a figure as tables have it; ``-`` where there is none."""
    if value is None:
        return "-"
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"


FlowTable = tuple[str, tuple[str, ...], list[list[str]]]
"""Title, columns, rows."""


def flow_tables(flows: Sequence[dict[str, Any]]) -> list[FlowTable]:
    """Return the flows by transport; then what their applications report."""
    tcp = [flow for flow in flows if flow.get("protocol", "tcp") == "tcp"]
    udp = [flow for flow in flows if flow.get("protocol") == "udp"]
    made: list[FlowTable] = []
    if tcp or not flows:
        head = ("flow", "TCP", "delivered", "Mb/s", "segments", "retransmitted", "time-outs", "fast retr.")
        keys = ("segments_sent", "retransmits", "timeouts", "fast_retransmits")
        rows = [[*_start(f), *_rate(f), *(f"{f.get(key, 0):,}" for key in keys)] for f in tcp]
        made.append(("Flows" if not udp else "TCP flows", head, rows))
    if udp:
        counts = ("sent", "received", "lost", "under_way", "reordered", "refused")
        head = (
            "flow", "UDP", "delivered", "Mb/s", "datagrams",
            *(count.replace("_", " ") for count in counts[1:]), "delay, mean (max)",
        )  # fmt: skip
        rows = [
            [
                *_start(f),
                *_rate(f),
                *(_count(f.get(f"datagrams_{count}")) for count in counts),
                f"{_ms(f['delay_mean_ps'])} ({_ms(f['delay_max_ps'])})",
            ]
            for f in udp
        ]
        made.append(("Flows" if not tcp else "UDP flows", head, rows))
    return made + _report_tables(flows)


def _report_tables(flows: Sequence[dict[str, Any]]) -> list[FlowTable]:
    """Return what applications report, a table for each title."""
    made: dict[str, FlowTable] = {}
    for name, report in REPORTS.items():
        columns = [column for column in report.columns if column.head]
        for flow in flows:
            if flow.get("app") != name or report.columns[0].name not in flow:
                continue
            if report.shown_with and not any(flow.get(key) for key in report.shown_with):
                continue
            head = ("flow", "application", *(column.head for column in columns))
            label = f"{name} {flow[report.label]}" if report.label else name
            row = [flow["name"], label, *(_figure(flow.get(column.name), column.unit) for column in columns)]
            made.setdefault(report.title, (report.title, head, []))[2].append(row)
    return [*made.values()]


def _count(value: int | None) -> str:
    """Return a number of datagrams; results of earlier versions have fewer of them."""
    return "-" if value is None else f"{value:,}"


def _figure(value: float | str | None, unit: str) -> str:
    """Return a figure that an application reports; a fraction of 0 is none."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and not value):
        return "-"
    if unit == "ps":
        return _ms(value)
    return f"{value:,}" if isinstance(value, int) else figure_text(value)


def _start(flow: dict[str, Any]) -> list[str]:
    kind = str(flow.get("variant") or flow.get("app", ""))
    if flow.get("growth", "reno") != "reno":
        kind += f", {flow['growth']}"
    return [f"{flow['name']} ({flow['source']} to {flow['sink']})", kind]


def _rate(flow: dict[str, Any]) -> list[str]:
    delivered = flow["octets_delivered"] / 1e6
    return [f"{delivered:,.{1 if delivered >= 0.1 else 3}f} MB", figure_text(flow["goodput_bps"] / 1e6)]


def _ms(ps: float) -> str:
    return f"{ps / 1e9:,.3f} ms" if ps < 10**12 else f"{ps / 1e12:,.3f} s"


def published_rows(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return the published figures beside ours; if the run is not the published one, the ratio has a remark."""
    table = []
    for row in rows:
        predicted = ["predicted"] if row["ratio"] is not None and row["measured"] is None else []
        remarks = ", ".join([*predicted, *(row["remarks"] if row["ours"] is not None else [])])
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        if remarks:
            ratio = remarks if row["ratio"] is None else f"{ratio} ({remarks})"
        figures = [figure_text(row[key]) for key in ("measured", "predicted", "ours")]
        table.append([row["quantity"], row["case"], row["unit"], *figures, ratio, row["source"]])
    return table


EXPECTED_COLUMNS = ("figure", "case", "unit", "least", "most", "ours", "holds")


def expected_rows(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the expectations on runs, and the results."""
    verdicts = {True: "yes", False: "NO", None: "not judged"}
    return [
        [
            row["metric"],
            row["case"],
            row["unit"],
            *("-" if row[key] is None else f"{row[key]:g}" for key in ("min", "max")),
            figure_text(row["ours"]),
            verdicts[row["holds"]],
        ]
        for row in rows
    ]


THEORY_COLUMNS = ("quantity", "unit", "theory", "ours", "interval", "holds", "source")


def theory_rows(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return predicted figures beside ours."""
    table = []
    for row in rows:
        interval, holds = "-", "too few samples"
        if row["ours"] is not None:
            holds = {True: "yes", False: "no", None: holds}[row["holds"]]
            if row["half"] is not None:
                ends = f"{_fine(row['low'])} to {_fine(row['high'])}" if row["metric"] else f"± {_fine(row['half'])}"
                interval = f"{ends} ({100 * row['confidence']:.0f} %), {row['batches']} batches"
        figures = [_fine(row[key]) for key in ("predicted", "ours")]
        table.append([row["quantity"], row["unit"], *figures, interval, holds, row["source"]])
    return table


def _fine(value: float | None) -> str:
    """Return a figure that may be small, as the probability of a loss is."""
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}"


_SPLITTING_COLUMNS = ("level", "cycles that reach it", "95 % interval", "trials", "to the next")


def splitting_columns(split: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the heads of the columns of :func:`splitting_rows`."""
    return (*_SPLITTING_COLUMNS, "late cells" if "delay_ratio" in split else "cells lost")


def rare_words(split: Mapping[str, Any]) -> tuple[str, str]:
    """Return what splitting counts, as a noun and as a verb in the past."""
    if "delay_ratio" in split:
        noun = f"cells that wait {split['delay_ps'] / 1e6:g} us or longer"
        return noun, "delayed"
    return "cells lost", "lost"


def splitting_rows(split: Mapping[str, Any]) -> list[list[str]]:
    """Return the levels of a run with splitting."""
    return [
        [
            str(row["level"]),
            _fine(row["reach"]["value"]),
            _between(row["reach"]),
            f"{row['trials']:,}",
            _fine(row["next"]),
            f"{row['lost']:,}",
        ]
        for row in split["levels"]
    ]


def splitting_text(split: Mapping[str, Any]) -> str:
    """Return the estimate and its cost."""
    (_, ours), alone = ratio_of(split), split["plain"]
    noun, verb = rare_words(split)
    done, planned = split.get("batches_done", 0), split.get("batches", 0)
    if planned and not done:
        return (
            f"Stopped before the first of {planned} batches had all its trials: no estimate of the {noun} at "
            f"{split['port']}. The plain run had {split['stem']:,} cells, and {verb} {_fine(alone['value'])} of them "
            f"({_between(alone)})."
        )
    remark = f"Stopped: {done} of {planned} batches have all their trials, and the estimate is of these. "
    text = remark if done < planned else ""
    interval = _between(ours) if ours["low"] is None else f"95 % interval {_between(ours)}"
    text += f"{noun.capitalize()} at {split['port']}: {_fine(ours['value'])} of the arriving cells ({interval})"
    text += f", from {split['cells']:,} cells in {split['trials']:,} trials, a pilot and the plain run. "
    if split["cells_plain"]:
        text += f"A plain run would need {split['cells_plain']:.2g} cells for that interval; "
    return text + f"ours had {split['stem']:,}, and {verb} {_fine(alone['value'])} of them ({_between(alone)})."


TIMEOUT_COLUMNS = ("level", "transfers that reach it", "95 % interval", "trials", "to the next", "time-outs")


def timeout_rows(found: Mapping[str, Any]) -> list[list[str]]:
    """Return the levels of a run with ``[rare_timeout]``."""
    return [
        [
            _timeout_level(row),
            _fine(row["reach"]["value"]),
            "-" if row["level"] is None else _between(row["reach"]),
            f"{row['trials']:,}",
            _fine(row["next"]),
            f"{row['timeouts']:,}",
        ]
        for row in found["levels"]
    ]


def _timeout_level(row: Mapping[str, Any]) -> str:
    """Return a level in words."""
    if row["what"] == "queue":
        return f"{row['level']} cells queued"
    if row["what"] == "lost":
        return f"{row['level']} PDU{'s' if row['level'] > 1 else ''} lost"
    return "beginning of the transfer"


def timeout_text(found: Mapping[str, Any]) -> str:
    """Return the estimate of ``[rare_timeout]``, and its cost."""
    ours, done, planned = found["probability"], found["batches_done"], found["batches"]
    if not done:
        return f"Stopped before the first of {planned} batches had all its trials: no estimate of time-outs."
    text = f"Stopped: {done} of {planned} batches have all their trials. " if done < planned else ""
    text += f"Probability of a time-out in the transfer {found['flow']}: {_fine(ours['value'])} "
    text += f"({'' if ours['low'] is None else '95 % interval '}{_between(ours)}), from {found['trials']:,} trials "
    text += f"with {found['cells']:,} cells for {found['port']}. "
    if found["unfinished"]:
        text += f"{found['unfinished']:,} trials ended with the run, before their transfer did, and count as without a "
        text += "time-out: give a longer duration. "
    if found["transfers_plain"]:
        text += f"Plain runs would need {found['transfers_plain']:.2g} transfers for that interval; "
    return text + f"the plain run had {'a' if found['plain'] else 'no'} time-out."


RARE_COLUMNS = ("case", "rare cells", "95 % interval", "cells simulated", "a plain run's", "in the plain run")


def rare_rows(cases: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the estimates of cases with splitting, with their cost and that of a plain run.

    Rare cells are lost ones, or late ones where the experiment has ``splitting.delay``.
    """
    return [
        [
            case["name"],
            _fine(found[name]),
            _between({end: found[f"{name}_{end}"] for end in ("low", "high")}),
            f"{found['cells_simulated']:,}",
            "-" if found["cells_plain"] is None else f"{found['cells_plain']:.2g}",
            _fine(found[f"plain_{name}"]),
        ]
        for case in cases
        for name in ("loss_ratio", "delay_ratio")
        if name in (found := case["metrics"])
    ]


def _between(found: Mapping[str, Any]) -> str:
    return "no interval" if found["low"] is None else f"{_fine(found['low'])} to {_fine(found['high'])}"


DROP_COLUMNS = ("node", "reason", "cells")


DROP_TITLES: Final = {
    **REASON_TITLES,
    "hec": "header error",
    "lost": "delay memory full",
    "listed": "listed losses",
    "outage": "outage",
    "burst": "bursts of losses",
    "pattern": "pattern of losses",
    "line": "lost on the line",
    "unknown": "unknown VC",
}
"""Why cells were dropped, by the counter: of switches as the ledger of PDUs has it, of links, of interfaces."""


def drop_rows(drops: dict[str, dict[str, int]] | None) -> list[list[str]]:
    """Return the rows of the table of dropped cells; none if they are unknown."""
    return [
        [node, DROP_TITLES.get(reason, reason), f"{cells:,}"]
        for node, reasons in (drops or {}).items()
        for reason, cells in reasons.items()
        if cells
    ]


EVENT_COLUMNS = ("at", "tick", "by", "change")


def event_rows(summary: dict[str, Any]) -> list[list[str]]:
    """Return the changes in the run; plots show them as dotted lines."""
    return [
        [
            format_time(round(event["at_s"] * 1e12)),
            str(event["tick"]),
            event.get("source", "event"),
            change_text(change),
        ]
        for event in summary.get("events", ())
        for change in event["changes"]
    ]


def metric_text(name: str, value: float | None) -> str:
    """Return a figure as tables show it, in the unit of :func:`~bentpipe.results.declared.scale_of`."""
    known = metric_of(name)
    if value is None:
        return "-"
    if known is not None and known.count:
        return f"{value:,.0f}"
    return _fine(value) if known is not None and known.ratio else figure_text(value / scale_of(name)[1])


FigureTable = tuple[tuple[str, ...], list[list[str]]]
"""Columns and rows."""


def _figure_table(
    head: str, owners: Mapping[str, str], found: Mapping[str, Any], metrics: Sequence[Metric]
) -> FigureTable:
    """Return a table of figures, a row for each owner by its label; figures that none of them has are left out."""

    def value(owner: str, metric: Metric) -> float | None:
        return found.get(f"{owner}.{metric.name}" if owner else metric.name)

    shown = [metric for metric in metrics if any(value(owner, metric) is not None for owner in owners)]
    rows = [
        [label, *(metric_text(metric.name, value(owner, metric)) for metric in shown)]
        for owner, label in owners.items()
    ]
    return (head, *(metric.in_table for metric in shown)), rows


def cell_tables(summary: Mapping[str, Any]) -> dict[str, FigureTable]:
    """Return the figures of cells by title. Tables without rows are left out.

    They are: lost and damaged cells, for VCs that have any and for all together, and bursts of these; 1-point CDV, for
    VCs at which it is measured; and ports that lost cells or whose switches have histograms of delays.
    """
    found, vcs, ports = summary["metrics"], metrics_of("vc"), summary.get("ports") or ()
    ledger = summary["ledger"] or ()
    hit = [metric.name for metric in vcs if metric.name != "cells_sent" and metric.needs != "cdv"]
    lossy = {
        row["vc"]: f"{row['vc']} ({row['source']} to {row['sink']})"
        for row in ledger
        if any(found.get(f"{row['vc']}.{name}") for name in hit)
    }
    together = {**lossy, "": "all VCs"} if lossy else {}
    followed = {row["vc"]: f"{row['vc']} at {row['cdv']['at']}" for row in ledger if "cdv" in row}
    by_need = {need: [metric for metric in vcs if metric.needs == need] for need in ("", "losses", "cdv")}
    busy = {port["port"]: port["port"] for port in ports if port["offered"] and (port["dropped"] or port.get("delays"))}
    tables = {
        "Cells by VC": _figure_table("VC", together, found, by_need[""]),
        "Bursts of lost cells": _figure_table("VC", together, found, by_need["losses"]),
        "1-point CDV": _figure_table("VC", followed, found, by_need["cdv"]),
        "Cells by port": _figure_table("port", busy, found, metrics_of("port")),
    }
    return {title: (columns, rows) for title, (columns, rows) in tables.items() if rows and len(columns) > 1}


def profile_rows(summary: dict[str, Any]) -> list[str]:
    """Return a sentence for each profile that drove settings in the run."""
    return [
        f"{', '.join(profile['keys'])} followed {profile['file']}"
        + ("" if profile["direction"] == "both" else f" ({profile['direction']})")
        + f": {profile['rows']:,} rows from {format_time(round(profile['first_s'] * 1e12))} on"
        for profile in summary.get("profiles", ())
    ]


LOSS_COLUMNS = ("VC", "where", "why", "PDUs", "of sent")


def loss_rows(ledger: Sequence[dict[str, Any]] | None) -> list[list[str]]:
    """Return the PDUs sent and not delivered, a row for each VC, place and reason; those under way are no loss.
    Without a ledger there are no rows."""
    return [
        [
            f"{vc['vc']} ({vc['source']} to {vc['sink']})",
            loss["where"],
            loss["why"],
            f"{loss['pdus']:,}",
            f"{vc['sent']:,}",
        ]
        for vc in ledger or ()
        for loss in vc["lost"]
        if loss["where"]
    ]


CONGESTED_COLUMNS = ("VC", "PDUs", "of delivered")


def congested_rows(ledger: Sequence[dict[str, Any]] | None) -> list[list[str]]:
    """Return the PDUs that arrived with EFCI, a row for each VC that has any; without a ledger there are none."""
    return [
        [f"{vc['vc']} ({vc['source']} to {vc['sink']})", f"{vc['congested']:,}", f"{vc['delivered']:,}"]
        for vc in ledger or ()
        if vc.get("congested")
    ]


OAM_COLUMNS = (
    "host", "sends on", "AIS state", "RDI state", "continuity lost", "AIS, RDI, checks in", "RDI, checks out",
    "sent back", "bad CRC-10",
)  # fmt: skip


def oam_rows(ends: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return states and cells of the hosts' ends of OAM flows: how often in a state, and how long in total."""
    return [
        [
            end["host"],
            end["vc"],
            *(f"{end[f'{state}_times']} ({_ms(end[f'{state}_ps'])})" for state in ("ais", "rdi", "loc")),
            f"{end['ais_received']}, {end['rdi_received']}, {end['cc_received']}",
            f"{end['rdi_sent']}, {end['cc_sent']}",
            f"{end['looped']:,}",
            f"{end['bad']:,}",
        ]
        for end in ends
    ]


def loss_text(summary: dict[str, Any]) -> str:
    """Return the text below the tables of PDUs lost and cells dropped."""
    if summary["ledger"] is None:
        dropped = summary["drops"]
        if dropped is None:
            return "Cells dropped: unknown, as the counters could not be read. PDUs lost: unknown (no loss ledger)."
        return f"{'' if drop_rows(dropped) else 'No cell was dropped. '}PDUs lost: unknown (no loss ledger)."
    texts = []
    if not loss_rows(summary["ledger"]):
        dropped = bool(drop_rows(summary["drops"]))
        texts.append("No PDU was lost." if dropped else "No cell was dropped, no PDU was lost.")
    left = sum(loss["pdus"] for vc in summary["ledger"] for loss in vc["lost"] if not loss["where"])
    if left:
        texts.append(f"PDUs in flight at the end: {left:,}.")
    if losses := summary.get("losses"):
        texts.append(f"Records of lost cells: {losses['recorded']:,} in losses.parquet.")
        if losses["left_out"]:
            texts.append(f"{losses['left_out']:,} more were only counted, because the limit was reached.")
    return " ".join(texts)


def time_text(summary: dict[str, Any]) -> str:
    """Return a sentence about the simulated time."""
    time = summary["time"]
    text = f"{time['simulated_s']:.3f} s simulated"
    if summary["shortened"]:
        text += f", shortened from {time['full_s']:g} s,"
    text += f" in {time['wall_s']:.1f} s"
    if time["wall_per_simulated"]:
        text += f" ({1 / time['wall_per_simulated']:.2f} x real time)"
    if (parts := time.get("parts", {})).get("parts", 1) > 1:
        text += f", in {parts['parts']} parts on {parts['threads']} thread{'s' if parts['threads'] > 1 else ''}"
    return text


def note_texts(summary: dict[str, Any]) -> list[str]:
    """Return what a reader must know before reading the figures of a run, or of the cases of an experiment."""
    notes = _board_texts(summary)
    if summary["shortened"]:
        notes.append(
            "Shortened: start-up weighs more than in a whole run; figures are not compared with published ones."
        )
    if summary["changes"]:
        notes.append(f"Changed from the experiment's file: {'; '.join(map(change_text, summary['changes']))}.")
    return notes + summary.get("remarks", [])


def _board_texts(summary: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know of a run on a board by itself, or in the ticks of one."""
    board = summary.get("board")
    if not board or not board.get("alone"):
        ticks = (
            "Hosts act in the ticks of a board by itself (--board-ticks), so figures of other native runs may differ."
        )
        return [ticks] if summary.get("board_ticks") else []
    texts = [
        f"On {board['target']} by itself: counters are those of the board. Unknown: {', '.join(board['missing'])}. "
        "Hosts act in other ticks than in a native run without --board-ticks, so figures may differ."
    ]
    return texts + ([f"The board {board['other']}: figures may be those of other RTL."] if board["other"] else [])


def lines_text(summary: dict[str, Any]) -> str | None:
    """Return a text about the effect of SONET lines on the goodput, if the run has them."""
    beside = summary.get("cell_lines")
    if not beside:
        return None
    ours, theirs = summary["metrics"]["aggregate_goodput"] / 1e6, beside["aggregate_goodput"] / 1e6
    difference = beside["difference_bps"] / 1e6
    return (
        f"With SONET lines: {ours:.4f} Mb/s; with lines of cells: {theirs:.4f} Mb/s; difference {difference:+.4f} Mb/s."
    )


def board_text(summary: dict[str, Any]) -> str | None:
    """Return a text about a board beside the native network, and how much of it was compared."""
    board = summary.get("board")
    if not board:
        return None
    if board.get("alone"):
        return (
            f"board by itself: {board['pdus']:,} PDUs ended at its interfaces; {board['ticks']:,} ticks, "
            f"{board['trips']:,} round trips"
        )
    return (
        f"board verified against native: {board['pdus']:,} of {board['ended']:,} PDUs to the tick, "
        f"{board['counters']:,} counters, the cells of {board['outputs']} outputs; {board['ticks']:,} ticks, "
        f"{board['trips']:,} round trips"
    )


def together_text(summary: dict[str, Any], flows: Sequence[dict[str, Any]]) -> str | None:
    """Return the aggregate over the common time, the sum of the flows' own rates, and their fairness, in words.

    If the two rates differ by more than 5 %, the reason is added.
    """
    flows = [flow for flow in flows if flow.get("protocol") not in BARE]
    if len(flows) < 2:
        return None
    total = summary["metrics"]
    rate, own = total["aggregate_goodput"], total["sum_of_flow_rates"]
    text = f"all {len(flows)}: {figure_text(rate / 1e6)} Mb/s over their common time"
    text += f", {figure_text(own / 1e6)} Mb/s as the sum of their own rates"
    if total["fairness"] is not None:
        text += f", fairness {total['fairness']:.3f}"
    reason = apart_text(summary, flows)
    return f"{text}. {reason}" if reason else text


def apart_text(summary: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why the sum of the flows' own rates differs from their rate over the common time by more than 5 %.

    The flows did not all run all the time.
    """
    rate, own = summary["metrics"]["aggregate_goodput"], summary["metrics"]["sum_of_flow_rates"]
    if abs(own - rate) <= _APART * max(own, rate):
        return None
    ran = [flow for flow in flows if flow["end_ps"] > flow["start_ps"] >= 0 and flow.get("protocol") not in BARE]
    if not ran:
        return None
    starts, ends = ([flow[name] / 1e12 for flow in ran] for name in ("start_ps", "end_ps"))
    return (
        f"The two differ by {100 * abs(own - rate) / rate:.0f} %, as the flows did not run together all the time. They "
        f"started at {_from_to(starts)} and ended at {_from_to(ends)}; each flow's own rate is over its own time."
        if rate
        else None
    )


def _from_to(times_s: Sequence[float]) -> str:
    low, high = f"{min(times_s):.4g}", f"{max(times_s):.4g}"
    return f"{low} s" if low == high else f"{low} to {high} s"


def broken_text(flows: Sequence[dict[str, Any]]) -> str | None:
    """Return which connections broke, and why."""
    broken = [f"{flow['name']} ({flow['error']})" for flow in flows if flow.get("error")]
    return f"Broken connections: {', '.join(broken)}." if broken else None


def print_table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> None:
    """Print a table; its first ``left`` columns and those of :data:`TEXTS` are texts."""
    from rich.markup import escape
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for index, name in enumerate(columns):
        text = index < left or name in TEXTS
        made.add_column(name, justify="left" if text else "right", overflow="fold")
    for row in rows:
        made.add_row(*map(escape, row))  # a list is no markup
    console.print(made)


def print_notes(console: Console, summary: dict[str, Any]) -> None:
    """Print the notes without which the figures can be misread."""
    from rich.text import Text

    for note in note_texts(summary):
        console.print(Text(note, "yellow"))


def print_run(console: Console, summary: dict[str, Any], flows: Sequence[dict[str, Any]]) -> None:
    """Print flows, drops, and published figures beside ours."""
    console.print(f"[bold]{summary['id']}[/bold]: {summary['title']}", highlight=False)
    console.print(f"{time_text(summary)}, seed {summary['seed']}", highlight=False)
    print_notes(console, summary)
    console.print()
    for title, columns, rows in flow_tables(flows):
        print_table(console, title, columns, rows, 2)
    together = together_text(summary, flows)
    if together:
        console.print(together, highlight=False)
    lines = lines_text(summary)
    if lines:
        console.print(lines, highlight=False)
    board = board_text(summary)
    if board:
        console.print(board, highlight=False)
    broken = broken_text(flows)
    if broken:
        console.print(broken, style="red", highlight=False)
    console.print()
    events = event_rows(summary)
    if events:
        print_table(console, "Changed in the run", EVENT_COLUMNS, events, 1)
    lost, drops = loss_rows(summary["ledger"]), drop_rows(summary["drops"])
    if lost:
        print_table(console, "PDUs lost", LOSS_COLUMNS, lost, 3)
    if drops:
        print_table(console, "Cells dropped", DROP_COLUMNS, drops, 2)
    for title, (columns, rows) in cell_tables(summary).items():
        print_table(console, title, columns, rows, 1)
    congested = congested_rows(summary["ledger"])
    if congested:
        print_table(console, "PDUs that met congestion (EFCI)", CONGESTED_COLUMNS, congested, 1)
    text = loss_text(summary)
    if text:
        console.print(text, highlight=False)
    ends = oam_rows(summary.get("oam", ()))
    if ends:
        print_table(console, "Ends of OAM flows", OAM_COLUMNS, ends, 2)
    if summary.get("splitting"):
        console.print()
        if rows := splitting_rows(summary["splitting"]):
            print_table(console, "Splitting", splitting_columns(summary["splitting"]), rows, 0)
        console.print(splitting_text(summary["splitting"]), highlight=False)
    if summary.get("rare_timeout"):
        console.print()
        if rows := timeout_rows(summary["rare_timeout"]):
            print_table(console, "Splitting", TIMEOUT_COLUMNS, rows, 0)
        console.print(timeout_text(summary["rare_timeout"]), highlight=False)
    if summary.get("theory"):
        console.print()
        print_table(console, "Theory and ours", THEORY_COLUMNS, theory_rows(summary["theory"]), 2)
    if summary["published"]:
        console.print()
        print_table(console, "Published figures and ours", PUBLISHED_COLUMNS, published_rows(summary["published"]), 3)
        print_notes(console, summary)
    if summary.get("expected"):
        console.print()
        print_table(console, "Expected", EXPECTED_COLUMNS, expected_rows(summary["expected"]), 2)


def change_text(change: Mapping[str, Any]) -> str:
    """Return a change of ``result.json`` as ``network.lines.satellite.ber: 0 -> 1e-08``."""
    return f"{change['key']}: {_value(change['old'])} -> {_value(change['new'])}"


def _value(value: Any) -> str:
    if value is None:
        return "not given"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
