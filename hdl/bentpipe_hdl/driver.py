"""What the drivers of all node kinds share.

A driver is a node's software side: it turns settings into registers, reads the counters, and knows the node's account.
It sees a :class:`~bentpipe_hdl.registers.Bus`, and nothing of what is behind that: a model in this process, a test
bench, a board.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from bentpipe_hdl.registers import Bus, RegisterMap, Registers

__all__ = ["Balance", "Driver", "WrongNodeError", "wrapped"]

_WORD = 1 << 32


class WrongNodeError(Exception):
    """What is behind a bus is not the node that its driver is for."""


@dataclass(frozen=True)
class Balance:
    """Two numbers of cells that are equal modulo 2**32, unless cells got lost or doubled: ``what``, in words."""

    what: str
    left: int
    right: int

    def __bool__(self) -> bool:
        return (self.left - self.right) % _WORD == 0


def wrapped(difference: int) -> int:
    """A difference of two counters that wrap at 2**32, as a number from -2**31 on."""
    return (difference + _WORD // 2) % _WORD - _WORD // 2


class Driver:
    """The software side of a node.

    Parameters
    ----------
    bus : Bus
    registers : RegisterMap
        Those of a node of its shape.
    """

    kind: ClassVar[str]

    def __init__(self, bus: Bus, registers: RegisterMap):
        self.csr = Registers(bus, registers)

    def identify(self) -> None:
        """Read who is there.

        Raises
        ------
        WrongNodeError
            It is another kind of node, one with other registers, or one of another shape.
        """
        csr, registers = self.csr, self.csr.map
        magic = int(csr.magic).to_bytes(4, "big").decode("ascii", "replace")
        if magic != registers.magic:
            raise WrongNodeError(f"there is no {registers.kind}: its magic is {magic!r}, not {registers.magic!r}")
        if csr.version != registers.version:
            raise WrongNodeError(f"a {registers.kind} of version {csr.version}, and this is for {registers.version}")
        shape = dict(zip(registers.shape, csr.shape[:], strict=True))
        if shape != registers.shape:
            wanted, found = (", ".join(f"{k} = {v}" for k, v in s.items()) for s in (registers.shape, shape))
            raise WrongNodeError(f"a {registers.kind} with {found}, and this is for one with {wanted}")

    def counters(self) -> dict[str, Any]:
        """The node's counters: a number, or a list with one a VC or port. ``drop_REASON`` are cells dropped."""
        raise NotImplementedError

    def account(self, cells_in: int, cells_out: int) -> Iterator[Balance]:
        """Cells in = cells out + dropped by reason + still queued."""
        raise NotImplementedError

    def counted(self, number: int) -> tuple[int, int]:
        """Where a ledger reads how many cells of the VC with this number were taken to be sent, and how many were sent:
        addresses, of a node that has VCs and such a counter; else 0."""
        return 0, 0

    def told(self) -> Iterator[tuple[str, int, int]]:
        """Losses and hits that the node tells of as they happen, to whoever keeps a ledger: what, as which number, and
        how many it has counted."""
        return iter(())
