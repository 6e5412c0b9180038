"""Values put into a document by dotted keys: of ``--set`` and ``--vary``, of a case, of an event."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe_hdl.words import nearest

__all__ = ["MOST_DEEP", "SHORTHANDS", "Assignment", "assigned", "over", "value_of"]

SHORTHANDS: Final = {
    "line": "network.line",
    "variant": "hosts.tcp.variant",
    "window": "hosts.tcp.window",
    "mtu": "hosts.mtu",
}
"""Short keys."""

MOST_DEEP: Final = 100
"""Tables and lists inside each other in a document."""

_NAMED: Final = {"network.switches": "switch", "network.lines": "line", "network.hosts": "host"}


@dataclass(frozen=True)
class Assignment:
    """A value for a dotted key, and what gave it, for messages: ``--set``, ``--vary``."""

    by: str
    key: str
    value: Any


def assigned(
    document: dict[str, Any], settings: Iterable[Assignment], name: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a copy of the document with values in it, and the source that set each dotted key."""
    document = copy.deepcopy(document)
    touched: dict[str, str] = {}
    for setting in settings:
        key = SHORTHANDS.get(setting.key, setting.key)
        if key.count(".") > MOST_DEEP:
            raise BentpipeError(f"{setting.by} {key[:40]}…: a key has {MOST_DEEP} parts at most (in {name})")
        if key == "network.line":  # for all lines, so that none has its own
            network = _table(document, "network")
            for line in (*_table(network, "lines").values(), *_table(network, "hosts").values()):
                if isinstance(line, dict):
                    line.pop("line", None)
        here: list[str] = []
        _assign(document, f"{setting.by} {key}", key.split("."), setting.value, name, "", here)
        touched |= dict.fromkeys(here, setting.by)
    return document, touched


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _assign(node: Any, full: str, parts: list[str], value: Any, name: str, above: str, touched: list[str]) -> None:
    part, rest = parts[0], parts[1:]
    here = f"{above}.{part}" if above else part
    if part == "*" and (isinstance(node, list) or (above in _NAMED and isinstance(node, dict))):
        for key in map(str, range(len(node))) if isinstance(node, list) else list(node):
            _assign(node, full, [key, *rest], value, name, above, touched)
        return
    place: Any = part
    if isinstance(node, list):
        if not part.isdigit() or int(part) >= len(node):
            raise BentpipeError(f"{full}: {above} has entries 0..{len(node) - 1} (or *), not {part!r} (in {name})")
        place = int(part)
    elif not isinstance(node, dict):
        raise BentpipeError(f"{full}: {above} is not a table (in {name})")
    elif above in _NAMED and part not in node:
        raise BentpipeError(f"{full}: there is no {_NAMED[above]} {part!r}{nearest(part, node)} (in {name})")
    if not rest:
        node[place] = value
        touched.append(here)
    else:
        inner = node[place] if isinstance(node, list) else node.setdefault(place, {})
        _assign(inner, full, rest, value, name, here, touched)


def value_of(text: str) -> Any:
    """Return a value as TOML reads it; a text that is not TOML stands for itself, so quotes are not needed."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text


def over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge two tables, and the tables in them; values of ``above`` win."""
    whole = below | above
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            whole[key] = over(below[key], above[key])
    return whole
