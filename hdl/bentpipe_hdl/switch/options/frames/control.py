"""Ports whose cells have places in frames, as software sees them: the PLCP of a DS-3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bentpipe_hdl.plcp import FRACTION, frame_problem, frame_times
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.switch.options.base import Fault, Option, Setup

__all__ = ["OPTIONS", "Frames"]


class Frames(Option):
    """Ports that send each cell in a slot of its line's frame."""

    name = "frames"
    bit = 13

    def wanted(self, setup: Setup) -> bool:
        return any(port.settings.frames for port in setup.ports)

    def check(self, setup: Setup) -> Iterator[Fault]:
        for k, port in enumerate(setup.ports):
            if problem := frame_problem(port.settings.frames, port.rate_bps):
                yield Fault(f"port {k}: {problem}", "frames", port=k)
            if port.settings.frames and port.settings.reactive:
                yield Fault(f"port {k}: a load-reactive port has no frames", "frames", port=k)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells
        return (
            Register(
                "frame_slot",
                0x0400,
                "length of a slot of a port's frames; 0: no frames",
                "rw",
                32,
                ports,
                "ticks / 2**16",
            ),
            Register("frame_cycle", 0x0410, "length of three frames", "rw", 32, ports, "ticks / 2**16"),
        )

    def configure(self, csr: Registers, setup: Setup) -> None:
        for k, port in enumerate(setup.ports):
            if port.settings.frames:
                csr.frame_slot[k], csr.frame_cycle[k] = frame_times(port.clock_ppm)
                csr.period[k] = 1 << FRACTION  # the slots alone say when


OPTIONS: Final = (Frames(),)
