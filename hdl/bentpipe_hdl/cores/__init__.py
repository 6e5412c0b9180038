"""The cores that are exported for other designs, by name.

A core is a component whose parameters are keywords. Its ports are described by its class's docstring, from which
:mod:`.guide` makes its port guide. Nothing here needs Amaranth until a core is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from typing import Any, Final

__all__ = ["CORES", "Core"]


@dataclass(frozen=True)
class Core:
    """A core.

    Members
    -------
    name : str
    place : str
        ``module:class`` of its component, below ``bentpipe_hdl``.
    title : str
        A short description, for lists.
    node : str
        Its kind, if it is a node of a network: then its parameters are that node's shape.
    defaults : dict of str to int
        Parameters, where they differ from those of the component.
    """

    name: str
    place: str
    title: str
    node: str = ""
    defaults: Mapping[str, int] = field(default_factory=dict)

    @property
    def component(self) -> Any:
        """The class of its component."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"bentpipe_hdl.{module}"), name)

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters with their defaults; of a node only the width."""
        component = self.component
        given = signature(component.__init__).parameters.values() if "__init__" in vars(component) else ()
        found = {each.name: each.default for each in given if each.kind is each.KEYWORD_ONLY}
        if self.node:
            found = {name: found[name] for name in ("width",) if name in found}
        return found | dict(self.defaults)

    def make(self, **parameters: int) -> Any:
        """Return a component with these parameters.

        Raises
        ------
        ValueError
            There is no such parameter, or its value is out of range.
        """
        known = self.parameters
        if not self.node and (unknown := [name for name in parameters if name not in known]):
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"the core {self.name} has no parameter {unknown[0]!r}; {there}")
        return self.component(**{**self.defaults, **parameters})


_ALL = (
    Core("nic", "nic.nic:Nic", "network interface: AAL5 of many VCs, paced", node="nic", defaults={"width": 32}),
    Core("switch", "switch.switch:Switch", "cell switch with shared buffer", node="switch", defaults={"width": 32}),
    Core("link", "link.link:Link", "delay, bit errors and losses", node="link", defaults={"width": 32}),
    Core("sonet", "sonet.line:SonetLine", "two ends of a SONET line, for simulation", node="sonet"),
    Core("aal5-segmenter", "cores.aal5:Aal5Segmenter", "packets to AAL5 cells"),
    Core("aal5-reassembler", "cores.aal5:Aal5Reassembler", "AAL5 cells of several VCs to packets"),
    Core("sonet-terminal", "cores.sonet:SonetPort", "one end of an STS-3c or STS-12c line with cells"),
    Core("sonet-framer", "cores.sonet:SonetFramer", "cells and overhead to a line"),
    Core("sonet-deframer", "cores.sonet:SonetDeframer", "a line to cells, overhead and alarms"),
    Core("hec", "cores.headers:HeaderErrorControl", "header error control, both ways"),
    Core("gcra", "cores.headers:GcraPolicer", "policer of VCs by two buckets each"),
    Core("lookup", "cores.headers:HeaderLookup", "port, VPI and VCI to the number of a VC"),
    Core("utopia-atm", "cores.utopia:UtopiaAtm", "ATM layer's side of UTOPIA level 2"),
    Core("utopia-phy", "cores.utopia:UtopiaPhy", "PHY's side of UTOPIA level 2"),
)

CORES: Final = {core.name: core for core in _ALL}
"""Every core that is exported, by name."""
