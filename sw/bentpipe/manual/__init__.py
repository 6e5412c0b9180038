"""The manual's tables, made from the declarations of what they tell of: for ``bentpipe help`` and the documentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bentpipe.manual import keys, words

__all__ = ["TOPICS", "Topic"]


@dataclass(frozen=True)
class Topic:
    """A topic of the manual: its title in a line, and its text in Markdown."""

    what: str
    text: Callable[[], str]


def _parts(of: dict[str, str]) -> str:
    return "\n".join(f"### {name}\n\n{text}" for name, text in of.items())


TOPICS: Final = {
    "keys": Topic("the tables and keys of an experiment's file", keys.tables),
    "tcp": Topic("TCP: settings, variants, congestion controls", lambda: _parts(words.tcp())),
    "profiles": Topic("profiles of published hosts", keys.profiles),
    "apps": Topic("applications: keys, reported figures", words.applications),
    "series": Topic("series that can be recorded", keys.series),
    "metrics": Topic("metrics of a run", keys.metrics),
    "columns": Topic("the columns of result tables", keys.columns),
    "losses": Topic("the columns of losses.parquet", keys.losses),
    "netspec": Topic("the words of NetSpec scripts", lambda: _parts(words.netspec())),
}
