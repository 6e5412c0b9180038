"""The hardware of a switch's options, in the order in which cells meet them."""

from .base import ArrivingCell, Build, LeavingCell, Plugin
from .copies import Copies
from .credits import Credits
from .discard import Efci, FairShare, Minimum, PortEpd, QueueLimit, Red
from .histograms import Histograms
from .oam import Oam
from .pacing import Frames, Reactive
from .paths import VirtualPaths
from .police import Police
from .scheduling import Turns, VirtualClock
from .shape import Shape

__all__ = ["PLUGINS", "ArrivingCell", "Build", "LeavingCell", "Plugin", "plugins_of"]

PLUGINS: tuple[type[Plugin], ...] = (
    VirtualClock, Turns, VirtualPaths, Credits, Oam, Police, Copies, FairShare, Minimum, PortEpd, Efci, QueueLimit,
    Histograms, Red, Frames, Reactive, Shape,
)  # fmt: skip


def plugins_of(options) -> list[Plugin]:
    """Of a switch with these options."""
    given = frozenset(option.name for option in options)
    return [plugin(given) for plugin in PLUGINS if given & {*plugin.options}]
