"""The declaration of a board: its device, pins and clock, and how it is flashed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bentpipe_boards.devices import DEVICES, Device
from bentpipe_boards.fpga.ethernet import Rgmii

__all__ = ["PIN_CLOCKS", "Board"]

PIN_CLOCKS: Final = 2
"""Registers between the SDRAM's controller and the chip: one out, one in."""


@dataclass(frozen=True)
class Board:
    """A board on which the emulator runs.

    Members
    -------
    name : str
    title : str
        As in a shop.
    device : str
        Of :data:`~bentpipe_boards.devices.DEVICES`.
    platform : callable
        Gives Amaranth's platform of the board: package, speed grade, pins.
    loader : str
        The board's name for openFPGALoader.
    cable : str
        Where the USB cable goes that carries JTAG and the serial line.
    reference_hz : int
        Of the oscillator.
    clock_hz : int
        Of the core, unless another is asked for.
    plan : str
        Name of the plan that is built by default, in :data:`~bentpipe_boards.fpga.plans.PLANS`.
    sdram : callable or None
        ``sdram(m, platform, chip)`` joins the pins of its SDRAM to the controller's
        :class:`~bentpipe_boards.sdram.SdramSignature`, through :data:`PIN_CLOCKS` registers. None: the board has no
        SDRAM that the emulator can use.
    connect : callable
        ``connect(m, platform, status)`` drives what only this board has; ``status`` is a
        :class:`~bentpipe_boards.fpga.top.Status`.
    rgmii : Rgmii or None
        Its Ethernet PHY.
    ddr3 : str or None
        Name of its DDR3 memory in amaranth-boards, 4 Gbit with 16 data lines (MT41K256M16). None: it has none.
    """

    name: str
    title: str
    device: str
    platform: Callable[[], Any]
    loader: str
    cable: str
    reference_hz: int
    clock_hz: int
    plan: str
    connect: Callable[[Any, Any, Any], None]
    sdram: Callable[[Any, Any, Any], None] | None = None
    rgmii: Rgmii | None = None
    ddr3: str | None = None

    @property
    def has(self) -> Device:
        """The resources of the board's device."""
        return DEVICES[self.device]
