"""The registers of LiteDRAM and a chip behind them, in software: without times, and with a PHY that reads rightly with
each setting. Only the first phases' commands of a start and of a check are known."""

from __future__ import annotations

from collections import deque
from typing import Final

from bentpipe_sim.board.ddr3 import BYTES, REGISTERS

__all__ = ["Ddr3Model"]

_NAMES: Final = {addr: name for name, addr in REGISTERS.items()}
_WE, _CAS, _RAS = 2, 4, 8


class Ddr3Model:
    """A DDR3 memory as the registers of a board reach it.

    Members
    -------
    values : deque of int
        Values that were read.
    """

    def __init__(self) -> None:
        self.values: deque[int] = deque()
        self._registers = dict.fromkeys(REGISTERS, 0)
        self._rows: dict[int, int] = {}
        self._bursts: dict[tuple[int, int, int], tuple[int, ...]] = {}

    def read(self, addr: int) -> None:
        """Read a register."""
        self.values.append(self._registers[_NAMES[addr]])

    def write(self, addr: int, value: int) -> None:
        """Write a register."""
        name = _NAMES[addr]
        self._registers[name] = value
        if name.endswith("command_issue"):
            self._issue(name.partition("_")[0])

    def _issue(self, phase: str) -> None:
        registers = self._registers
        command, address, bank = (registers[f"{phase}_{name}"] for name in ("command", "address", "baddress"))
        if command & (_RAS | _CAS | _WE) == _RAS:
            self._rows[bank] = address
        elif command & (_RAS | _CAS) == _CAS:
            place = self.place(bank, self._rows[bank], address)
            if command & _WE:
                self._bursts[place] = tuple(registers[f"pi{k}_wrdata{half}"] for k in range(2) for half in (1, 0))
            else:
                words = iter(self._bursts.get(place, (0,) * 4))
                registers |= {f"pi{k}_rddata{half}": next(words) for k in range(2) for half in (1, 0)}
                registers["burstdet_seen"] = (1 << BYTES) - 1

    def place(self, bank: int, row: int, column: int) -> tuple[int, int, int]:
        """Return the place of a burst."""
        return bank, row, column
