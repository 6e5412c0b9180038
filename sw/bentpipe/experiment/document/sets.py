"""Sets of settings by name (``catalogue/published/sets.toml``): ``--set @NAME`` stands for all of them.

They were fitted to published figures, so they are never a default, and a run that has one says so in its settings.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.catalogue import read_document
from bentpipe_hdl.words import nearest

__all__ = ["MARK", "named_set", "sets"]

MARK: Final = "@"
"""What the name of a set begins with in ``--set``."""

_FILE: Final = Path(__file__).resolve().parents[2] / "catalogue" / "published" / "sets.toml"


@cache
def sets() -> dict[str, dict[str, Any]]:
    """Return the tables of the sets by name."""
    return {table["name"]: table for table in read_document(_FILE)[0].get("set", ())}


def named_set(name: str) -> dict[str, str]:
    """Return the settings of a set, values as ``--set`` has them.

    Raises
    ------
    BentpipeError
        There is no such set.
    """
    known = sets()
    if name not in known:
        raise BentpipeError(f"--set {MARK}{name}: there is no such set{nearest(name, known)}")
    return {key: str(value) for key, value in known[name]["settings"].items()}
