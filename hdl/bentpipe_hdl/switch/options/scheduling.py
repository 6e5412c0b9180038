"""The choice of each port's scheduler."""

from __future__ import annotations

from typing import Literal

from bentpipe_hdl.switch.options.base import Setup

__all__ = ["Scheduler", "scheduler_of"]

Scheduler = Literal["round-robin", "weighted", "fifo", "virtual-clock"]


def scheduler_of(setup: Setup, port: int) -> str:
    """Return the scheduler of a port: its own, or the switch's."""
    return setup.ports[port].settings.scheduler or setup.settings.scheduler
