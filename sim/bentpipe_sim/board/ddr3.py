"""The start of a board's DDR3 memory through the registers of LiteDRAM: mode registers, then levelling of reads.

LiteDRAM leaves this to a CPU. A board has none, so the computer does it, whenever a session resets the board. Times are
kept by the board (:data:`~bentpipe_boards.ddr3.Ask.WAIT`): a list of accesses is executed in order, and each wait takes
at least as long as it says.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from bentpipe_sim.board.errors import BoardError

__all__ = ["BANKS", "BITSLIPS", "BYTES", "DELAYS", "REGISTERS", "Access", "Ddr3", "Levelled", "mode_registers"]

BANKS: Final = {"ddrphy": 0, "sdram": 1}
"""Pages of LiteDRAM's registers."""
_PAGE: Final = 0x200
_PHY: Final = (
    "dly_sel", "rdly_dq_rst", "rdly_dq_inc", "rdly_dq_bitslip_rst", "rdly_dq_bitslip", "burstdet_clr", "burstdet_seen",
)  # fmt: skip
_PHASE: Final = (
    "command", "command_issue", "address", "baddress", "wrdata1", "wrdata0", "rddata1", "rddata0",
)  # fmt: skip
REGISTERS: Final = {
    **{name: BANKS["ddrphy"] * _PAGE + k for k, name in enumerate(_PHY)},
    "control": BANKS["sdram"] * _PAGE,
    **{
        f"pi{phase}_{name}": BANKS["sdram"] * _PAGE + 1 + len(_PHASE) * phase + k
        for phase in range(2)
        for k, name in enumerate(_PHASE)
    },
}
"""Addresses of LiteDRAM's registers (2024.12). The build of a bitstream compares them with those of its LiteDRAM."""

# Bits of `control`, and of `command`
SEL, CKE, ODT, RESET_N = 1, 2, 4, 8
CS, WE, CAS, RAS, WRDATA, RDDATA = 1, 2, 4, 8, 16, 32
_ACTIVATE, _WRITE, _READ = RAS | CS, CAS | WE | CS | WRDATA, CAS | CS | RDDATA
_PRECHARGE, _MODE, _CALIBRATE = RAS | WE | CS, RAS | CAS | WE | CS, WE | CS
_ALL: Final = 1 << 10
"""Bit of the address: all banks are precharged, or the long calibration is done."""
_READ_PHASE, _WRITE_PHASE = 0, 1
"""Phases of the column commands, for CL 6 and CWL 5."""

BYTES, BITSLIPS, DELAYS = 2, 4, 8
"""Groups of data lines; settings of the PHY for each of them."""
_MOST_HZ: Final = 100_000_000
"""No memory has a faster clock: times are converted with this one."""
_WAITING: Final = 12
"""Accesses that are sent before the board has to answer: it has room for 17."""
_ASKED: Final = 400
"""Times that a board is asked for a value."""
_SEEDS: Final = (1, 2, 3)


@dataclass(frozen=True)
class Times:
    """Times of a chip's start in ns: JESD79-3F, 3.3.1 and 13.3, for 4 Gbit; clocks of tMRD, tMOD, tDLLK and tZQinit are
    of 8 ns at most.

    Members
    -------
    cke : int
        From the end of RESET# to CKE.
    xpr, mod, dllk, command : int
        From CKE to the first command; from the last mode register to another command; from the reset of the DLL to a
        read, and the first calibration; between other commands, of which a refresh takes longest.
    """

    cke: int = 500_000
    xpr: int = 270
    mod: int = 12 * 8
    dllk: int = 512 * 8
    command: int = 260


_TIMES: Final = Times()


def mode_registers() -> dict[int, int]:
    """Return the values of the mode registers by their numbers, in the order in which they are written.

    JESD79-3F, 3.4: bursts of 8 in sequence, CL 6, CWL 5, write recovery of 5 clocks, the DLL is reset and on, drivers
    of 34 ohms, terminations of 60 ohms for writes (dynamic) and otherwise.
    """
    cas_latency, recovery, cas_write_latency = 6, 5, 5
    latency = cas_latency - 4 << 1  # bit 0 is A2, the others are A6 to A4
    mr0 = (latency & 1) << 2 | (latency >> 1) << 4 | 1 << 8 | recovery - 4 << 9
    mr1 = 1 << 1 | 1 << 2  # RZQ/7; RZQ/4
    mr2 = cas_write_latency - 5 << 3 | 1 << 9  # RZQ/4
    return {2: mr2, 3: 0, 1: mr1, 0: mr0}


class Access(Protocol):
    """The way to a board's registers (:class:`~bentpipe_sim.board.board.Board`)."""

    def write_memory(self, kind: str, words: Sequence[int]) -> None:
        """Write words to ``memory_address``, ``memory_read`` or ``memory_wait`` and the registers behind it."""
        ...

    def take_memory(self, most: int) -> list[int]:
        """Return values that were read from the memory's controller, up to so many."""
        ...


