"""The plots of a run: throughput, congestion windows, queues and drops over time, as PNG and SVG."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.bursts import burst_figure
from bentpipe.plots.histograms import histogram_figure
from bentpipe.plots.lateness import lateness_figure
from bentpipe.plots.layout import Panel, draw_panels, note, save
from bentpipe.plots.series import bin_width, held, increments, quantiles, rates, thin
from bentpipe.plots.splitting import splitting_figure
from bentpipe.plots.style import BAND, COLOURS, FEW, MUTED, flow_style, styled
from bentpipe.results.changed import Changed, changed_over_time
from bentpipe.results.metrics import deliverable
from bentpipe.results.schema import RunResult
from bentpipe.results.sequence import segments_of
from bentpipe.results.tables import DROP_TITLES
from bentpipe_hdl.switch.options.reactive.control import LEVEL_FRACTION, ReactiveSettings

__all__ = ["FILLED", "PLOTS", "figures", "write_plots"]

_MARKS: Final = {
    "timeout": ("time-out", "x", COLOURS[1]),
    "fast_retransmit": ("fast retransmit", "v", COLOURS[6]),
}
_BINS: Final = 160
FILLED: Final = "More than the lines carry is data that waited behind a lost segment and was delivered when that came."
_DASHED: Final[Any] = (0, (5, 3))


def write_plots(folder: Path, result: RunResult) -> list[str]:
    """Draw every plot into a folder; returns the names without suffix, the overview first if anything was recorded."""
    made = []
    with styled():
        for name, figure in figures(result):
            save(figure, folder, name)
            made.append(name)
    return made


def figures(result: RunResult) -> Iterable[tuple[str, Any]]:
    """Yield every plot of a run with its name."""
    plots = dict(PLOTS)
    if "segments" in result.summary["resolved"]["record"]["what"]:
        names = [flow["name"] for flow in result.flows if flow.get("protocol", "tcp") == "tcp"][:FEW]
        plots["sequence"] = tuple(partial(_sequence, name=name) for name in names)
    end_s = result.summary["time"]["simulated_s"]
    marks = [event["at_s"] for event in result.summary.get("events", ())]
    for name, makers in plots.items():
        panels = [panel for make in makers if (panel := make(result)) is not None]
        if name == "overview":
            panels += map(_changed, changed_over_time(result))
        if panels:
            yield name, draw_panels(panels, end_s, marks)
    figure = histogram_figure(result)
    if figure is not None:
        yield "histograms", figure
    figure = burst_figure(result)
    if figure is not None:
        yield "loss-bursts", figure
    figure = lateness_figure(result)
    if figure is not None:
        yield "lateness", figure
    figure = splitting_figure(result)
    if figure is not None:
        yield "splitting", figure


def _of(result: RunResult, last: str) -> dict[str, tuple[array[int], array[int]]]:
    """Return the series whose last part is ``last``, by the part before."""
    found = {}
    for name, data in result.trace.series.items():
        owner, _, end = name.rpartition(".")
        if end == last:
            found[owner] = data
    return found


def _by_flow(result: RunResult, last: str) -> dict[str, tuple[array[int], array[int]]]:
    """Return the series of this name of each flow, in the flows' order."""
    found = _of(result, last)
    return {flow["name"]: found[flow["name"]] for flow in result.flows if len(found.get(flow["name"], ((), ()))[0])}


def _throughput(result: RunResult) -> Panel | None:
    """Return the plot of data that arrived at the sinks in order: each of a few flows, and all together."""
    delivered = _by_flow(result, "delivered")
    if not delivered:
        return None
    curves = {name: rates(*data) for name, data in delivered.items()}
    first = next(iter(curves.values()))[0]
    total = [sum(what[i] for _, what in curves.values() if i < len(what)) for i in range(len(first))]
    carried = [(when, bps / 1e6) for when, bps in deliverable(result.summary, list(curves))]
    most = max(mbps for _, mbps in carried)
    bounds = {name: max(bps for _, bps in deliverable(result.summary, [name])) / 1e6 for name in curves}
    slack = 1.05  # samples cut segments in two
    above = max(total, default=0) > slack * most or any(
        max(what, default=0) > slack * bounds[name] for name, (_, what) in curves.items()
    )

    def draw(axis: Any) -> None:
        axis.set_title("Throughput at the sinks")
        axis.set_ylabel("Mb/s")
        if len(curves) <= FEW:
            for index, (name, (when, what)) in enumerate(curves.items()):
                axis.plot(when, what, label=name, **flow_style(index))
        if len(curves) > 1:
            axis.plot(first, total, color="black", linewidth=0.9, label=f"all {len(curves)}", zorder=1.5)
        if len(carried) > 1:
            axis.step(
                [when for when, _ in carried] + [first[-1]],
                [mbps for _, mbps in carried] + [carried[-1][1]],
                where="post",
                color=MUTED,
                linewidth=1,
                linestyle=_DASHED,
                label="limit of the lines",
                zorder=1,
            )
        elif above or max(total, default=0) > 0.6 * most:
            label = f"limit of the lines, {most:.4g} Mb/s"
            axis.axhline(most, color=MUTED, linewidth=1, linestyle=_DASHED, label=label, zorder=1)
        if above:
            note(axis, FILLED)
        axis.set_ylim(bottom=0)

    return draw


