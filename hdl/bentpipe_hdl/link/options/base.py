"""The software side of a link's option: its registers, settings and counters. It does not need Amaranth."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from bentpipe_hdl.bit_errors import ErrorStart
from bentpipe_hdl.registered import Registered
from bentpipe_hdl.registers import Register, Registers

__all__ = ["LinkOption"]


class LinkOption(Registered):
    """A mechanism that a link is built with, or without: then it has no register, no gate and no work of it.

    Members
    -------
    name : str
        Of the part of the shape; "": it has none, and every link has the option.
    place : int
        Its place among the parts of the shape, and among plugins; it alone has it.
    needs : collection of str
        Parts of the shape that a link with it has, too.
    excludes : collection of str
        Parts of the shape that a link with it must not have.
    values : collection of int
        What the part may be; 0 is without the option.
    range : str
        The values in words.
    everywhere : bool
        The register map of every link tells its part of the shape; else only that of a link that has it.
    title : str
        What a link without it is built without, in words.
    """

    name: ClassVar[str] = ""
    place: ClassVar[int]
    needs: ClassVar[Collection[str]] = ()
    excludes: ClassVar[Collection[str]] = ()
    values: ClassVar[Collection[int]] = (0, 1)
    range: ClassVar[str] = "0 or 1"
    everywhere: ClassVar[bool] = True
    title: ClassVar[str] = ""

    def registers(self) -> tuple[Register, ...]:
        """Return the registers of a link with this option."""
        return ()

    def wanted(self, settings: Any) -> bool:
        """Return whether ``LinkSettings`` ask for the option; used for options with a ``title``."""
        del settings
        return False

    def seed(self, csr: Registers, start: ErrorStart) -> None:
        """Write where its random numbers start; everything is off."""

    def apply(self, csr: Registers, settings: Any) -> None:
        """Write its settings, as of ``LinkSettings``, but where random numbers start."""

    def space(self, csr: Registers, period: int) -> None:
        """Write the distance of cells that wait for each other, in 2**-16 ticks."""

    def values_of(self, member: str, value: Any) -> Mapping[str, int | None] | None:
        """Return the registers of a member of the settings, as :meth:`bentpipe_hdl.driver.Driver.values_of`."""
        del member, value
        return None

    def refuse(self, settings: Any) -> None:
        """Raise ValueError where ``LinkSettings`` ask for it, and the link is built without it."""
        if self.wanted(settings):
            raise ValueError(f"this link is built without {self.title}")

    def begin(self, csr: Registers, settings: Any, start: ErrorStart) -> None:
        """Write where its first errors are, after :meth:`apply`."""

    def counters(self, csr: Registers) -> dict[str, Any]:
        """Return the option's counters; ``drop_…`` are cells that it takes out, ``made_…`` cells that it makes."""
        del csr
        return {}
