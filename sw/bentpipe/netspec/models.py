"""The words of NetSpec 3 for distributions and for models of sources' traffic, with their parameters.

They are those of the user manual (University of Kansas, April 1999) and of the tool's page on emulated traffic. Its
"fixed" models take no parameters, as they came from measured tables; what they are here is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["MODELS", "PARAMETERS_OF", "PLAIN", "Model"]

PLAIN: Final = ("sigma", "shape", "scene", "sceneLengthMean")
"""Parameters that are plain numbers; the others are quantities of what is drawn."""

_BOUNDS: Final = {"min": "least", "max": "most"}

PARAMETERS_OF: Final[dict[tuple[str, str], str]] = {
    **{(name, word): own for name in ("exponential", "lognormal", "gamma", "mpeg") for word, own in _BOUNDS.items()},
    ("exponential", "lambda"): "mean",
    ("pareto", "scale"): "min",
    ("pareto", "max"): "most",
    ("mpeg", "sceneLengthMean"): "scene",
}
"""What a parameter of NetSpec is called in :data:`~bentpipe.apps.draws.DISTRIBUTIONS`, by the distribution."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model of one quantity of a source's traffic.

    Members
    -------
    name : str
        As the manual writes it; scripts may write it in other cases.
    distribution : str
    text : str
    of : str
        What it draws, by the name of the quantity; "": whatever it stands for.
    defaults : Mapping
        Its parameters where a script gives no others.
    """

    name: str
    distribution: str
    text: str
    of: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)


_FIXED: Final = (
    Model("ftpNOfItems", "exponential", "items of an FTP session", "whole number", {"mean": 4}),
    Model("ftpItemSize", "lognormal", "size of an item", "size", {"mean": "50 kB", "sigma": 2}),
    Model("telnetSessionDuration", "lognormal", "length of a session", "time", {"mean": "240 s", "sigma": 1.5}),
    Model(
        "telnetPacketInterarrival",
        "pareto",
        "from packet to packet of a session",
        "time",
        {"min": "5 ms", "shape": 0.95, "most": "60 s"},
    ),
    Model("telnetPacketSize", "exponential", "octets of a packet", "size", {"mean": 2}),
)
_GIVEN: Final = (
    Model("ftpSessionInterarrival", "exponential", "from one FTP session to the next", "time"),
    Model("telnetSessionInterarrival", "exponential", "from one telnet session to the next", "time"),
    Model("voiceSessionInterarrival", "exponential", "from one call to the next", "time"),
    Model("voiceSessionDuration", "exponential", "length of a call; as a block its octets, 8000 of which are a second"),
    Model("videoTeleConferenceFrameSize", "gamma", "size of a frame of a video conference", "size"),
    Model(
        "videoMPEGFrameSize",
        "mpeg",
        "size of a frame of MPEG video, in groups of IBBPBBPBBPBB",
        "size",
        {"mean": "20 kB", "scene": 250},
    ),
)

MODELS: Final = {model.name.lower(): model for model in (*_GIVEN, *_FIXED)}
"""Models by name in lower case."""