def _each_flow(result: RunResult) -> Panel | None:
    """Return a heat map of many flows, a row for each."""
    delivered = _by_flow(result, "delivered")
    if len(delivered) <= FEW:
        return None
    curves = [rates(*data) for data in delivered.values()]
    longest = max(len(what) for _, what in curves)
    rows = [[*([0.0] * (longest - len(what))), *what] for _, what in curves]
    times = next(iter(delivered.values()))[0]

    def draw(axis: Any) -> None:
        from matplotlib.colors import PowerNorm

        axis.set_title(f"Throughput of each of the {len(rows)} flows")
        axis.set_ylabel("flow, as in the table")
        image = axis.imshow(
            rows,
            aspect="auto",
            interpolation="nearest",
            cmap="cividis",
            norm=PowerNorm(0.5, vmin=0),
            extent=(times[0] / 1e12, times[-1] / 1e12, len(rows) + 0.5, 0.5),
        )
        axis.grid(visible=False)
        axis.figure.colorbar(image, ax=axis, label="Mb/s", pad=0.02, aspect=12)

    return draw


def _windows(result: RunResult) -> Panel | None:
    cwnd, ssthresh = _by_flow(result, "cwnd"), _of(result, "ssthresh")
    if not cwnd:
        return None
    if len(cwnd) > FEW:
        return partial(_many_windows, result=result, cwnd=cwnd)
    top = max(max(values) for _, values in cwnd.values()) / 1e3

    def draw(axis: Any) -> None:
        axis.set_title("Congestion windows")
        axis.set_ylabel("kB")
        for index, (name, data) in enumerate(cwnd.items()):
            when, what = _held(result, data)
            axis.plot(when, what, label=name, drawstyle="steps-post", **flow_style(index))
        only = next(iter(cwnd))
        if len(cwnd) == 1 and only in ssthresh:
            when, what = _held(result, ssthresh[only])
            if min(what) <= top:
                axis.plot(when, what, color=MUTED, linewidth=1, linestyle=":", drawstyle="steps-post", label="ssthresh")
        _receiver(axis, result, top)
        _marks(axis, result, cwnd)
        axis.set_ylim(0, 1.08 * top or 1)

    return draw


def _receiver(axis: Any, result: RunResult, top: float) -> None:
    """Draw the receivers' window, if all have the same and a congestion window is above it."""
    windows = {flow["tcp"]["receive_buffer"] for flow in result.summary["resolved"]["flows"] if flow["tcp"]}
    if len(windows) == 1 and top > (window := windows.pop() / 1e3):
        axis.axhline(window, color=MUTED, linewidth=1, linestyle=_DASHED, label="receiver's window")


