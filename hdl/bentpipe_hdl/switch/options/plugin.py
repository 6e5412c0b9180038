"""The hardware of an option: a plugin, which hooks into joints of the cell path (:mod:`bentpipe_hdl.switch.path`).

A switch is a core and plugins. Each hook of :class:`Plugin` is called for all plugins of a switch, in the order of
their ``rank``. No part of the core names an option.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar

from amaranth.hdl import Module, Value

from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.switch.core.admission import Stage
from bentpipe_hdl.switch.core.core import Additions, Build
from bentpipe_hdl.switch.core.vc_table import VcField
from bentpipe_hdl.switch.options.base import Option
from bentpipe_hdl.switch.path import ArrivingCell, CellPath, LeavingCell

__all__ = ["Order", "Plugin", "Plugins"]


class Order(IntEnum):
    """In which order plugins see a cell: those of the same order by the bits of their options."""

    SCHEDULE = 10
    IDENTIFY = 20
    CONTROL = 30
    MANAGE = 40
    CHECK = 50
    REPLICATE = 60
    ADMIT = 70
    PACE = 80


class Plugin:
    """The hardware of one option, or of several that share it. A hook does nothing unless it is overridden.

    Members
    -------
    options : tuple of str
        Names of the options whose hardware it is.
    order : Order
    vc_fields : tuple of VcField
        State that it keeps for each VC.
    cell_fields : Mapping
        What is kept with each cell in the buffer, shapes by names.
    arguments : Mapping
        Keyword arguments for parts of the core, by the part's name in :class:`~bentpipe_hdl.switch.core.core.Core`.
    offer : OfferSignature interface or None
        Cells of its own, which come in through the injection multiplexer; there after :meth:`build`.
    gate : component or None
        It may stall ports: has ``stalled``, ``still_stalled`` and ``changes``, as of
        :class:`~bentpipe_hdl.switch.core.port_rate_scheduler.PortRateScheduler`; there after :meth:`attach`.
    due : Value or None
        The first tick in which it has work of its own; there after :meth:`attach`.
    clears : int
        Entries of its largest table that is cleared after reset.
    """

    options: ClassVar[tuple[str, ...]]
    order: ClassVar[Order]
    vc_fields: tuple[VcField, ...] = ()
    cell_fields: Mapping[str, Any] = {}
    arguments: Mapping[str, Mapping[str, Any]] = {}
    offer: Any = None
    gate: Any = None
    due: Value | None = None
    clears: int = 0

    def __init__(self, given: frozenset[str]):
        """Take ``given``, the names of all options of the switch."""
        self.given = given

    @staticmethod
    def members(*, vcs: int, ports: int) -> Mapping[str, Any]:
        """Return the switch's ports for the option, as members of its signature."""
        del vcs, ports
        return {}

    def build(self, build: Build, others: Mapping[str, Plugin]) -> None:
        """Make the plugin's components. The core's are not there yet; ``others`` are all plugins by option."""

    def stages(self) -> Iterator[tuple[int, Stage]]:
        """Yield admission stages, each with its :class:`~bentpipe_hdl.switch.core.admission.Rank`."""
        return iter(())

    def scheduler(self, build: Build) -> Any:
        """Return the scheduler of a port's VCs that replaces round robin, or None."""
        del build

    def reservations(self) -> Any:
        """Return the counter of reserved and shared places of the buffer, or None."""

    def find(self, m: Module, cell: ArrivingCell) -> None:
        """Replace the answer of the look-up (``found``, ``found_vc``, ``in_path``)."""

    def claim(self, m: Module, cell: ArrivingCell) -> None:
        """Take the cell out of ``admissible`` where it ends here: it is neither queued nor dropped."""

    def check(self, m: Module, cell: ArrivingCell) -> None:
        """Refuse the cell before admission, or change its CLP bit or its PTI."""

    def report(self, m: Module, cell: ArrivingCell, valid: Value, outputs: Any) -> Value:
        """Report the cell on the switch's ``outputs``; return when something is to be reported: ``valid``, or more."""
        del m, cell, outputs
        return valid

    def depart(self, m: Module, cell: LeavingCell) -> None:
        """Change the choice of the scheduler: which cell leaves, with which header, and whether its VC has more
        cells."""

    def periods(self) -> Sequence[Value] | None:
        """Return the ports' periods that replace those set by software, or None."""

    def attach(self, m: Module, csr: CsrMap, path: CellPath) -> None:
        """Connect the rest: the whole path is there, and the registers."""

    def busy(self) -> Iterator[Value]:
        """Yield bits that keep the switch from being idle."""
        return iter(())

    def urgent(self) -> Iterator[Value]:
        """Yield bits that request the next tick, independent of ``due``."""
        return iter(())


class Plugins(tuple[Plugin, ...]):
    """The plugins of a switch, in their order."""

    __slots__ = ()

    @classmethod
    def of(cls, options: Iterable[Option]) -> Plugins:
        """Return new plugins for these options: those that each option names as its hardware."""
        given = tuple(options)
        kinds = dict.fromkeys(option.hardware() for option in given)
        names = frozenset(option.name for option in given)
        return cls(sorted((kind(names) for kind in kinds), key=lambda plugin: plugin.order))

    def build(self, build: Build, options: Iterable[Option]) -> Additions:
        """Make the plugins' components, and return what is to be built into the core."""
        others = {name: plugin for plugin in self for name in plugin.options}
        for plugin in self:
            plugin.build(build, others)
        arguments: dict[str, dict[str, Any]] = {}
        for plugin in self:
            for part, more in plugin.arguments.items():
                arguments.setdefault(part, {}).update(more)
        scheduler = _only(plugin.scheduler(build) for plugin in self)
        return Additions(
            arguments=arguments,
            stages=[stage for plugin in self for stage in plugin.stages()],
            reservations=_only(plugin.reservations() for plugin in self),
            offers=[plugin.offer for plugin in self if plugin.offer is not None],
            scheduler=scheduler,
            vc_fields=[field for plugin in self for field in plugin.vc_fields],
            cell_fields={name: shape for plugin in self for name, shape in plugin.cell_fields.items()},
            clears=max((plugin.clears for plugin in self), default=0),
            counts_ports=any(option.needs_port_queues for option in options),
            changes_cells=any(option.changes_cells for option in options),
        )

    def periods(self) -> Sequence[Value] | None:
        """Return the ports' periods by the plugin that sets them, if one does."""
        return _only(plugin.periods() for plugin in self)

    def gates(self) -> list[Any]:
        """Return the parts that may stall ports."""
        return [plugin.gate for plugin in self if plugin.gate is not None]


def _only(given: Iterable[Any]) -> Any:
    """Return the one that is there, if any."""
    return next((one for one in given if one is not None), None)
