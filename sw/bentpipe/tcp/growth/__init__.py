"""Growths of the congestion window, with its reduction after losses: one file each; a file in this folder registers
itself.

Each file has a ``REGISTRATION``; nothing else names it. Growths of plugins come by
:func:`bentpipe.tcp.config.add_growth`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from bentpipe.tcp.settings import Registration

__all__ = ["GROWTHS"]

_found: Final = (import_module(f"{__name__}.{file.name}") for file in iter_modules(__path__) if file.name != "base")

GROWTHS: Final[dict[str, Registration]] = {
    kind.name: kind for kind in sorted((module.REGISTRATION for module in _found), key=lambda kind: kind.year)
}
"""By name, the oldest first."""