def _many_windows(axis: Any, result: RunResult, cwnd: dict[str, tuple[array[int], array[int]]]) -> None:
    """Draw the distribution of many flows' windows."""
    end_ps = round(result.summary["time"]["simulated_s"] * 1e12)
    edges = [end_ps * i // _BINS for i in range(_BINS + 1)]
    rows = [[value / 1e3 for value in held(times, values, edges)] for times, values in cwnd.values()]
    least, tenth, median, ninetieth, greatest = quantiles(rows, (0, 0.1, 0.5, 0.9, 1))
    when = [edge / 1e12 for edge in edges]
    axis.set_title(f"Congestion windows of {len(cwnd)} flows")
    axis.set_ylabel("kB")
    axis.fill_between(when, least, greatest, color=BAND[0], linewidth=0, label="least to greatest")
    axis.fill_between(when, tenth, ninetieth, color=BAND[1], linewidth=0, label="10 to 90 % of the flows")
    axis.plot(when, median, color=COLOURS[0], label="median")
    _receiver(axis, result, max(greatest))
    axis.set_ylim(0, 1.08 * max(greatest) or 1)


def _held(result: RunResult, data: tuple[array[int], array[int]]) -> tuple[list[float], list[float]]:
    """Return a window in kB, recorded when it changes, held to the end of the run."""
    when, what = thin(*data)
    end = result.summary["time"]["simulated_s"]
    if when[-1] < end:
        when.append(end)
        what.append(what[-1])
    return when, [value / 1e3 for value in what]


def _marks(axis: Any, result: RunResult, cwnd: dict[str, tuple[array[int], array[int]]]) -> None:
    """Draw time-outs and fast retransmits at the window in which they occurred."""
    from bisect import bisect_left

    for kind, (label, marker, colour) in _MARKS.items():
        when, what = [], []
        for series, time_ps, event, _ in result.trace.events:
            if event == kind and series in cwnd:
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


def _queues(result: RunResult) -> Panel | None:
    queues = _of(result, "queue")
    if not queues:
        return None
    switches = {s["name"]: s for s in result.summary["resolved"]["network"]["switches"]}

    def draw(axis: Any) -> None:
        axis.set_title("Cells queued in the switches")
        axis.set_ylabel("cells")
        axis.yaxis.get_major_locator().set_params(integer=True)
        top = max(max(data[1], default=0) for data in queues.values())
        used = {name: data for name, data in queues.items() if max(data[1], default=0) >= top / 50}
        for index, (name, data) in enumerate(used.items()):
            when, what = thin(*data)
            axis.plot(when, what, label=name, **flow_style(index))
        sizes = {switches[name]["buffer_cells"] for name in used if name in switches}
        for size in sorted(sizes):
            if top > size / 4:
                axis.axhline(size, color=MUTED, linewidth=1, linestyle=_DASHED, label=f"buffer, {size} cells")
                top = max(top, size)
        axis.set_ylim(0, max(1.08 * top, 10))  # one or two cells on their way are no queue

    return draw


def _reactive(result: RunResult, port: str) -> ReactiveSettings:
    """Return the settings of a load-reactive port."""
    name, _, number = port.rpartition(":")
    switch = next(s for s in result.summary["resolved"]["network"]["switches"] if s["name"] == name)
    return ReactiveSettings(**switch["port_settings"][int(number)]["reactive"])


def _capacities(result: RunResult) -> Panel | None:
    """Return the capacity of load-reactive ports over time."""
    capacities = _of(result, "capacity")
    if not capacities:
        return None

    def draw(axis: Any) -> None:
        axis.set_title("Capacity of load-reactive ports")
        axis.set_ylabel("Mb/s")
        for index, (port, data) in enumerate(capacities.items()):
            when, what = thin(*data)
            packet = _reactive(result, port).packet
            label = f"{port}, {'cells' if packet is None else f'packets of {packet} octets'}"
            axis.plot(when, [value / 1e6 for value in what], label=label, drawstyle="steps-post", **flow_style(index))
        axis.set_ylim(bottom=0)

    return draw


def _changed(what: Changed) -> Panel:
    """Return the plot of a setting that was changed in the run."""

    def draw(axis: Any) -> None:
        axis.set_title(what.title)
        axis.set_ylabel(what.unit)
        for index, (name, data) in enumerate(what.curves.items()):
            axis.plot(*thin(*data), label=name, drawstyle="steps-post", **flow_style(index))
        if what.log:
            axis.set_yscale("log", nonpositive="clip")
        else:
            axis.set_ylim(bottom=0)

    return draw


def _port_queues(result: RunResult) -> Panel | None:
    """Return the plot of queues at load-reactive ports, with their thresholds."""
    queues = _of(result, "port_queue")
    if not queues:
        return None

    def draw(axis: Any) -> None:
        axis.set_title("Cells queued at load-reactive ports")
        axis.set_ylabel("cells")
        levels: dict[str, set[float]] = {}
        for index, (port, data) in enumerate(queues.items()):
            axis.plot(*thin(*data), label=port, **flow_style(index))
            settings = _reactive(result, port)
            if settings.counted != "packets":
                levels[flow_style(index)["color"]] = {level / (1 << LEVEL_FRACTION) for level in settings.levels}
        alike = len({frozenset(each) for each in levels.values()}) == 1  # else each in the colour of its port
        for colour, own in [*levels.items()][: 1 if alike else None]:
            for level in own:
                axis.axhline(level, color=MUTED if alike else colour, linewidth=1, linestyle=_DASHED)
        if levels:
            axis.plot([], [], color=MUTED, linewidth=1, linestyle=_DASHED, label="thresholds")
        axis.set_ylim(bottom=0)

    return draw


def _losses(result: RunResult) -> Panel | None:
    lost = _of(result, "lost")
    udp = [flow["name"] for flow in result.flows if flow.get("protocol") == "udp"]
    is_known = result.summary["ledger"] is not None
    if not (udp and is_known) or "lost" not in result.summary["resolved"]["record"]["what"]:
        return None
    end_ps = round(result.summary["time"]["simulated_s"] * 1e12)

    def draw(axis: Any) -> None:
        axis.set_title("Datagrams lost, UDP")
        axis.set_ylabel("datagrams")
        axis.yaxis.get_major_locator().set_params(integer=True)
        nothing = (array("q"), array("q"))
        if len(udp) <= FEW:
            for index, name in enumerate(udp):
                when, what = thin(*lost.get(name, nothing))
                when, what = [0.0, *when, end_ps / 1e12], [0.0, *what, what[-1] if what else 0.0]
                axis.plot(when, what, label=name, drawstyle="steps-post", **flow_style(index))
        else:
            edges = [end_ps * i // _BINS for i in range(_BINS + 1)]
            rows = [held(*lost.get(name, nothing), edges) for name in udp]
            total = [sum(column) for column in zip(*rows, strict=True)]
            when = [edge / 1e12 for edge in edges]
            axis.plot(when, total, color="black", drawstyle="steps-post", label=f"all {len(udp)}")
        axis.set_ylim(0, max(1, axis.get_ylim()[1]))

    return draw


def _drops(result: RunResult) -> Panel | None:
    resolved = result.summary["resolved"]
    end_ps = round(result.summary["time"]["simulated_s"] * 1e12)
    step = bin_width(end_ps, resolved["record"]["interval_ps"], _BINS)
    edges = list(range(0, end_ps + step, step))
    growth = {}
    for name, (times, counts) in result.trace.series.items():
        owner, _, reason = name.partition(".drops.")
        if reason and any(counts):
            growth[f"{owner}: {DROP_TITLES.get(reason, reason)}"] = increments(times, counts, edges)
    return partial(_draw_drops, edges=edges, growth=growth) if growth else None


def _draw_drops(axis: Any, edges: Sequence[int], growth: dict[str, list[int]]) -> None:
    step = edges[1] - edges[0]
    axis.set_title("Cells dropped")
    axis.set_ylabel(f"cells per {step / 1e12:g} s")
    axis.yaxis.get_major_locator().set_params(integer=True)
    base = [0] * (len(edges) - 1)
    for index, (label, dropped) in enumerate(growth.items()):
        axis.bar(
            [edge / 1e12 for edge in edges[:-1]],
            dropped,
            step / 1e12,
            bottom=base,
            align="edge",
            label=label,
            color=COLOURS[index % FEW],
            hatch=("", "////", "....", "xxxx")[index % 4],
            edgecolor="white",
            linewidth=0,
        )
        base = [b + g for b, g in zip(base, dropped, strict=True)]


def _sequence(result: RunResult, name: str) -> Panel | None:
    """Return the plot of segments sent and acknowledged over time, as in the papers: numbers in segments of the MSS."""
    flow = next(f for f in result.summary["resolved"]["flows"] if f["name"] == name)
    segments = segments_of(result, name)
    if segments is None:
        return None

    def draw(axis: Any) -> None:
        axis.set_title(f"{name} ({flow['tcp']['variant']})" if name != flow["tcp"]["variant"] else name)
        axis.set_ylabel("segment number")
        una = _of(result, "una").get(name)
        if una is not None:
            when, values = thin(*una)
            what = [value / segments.mss for value in values]
            axis.plot(when, what, color=MUTED, linewidth=0.9, drawstyle="steps-post", label="acknowledged")
        sent, again = segments.sent, segments.again
        axis.plot(*sent, ".", color=COLOURS[0], markersize=3, linestyle="none", label="sent")
        axis.plot(
            *again, "s", color=COLOURS[1], markersize=4, linestyle="none", label="sent again", markerfacecolor="none"
        )
        for kind, (label, _, colour) in _MARKS.items():
            for index, at in enumerate(segments.marks.get(kind, ())):
                axis.axvline(at, color=colour, linewidth=0.8, linestyle=":", label=None if index else label)
        axis.set_ylim(bottom=0)

    return draw


PLOTS: Final[dict[str, tuple[Callable[[RunResult], Panel | None], ...]]] = {
    "overview": (_throughput, _capacities, _port_queues, _each_flow, _windows, _losses, _queues, _drops),
    "throughput": (_throughput, _each_flow),
    "windows": (_windows,),
    "losses": (_losses,),
    "reactive": (_capacities, _port_queues),
    "queues-drops": (_queues, _drops),
}
"""Plots by file name, each with what makes its panels from top to bottom; None where there is nothing to show."""
