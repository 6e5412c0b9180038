"""The hardware of an option of a network interface: a plugin, which hooks into its two directions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar

from amaranth.hdl import Module, Value

from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.nic.core import NicCore
from bentpipe_hdl.nic.options.base import NicOption

__all__ = ["NicPlugin", "plugins_of"]


class NicPlugin:
    """The hardware of an option. A hook does nothing unless it is overridden; all plugins' ``posts`` come before all
    plugins' ``transmit``, and these before all plugins' ``receive``.

    Members
    -------
    arguments : Mapping
        Keyword arguments for parts of the core, by the part's name in :class:`~bentpipe_hdl.nic.core.NicCore`.
    drives_line : bool
        It tells the line when it takes cells, instead of the register ``line_period``.
    takes : Value or None
        The tick's cell ends in the plugin, not in the reassembler; there after :meth:`receive`.
    """

    arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    drives_line: ClassVar[bool] = False
    takes: Value | None = None

    @staticmethod
    def members(*, width: int, vcs: int) -> Mapping[str, Any]:
        """Return the interface's ports for the option, as members of its signature."""
        del width, vcs
        return {}

    def posts(self, m: Module, csr: CsrMap, core: NicCore) -> None:
        """Replace what the pacer is given of posts, and ``core.last``: it sends on a VC itself."""

    def transmit(self, m: Module, csr: CsrMap, core: NicCore) -> None:
        """Connect what it has to do with pacer and segmenter; replace ``core.ends``."""

    def receive(self, m: Module, csr: CsrMap, core: NicCore) -> None:
        """Connect what it has to do with cells that arrive."""

    def due(self) -> Iterator[Value]:
        """Yield the first tick in which the option has work of its own."""
        return iter(())

    def busy(self) -> Iterator[Value]:
        """Yield bits that keep the interface from being idle at 32 bits."""
        return iter(())


def plugins_of(options: Iterable[NicOption]) -> list[NicPlugin]:
    """Return new plugins for these options: those of the module ``plugin`` beside each option's ``control``."""
    return [import_module(type(option).__module__[:-7] + "plugin").PLUGIN() for option in options]
