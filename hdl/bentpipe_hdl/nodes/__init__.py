"""The nodes of a network, each one component with the faces of :mod:`bentpipe_hdl.cell`."""

from ..link.link import Link
from ..nic.nic import Nic
from ..sonet.line import SonetLine
from ..switch.switch import Switch

__all__ = ["Link", "Nic", "SonetLine", "Switch"]
