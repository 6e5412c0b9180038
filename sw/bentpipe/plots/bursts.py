"""How long bursts of losses are, and the gaps between them: from the records of lost cells."""

from __future__ import annotations

import itertools
from typing import Any, Final

from bentpipe.plots.layout import PANEL_IN, WIDTH_IN, lay_out
from bentpipe.plots.style import FEW, flow_style
from bentpipe.results.losses import bursts_by_vc, shares_at_least
from bentpipe.results.schema import RunResult

__all__ = ["burst_figure"]

_PANELS: Final = (
    ("lengths", "Bursts of losses", "consecutive cells lost at least", "share of bursts"),
    ("gaps", "Gaps between bursts of losses", "cells not lost at least", "share of gaps"),
)


def burst_figure(result: RunResult) -> Any | None:
    """Return the figure, of the first few VCs; None without records of lost cells."""
    from matplotlib.figure import Figure

    found = {} if result.losses is None else dict(itertools.islice(bursts_by_vc(result.losses).items(), FEW))
    if not found:
        return None
    figure = Figure(figsize=(WIDTH_IN, 2 * (PANEL_IN + 0.5)), layout="constrained")
    for axis, (what, title, label, share) in zip(figure.subplots(2, 1), _PANELS, strict=True):
        axis.set_title(title)
        axis.set_xlabel(label)
        axis.set_ylabel(share)
        axis.set_yscale("log")
        for index, (vc, bursts) in enumerate(found.items()):
            if values := getattr(bursts, what):
                axis.plot(*shares_at_least(values), drawstyle="steps-pre", label=vc, **flow_style(index))
        axis.set_xscale("log")
        axis.set_ylim(top=1.3)
    lay_out(figure)
    return figure
