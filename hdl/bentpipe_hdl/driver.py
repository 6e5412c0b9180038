"""The common base of the drivers of all node kinds.

A driver is a node's software side: it turns settings into registers, reads the counters, and knows the node's account.
It sees a :class:`~bentpipe_hdl.registers.Bus`, and nothing of what is behind that: a model in this process, a test
bench, a board.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from bentpipe_hdl.registers import Bus, Recorder, RegisterMap, Registers

__all__ = ["Balance", "Driver", "WrongNodeError", "wrapped"]

_WORD = 1 << 32


class WrongNodeError(Exception):
    """The node behind a bus is of another kind, or its registers of another version, than the driver expects."""


@dataclass(frozen=True)
class Balance:
    """Two numbers of cells that are equal modulo 2**32, unless cells got lost or doubled: ``what``, in words."""

    what: str
    left: int
    right: int

    def __bool__(self) -> bool:
        return (self.left - self.right) % _WORD == 0


def wrapped(difference: int) -> int:
    """Return a difference of two counters that wrap at 2**32, as a number from -2**31 on."""
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
        self._bus = bus
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

    def change(self, before: Callable[[Self], object], after: Callable[[Self], object]) -> None:
        """Write, to a node that works, the registers to which ``after`` gives other values than ``before`` gave them.

        Both get a driver, and write with it; nothing is read. What a write does besides (a counter starts again, a VC
        is set up) is so left to the registers that change.
        """
        (old, _), (new, shadow) = self._writes(before), self._writes(after)
        was = dict(old)
        touched = {word for addr, value in new if was.get(addr) != value for word in self._words(addr)}
        for addr, value in new:
            if addr in touched:
                self._bus.write(addr, value)
        self.csr.follow(shadow.csr)
        self.__dict__.update(vars(shadow) | {"csr": self.csr})

    def adopt(self, after: Callable[[Self], object]) -> None:
        """Take as written what ``after`` writes: somebody else has written it to the node."""
        _, shadow = self._writes(after)
        self.csr.follow(shadow.csr)
        self.__dict__.update(vars(shadow) | {"csr": self.csr})

    def values_of(self, member: str, value: Any) -> Mapping[str, int | None] | None:
        """Return the registers that belong to one member of the settings alone, by name, with their contents for a
        value.

        A register's value None: it is not written, and becomes unknown. The result None: the member also has other
        registers, or this node has no such member.
        """
        del member, value
        return None

    def _writes(self, write: Callable[[Self], object]) -> tuple[list[tuple[int, int]], Self]:
        shadow, recorder = copy.copy(self), Recorder()
        shadow.csr = Registers(recorder, self.csr.map)
        write(shadow)
        return recorder.writes, shadow

    def _words(self, addr: int) -> range:
        """Return the addresses of all words of the entry that includes ``addr``: an entry of two words is written as
        a whole."""
        for _, start, register in self.csr.map.walk():
            if start <= addr < start + register.size:
                first = addr - (addr - start) % register.words
                return range(first, first + register.words)
        raise ValueError(f"there is no register at {addr:#07x}")

    def counters(self) -> dict[str, Any]:
        """Return the node's counters by name: a number, or a list of one per VC or port. ``drop_REASON`` are dropped
        cells."""
        raise NotImplementedError

    def account(self, cells_in: int, cells_out: int) -> Iterator[Balance]:
        """Yield the node's balances: cells in = cells out + dropped by reason + still queued."""
        raise NotImplementedError

    def vc_counters(self, number: int) -> tuple[int, int]:
        """Return the addresses of two counters of a VC, for a ledger: cells accepted to be sent, and cells sent.

        They are 0 for a node without VCs or such a counter.
        """
        return 0, 0

    def buffered(self) -> int:
        """Return the address of the number of cells in the node's buffer; 0 if it has none."""
        return 0

    def replication_counter(self) -> tuple[int, int]:
        """Return the address of the number of cells that wait to be copied, and 0: a pair as from :meth:`vc_counters`.

        The address is 0 for a node that copies no cells.
        """
        return 0, 0

    def ledger_counts(self) -> Iterator[tuple[str, int, int]]:
        """Yield the counters of losses and bit errors that the node reports as they happen, for a ledger.

        Each is a text for a message, the number under which the node reports the event, and the count.
        """
        return iter(())
