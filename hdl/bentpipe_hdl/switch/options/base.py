"""The software side of a switch's option: when a switch has it, its registers, settings and counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from bentpipe_hdl.registered import Registered
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import Settings

__all__ = ["Fault", "Option", "Setup", "above_buffer"]


class Fault(str):
    """A line about settings of a switch that do not go together, with the place of the setting at fault.

    Members
    -------
    key : str
        The setting, as a document has it; "": no single one.
    port, vc : int, optional
        The port or the VC, by its index, that has the setting; neither: the switch itself.
    """

    __slots__ = ("key", "port", "vc")

    def __new__(cls, what: str, key: str = "", *, port: int | None = None, vc: int | None = None) -> Fault:
        made = super().__new__(cls, what)
        made.key, made.port, made.vc = key, port, vc
        return made


@dataclass(frozen=True)
class Setup:
    """A switch's set-up, as an option's software side reads it.

    Members
    -------
    settings : SwitchSettings
    ports : Sequence of SwitchPort
    vcs : Sequence of SwitchVc
    seed : str
        Seed of the switch's random numbers, if it has any: the experiment's seed and the switch's name.
    name : str
        Name of the switch.
    """

    settings: Any
    ports: Sequence[Any]
    vcs: Sequence[Any]
    seed: str = ""
    name: str = ""

    @property
    def entries(self) -> int:
        """Entries that the VCs take of the switch's VC tables."""
        return sum(max(1, len(vc.keys)) for vc in self.vcs)

    def port_with(self, key: str, value: object) -> int | None:
        """Return the first port that has this value of a setting itself; None: the switch gives it."""
        return next((k for k, port in enumerate(self.ports) if getattr(port.settings, key) == value), None)

    def vc_with(self, key: str) -> int | None:
        """Return the first VC that has a setting itself."""
        return next((k for k, vc in enumerate(self.vcs) if getattr(vc.settings, key)), None)


class Option(Registered):
    """A mechanism that a switch is built with, or without: then it has no register, no gate and no work of it.

    Members
    -------
    name : str
    bit : int
        Its place in the word ``options`` of a switch's shape, which it alone has and keeps for ever. An option from
        outside of bentpipe has none of its own: it gets one when it is added.
    switch_settings, port_settings, vc_settings : type of Settings or None
        Of an option from outside of bentpipe: models whose members become keys of switches, ports and VCs.
    needs_port_queues : bool
        The switch counts what is queued for each port (:mod:`bentpipe_hdl.switch.core.port_queues`).
    tags_cells : bool
        It may set cells' CLP bits: VCs through the switch have tagged cells counted at their sinks.
    changes_cells : bool
        Its stages tag cells or set their EFCI bits: the switch counts these by VC (``tagged``, ``marked``).
    makes_cells : bool
        Its part offers cells of its own (:mod:`bentpipe_hdl.switch.core.injection`): the switch counts them
        (``injected``).
    series : dict
        Names of what :meth:`sample` gives, and what each is.
    """

    package = "bentpipe_hdl.switch.options"

    name: ClassVar[str]
    bit: int
    switch_settings: ClassVar[type[Settings] | None] = None
    port_settings: ClassVar[type[Settings] | None] = None
    vc_settings: ClassVar[type[Settings] | None] = None
    needs_port_queues: ClassVar[bool] = False
    changes_cells: ClassVar[bool] = False
    tags_cells: ClassVar[bool] = False
    makes_cells: ClassVar[bool] = False
    series: ClassVar[dict[str, str]] = {}

    def wanted(self, setup: Setup) -> bool:
        """Return whether a setting needs the option."""
        raise NotImplementedError

    def check(self, setup: Setup) -> Iterator[Fault]:
        """Yield the faults of a switch's settings in combination."""
        del setup
        return iter(())

    def hardware(self) -> Any:
        """Return the option's hardware, a class derived from ``Plugin``.

        Unless that is overridden it is ``PLUGIN`` of the module ``plugin`` beside its own.
        """
        return import_module(f"{type(self).__module__.rpartition('.')[0]}.plugin").PLUGIN

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        """Return the option's registers in a switch with so many VCs, cells of buffer and ports."""
        raise NotImplementedError

    def configure(self, csr: Registers, setup: Setup) -> None:
        """Write its settings to the registers of a switch that was reset."""
        raise NotImplementedError

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        """Return the option's counters by name: a number, or a list of one per VC or port."""
        del csr, setup
        return {}

    def taken(self, csr: Registers, counters: Mapping[str, Any]) -> int:
        """Return the number of cells of known VCs that ended in the option.

        It is computed from the switch's ``counters``, and from registers for cells that are counted only with the next
        tick.
        """
        del csr, counters
        return 0

    def made(self, counters: Mapping[str, Any]) -> int:
        """Return the number of cells sent by the option that were never queued, from the switch's ``counters``."""
        del counters
        return 0

    def sample(self, csr: Registers, setup: Setup) -> dict[str, dict[int, int]]:
        """Return values to be recorded over time: by port, for each of the option's ``series``."""
        del csr, setup
        return {}


def above_buffer(setup: Setup, key: str) -> Iterator[Fault]:
    """Yield a fault for each port whose threshold ``key`` is more than the buffer."""
    cells = setup.settings.buffer_cells
    for k, port in enumerate(setup.ports):
        given = getattr(port.settings, key) or 0
        if given > cells:
            yield Fault(f"{key} of port {k}: {given} cells are more than the buffer's {cells}", key, port=k)
