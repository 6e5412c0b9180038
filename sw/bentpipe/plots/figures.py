"""The plots of a run: throughput, congestion windows, queues and drops over time, as PNG and SVG."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.series import bin_width, increments, rates, thin
from bentpipe.plots.style import COLOURS, FEW, MUTED, flow_style, styled
from bentpipe.results.schema import RunResult

__all__ = ["PLOTS", "write_plots"]

_MARKS: Final = {
    "timeout": ("time-out", "x", COLOURS[1]),
    "fast_retransmit": ("fast retransmit", "v", COLOURS[6]),
}
_EMPTY: Final = "not recorded"
_BINS: Final = 160
_REASONS: Final = {
    "full": "buffer full",
    "epd": "early packet discard",
    "ppd": "partial packet discard",
    "clp": "CLP threshold",
    "hec": "header error",
    "lost": "delay memory full",
    "listed": "listed losses",
    "line": "lost on the line",
    "unknown": "unknown VC",
}


def write_plots(folder: Path, result: RunResult) -> list[str]:
    """Draw every plot into a folder; returns the names without suffix, the overview first."""
    from matplotlib.figure import Figure

    plots: dict[str, tuple[Callable[[Any, RunResult], None], ...]] = dict(PLOTS)
    if any(flow.get("protocol") == "udp" for flow in result.flows):
        plots |= UDP_PLOTS
    if "segments" in result.summary["resolved"]["record"]["what"]:
        names = [flow["name"] for flow in result.flows if flow.get("protocol", "tcp") == "tcp"][:FEW]
        plots["sequence"] = tuple(partial(_sequence, name=name) for name in names)
    with styled():
        for name, panels in plots.items():
            figure = Figure(figsize=(8.4, 2.35 * len(panels) + 0.5 if len(panels) > 1 else 3.6), layout="constrained")
            axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
            for axis, panel in zip(axes, panels, strict=True):
                panel(axis, result)
            end = result.summary["time"]["simulated_s"]
            axes[0].set_xlim(0, end or 1)
            axes[-1].set_xlabel("simulated time (s)")
            figure.align_ylabels()
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # laid out once, not once a file
            for suffix in ("png", "svg"):
                metadata: dict[str, Any] = {"Date": None} if suffix == "svg" else {"Software": "bentpipe"}
                figure.savefig(folder / f"{name}.{suffix}", metadata=metadata)
    return list(plots)


def _of(result: RunResult, last: str) -> dict[str, tuple[array[int], array[int]]]:
    """The series whose last part is ``last``, by the part before."""
    found = {}
    for name, data in result.trace.series.items():
        owner, _, end = name.rpartition(".")
        if end == last:
            found[owner] = data
    return found


def _flow_names(result: RunResult) -> list[str]:
    return [flow["name"] for flow in result.flows]


def _nothing(axis: Any) -> None:
    axis.text(0.5, 0.5, _EMPTY, transform=axis.transAxes, ha="center", va="center", color=MUTED)


def _legend(axis: Any, columns: int = 0) -> None:
    """A legend above the panel to the right, clear of the curves."""
    handles, labels = axis.get_legend_handles_labels()
    if len(handles) > 0:
        axis.legend(
            handles,
            labels,
            loc="lower right",
            bbox_to_anchor=(1.0, 0.985),
            ncols=columns or len(handles),
            borderaxespad=0.2,
            handlelength=2.2,
            columnspacing=1.3,
        )


def _throughput(axis: Any, result: RunResult) -> None:
    axis.set_title("Throughput at the sinks")
    axis.set_ylabel("Mb/s")
    delivered = _of(result, "delivered")
    names = [n for n in _flow_names(result) if n in delivered]
    if not names:
        return _nothing(axis)
    curves = {name: rates(*delivered[name]) for name in names}
    for index, (name, (when, what)) in enumerate(curves.items()):
        label = name if len(names) <= FEW else None
        axis.plot(when, what, label=label, **flow_style(index, len(names)))
    if len(names) > 1:
        first = next(iter(curves.values()))[0]
        total = [sum(c[1][i] for c in curves.values() if i < len(c[1])) for i in range(len(first))]
        axis.plot(first, total, color="black", linewidth=0.9, label=f"all {len(names)}", zorder=1.5)
    axis.set_ylim(bottom=0)
    _legend(axis)


def _windows(axis: Any, result: RunResult) -> None:
    axis.set_title("Congestion windows")
    axis.set_ylabel("kB")
    cwnd, ssthresh = _of(result, "cwnd"), _of(result, "ssthresh")
    names = [n for n in _flow_names(result) if n in cwnd and len(cwnd[n][0])]
    if not names:
        return _nothing(axis)
    top = max(max(cwnd[name][1]) for name in names) / 1e3
    for index, name in enumerate(names):
        when, what = _held(result, cwnd[name])
        label = name if len(names) <= FEW else None
        axis.plot(when, what, label=label, drawstyle="steps-post", **flow_style(index, len(names)))
    if len(names) == 1 and names[0] in ssthresh:
        when, what = _held(result, ssthresh[names[0]])
        if min(what) <= top:
            axis.plot(when, what, color=MUTED, linewidth=1, linestyle=":", drawstyle="steps-post", label="ssthresh")
    windows = {flow["tcp"]["receive_buffer"] for flow in result.summary["resolved"]["flows"] if flow["tcp"]}
    if len(windows) == 1 and top > (window := windows.pop() / 1e3):
        axis.axhline(window, color=MUTED, linewidth=1, linestyle=(0, (5, 3)), label="receiver's window")
    _marks(axis, result, names, cwnd)
    axis.set_ylim(0, 1.08 * top or 1)
    _legend(axis)


def _held(result: RunResult, data: tuple[array[int], array[int]]) -> tuple[list[float], list[float]]:
    """A window in kB, recorded when it changes, held to the end of the run."""
    when, what = thin(*data)
    end = result.summary["time"]["simulated_s"]
    if when[-1] < end:
        when.append(end)
        what.append(what[-1])
    return when, [value / 1e3 for value in what]


def _marks(axis: Any, result: RunResult, names: list[str], cwnd: dict[str, tuple[array[int], array[int]]]) -> None:
    """Time-outs and fast retransmits, at the window they struck."""
    from bisect import bisect_left

    for kind, (label, marker, colour) in _MARKS.items():
        when, what = [], []
        for series, time_ps, event, _ in result.trace.events:
            if event == kind and series in names:
                times, values = cwnd[series]
                at = max(0, bisect_left(times, time_ps) - 1)
                when.append(time_ps / 1e12)
                what.append(values[at] / 1e3 if values else 0)
        if when:
            axis.plot(
                when,
                what,
                marker,
                color=colour,
                markersize=4.5,
                markeredgewidth=1.3,
                linestyle="none",
                label=label,
                zorder=3,
            )


def _queues(axis: Any, result: RunResult) -> None:
    axis.set_title("Cells queued in the switches")
    axis.set_ylabel("cells")
    queues = _of(result, "queue")
    if not queues:
        return _nothing(axis)
    axis.yaxis.get_major_locator().set_params(integer=True)
    switches = {s["name"]: s for s in result.summary["resolved"]["network"]["switches"]}
    top = max(max(data[1], default=0) for data in queues.values())
    used = {name: data for name, data in queues.items() if max(data[1], default=0) >= top / 50}
    for index, (name, data) in enumerate(used.items()):
        when, what = thin(*data)
        axis.plot(when, what, label=name, **flow_style(index, len(used)))
    sizes = {switches[name]["buffer_cells"] for name in used if name in switches}
    for size in sorted(sizes):
        if top > size / 4:
            axis.axhline(size, color=MUTED, linewidth=1, linestyle=(0, (5, 3)), label=f"buffer, {size} cells")
            top = max(top, size)
    axis.set_ylim(0, max(1.08 * top, 10))  # one or two cells on their way are no queue
    _legend(axis)


def _losses(axis: Any, result: RunResult) -> None:
    axis.set_title("Datagrams lost, UDP")
    axis.set_ylabel("datagrams")
    lost = _of(result, "lost")
    udp = [flow["name"] for flow in result.flows if flow.get("protocol") == "udp"]
    for index, name in enumerate(udp):
        times, counts = lost.get(name, (array("q"), array("q")))
        when, what = thin(times, counts)
        end = result.summary["time"]["simulated_s"]
        when, what = [0.0, *when, end], [0.0, *what, what[-1] if what else 0.0]
        label = name if len(udp) <= FEW else None
        axis.plot(when, what, label=label, drawstyle="steps-post", **flow_style(index, len(udp)))
    axis.set_ylim(bottom=0)
    _legend(axis)


def _drops(axis: Any, result: RunResult) -> None:
    axis.set_title("Cells dropped")
    axis.set_ylabel("cells")
    resolved = result.summary["resolved"]
    end_ps = round(result.summary["time"]["simulated_s"] * 1e12)
    step = bin_width(end_ps, resolved["record"]["interval_ps"], _BINS)
    edges = list(range(0, end_ps + step, step))
    base = [0] * (len(edges) - 1)
    index = 0
    for name, (times, counts) in result.trace.series.items():
        owner, _, reason = name.partition(".drops.")
        if not reason or not any(counts):
            continue
        growth = increments(times, counts, edges)
        axis.bar(
            [edge / 1e12 for edge in edges[:-1]],
            growth,
            step / 1e12,
            bottom=base,
            align="edge",
            label=f"{owner}: {_REASONS.get(reason, reason)}",
            color=COLOURS[index % FEW],
            hatch=("", "////", "....", "xxxx")[index % 4],
            edgecolor="white",
            linewidth=0,
        )
        base = [b + g for b, g in zip(base, growth, strict=True)]
        index += 1
    if not index:
        text = "none" if "drops" in resolved["record"]["what"] else _EMPTY
        axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color=MUTED)
        axis.set_yticks([])
        return
    axis.set_ylabel(f"cells per {step / 1e12:g} s")
    _legend(axis)


def _sequence(axis: Any, result: RunResult, name: str) -> None:
    """Segments sent and acknowledged over time, as in the papers' figures: numbers in segments of the MSS."""
    flow = next(f for f in result.summary["resolved"]["flows"] if f["name"] == name)
    events = [(t / 1e12, kind, value) for series, t, kind, value in result.trace.events if series == name]
    offsets = sorted({value for _, kind, value in events if kind == "segment"})
    steps = [b - a for a, b in itertools.pairwise(offsets)]
    mss = max(set(steps), key=steps.count) if steps else 1
    seen: set[int] = set()
    first: tuple[list[float], list[float]] = ([], [])
    again: tuple[list[float], list[float]] = ([], [])
    for when, kind, value in events:
        if kind == "segment":
            chosen = again if value in seen else first
            seen.add(value)
            chosen[0].append(when)
            chosen[1].append(value / mss + 1)
    axis.set_title(f"{name} ({flow['tcp']['variant']})" if name != flow["tcp"]["variant"] else name)
    axis.set_ylabel("segment")
    if not first[0]:
        return _nothing(axis)
    una = _of(result, "una").get(name)
    if una is not None:
        times, values = thin(*una)
        axis.plot(
            times, [v / mss for v in values], color=MUTED, linewidth=0.9, drawstyle="steps-post", label="acknowledged"
        )
    axis.plot(*first, ".", color=COLOURS[0], markersize=3, linestyle="none", label="sent")
    axis.plot(*again, "s", color=COLOURS[1], markersize=4, linestyle="none", label="sent again", markerfacecolor="none")
    for kind, (label, _, colour) in _MARKS.items():
        whens = [when for when, event, _ in events if event == kind]
        for index, when in enumerate(whens):
            axis.axvline(when, color=colour, linewidth=0.8, linestyle=":", label=None if index else label)
    axis.set_ylim(bottom=0)
    _legend(axis)


PLOTS: Final[dict[str, tuple[Callable[[Any, RunResult], None], ...]]] = {
    "overview": (_throughput, _windows, _queues, _drops),
    "throughput": (_throughput,),
    "windows": (_windows,),
    "queues-drops": (_queues, _drops),
}
"""Plots by file name, each with its panels from top to bottom."""

UDP_PLOTS: Final[dict[str, tuple[Callable[[Any, RunResult], None], ...]]] = {
    "overview": (_throughput, _windows, _losses, _queues, _drops),
    "losses": (_losses,),
}
"""With UDP among the flows."""
