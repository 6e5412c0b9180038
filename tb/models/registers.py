"""Register accesses by name, for tests that make lists of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bentpipe_hdl.registers import Recorder, RegisterMap, Registers

__all__ = ["addresses", "written"]


def written(registers: RegisterMap, *actions: Callable[[Registers], object]) -> list[tuple[int, int]]:
    """The writes, (address, value), that these functions of a node's registers do."""
    recorder = Recorder()
    csr = Registers(recorder, registers)
    for action in actions:
        action(csr)
    return recorder.writes


def addresses(registers: RegisterMap, *names: str) -> list[int]:
    """The addresses of all words of the registers with these names."""
    found: list[int] = []
    for name in names:
        register = registers[name]
        found += _words(register.addr, register.size)
    return found


def _words(addr: int, size: int) -> Iterable[int]:
    return range(addr, addr + size)
