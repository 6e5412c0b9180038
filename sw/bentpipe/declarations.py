"""The declaration of a setting of a host's part: one entry gives its key, check, texts and documentation.

TCP and the applications declare their settings in this form. They need neither a model nor a document, as they are
compiled (:mod:`bentpipe.compiled`) and run without pydantic. Tables of a document read such keys by the same
declarations (:mod:`bentpipe.experiment.document.declared`).

TCP and the applications declare their settings so. They need neither a model nor a document for that, as they are
compiled (:mod:`bentpipe.compiled`) and run without pydantic. Tables of a document read such keys by the same
declarations (:mod:`bentpipe.experiment.document.declared`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bentpipe_hdl.units import Quantity, key_of
from bentpipe_hdl.words import kind_of, nearest

__all__ = ["FLAG", "REQUIRED", "TEXT", "Setting"]

REQUIRED: Final[Any] = object()
"""The default of a setting that must be given."""

FLAG: Final = "true or false"
"""As what a setting is of: true or false."""

TEXT: Final = "text"
"""As what a setting is of: any text."""


@dataclass(frozen=True)
class Setting:
    """One setting.

    Members
    -------
    name : str
        In Python. Times end in ``_ps``, which the key of a document leaves out.
    of : Quantity or tuple of str or str
        Its unit and range, or the words that it may be, or :data:`FLAG`, or :data:`TEXT`.
    default : Any
        In base units (octets, ps, b/s); None: what ``text`` says. :data:`REQUIRED`: it must be given.
    text : str
        What it does, for the documentation.
    """

    name: str
    of: Quantity | tuple[str, ...] | str
    default: Any
    text: str

    @property
    def key(self) -> str:
        """The setting's key in a document."""
        return key_of(self.name)

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def choices(self) -> tuple[str, ...]:
        return self.of if isinstance(self.of, tuple) else ()

    @property
    def measured(self) -> bool:
        """It has a unit."""
        return isinstance(self.of, Quantity) and bool(self.of.texts)

    def read(self, given: object, document: bool = True) -> Any:
        """Return in base units the value given by a document or by Python.

        Raises
        ------
        ValueError
            Its arguments are the text of the error.
        """
        if isinstance(self.of, Quantity):
            value = self.of.check(given, document)
            return float(value) if isinstance(self.of.low, float) else value
        if self.of == FLAG:
            if not isinstance(given, bool):
                raise ValueError(f"expected {FLAG}, not {kind_of(given)}")
            return given
        if not isinstance(given, str):
            raise ValueError(f"expected a text, not {kind_of(given)}")
        if self.choices and given not in self.choices:
            raise ValueError(f"unknown value {given!r}{nearest(given, self.choices)}")
        return given

    def check(self, value: Any) -> None:
        """Raise ValueError, which names the setting, if a value in base units cannot be."""
        if isinstance(self.of, tuple):
            if value not in self.of:
                raise ValueError(f"{self.name} must be one of {', '.join(self.of)}, not {value!r}")
        elif isinstance(self.of, Quantity) and not self.of.low <= value <= self.of.high:
            raise ValueError(f"{self.name} must be {self.of.low}..{self.of.high}, not {value!r}")

    def shown(self, value: Any) -> Any:
        """Return a value as one would write it in a document."""
        return self.of.shown(value) if isinstance(self.of, Quantity) and not isinstance(value, tuple) else value
