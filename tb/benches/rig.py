"""Several nodes in one component."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, flipped

__all__ = ["Rig"]


class Rig(wiring.Component):
    """Nodes side by side on one clock, none joined to another; compiled, the ports of node ``a`` are ``a_...``."""

    def __init__(self, nodes):
        self._nodes = nodes
        super().__init__({name: Out(node.signature) for name, node in nodes.items()})

    def elaborate(self, platform):
        m = Module()
        for name, node in self._nodes.items():
            m.submodules[name] = node
            wiring.connect(m, flipped(getattr(self, name)), node)
        return m
