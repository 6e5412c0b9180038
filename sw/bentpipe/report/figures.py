"""The figures of a run as data for the page's script (``assets/page.js`` says what they are made of)."""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from bentpipe.plots.figures import FILLED
from bentpipe.plots.lateness import LATENESS, times_of_ends
from bentpipe.plots.series import bin_width, held, increments, quantiles, rates, thin
from bentpipe.plots.splitting import LABELS
from bentpipe.plots.style import FEW
from bentpipe.results.changed import changed_over_time
from bentpipe.results.losses import bursts_by_vc, shares_at_least
from bentpipe.results.metrics import deliverable
from bentpipe.results.schema import RunResult
from bentpipe.results.sequence import segments_of
from bentpipe.results.tables import DROP_TITLES
from bentpipe_hdl.ticks import TICK_PS

__all__ = ["DISTRIBUTIONS", "OVER_TIME", "figures_of"]

_PS: Final = 10**12
_POINTS: Final = 24_000
"""Points of all curves of a figure, about: several times what a screen shows, so that zooming in shows more."""
_BINS: Final = 240
_ALL: Final = "all"
_MUTED: Final = "muted"

Series = tuple[Sequence[int], Sequence[int]]
Spec = dict[str, Any]
Maker = Callable[[RunResult], Spec | None]


def figures_of(result: RunResult) -> dict[str, Spec]:
    """Return every figure of a run by its name: over time, then distributions."""
    made = {name: maker(result) for name, maker in (*OVER_TIME.items(), *DISTRIBUTIONS.items())}
    made |= {f"segments-{name}": _segments(result, name) for name in _with_segments(result)}
    made |= _changed(result)
    return {name: spec for name, spec in made.items() if spec is not None}


def _time(result: RunResult) -> Spec:
    return {"label": "simulated time (s)", "short": "s", "time": True, "range": [0, _end(result) or 1]}


def _end(result: RunResult) -> float:
    return result.summary["time"]["simulated_s"]


def _figure(result: RunResult, title: str, y: Spec, series: list[Spec], **more: Any) -> Spec:
    """Return a figure over time, with the moments at which something was changed."""
    marks = [event["at_s"] for event in result.summary.get("events", ())]
    return {"title": title, "x": _time(result), "y": y, "series": series, "marks": marks, **more}


def _style(index: int) -> str:
    """Return colour and dashes of one of a few curves."""
    return f"c{index % FEW}:{index % 4}"


