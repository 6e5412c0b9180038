"""Ranges of published figures over open parameters: tornado charts with marks for what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bentpipe.plots.layout import WIDTH_IN, lay_out
from bentpipe.plots.style import COLOURS, DARK, MUTED, styled
from bentpipe.results.words import key_in_words

__all__ = ["write_ranges"]

_ROW_IN: Final = 0.3
_HEAD_IN: Final = 1.1
_LONGEST: Final = 44


def write_ranges(folder: Path, name: str, figures: Sequence[Mapping[str, Any]]) -> None:
    """Write ``name.svg``: for each figure its range over whole runs, and the effects of shortened ones.

    Parameters
    ----------
    figures : Sequence[Mapping]
        Figures in the form of the entry's ``explain.json``.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with styled(), rc_context({"svg.fonttype": "none"}):  # a third of the octets, and text that can be searched
        rows = [max(len(_bars(figure)), len(figure["screening"])) for figure in figures]
        heights = [_HEAD_IN + _ROW_IN * count for count in rows]
        drawn = Figure(figsize=(WIDTH_IN, sum(heights)), layout="constrained")
        panels = drawn.subplots(len(figures), 2, squeeze=False, height_ratios=heights)
        for (whole, short), figure in zip(panels, figures, strict=True):
            _whole(whole, figure)
            _short(short, figure)
        lay_out(drawn)
        drawn.savefig(folder / f"{name}.svg", metadata={"Date": None})


def _bars(figure: Mapping[str, Any]) -> list[tuple[str, list[float]]]:
    """Return the bars of whole runs: each of the strongest parameters alone, and both; with name and values."""
    points = figure["points"]
    bars = []
    for key in figure["pair"]:
        alone = [p["ours"] for p in points if set(p["values"]) <= {key}]
        bars += [(key_in_words(key), alone)] if len(alone) > 1 else []
    if len(figure["pair"]) > 1:
        both = [p["ours"] for p in points if set(p["values"]) <= set(figure["pair"])]
        bars += [("both", both)] if len(both) > 1 else []
    if any(not set(p["values"]) <= set(figure["pair"]) for p in points):
        bars.append(("all runs", [p["ours"] for p in points]))
    return bars or [("all runs", [p["ours"] for p in points])]


def _spans(axis: Any, bars: Sequence[tuple[str, Sequence[float]]], own: float | None, colour: str) -> None:
    for place, (_, values) in enumerate(reversed(bars)):
        low, high = min(values), max(values)
        axis.barh(place, high - low, left=low, height=0.6, color=colour, alpha=0.75)
        axis.plot(values, [place] * len(values), "|", color=DARK, markersize=7)
    axis.use_sticky_edges = False
    if own is not None:
        axis.axvline(own, color=DARK, linewidth=1.0, label="as it is")
    axis.set_yticks(range(len(bars)), [_shortened(name) for name, _ in reversed(bars)])
    axis.set_ylim(-0.6, len(bars) - 0.4)


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _whole(axis: Any, figure: Mapping[str, Any]) -> None:
    _spans(axis, _bars(figure), figure["own"], COLOURS[0])
    for kind, colour in (("measured", COLOURS[1]), ("predicted", MUTED)):
        if figure[kind] is not None:
            axis.axvline(figure[kind], color=colour, linewidth=1.6, linestyle="--", label=kind)
    axis.set_title(f"{figure['name']}: {figure['range_of']}", loc="left")
    axis.set_xlabel(figure["unit"])
    axis.legend(fontsize=8)


def _short(axis: Any, figure: Mapping[str, Any]) -> None:
    own = figure["screening_own"]
    bars = [
        (key_in_words(effect["key"]), [*([] if own is None else [own]), *(value["ours"] for value in effect["values"])])
        for effect in figure["screening"]
        if effect["values"]
    ]
    if bars:
        _spans(axis, bars, own, MUTED)
    of = f": runs of {figure['shortened']}" if figure["shortened"] else ""
    axis.set_title(f"each alone{of}", loc="left")
    axis.set_xlabel(figure["unit"])
