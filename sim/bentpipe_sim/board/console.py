"""A console of a board: registers by name, and time step by step."""

from __future__ import annotations

import cmd
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TextIO

from bentpipe_hdl.kinds import registers_of
from bentpipe_hdl.registers import Register, RegisterMap
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.windows import HOST_PORT, WINDOW_BITS, Plan, board_registers, host_port_registers

__all__ = ["Console", "Place", "places_of"]

_WORD: Final = 1 << 32
_MOST_SHOWN: Final = 64
"""Words of a table that are shown at once."""


@dataclass(frozen=True)
class Place:
    """A register, or a table of them.

    Members
    -------
    addr : int
        Of its first word.
    register : Register
    """

    addr: int
    register: Register


def places_of(plan: Plan) -> dict[str, Place]:
    """Return all registers of a board by name: ``board.scratch``, ``link1.delay``, ``host2.level``."""
    found: dict[str, Place] = {}

    def add(prefix: str, window: int, registers: RegisterMap) -> None:
        for name, addr, register in registers.walk():
            found[f"{prefix}.{name}"] = Place(window << WINDOW_BITS | addr, register)

    add("board", 0, board_registers(plan))
    for window, shape in enumerate(plan.nodes, 1):
        add(f"{shape.kind}{window}", window, registers_of(shape.kind, **dict(shape.parameters)))
        if shape.kind == "nic":
            add(f"host{window}", HOST_PORT + window, host_port_registers(plan))
    return found


class Console(cmd.Cmd):
    """A console that reads commands and prints answers.

    Parameters
    ----------
    open_board : callable
        ``open_board(resets)`` returns the board, and resets its nodes if asked to.
    lines, out : TextIO
        Commands; answers.
    prompt : str
        "" if no person types.
    """

    intro = None

    def __init__(self, open_board: Callable[[bool], Board], lines: TextIO, out: TextIO, prompt: str) -> None:
        super().__init__(stdin=lines, stdout=out)
        self.prompt, self.use_rawinput = prompt, bool(prompt)
        self._open = open_board
        self._board, self._knows_time = open_board(False), False
        self._places = places_of(self._board.plan)
        self.failed = 0
        """Commands that could not be executed."""

    def onecmd(self, line: str) -> bool:
        """Execute a line; an error is printed, and counted. The end of input ends the console."""
        try:
            return bool(super().onecmd(line))
        except (BoardError, ValueError) as error:
            self._say(f"error: {error}")
            self.failed += 1
            return False

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> bool | None:  # type: ignore[override]
        if line == "EOF":
            return True
        raise ValueError(f"there is no command {line.split()[0]!r}; `help` lists them")

    def do_names(self, text: str) -> None:
        """Print the registers whose names contain TEXT: names [TEXT]."""
        for name, place in self._places.items():
            if text in name:
                size = f"[{place.register.size}]" if place.register.count is not None else ""
                self._say(f"{place.addr:#09x}  {place.register.access}  {name}{size}  {place.register.text}")

    def do_nodes(self, text: str) -> None:
        """Print the nodes of the board: nodes."""
        for window, shape in enumerate(self._board.plan.nodes, 1):
            parameters = ", ".join(f"{key}={value}" for key, value in shape.parameters)
            self._say(f"{shape.kind}{window}  {parameters}")

    def do_read(self, text: str) -> None:
        """Print words: read NAME|ADDRESS ...; a NAME is a register, a whole table, or NAME[INDEX]."""
        for name in _words(text, "read"):
            addr, count, register = self._find(name)
            if register is not None and register.access == "wo":
                raise ValueError(f"{name} can only be written")
            if count > _MOST_SHOWN:
                raise ValueError(f"{name} has {count} words: name one, such as {name}[0]")
            for k, word in enumerate(self._board.read([addr + k for k in range(count)])):
                self._say(f"{name}{f'[{k}]' if count > 1 else ''} = {word:#010x} ({word})")

    def do_write(self, text: str) -> None:
        """Write a word: write NAME|ADDRESS VALUE."""
        name, *values = _words(text, "write")
        if len(values) != 1:
            raise ValueError("write needs a register and a value")
        addr, count, register = self._find(name)
        if register is not None and register.access == "ro":
            raise ValueError(f"{name} can only be read")
        if count > 1:
            raise ValueError(f"{name} has {count} words: name one, such as {name}[0]")
        value = _number(values[0])
        if addr == self._places["board.reset"].addr:
            return self.do_reset("")
        self._board.write(addr, [value])
        self._board.read([])
        return None

    def do_run(self, text: str) -> None:
        """Let time pass, one tick by default, and print PDUs that arrive: run [TICKS]."""
        ticks = _number(text or "1")
        if ticks < 1:
            raise ValueError("a run has one tick at least")
        found = []
        if not self._knows_time:
            found = self._board.run(0)  # which tells the board's time, and passes tick 0
            ticks -= self._board.next_tick == 1
            self._knows_time = True
        if ticks:
            found += self._board.run(self._board.next_tick + ticks - 1)
        for ended in found:
            self._say(str(ended))
        self._say(f"the next tick is {self._board.next_tick}")

    def do_reset(self, text: str) -> None:
        """Reset all nodes and the time: reset."""
        self._board, self._knows_time = self._open(True), True

    def do_quit(self, text: str) -> bool:
        """End the console, and leave the board as it is: quit."""
        return True

    def _find(self, name: str) -> tuple[int, int, Register | None]:
        """Return address, number of words, and register of what was named."""
        if name[:1].isdigit():
            return _number(name), 1, None
        base, bracket, index = name.partition("[")
        if base not in self._places:
            raise ValueError(f"there is no register {base}; `names` lists them")
        place = self._places[base]
        if not bracket:
            return place.addr, place.register.size, place.register
        k = _number(index.removesuffix("]"))
        if k >= place.register.size:
            raise ValueError(f"{base} has {place.register.size} words")
        return place.addr + k, 1, place.register

    def _say(self, text: Any) -> None:
        print(text, file=self.stdout, flush=True)


def _words(text: str, command: str) -> list[str]:
    if not (found := text.split()):
        raise ValueError(f"{command} needs the name of a register")
    return found


def _number(text: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not 0 <= value < _WORD:
        raise ValueError(f"{text} is no number of 32 bits")
    return value