@dataclass(frozen=True)
class Levelled:
    """The setting of a byte's data lines.

    Members
    -------
    bitslip, delay : int
    passed : int
        Delays in a row with which reads are right.
    """

    bitslip: int
    delay: int
    passed: int


class Ddr3:
    """A board's DDR3 memory.

    Parameters
    ----------
    access : Access
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._sent = 0  # since the board answered

    # Registers

    def write(self, name: str, value: int) -> None:
        """Write a register of LiteDRAM."""
        self._room()
        self._access.write_memory("memory_address", (REGISTERS[name], value))

    def wait(self, time_ns: int) -> None:
        """Let the board wait before the next access."""
        self._room()
        self._access.write_memory("memory_wait", (-(-time_ns * _MOST_HZ // 10**9),))

    def read(self, *names: str) -> list[int]:
        """Read registers of LiteDRAM, behind all that was written.

        Raises
        ------
        BoardError
            The board gives no value.
        """
        found: list[int] = []
        for first in range(0, len(names), _WAITING):
            part = names[first : first + _WAITING]
            if self._sent + len(part) > _WAITING:
                self._settle()
            for name in part:
                self._access.write_memory("memory_read", (REGISTERS[name],))
            found += self._values(len(part))
        return found

    def _values(self, count: int) -> list[int]:
        found: list[int] = []
        for _ in range(_ASKED):
            found += self._access.take_memory(count - len(found))
            if len(found) == count:
                self._sent = 0
                return found
        raise BoardError("the controller of the DDR3 memory does not answer: its clock is not there")

    def _room(self) -> None:
        if self._sent >= _WAITING - 1:
            self._settle()
        self._sent += 1

    def _settle(self) -> None:
        """Wait until all accesses are done."""
        self._access.write_memory("memory_read", (REGISTERS["control"],))
        self._values(1)

    # Commands

    def _command(self, phase: int, command: int, address: int = 0, bank: int = 0) -> None:
        self.write(f"pi{phase}_address", address)
        self.write(f"pi{phase}_baddress", bank)
        self.write(f"pi{phase}_command", command)
        self.write(f"pi{phase}_command_issue", 1)

    def is_started(self) -> bool:
        """Return whether the controller has the chip, which it gets at the end of a start."""
        (control,) = self.read("control")
        return bool(control & SEL)

    def start(self) -> list[Levelled]:
        """Start the chip and level its reads; return the setting of each byte.

        Raises
        ------
        BoardError
            The memory's clock is not there, or no setting reads what was written.
        """
        self._power_up()
        found = self._level()
        self._command(0, _PRECHARGE, _ALL)
        self.wait(_TIMES.command)
        self.write("control", SEL | CKE | ODT | RESET_N)
        self._settle()
        return found

    def _power_up(self) -> None:
        """Take the chip from the controller, and write its mode registers. ODT is low until they are there, as one of
        them turns the termination on."""
        (before,) = self.read("control")
        if before & CKE:  # started by another session; it has open rows, or is being refreshed
            self.write("control", CKE | RESET_N)
            self.wait(_TIMES.command)
            self._command(0, _PRECHARGE, _ALL)
            self.wait(_TIMES.command)
        else:
            self.write("control", RESET_N)
            self.wait(_TIMES.cke)
            self.write("control", CKE | RESET_N)
            self.wait(_TIMES.xpr)
        for number, value in mode_registers().items():
            self._command(0, _MODE, value, number)
            self.wait(_TIMES.mod)
        self._command(0, _CALIBRATE, _ALL)
        self.wait(_TIMES.dllk)
        self.write("control", CKE | ODT | RESET_N)

    # Levelling

    def _level(self) -> list[Levelled]:
        """Find, for each byte, the setting in the middle of those with which reads are right."""
        right = [[[False] * DELAYS for _ in range(BITSLIPS)] for _ in range(BYTES)]
        every = (1 << BYTES) - 1
        for bitslip in range(BITSLIPS):
            for delay in range(DELAYS):
                self._set(every, bitslip, delay, steps=True)
                for byte, passed in enumerate(self._reads_right()):
                    right[byte][bitslip][delay] = passed
        found = []
        for byte in range(BYTES):
            runs = [(run, bitslip) for bitslip in range(BITSLIPS) for run in _runs(right[byte][bitslip])]
            if not runs:
                raise BoardError(
                    f"data lines {8 * byte} to {8 * byte + 7} of the DDR3 memory are read wrongly with each setting"
                )
            run, bitslip = max(runs, key=lambda pair: len(pair[0]))
            found.append(Levelled(bitslip, run[len(run) // 2], len(run)))
            self._set(1 << byte, bitslip, found[-1].delay)
        if not all(self._reads_right()):
            raise BoardError("the DDR3 memory is read wrongly with the settings that were right before")
        return found

    def _set(self, select: int, bitslip: int, delay: int, *, steps: bool = False) -> None:
        """Set bytes of the PHY. ``steps``: they have the setting before in the order of the search."""
        self.write("dly_sel", select)
        slips, increments = bitslip, delay
        if steps and delay:
            slips, increments = 0, 1
        else:
            self.write("rdly_dq_rst", 1)
            self.write("rdly_dq_bitslip_rst", 1)
        for name, count in (("rdly_dq_inc", increments), ("rdly_dq_bitslip", slips)):
            for _ in range(count):
                self.write(name, 1)
        # The PHY pauses the selected bytes, and all of them go on at once
        self.write("dly_sel", (1 << BYTES) - 1)
        self.write("dly_sel", 0)

    def _reads_right(self) -> list[bool]:
        """Write bursts and read them; return, for each byte, whether all were right."""
        right = [True] * BYTES
        for seed in _SEEDS:
            words = _pattern(seed)
            self._write_burst(_Place(), words)
            read = self._read_burst(_Place())
            (seen,) = self.read("burstdet_seen")
            for byte in range(BYTES):
                lines = sum(0xFF << 8 * byte + 16 * beat for beat in range(4))
                same = all((wrote ^ came) & lines == 0 for wrote, came in zip(words, read, strict=True))
                right[byte] &= same and bool(seen >> byte & 1)
            if not any(right):
                break
        return right

    def _write_burst(self, place: _Place, words: tuple[int, int]) -> None:
        """Write a burst, and close its row."""
        self._open(place)
        for phase in range(2):
            self.write(f"pi{phase}_wrdata1", words[phase] >> 32)
            self.write(f"pi{phase}_wrdata0", words[phase] & 0xFFFFFFFF)
        self._command(_WRITE_PHASE, _WRITE, place.column, place.bank)
        self._close()

    def _read_burst(self, place: _Place) -> tuple[int, int]:
        """Read a burst, and close its row."""
        self._open(place)
        self.write("burstdet_clr", 1)
        self._command(_READ_PHASE, _READ, place.column, place.bank)
        self._close()
        first, second, third, fourth = self.read(*(f"pi{phase}_rddata{half}" for phase in range(2) for half in (1, 0)))
        return first << 32 | second, third << 32 | fourth

    def _open(self, place: _Place) -> None:
        self._command(0, _ACTIVATE, place.row, place.bank)
        self.wait(_TIMES.command)

    def _close(self) -> None:
        self.wait(_TIMES.command)
        self._command(0, _PRECHARGE, _ALL)
        self.wait(_TIMES.command)

    # Check

    def check(self, rows: int) -> str:
        """Test data lines and address lines of a chip that was started; return what was tested.

        For each address line a burst is written at 0, another one where this line alone is high, and both are read. It
        takes far less time than the chip keeps its data without a refresh.

        Parameters
        ----------
        rows : int
            Rows of each bank, a power of two. Lines that are high beyond them are not tested.

        Raises
        ------
        BoardError
            A line is stuck.
        """
        self.write("control", CKE | ODT | RESET_N)
        self._close()
        places = [
            *((f"bank {k}", _Place(bank=1 << k)) for k in range(3)),
            *((f"row {k}", _Place(row=1 << k)) for k in range((rows - 1).bit_length())),
            *((f"column {k}", _Place(column=1 << k)) for k in range(3, 10)),
        ]
        one, other = _pattern(11), _pattern(12)
        try:
            for words in (one, other, *(tuple(~word & (1 << 64) - 1 for word in each) for each in (one, other))):
                self._write_burst(_Place(), (words[0], words[1]))
                self._compare(_Place(), (words[0], words[1]), "")
            for name, place in places:
                self._write_burst(_Place(), one)
                self._write_burst(place, other)
                self._compare(_Place(), one, name)
                self._compare(place, other, name)
        finally:
            self.write("control", SEL | CKE | ODT | RESET_N)
            self._settle()
        return f"{8 * BYTES} data lines, {len(places)} bits of addresses"

    def _compare(self, place: _Place, words: tuple[int, int], name: str) -> None:
        """Compare a burst; ``name`` is the bit of the address that is tested, if one is."""
        read = self._read_burst(place)
        wrong = 0
        for wrote, came in zip(words, read, strict=True):
            for beat in range(4):
                wrong |= (wrote ^ came) >> 16 * beat & 0xFFFF
        if wrong and name:
            raise BoardError(f"{name} of the DDR3 memory's address has no effect")
        if wrong:
            lines = ", ".join(str(k) for k in range(16) if wrong >> k & 1)
            raise BoardError(f"data lines {lines} of the DDR3 memory are read wrongly")


@dataclass(frozen=True)
class _Place:
    """A burst in the chip."""

    bank: int = 0
    row: int = 0
    column: int = 0


def _pattern(seed: int) -> tuple[int, int]:
    """Return four random beats of 16 bits for each phase."""
    generator = random.Random(seed)
    return generator.getrandbits(64), generator.getrandbits(64)


def _runs(passed: Sequence[bool]) -> list[list[int]]:
    """Return the runs of indices that passed."""
    runs: list[list[int]] = []
    for k, good in enumerate(passed):
        if good and k and passed[k - 1]:
            runs[-1].append(k)
        elif good:
            runs.append([k])
    return runs
