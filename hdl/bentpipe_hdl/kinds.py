"""The kinds of nodes by name, and the registers of each. Nothing here needs Amaranth."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, signature
from typing import Final

from bentpipe_hdl.link.control import link_registers
from bentpipe_hdl.link.options import OPTIONS as LINK_OPTIONS
from bentpipe_hdl.nic.control import nic_registers
from bentpipe_hdl.nic.options import OPTIONS as NIC_OPTIONS
from bentpipe_hdl.registers import RegisterMap
from bentpipe_hdl.sonet.control import sonet_registers
from bentpipe_hdl.switch.control import switch_registers

__all__ = ["REGISTERS", "check_parts", "registers_of"]

REGISTERS: dict[str, Callable[..., RegisterMap]] = {
    "nic": nic_registers,
    "switch": switch_registers,
    "link": link_registers,
    "sonet": sonet_registers,
}
"""Functions that make the registers of each kind from its shape, given as keywords."""

OPTIONS_BY_KIND: Final = {"nic": NIC_OPTIONS, "link": LINK_OPTIONS}
"""Options of the kinds whose shape has a part for each option."""

_KEYWORD: Final = Parameter.KEYWORD_ONLY


def check_parts(kind: str, names: Iterable[str]) -> None:
    """Check that the shape of a kind of node has parts with these names.

    Raises
    ------
    ValueError
        There is no such kind, or its shape has no such part.
    """
    if kind not in REGISTERS:
        raise ValueError(f"no kind of node is called {kind!r}; there are {', '.join(REGISTERS)}")
    parts = [name for name, parameter in signature(REGISTERS[kind]).parameters.items() if parameter.kind is _KEYWORD]
    parts += [option.name for option in OPTIONS_BY_KIND.get(kind, ()) if option.name]
    unknown = [name for name in names if name not in parts]
    if unknown:
        raise ValueError(f"the shape of a {kind} has no {unknown[0]!r}; it has {', '.join(parts)}")


def registers_of(kind: str, **shape: int) -> RegisterMap:
    """Return the registers of a kind of node, with the usual shape except for the given parts.

    Raises
    ------
    ValueError
        There is no such kind, its shape has no such part, or there are no registers for it.
    """
    check_parts(kind, shape)
    return REGISTERS[kind](**shape)
