"""The software side of a network interface's option: its registers, settings and counters. It does not need
Amaranth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bentpipe_hdl.registered import Registered
from bentpipe_hdl.registers import Register, Registers

__all__ = ["NicOption"]


class NicOption(Registered):
    """A mechanism that an interface is built with, or without: then it has no register, no gate and no work of it.

    Members
    -------
    name : str
        Also of the part of the shape, which is 1 with it and 0 without.
    place : int
        Its place among the parts of the shape, which it alone has and keeps for ever.
    always_in_shape : bool
        The shape has the part where it is 0, too.
    replaces : tuple of str
        Registers of every interface that one with the option does not have.
    """

    name: ClassVar[str]
    place: ClassVar[int]
    always_in_shape: ClassVar[bool] = True
    replaces: ClassVar[tuple[str, ...]] = ()

    def registers(self, *, vcs: int) -> tuple[Register, ...]:
        """Return the option's registers in an interface with so many VCs."""
        raise NotImplementedError

    def configure(self, csr: Registers, settings: Any, line: Any, sends: Mapping[int, Any]) -> None:
        """Write its settings to the registers of an interface that was reset: ``NicSettings``, ``NicLine``, and
        ``NicSend`` of VCs by their index."""

    def counters(self, csr: Registers, sends: Mapping[int, Any]) -> dict[str, Any]:
        """Return the option's counters by name: a number, or a list of one per VC."""
        del csr, sends
        return {}

    def taken(self, counters: Mapping[str, Any]) -> int:
        """Return the number of cells of known VCs that the option has taken, from the interface's ``counters``."""
        del counters
        return 0

    def made(self, counters: Mapping[str, Any]) -> int:
        """Return the number of cells sent by the option that are in no VC's count."""
        del counters
        return 0
