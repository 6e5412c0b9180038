"""Keys of a document in words, for the axes of figures: "buffer, switch lan (cells)"."""

from __future__ import annotations

import itertools
from typing import Final

__all__ = ["key_in_words"]

_SHORT: Final = frozenset(
    {"clp", "epd", "fba", "mtu", "oam", "ppd", "red", "rtt", "sdu", "tcp", "udp", "upc", "vc", "vci", "vpi"}
)
"""Abbreviations, written in capitals."""

_LONG: Final = {"ber": "bit error ratio", "cdvt": "cell delay variation tolerance"}

_OWNERS: Final = {
    "switches": "switch",
    "lines": "line",
    "hosts": "host",
    "vps": "virtual path",
    "flow": "flow",
    "vc": "VC",
}
"""Tables whose entries have names or numbers."""

_SHARED: Final = frozenset({"tcp", "mtu", "profile"})
"""What stands in ``[hosts]`` beside hosts' names."""


def key_in_words(key: str, unit: str = "") -> str:
    """Return a dotted key in words: the setting, its owner, and the unit of its values."""
    *above, last = key.split(".")
    if last.endswith("_cells"):
        last, unit = last.removesuffix("_cells"), unit or "cells"
    text = " ".join(_LONG.get(word, word.upper() if word in _SHORT else word) for word in last.split("_"))
    if "tcp" in above:
        text = f"TCP {text}"
    owners = [f"{_OWNERS[a]} {b}" for a, b in itertools.pairwise(above) if a in _OWNERS and b not in _SHARED]
    text = ", ".join([text, *owners])
    return f"{text} ({unit})" if unit else text
