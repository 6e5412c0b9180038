"""Hybla's growth (Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", 2004)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.declarations import FLAG, Setting
from bentpipe.tcp.constants import PS_PER_S
from bentpipe.tcp.growth.base import Growth
from bentpipe.tcp.settings import Registration
from bentpipe_hdl.units import TIME

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["REGISTRATION", "Hybla"]

_MAX_RHO: Final = 60.0
"""2**60 segments an ACK are more than any window."""


@final
class Hybla(Growth):
    """A connection with a long round trip sends as many segments a second as one with ``hybla_rtt0``.

    With rho = RTT / RTT0, 1 at least: each ACK adds 2**rho - 1 segments in slow start and rho**2 / cwnd in congestion
    avoidance; the first window and the first ssthresh are rho times those configured. A loss halves, as Reno's.
    rho follows the smallest smoothed round trip, so that a queue does not make it grow.
    """

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(always=False, paces=config.hybla_pacing)
        self.rtt0: int = config.hybla_rtt0_ps
        self.rtt: int = 0  # the smallest smoothed round trip
        self.rho: float = 1.0
        self.part: float = 0.0  # of an octet, kept for the next ACK

    def _measure(self, rtt: int) -> None:
        if rtt and (self.rtt == 0 or rtt < self.rtt):
            self.rtt = rtt
            rho = rtt / self.rtt0
            self.rho = 1.0 if rho < 1.0 else _MAX_RHO if rho > _MAX_RHO else rho

    def on_established(self, rtt: int) -> None:
        self._measure(rtt)
        self.cwnd = self._bounded(self.cwnd * self.rho, self.limit)
        self.ssthresh = int(self.ssthresh * self.rho)

    def on_ack(self, acked: int, rtt: int, now: int) -> None:
        self._measure(rtt)
        mss = self.mss
        if self.cwnd < self.ssthresh:
            most = self.ssthresh if self.ssthresh < self.limit else self.limit
            self.cwnd = self._bounded(self.cwnd + (2.0**self.rho - 1.0) * mss, most)
        else:
            step = self.rho * self.rho * mss * mss / self.cwnd + self.part
            whole = int(step)
            self.part = step - whole
            self.cwnd = self._bounded(float(self.cwnd + whole), self.limit)

    def _bounded(self, window: float, most: int) -> int:
        return int(window) if window < most else most

    def on_loss(self, in_use: int, now: int) -> None:
        half = in_use // 2
        least = 2 * self.mss
        self.ssthresh = half if half > least else least

    def pacing_rate(self, window: int, rtt: int) -> int:
        return window * PS_PER_S // rtt if rtt else 0


REGISTRATION: Final = Registration(
    "hybla",
    2004,
    Hybla,
    "as fast as with a round trip of ``hybla_rtt0`` (Caini and Firrincieli 2004)",
    (
        Setting("hybla_rtt0_ps", TIME.within(10**9, 10**12), 25_000_000_000, "RTT0, the round trip to be like"),
        Setting(
            "hybla_pacing",
            FLAG,
            True,
            "Spread a window over the round trip: a window that grows so fast comes in bursts",
        ),
    ),
)
