"""Settings as somebody writes them to a session: ``NAME.KEY=VALUE``, where a line, switch or host may stand alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.assign import SHORTHANDS, value_of
from bentpipe.experiment.document.tables import Document
from bentpipe_hdl.settings import key_of
from bentpipe_hdl.words import nearest

if TYPE_CHECKING:
    from bentpipe.experiment.resolve.specs import Experiment

__all__ = ["read_settings", "whole_key"]


def whole_key(setting: str, experiment: Experiment) -> str:
    """Return ``NAME.KEY=VALUE`` of a line, switch or host with its whole key.

    Raises
    ------
    BentpipeError
        The key begins with none of these, and with no table of an experiment.
    """
    name = setting.partition(".")[0]
    network = experiment.network
    for kind, found in (("lines", network.lines), ("switches", network.switches), ("hosts", network.hosts)):
        if name in [each.name for each in found]:
            return f"network.{kind}.{setting}"
    if "." in setting.partition("=")[0] and name not in [*SHORTHANDS, *map(key_of, Document.model_fields)]:
        names = [each.name for found in (network.lines, network.switches, network.hosts) for each in found]
        raise BentpipeError(f"{setting}: there is no line, switch or host {name!r}{nearest(name, names)}")
    return setting


def read_settings(settings: Sequence[str], experiment: Experiment) -> dict[str, Any]:
    """Return the values of ``KEY=VALUE`` settings by whole keys.

    Raises
    ------
    BentpipeError
        One is none, or begins with no line, switch, host or table.
    """
    found = {}
    for setting in settings:
        key, equals, text = whole_key(setting, experiment).partition("=")
        if not equals:
            raise BentpipeError(f"{setting}: expected KEY=VALUE")
        found[key] = value_of(text.strip())
    return found
