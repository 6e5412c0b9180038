"""Reno's growth: slow start and congestion avoidance of 4.4BSD's ``tcp_input``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.declarations import FLAG, Setting
from bentpipe.tcp.growth.base import Growth
from bentpipe.tcp.settings import Registration

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["REGISTRATION", "Reno"]


@final
class Reno(Growth):
    """A segment an ACK up to and including ssthresh, then MSS * MSS / cwnd; a loss halves.

    An ACK is one step whatever it covers, and the window grows whether it is used or not, as in BSD.
    """

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(always=True)
        self.eighth: bool = config.habit_maxseg_eighth

    def on_ack(self, acked: int, rtt: int, now: int) -> None:
        cwnd = self.cwnd
        step = self.mss
        if cwnd > self.ssthresh:
            step = step * step // cwnd + (step >> 3 if self.eighth else 0)
        cwnd += step
        self.cwnd = cwnd if cwnd < self.limit else self.limit

    def on_loss(self, in_use: int, now: int) -> None:
        half = in_use // 2
        least = 2 * self.mss
        self.ssthresh = half if half > least else least


REGISTRATION: Final = Registration(
    "reno",
    1988,
    Reno,
    "slow start and congestion avoidance (Jacobson 1988, 4.4BSD ``tcp_input``)",
    (
        Setting(
            "habit_maxseg_eighth",
            FLAG,
            False,
            "Congestion avoidance adds a further MSS/8 per ACK (Net/2 to 4.4BSD-Lite ``tcp_input``, not Lite2). "
            "RFC 2525, 2.6, lists it as a known problem",
        ),
    ),
)
