"""Keys of a document in words, for figures and tables: "buffer, switch lan (cells)", "discard policy, all switches"."""

from __future__ import annotations

import itertools
from typing import Final

__all__ = ["key_in_words"]

_SHORT: Final = frozenset(
    {"clp", "epd", "fba", "mtu", "oam", "ppd", "red", "rtt", "sdu", "tcp", "udp", "upc", "vc", "vci", "vpi"}
)
"""Abbreviations, written in capitals."""

_LONG: Final = {"ber": "bit error ratio", "cdvt": "cell delay variation tolerance"}

_NAMES: Final = {
    "ack_policy": ("acknowledgement policy", ""),
    "clock_cost": ("processor time of a clock interrupt", ""),
    "clock_hz": ("clock interrupts per second", ""),
    "cost": ("processor time of a segment", ""),
    "habit_maxseg_eighth": ("growth by another MSS/8 per ACK", ""),
    "input_queue": ("input queue", "PDUs"),
    "late": ("handling of late blocks", ""),
    "policy": ("discard policy", ""),
    "scheduler": ("output scheduler", ""),
    "size": ("amount to send", ""),
    "start": ("start time", ""),
    "vc_limit": ("queue limit of each VC", "cells"),
}
"""Settings whose keys are too short to understand or too long to read: name and unit."""

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
    text, of = _NAMES.get(last) or _spelled(last)
    unit = unit or of
    if "tcp" in above:
        text = f"TCP {text}"
    owners = [_owner(a, b) for a, b in itertools.pairwise(above) if a in _OWNERS and b not in _SHARED]
    text = ", ".join([text, *owners])
    return f"{text} ({unit})" if unit else text


def _spelled(name: str) -> tuple[str, str]:
    """Return the words of a setting's key, and the unit in it."""
    bare = name.removesuffix("_cells")
    words = (_LONG.get(word, word.upper() if word in _SHORT else word) for word in bare.split("_"))
    return " ".join(words), "cells" if bare != name else ""


def _owner(table: str, name: str) -> str:
    """Return the owner of a setting; entries without names are counted from the first."""
    kind = _OWNERS[table]
    if name == "*":
        return f"all {kind}es" if kind.endswith("ch") else f"all {kind}s"
    return f"{kind} no. {int(name) + 1}" if name.isdecimal() else f"{kind} {name}"
