"""CUBIC's growth (RFC 9438)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.declarations import FLAG, Setting
from bentpipe.tcp.constants import PS_PER_S
from bentpipe.tcp.growth.base import Growth
from bentpipe.tcp.settings import Registration
from bentpipe_hdl.units import NUMBER

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["REGISTRATION", "Cubic"]


@final
class Cubic(Growth):
    """The window is a cubic function of the time since the last loss: W(t) = C (t - K)^3 + W_max.

    Names are the RFC's; windows are in segments, times in seconds. Increments in congestion avoidance count by the
    segments that an ACK covers, so that delayed ACKs change nothing; where each segment has its ACK this is section
    4.4 by the letter. Slow start is RFC 5681's, without HyStart++. Nothing here finds spurious retransmissions, so
    none are undone (section 4.9).
    """

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(always=False)
        self.c: float = config.cubic_c
        self.beta: float = config.cubic_beta
        self.converges: bool = config.cubic_fast_convergence
        self.w_max: float = 0.0
        self.k: float = 0.0
        self.w_est: float = 0.0
        self.cwnd_prior: float = 0.0
        self.epoch: int = -1  # when the present congestion avoidance stage began, ps; -1: in none
        self.last: int = 0  # until when the epoch is corrected for times of an unused window, ps
        self.plateau: bool = True  # the next stage starts at its W_max: after slow start or a time-out

    def on_ack(self, acked: int, rtt: int, now: int) -> None:
        self.last = now
        cwnd = self.cwnd
        mss = self.mss
        if cwnd < self.ssthresh:
            cwnd += acked if acked < mss else mss
        else:
            cwnd = int(self._avoid(cwnd / mss, acked / mss, rtt / PS_PER_S, now) * mss)
        self.cwnd = cwnd if cwnd < self.limit else self.limit

    def _avoid(self, cwnd: float, acked: float, rtt: float, now: int) -> float:
        """Return the window after an ACK in congestion avoidance."""
        if self.epoch < 0:
            self._begin(cwnd, now)
        t = (now - self.epoch) / PS_PER_S
        # 4.3; from cwnd_prior on as Reno
        alpha = 1.0 if self.w_est >= self.cwnd_prior else 3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        self.w_est += alpha * acked / cwnd
        if self._w_cubic(t) < self.w_est:
            return self.w_est if self.w_est > cwnd else cwnd
        # 4.2, 4.4, 4.5
        target = self._w_cubic(t + rtt)
        if target < cwnd:
            target = cwnd
        elif target > 1.5 * cwnd:
            target = 1.5 * cwnd
        grown = cwnd + (target - cwnd) / cwnd * acked
        return grown if grown < target else target

    def _begin(self, cwnd: float, now: int) -> None:
        """Begin a stage of congestion avoidance."""
        self.epoch = now
        self.w_est = cwnd
        if self.plateau or self.w_max < cwnd:
            self.w_max = cwnd
        self.plateau = False
        self.k = ((self.w_max - cwnd) / self.c) ** (1.0 / 3.0)

    def _w_cubic(self, t: float) -> float:
        d = t - self.k
        return self.c * d * d * d + self.w_max

    def on_unused(self, now: int) -> None:
        if self.epoch >= 0:  # 4.2: t does not count such times
            self.epoch += now - self.last
        self.last = now

    def on_idle(self, window: int) -> None:
        self.cwnd = window
        self.epoch = -1

    def on_loss(self, in_use: int, now: int) -> None:
        cwnd = self.cwnd / self.mss
        self.cwnd_prior = cwnd
        self.w_max = cwnd * (1.0 + self.beta) / 2.0 if self.converges and cwnd < self.w_max else cwnd  # 4.7
        self.epoch = -1
        self.plateau = False
        reduced = int(in_use * self.beta)
        least = 2 * self.mss
        self.ssthresh = reduced if reduced > least else least

    def on_timeout(self, in_use: int, now: int) -> None:
        self.on_loss(in_use, now)
        self.plateau = True  # 4.8


REGISTRATION: Final = Registration(
    "cubic",
    2023,
    Cubic,
    "a cubic function of the time since the last loss (RFC 9438)",
    (
        Setting("cubic_c", NUMBER.within(0.001, 1000.0, name="segments/s^3"), 0.4, "C, how fast the window grows"),
        Setting("cubic_beta", NUMBER.within(0.1, 0.99), 0.7, "What of the window is left after a loss"),
        Setting("cubic_fast_convergence", FLAG, True, "Lower W_max when a loss comes below it (RFC 9438 4.7)"),
    ),
)
