"""The nodes of a network, each one component with the faces of :mod:`bentpipe_hdl.cell`."""

from ..link.link import Link
from ..sonet.line import SonetLine
from ..switch.switch import Switch
from .nic import Nic

__all__ = ["Link", "Nic", "SonetLine", "Switch"]
