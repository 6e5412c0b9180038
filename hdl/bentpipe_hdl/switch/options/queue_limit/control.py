"""A limit of what is queued for a port, in frames, as software sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import COUNT
from bentpipe_hdl.switch.options.base import Fault, Option, Setup

__all__ = ["OPTIONS", "QueueLimit", "QueueLimitSize", "frames_known"]

QueueLimitSize = Annotated[int, COUNT.within(1, 32768).counting("packets")]


def frames_known(setup: Setup, what: str, ports: list[int]) -> Iterator[Fault]:
    """Yield the faults of an option that refuses whole frames, for VCs whose frames are unknown or are never dropped.

    Cells of a VC with credits are not dropped. Virtual paths have checks of their own, and the VC that ends one has no
    frames.
    """
    key = what.lower()
    for port in ports:
        vcs = [vc for vc in setup.vcs if vc.out_port == port and not (vc.vpc or vc.ends_path)]
        refuses = f"{what} of port {port} refuses whole frames"
        if any(vc.credits_in for vc in vcs):
            text = f"{refuses}: a VC to it has credits, and nothing of it is dropped; give one or the other"
            yield Fault(text, key, port=port)
        elif any(vc.policy(setup.settings) == "tail" for vc in vcs):
            yield Fault(f"{refuses}: a VC to it has policy 'tail', give it 'ppd' or 'epd'", key, port=port)


class QueueLimit(Option):
    """A limit of what is queued for a port, in frames."""

    name = "queue_limit"
    bit = 1
    needs_port_queues = True

    def wanted(self, setup: Setup) -> bool:
        return bool(self._ports(setup))

    @staticmethod
    def _ports(setup: Setup) -> list[int]:
        return [k for k, port in enumerate(setup.ports) if port.settings.queue_limit is not None]

    def check(self, setup: Setup) -> Iterator[Fault]:
        yield from frames_known(setup, "queue_limit", self._ports(setup))

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells
        return (
            Register(
                "queue_limit", 0x0110, "frames queued for a port from which on it takes no other; 0: no limit", "rw",
                16, ports,
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        for k, port in enumerate(setup.ports):
            csr.queue_limit[k] = port.settings.queue_limit or 0


OPTIONS: Final = (QueueLimit(),)
