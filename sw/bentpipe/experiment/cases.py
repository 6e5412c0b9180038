"""The cases of an experiment: ``[[case]]``, each a run of its own with some values changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bentpipe.experiment.table import Source, Table
from bentpipe_hdl.words import nearest

__all__ = ["Case", "read_cases"]

_KEYS: Final = ("name", "set", "at")


@dataclass(frozen=True, slots=True)
class Case:
    """A case: name, place on the plot's axis (None: by name), and values by dotted key as ``--set`` has them."""

    name: str
    at: float | None
    settings: dict[str, Any]


def read_cases(document: dict[str, Any], source: Source) -> list[Case]:
    """The cases of a document, none if it has none.

    Raises
    ------
    ConfigError
        A case without a name of its own, or a published figure of a case that isn't there.
    """
    top = Table(document, "", source, tuple(document))
    cases: list[Case] = []
    for table in top.array("case", _KEYS):
        name = table.text("name")
        if name in [case.name for case in cases]:
            raise table.error("name", f"there is a case {name!r} already")
        cases.append(Case(name, table.number("at", None), dict(table.sub("set").data)))
    if cases:
        names = [case.name for case in cases]
        if len({case.at is None for case in cases}) > 1:
            raise top.error("case", "either all cases have a place on the axis ('at') or none")
        for row in top.array("published", ()):
            case = row.text("case", "")
            if case not in names:
                raise row.error("case", f"there is no case {case!r}{nearest(case, names)}")
    return cases
