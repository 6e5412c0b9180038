"""The registers of a board that can be read at any time without an effect, by name: for people, and for LiteX's
tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bentpipe_hdl.kinds import registers_of
from bentpipe_hdl.registers import RegisterMap
from bentpipe_sim.board.windows import HOST_PORT, WINDOW_BITS, Plan, board_registers, host_port_registers

__all__ = ["litex_csv", "named"]

_MOST: Final = 16
"""Entries of the largest table that is shown."""
_TAKES: Final = ("record", "memory_value")
"""Registers whose reads remove a word."""


def named(plan: Plan) -> Iterator[tuple[str, int]]:
    """Yield the names and addresses of readable registers; large tables are left out."""
    yield from _of("board", 0, board_registers(plan))
    for window, shape in enumerate(plan.nodes, 1):
        yield from _of(f"{shape.kind}{window}", window, registers_of(shape.kind, **dict(shape.parameters)))
    for window, shape in enumerate(plan.nodes, 1):
        if shape.kind == "nic":
            yield from _of(f"host{window}", HOST_PORT + window, host_port_registers(plan))


def _of(prefix: str, window: int, registers: RegisterMap) -> Iterator[tuple[str, int]]:
    for name, addr, register in registers.walk():
        if register.access == "wo" or name in _TAKES or register.size > _MOST:
            continue
        full = f"{prefix}_{name.replace('.', '_')}"
        for k in range(register.size):
            yield full + (f"_{k}" if register.count is not None else ""), window << WINDOW_BITS | addr + k


def litex_csv(plan: Plan) -> str:
    """Return the same as LiteX's ``csr.csv``: byte addresses. What UARTBone can write is read and written."""
    scratch = board_registers(plan)["scratch"].addr
    lines: Sequence[str] = [
        "constant,config_csr_data_width,32,,",
        "constant,config_bus_address_width,32,,",
        "csr_base,board,0x00000000,,",
        *(f"csr_register,{name},{4 * addr:#010x},1,{'rw' if addr == scratch else 'ro'}" for name, addr in named(plan)),
    ]
    return "\n".join(lines) + "\n"
