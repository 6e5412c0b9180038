"""A class that a setting of TCP chooses by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from bentpipe.declarations import Setting

__all__ = ["Registration"]


@final
@dataclass(frozen=True)
class Registration:
    """A class that a setting chooses by name.

    Parameters
    ----------
    name : str
        What users write.
    year : int
        Of its publication, by which they are listed.
    make : callable
        The class: called with the :class:`bentpipe.tcp.config.TcpConfig`.
    text : str
        What it is, for the documentation.
    settings : tuple of Setting
        Its own settings; their names begin with its name.
    """

    name: str
    year: int
    make: Callable[[Any], Any]
    text: str
    settings: tuple[Setting, ...] = ()
