"""The queue of a host's interface."""

from __future__ import annotations

from typing import Final, final

from bentpipe.errors import ExperimentFailed
from bentpipe.hosts.scheduler import Scheduler
from bentpipe_sim.interface import PduNetwork

__all__ = ["Interface"]

_SENT_WITHIN_PS: Final = 10 * 10**12


@final
class Interface:
    """The interface of a host: it gives PDUs to the network, as long as at most ``limit`` of them wait there (0: any
    number).

    Members
    -------
    drops : int
        Segments and datagrams that the full queue refused.
    refused : dict of int to int
        Those that were lost so, by VC.
    """

    def __init__(self, scheduler: Scheduler, network: PduNetwork, host: str, nic: int, limit: int, first: int) -> None:
        self.scheduler = scheduler
        self.network = network
        self.host = host
        self.nic: int = nic
        self.limit: int = limit
        self.queued: int = 0
        self.drops: int = 0
        self.refused: dict[int, int] = {}
        self._identification: int = first & 0xFFFF
        self._first_put_ps: int = -1  # when a PDU was first given to the network; -2 once one was reported as sent

    def admit(self) -> bool:
        """Return whether the queue takes one more PDU (else ENOBUFS); counts it."""
        if self.limit:
            if self.queued >= self.limit:
                if self._first_put_ps >= 0 and self.scheduler.now - self._first_put_ps > _SENT_WITHIN_PS:
                    raise ExperimentFailed(
                        f"host {self.host} has an interface queue of {self.limit} PDUs, "
                        "but its network doesn't report PDUs as sent: leave interface_queue at 0"
                    )
                self.drops += 1
                return False
            self.queued += 1
            if self._first_put_ps == -1:
                self._first_put_ps = self.scheduler.now
        return True

    def lose(self, vc: int) -> None:
        """Count a refused PDU of a VC, which is not tried again."""
        self.refused[vc] = self.refused.get(vc, 0) + 1

    def identification(self) -> int:
        """Return the identification of the next IP packet."""
        self._identification = number = (self._identification + 1) & 0xFFFF
        return number

    def sent(self) -> None:
        """Handle the network's report that a PDU was sent."""
        self._first_put_ps = -2
        if self.queued:
            self.queued -= 1
