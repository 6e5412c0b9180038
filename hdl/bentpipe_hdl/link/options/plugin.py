"""The hardware of an option of a link: a plugin, which hooks into the way of a cell through the link."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from amaranth.hdl import Module, Value

from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.link.datapath import Datapath, Offer
from bentpipe_hdl.link.options.base import LinkOption
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["LinkPlugin", "plugins_of"]


class LinkPlugin:
    """The hardware of an option. A hook does nothing unless it is overridden.

    Members
    -------
    lets_pass : bool
        Cells may go by the link at all, while ``acts`` is low.
    bad : Value or None
        The link is in the bad one of two states, each with a process of bit errors of its own; there after
        :meth:`build`.
    acts : Value or None
        Cells may not go by the link; there after :meth:`build`.
    memory_of_cells : object or None
        What holds cells for the delay: has ``wide`` and ``narrow``, which the datapaths call.
    cut : Value or None
        The line is interrupted; there after :meth:`build`.
    offer : Offer or None
        A cell that the plugin makes, for a tick in which none comes in; there after :meth:`build`.
    due, works : Value or None
        The first tick in which it has work of its own; it has some now. There after :meth:`lose`.
    """

    lets_pass: bool = True
    bad: Value | None = None
    acts: Value | None = None
    memory_of_cells: Any = None
    cut: Value | None = None
    offer: Offer | None = None
    due: Value | None = None
    works: Value | None = None

    def __init__(self, value: int):
        """Take ``value``, the option's part of the shape."""

    @staticmethod
    def members() -> Mapping[str, Any]:
        """Return the link's ports for the option, as members of its signature."""
        return {}

    def build(self, m: Module, slot: TickSchedule, csr: CsrMap, link: Any) -> None:
        """Make the plugin's parts, before the errors'."""

    def lose(self, path: Datapath, gone: Value) -> Value:
        """Return whether the cell is taken out: ``gone`` by plugins before, or for more."""
        del path
        return gone

    def sent(self, path: Datapath) -> None:
        """Use the departing cell, once it is made; ``path.leaving`` are its words, at 32 bits."""


def plugins_of(options: Mapping[LinkOption, int]) -> list[LinkPlugin]:
    """Return new plugins for these options: those of the module ``plugin`` beside each option's ``control``."""
    return [import_module(type(option).__module__[:-7] + "plugin").PLUGIN(value) for option, value in options.items()]
