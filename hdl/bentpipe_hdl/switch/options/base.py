"""What an option of a switch is to software: when a switch has it, its registers, its settings, its counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bentpipe_hdl.registers import Register, Registers

__all__ = ["Option", "Setup"]


@dataclass(frozen=True)
class Setup:
    """What a switch is set up with.

    Members
    -------
    settings : SwitchSettings
    ports : Sequence of SwitchPort
    vcs : Sequence of SwitchVc
    name : str
        The switch's.
    seed : str
        From which the switch's random numbers are, if it has any: the experiment's seed and the switch's name.
    """

    settings: Any
    ports: Sequence[Any]
    vcs: Sequence[Any]
    seed: str = ""
    name: str = ""


class Option:
    """A mechanism that a switch is built with, or without: then it has no register, no gate and no work of it.

    Members
    -------
    name : str
    needs_port_queues : bool
        The switch counts what is queued for each port (:mod:`bentpipe_hdl.switch.port_queues`).
    changes_cells : bool
        Its stages tag cells or set their EFCI bits: the switch counts these by VC (``tagged``, ``marked``).
    makes_cells : bool
        Its part offers cells of its own (:mod:`bentpipe_hdl.switch.inlet`): the switch counts them (``injected``).
    series : dict
        Names of what :meth:`sample` gives, and what each is.
    """

    name: ClassVar[str]
    needs_port_queues: ClassVar[bool] = False
    changes_cells: ClassVar[bool] = False
    makes_cells: ClassVar[bool] = False
    series: ClassVar[dict[str, str]] = {}

    def wanted(self, setup: Setup) -> bool:
        """Some setting asks for it."""
        raise NotImplementedError

    def check(self, setup: Setup) -> Iterator[str]:
        """What is wrong with the settings of a switch taken together, a line each."""
        del setup
        return iter(())

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        """Those of a switch with so many VCs, cells of buffer and ports."""
        raise NotImplementedError

    def configure(self, csr: Registers, setup: Setup) -> None:
        """Write its settings to the registers of a switch that was reset."""
        raise NotImplementedError

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        """Its counters: a number, or a list with one a VC or port."""
        del csr, setup
        return {}

    def uncounted(self, csr: Registers) -> int:
        """Return how many cells it has taken that are in no counter yet: those come with the next tick."""
        del csr
        return 0

    def sample(self, csr: Registers, setup: Setup) -> dict[str, dict[int, int]]:
        """What is worth recording as time goes: values by port, of each of its ``series``."""
        del csr, setup
        return {}
