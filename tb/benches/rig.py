"""Several nodes in one component."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, flipped

__all__ = ["Rig", "rig_of"]


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


def rig_of(shapes):
    """The rig of nodes of these shapes, wide."""
    return Rig({name: shape.component() for name, shape in shapes.items()})
