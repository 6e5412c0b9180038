"""One look for every plot: colours that colour-blind readers tell apart, thin grid, no frame to the right or top."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["BAND", "COLOURS", "DARK", "FEW", "MUTED", "Style", "flow_style", "styled"]

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
"""Okabe and Ito's palette (yellow left out: too pale on white), grey for black."""

_DASHES: Final = ("-", (0, (6, 2)), (0, (2, 1.2)), (0, (6, 2, 1.5, 2)))

FEW: Final = len(COLOURS)
"""Up to so many flows have a colour each and stand in the legend."""

MUTED: Final = "#7F7F7F"

DARK: Final = "#4D4D4D"

BAND: Final = ("#DCEAF4", "#8FBEDD")
"""Two shades of the first colour, for what lies around a median."""

Style = dict[str, Any]

_SETTINGS: Final[Any] = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "figure.constrained_layout.w_pad": 0.08,
    "text.hinting": "none",  # a text is as wide at any resolution, so that SVG and PNG are laid out alike
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#4D4D4D",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.7,
    "xtick.color": "#4D4D4D",
    "ytick.color": "#4D4D4D",
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "svg.hashsalt": "bentpipe",
    "svg.fonttype": "path",
    "path.simplify": True,
}


def _import_figures() -> None:
    """Import Matplotlib's figures without the help texts that it makes for each class of artists.

    Matplotlib 3.11 gives 105 classes a method ``set`` with a signature and a docstring. They take a quarter of the
    processor time of its import (0.10 of 0.39 s), and a process that draws shows neither. Later classes have them.
    """
    if "matplotlib.figure" in sys.modules:
        return
    from matplotlib.artist import Artist

    name = "_update_set_signature_and_docstring"
    kept = vars(Artist).get(name)
    if kept is not None:  # another version of Matplotlib may have none
        setattr(Artist, name, classmethod(lambda cls: None))
    try:
        import matplotlib.figure  # noqa: F401
    finally:
        if kept is not None:
            setattr(Artist, name, kept)


@contextmanager
def styled() -> Iterator[None]:
    """Set matplotlib's style within the context."""
    import matplotlib

    _import_figures()
    with matplotlib.rc_context(_SETTINGS):
        yield


def flow_style(index: int) -> Style:
    """Return the line style of one of a few flows: colour and dashes both tell them apart."""
    style: Style = {"color": COLOURS[index % FEW], "linestyle": _DASHES[index % len(_DASHES)]}
    if index:
        style["alpha"] = 0.9
    return style