def _points(curves: int) -> int:
    return max(600, _POINTS // max(1, curves))


def _over(when: Iterable[float], what: Sequence[float | None], *, whole: bool = False) -> Spec:
    """Return a curve's points: times as differences of microseconds, values with as many digits as are seen."""
    micro = [round(t * 1e6) for t in when]
    steps = [b - a for a, b in itertools.pairwise([0, *micro])]
    values = [None if v is None else int(v) if whole or v == int(v) else float(f"{v:.5g}") for v in what]
    return {"x": steps, "y": values}


def _curve(name: str, style: str, when: Iterable[float], what: Sequence[float | None], shape: str = "line") -> Spec:
    return {"name": name, "style": style, "shape": shape, **_over(when, what)}


def _of(result: RunResult, last: str) -> dict[str, Series]:
    """Return the series whose last part is ``last``, by the part before."""
    found = {}
    for name, data in result.trace.series.items():
        owner, _, end = name.rpartition(".")
        if end == last and len(data[0]):
            found[owner] = data
    return found


def _by_flow(result: RunResult, last: str) -> dict[str, Series]:
    """Return the series of this name of each flow, in the flows' order."""
    found = _of(result, last)
    return {flow["name"]: found[flow["name"]] for flow in result.flows if flow["name"] in found}


def _throughput(result: RunResult) -> Spec | None:
    delivered = _by_flow(result, "delivered")
    if not delivered:
        return None
    curves = {name: rates(*data, bins=_BINS) for name, data in delivered.items()}
    first = max((when for when, _ in curves.values()), key=len)
    if not first:
        return None
    total = [sum(what[i] for _, what in curves.values() if i < len(what)) for i in range(len(first))]
    carried = [(when, bps / 1e6) for when, bps in deliverable(result.summary, list(curves))]
    most = max(mbps for _, mbps in carried)
    few = len(curves) <= FEW
    series = [_curve(name, _style(i), *curve) for i, (name, curve) in enumerate(curves.items())] if few else []
    if len(curves) > 1:
        series.append(_curve(f"all {len(curves)}", _ALL, first, total))
    bounds = []
    if max(total) > 0.6 * most and len(carried) == 1:
        bounds = [{"name": f"limit of the lines, {most:.4g} Mb/s", "y": most}]
    elif len(carried) > 1:
        when, what = ([*each] for each in zip(*carried, (first[-1], carried[-1][1]), strict=True))
        series.append(_curve("limit of the lines", f"{_MUTED}:2", when, what, "step"))
    more = {"note": FILLED} if max(total) > 1.05 * most else {}
    return _figure(result, "Throughput at the sinks", {"label": "Mb/s", "least": 0}, series, bounds=bounds, **more)


def _to_hosts(result: RunResult) -> Spec | None:
    """Return the figure of octets that left at the ends of attached hosts."""
    left = _of(result, "left")
    curves = {name: rates(*data, bins=_BINS) for name, data in left.items()}
    if not any(when for when, _ in curves.values()):
        return None
    series = [_curve(f"to {name}", _style(i), *curve) for i, (name, curve) in enumerate(curves.items())]
    return _figure(result, "Throughput to real hosts", {"label": "Mb/s", "least": 0}, series)


def _late(result: RunResult) -> Spec | None:
    """Return the figure of late packets of attached hosts."""
    series = []
    for index, (name, data) in enumerate(_of(result, "late").items()):
        when, what = thin(*data, points=_points(FEW))
        series.append(_curve(name, _style(index), when, what, "step"))
    y = {"label": "packets", "least": 0, "whole": True}
    return _figure(result, "Real hosts' packets late so far", y, series) if series else None


def _each_flow(result: RunResult) -> Spec | None:
    """Return a heat map of many flows, a row for each."""
    delivered = _by_flow(result, "delivered")
    if len(delivered) <= FEW:
        return None
    curves = [rates(*data, bins=_BINS) for data in delivered.values()]
    times = max((when for when, _ in curves), key=len)
    if len(times) < 2:
        return None
    step = (times[-1] - times[0]) / (len(times) - 1)
    heat = [[float(f"{v:.3g}") for v in [*([0.0] * (len(times) - len(what))), *what]] for _, what in curves]
    return {
        "title": f"Throughput of each of the {len(heat)} flows",
        "rows": list(delivered),
        "x": _time(result),
        "begin": times[0] - step / 2,
        "step": step,
        "heat": heat,
        "unit": "Mb/s",
    }


def _windows(result: RunResult) -> Spec | None:
    cwnd, ssthresh = _by_flow(result, "cwnd"), _of(result, "ssthresh")
    if not cwnd:
        return None
    top = max(max(values) for _, values in cwnd.values())
    bounds = _receiver(result, top)
    if len(cwnd) > FEW:
        title = f"Congestion windows of {len(cwnd)} flows"
        return _figure(result, title, {"label": "kB", "least": 0}, _spread(result, cwnd, 1e3), bounds=bounds)
    series = [_held(result, name, _style(i), data, len(cwnd)) for i, (name, data) in enumerate(cwnd.items())]
    only = next(iter(cwnd))
    if len(cwnd) == 1 and only in ssthresh and min(ssthresh[only][1]) <= top:
        series.append(_held(result, "ssthresh", f"{_MUTED}:2", ssthresh[only], 2, top))
    for kind, label, mark, style in (
        ("timeout", "time-out", "cross", "c1"),
        ("fast_retransmit", "fast retransmit", "fall", "c6"),
    ):
        when, what = [], []
        for name, time_ps, event, _ in result.trace.events:
            if event == kind and name in cwnd:
                times, values = cwnd[name]
                when.append(time_ps / _PS)
                what.append(values[max(0, bisect_left(times, time_ps) - 1)] / 1e3)
        if when:
            order = sorted(range(len(when)), key=when.__getitem__)
            marks = _curve(label, style, [when[i] for i in order], [what[i] for i in order], "rings")
            series.append(marks | {"mark": mark})
    return _figure(result, "Congestion windows", {"label": "kB", "least": 0}, series, bounds=bounds)


def _receiver(result: RunResult, top: int) -> list[Spec]:
    """Return the receivers' window, if they have the same and congestion windows come near it."""
    windows = {flow["tcp"]["receive_buffer"] for flow in result.summary["resolved"]["flows"] if flow["tcp"]}
    if len(windows) != 1 or (window := windows.pop()) > 1.5 * top:
        return []
    return [{"name": "receiver's window", "y": window / 1e3}]


def _held(result: RunResult, name: str, style: str, data: Series, curves: int, most: int | None = None) -> Spec:
    """Return a window in kB, recorded when it changes, held to the end of the run; above ``most`` it is not drawn."""
    when, what = thin(*data, points=_points(curves))
    if when[-1] < _end(result):
        when, what = [*when, _end(result)], [*what, what[-1]]
    shown = [None if most is not None and value > 1.2 * most else value / 1e3 for value in what]
    return _curve(name, style, when, shown, "step")


def _spread(result: RunResult, data: Mapping[str, Series], unit: float) -> list[Spec]:
    """Return the distribution of a value of many flows, from when all have one: median, and bands around it."""
    begin_ps, end_ps = max(times[0] for times, _ in data.values()), round(_end(result) * _PS)
    edges = [begin_ps + (end_ps - begin_ps) * i // _BINS for i in range(_BINS + 1)]
    rows = [[value / unit for value in held(times, values, edges)] for times, values in data.values()]
    least, tenth, median, ninetieth, greatest = quantiles(rows, (0, 0.1, 0.5, 0.9, 1))
    when = [edge / _PS for edge in edges]

    def band(name: str, style: str, low: list[float], high: list[float]) -> Spec:
        return _curve(name, style, when, high, "band") | {"low": _over(when, low)["y"]}

    return [
        band("least to greatest", "band0", least, greatest),
        band("10 to 90 % of the flows", "band1", tenth, ninetieth),
        _curve("median", "c0", when, median),
    ]


def _round_trips(result: RunResult) -> Spec | None:
    """Return the figure of round trips as the flows measured them."""
    rtt = _by_flow(result, "rtt")
    if not rtt:
        return None
    y = {"label": "ms"}
    if len(rtt) > FEW:
        return _figure(result, f"Round trips of {len(rtt)} flows", y, _spread(result, rtt, 1e9))
    series = []
    for index, (name, data) in enumerate(rtt.items()):
        when, what = thin(*data, points=_points(len(rtt)))
        series.append(_curve(name, _style(index), when, [value / 1e9 for value in what]))
    return _figure(result, "Measured round trips", y, series)


def _queues(result: RunResult) -> Spec | None:
    queues = _of(result, "queue")
    if not queues:
        return None
    sizes = {s["name"]: s["buffer_cells"] for s in result.summary["resolved"]["network"]["switches"]}
    top = max(max(values) for _, values in queues.values())
    used = {name: data for name, data in queues.items() if max(data[1]) >= top / 50}
    series = []
    for index, (name, data) in enumerate(used.items()):
        series.append(_curve(name, _style(index), *thin(*data, points=_points(len(used)))))
    bounds = [
        {"name": f"buffer, {size:,} cells", "y": size, "always": top > size / 4}
        for size in sorted({sizes[name] for name in used if name in sizes})
        if top > size / 10
    ]
    y = {"label": "cells", "least": 0, "whole": True, "most": 10}
    return _figure(result, "Cells queued in the switches", y, series, bounds=bounds)


def _drops(result: RunResult) -> Spec | None:
    end_ps = round(_end(result) * _PS)
    if not end_ps:
        return None
    step = bin_width(end_ps, result.summary["resolved"]["record"]["interval_ps"], _BINS)
    edges = list(range(0, end_ps + step, step))
    base, series = [0] * (len(edges) - 1), []
    for name, (times, counts) in result.trace.series.items():
        owner, _, reason = name.partition(".drops.")
        if not reason or not any(counts):
            continue
        top = [a + b for a, b in zip(base, increments(times, counts, edges), strict=True)]
        label = f"{owner}: {DROP_TITLES.get(reason, reason)}"
        bars = _curve(label, _style(len(series)), [edge / _PS for edge in edges[:-1]], top, "bars")
        series.append(bars | {"low": base, "step": step / _PS})
        base = top
    y = {"label": f"cells per {step / _PS:g} s", "least": 0, "whole": True}
    return _figure(result, "Cells dropped", y, series) if series else None


def _capacities(result: RunResult) -> Spec | None:
    data = _of(result, "capacity")
    series = []
    for index, (port, values) in enumerate(data.items()):
        when, what = thin(*values, points=_points(len(data)))
        series.append(_curve(port, _style(index), when, [value / 1e6 for value in what], "step"))
    y = {"label": "Mb/s", "least": 0}
    return _figure(result, "Capacity of load-reactive ports", y, series) if series else None


def _changed(result: RunResult) -> dict[str, Spec]:
    """Return a figure for each kind of setting that was changed in the run."""
    made = {}
    for what in changed_over_time(result):
        series = []
        for index, (name, values) in enumerate(what.curves.items()):
            when, values = thin(*values, points=_points(len(what.curves)))
            drawn = _until_zero(when, values) if what.log else (when, values)
            series.append(_curve(name, _style(index), *drawn, "step"))
        y = {"label": what.unit, "log": True} if what.log else {"label": what.unit, "least": 0}
        made[f"changed-{what.key}"] = _figure(result, what.title, y, series)
    return made


def _until_zero(when: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float | None]]:
    """Return a stepped curve for a logarithmic axis: a value holds until the one that can't be drawn."""
    times: list[float] = []
    drawn: list[float | None] = []
    for at, value in zip(when, values, strict=True):
        if value <= 0 and drawn and drawn[-1] is not None:
            times.append(at)
            drawn.append(drawn[-1])
        times.append(at)
        drawn.append(value if value > 0 else None)
    return times, drawn


def _port_queues(result: RunResult) -> Spec | None:
    data = _of(result, "port_queue")
    series = [
        _curve(port, _style(index), *thin(*values, points=_points(len(data))))
        for index, (port, values) in enumerate(data.items())
    ]
    y = {"label": "cells", "least": 0, "whole": True}
    return _figure(result, "Cells queued at load-reactive ports", y, series) if series else None


def _losses(result: RunResult) -> Spec | None:
    lost = _by_flow(result, "lost")
    if not lost:
        return None
    y = {"label": "datagrams", "least": 0, "whole": True}
    end_ps = round(_end(result) * _PS)
    if len(lost) > FEW:
        edges = [end_ps * i // _BINS for i in range(_BINS + 1)]
        total = [sum(column) for column in zip(*(held(*data, edges) for data in lost.values()), strict=True)]
        series = [_curve(f"all {len(lost)}", _ALL, [edge / _PS for edge in edges], total, "step")]
    else:
        series = []
        for index, (name, data) in enumerate(lost.items()):
            when, what = thin(*data, points=_points(len(lost)))
            series.append(_curve(name, _style(index), [0.0, *when, _end(result)], [0.0, *what, what[-1]], "step"))
    return _figure(result, "Datagrams lost, UDP", y, series)


def _with_segments(result: RunResult) -> list[str]:
    if "segments" not in result.summary["resolved"]["record"]["what"]:
        return []
    return [flow["name"] for flow in result.flows if flow.get("protocol", "tcp") == "tcp"][:FEW]


def _segments(result: RunResult, name: str) -> Spec | None:
    """Return the figure of segments sent and acknowledged over time, as in the papers: numbers in segments of the
    MSS."""
    flow = next(f for f in result.summary["resolved"]["flows"] if f["name"] == name)
    segments = segments_of(result, name)
    if segments is None:
        return None
    series = []
    una = _of(result, "una").get(name)
    if una is not None:
        when, values = thin(*una)
        series.append(_curve("acknowledged", f"{_MUTED}:0", when, [value / segments.mss for value in values], "step"))
    series.append(_curve("sent", "c0", *segments.sent, "dots"))
    if segments.again[0]:
        series.append(_curve("sent again", "c1", *segments.again, "rings"))
    for kind, label, style in (("timeout", "time-out", "c1"), ("fast_retransmit", "fast retransmit", "c6")):
        at = segments.marks.get(kind)
        if at:
            marks = _curve(label, style, at, [0.0] * len(at), "rings")
            series.append(marks | {"mark": "cross" if kind == "timeout" else "fall"})
    variant = flow["tcp"]["variant"]
    title = f"Segments of {name}" + (f" ({variant})" if name != variant else "")
    return _figure(result, title, {"label": "segment number", "least": 0, "whole": True}, series)


# Distributions


def _shares(values: Sequence[float], weights: Sequence[float], points: int = 400) -> tuple[list[float], list[float]]:
    """Return ascending values, and the share of the weight at each and above it; about ``points`` of them."""
    order = sorted(range(len(values)), key=values.__getitem__)
    whole = left = float(sum(weights))
    what: list[float] = []
    share: list[float] = []
    for i in order:
        if not what or values[i] != what[-1]:
            what.append(values[i])
            share.append(left / whole)
        left -= weights[i]
    if len(what) > points:  # of equal steps of the value, and the last ones, which are rare, all
        step = (what[-1] - what[0]) / points
        kept, due = [], what[0]
        for i, value in enumerate(what):
            if value >= due or i >= len(what) - 50:
                kept.append(i)
                due = value + step
        what, share = [what[i] for i in kept], [share[i] for i in kept]
    return what, share


def _distribution(title: str, label: str, short: str, series: list[Spec], share: str, *, log: bool) -> Spec:
    y = {"label": share, "log": True} if log else {"label": share, "least": 0, "most": 100}
    return {"title": title, "x": {"label": label, "short": short, "tight": not log}, "y": y, "series": series}


def _plain(name: str, style: str, what: Sequence[float], share: Sequence[float], shape: str = "line") -> Spec:
    x = [float(f"{v:.6g}") for v in what]
    return {"name": name, "style": style, "shape": shape, "x": x, "y": [float(f"{v:.4g}") for v in share]}


def _queue_shares(result: RunResult) -> Spec | None:
    """Return the share of the time that at least so much was queued, of the samples."""
    series = []
    for index, (name, (times, values)) in enumerate(itertools.islice(_of(result, "queue").items(), FEW)):
        if len(times) > 2 and any(values):
            weights = [b - a for a, b in itertools.pairwise(times)]
            what, share = _shares(values[1:], weights)
            series.append(_plain(name, _style(index), what, [100 * s for s in share]))
    label, share = "cells queued at least", "% of the time"
    return _distribution("Queues", label, "cells", series, share, log=True) if series else None


def _rtt_shares(result: RunResult) -> Spec | None:
    """Return the share of measured round trips that took at most so long."""
    rtt = _by_flow(result, "rtt")
    if not rtt:
        return None
    if len(rtt) > FEW:
        rtt = {f"all {len(rtt)}": (array("q"), array("q", itertools.chain(*(values for _, values in rtt.values()))))}
    series = []
    for index, (name, (_, values)) in enumerate(rtt.items()):
        what, share = _shares([-v / 1e9 for v in values], [1.0] * len(values))
        points = [-v for v in reversed(what)], [100 * s for s in reversed(share)]
        series.append(_plain(name, _style(index), *points, "step"))
    return _distribution("Round trips", "at most (ms)", "ms", series, "% of the samples", log=False)


def _counted(what: str, unit: float, title: str, label: str, short: str) -> Maker:
    """Return a histogram that switches counted cell by cell, of the first few ports."""

    def make(result: RunResult) -> Spec | None:
        series = []
        for node, counters in (result.summary["counters"] or {}).items():
            for port, bins in enumerate(counters.get(f"{what}_by_port", ())):
                if bins and len(series) < FEW:
                    values, share = _shares([least * unit for least, _ in bins], [count for _, count in bins])
                    series.append(_plain(f"{node}:{port}", _style(len(series)), values, [100 * s for s in share]))
        return _distribution(title, label, short, series, "% of the cells", log=True) if series else None

    return make


def _bursts(what: str, title: str, label: str) -> Maker:
    """Return the share of loss bursts, or of gaps between them, that are at least so long, of the first few VCs."""

    def make(result: RunResult) -> Spec | None:
        if result.losses is None:
            return None
        series = []
        for vc, bursts in itertools.islice(bursts_by_vc(result.losses).items(), FEW):
            if values := getattr(bursts, what):
                lengths, share = shares_at_least(values)
                series.append(_plain(vc, _style(len(series)), lengths, [100 * s for s in share]))
        return (
            _distribution(
                title, label, "cells", series, "% of the bursts" if what == "lengths" else "% of the gaps", log=True
            )
            if series
            else None
        )

    return make


OVER_TIME: Final[dict[str, Maker]] = {
    "throughput": _throughput,
    "to-hosts": _to_hosts,
    "late": _late,
    "each-flow": _each_flow,
    "windows": _windows,
    "round-trips": _round_trips,
    "queues": _queues,
    "drops": _drops,
    "capacities": _capacities,
    "port-queues": _port_queues,
    "losses": _losses,
}
"""What makes each figure over time, by its name; None where there is nothing to show."""


def _splitting(result: RunResult) -> Spec | None:
    """Return the figure of the highest queue per cycle."""
    split = result.summary.get("splitting")
    if not split:
        return None
    rows = [(row["level"], row["reach"]) for row in split["levels"] if row["reach"]["value"]]
    drawn = [(level, reach) for level, reach in rows if reach["low"]]
    series = []
    if drawn:
        band = _plain("95 % interval", _style(0), [k for k, _ in drawn], [reach["high"] for _, reach in drawn], "band")
        series.append(band | {"low": [float(f"{reach['low']:.4g}") for _, reach in drawn]})
    series.append(_plain("splitting", _style(0), [k for k, _ in rows], [reach["value"] for _, reach in rows]))
    for name, title, style, shape in (
        ("predicted", "theory", _MUTED, "line"),
        ("plain", "plain run", _style(1), "rings"),
    ):
        points = [(row["queue"], row[name]) for row in split["heights"] if row[name]]
        if points:
            series.append(_plain(title, style, [k for k, _ in points], [share for _, share in points], shape))
    return _distribution(f"Highest queue of {split['port']} per cycle", LABELS[0], "cells", series, LABELS[1], log=True)


def _lateness(what: str) -> Maker:
    """Return the figure of how late the packets of attached hosts were."""

    def make(result: RunResult) -> Spec | None:
        series = []
        for index, (host, times, counts) in enumerate(times_of_ends(result.summary, what)):
            values, shares = _shares(times, counts)
            series.append(_plain(host, _style(index), values, [100 * s for s in shares], "step"))
        title = f"Real hosts' packets: {LATENESS[what].lower()}"
        return _distribution(title, "at least (ms)", "ms", series, "% of the packets", log=True) if series else None

    return make


DISTRIBUTIONS: Final[dict[str, Maker]] = {
    "splitting": _splitting,
    "queue-shares": _queue_shares,
    "rtt-shares": _rtt_shares,
    "queue-cells": _counted("queue", 1.0, "Queues found by arriving cells", "queued at least (cells)", "cells"),
    **{f"packets-{what}": _lateness(what) for what in LATENESS},
    "delay-cells": _counted("delay", TICK_PS / 1e6, "Delays of cells in the switch", "at least (us)", "us"),
    "loss-bursts": _bursts("lengths", "Bursts of losses", "consecutive cells lost at least"),
    "loss-gaps": _bursts("gaps", "Gaps between bursts of losses", "cells not lost at least"),
}
"""The same for distributions."""
