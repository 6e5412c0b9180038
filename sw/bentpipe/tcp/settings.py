"""How a setting of TCP is declared, and a class that one of the settings chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

__all__ = ["Registration", "Setting"]


@final
@dataclass(frozen=True)
class Setting:
    """One setting: a field of :class:`bentpipe.tcp.config.TcpConfig`, and a key of an experiment's ``tcp`` table.

    Parameters
    ----------
    name : str
        Of the field. Times end in ``_ps``, which the key leaves out.
    kind : str
        ``flag``, ``choice``, ``size`` (octets), ``time`` (ps), ``count`` (of ``unit``) or ``number``.
    default : bool, str, int, float or None
        None, of a flag: what ``text`` says.
    text : str
        What it does, for the documentation.
    low, high : int or float
        The range, both ends included; of sizes, times, counts and numbers.
    choices : tuple of str
        Of a choice.
    unit : str
        What a count counts, or a number is in.
    """

    name: str
    kind: str
    default: Any
    text: str
    low: Any = 0
    high: Any = 0
    choices: tuple[str, ...] = ()
    unit: str = ""

    @property
    def key(self) -> str:
        """Its key in an experiment."""
        return self.name.removesuffix("_ps")

    def check(self, value: Any) -> None:
        """ValueError with one line if the value can't be."""
        if self.kind == "choice":
            if value not in self.choices:
                raise ValueError(f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}")
        elif self.kind != "flag" and not self.low <= value <= self.high:
            raise ValueError(f"{self.name} must be {self.low}..{self.high}, not {value!r}")


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
