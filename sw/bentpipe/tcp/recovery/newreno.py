"""New Reno's recovery (RFC 2582)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.declarations import FLAG, Setting
from bentpipe.tcp.constants import DUPACK_THRESHOLD
from bentpipe.tcp.recovery.base import Recovery
from bentpipe.tcp.settings import Registration

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig
    from bentpipe.tcp.sender import Sender

__all__ = ["REGISTRATION", "NewReno"]


@final
class NewReno(Recovery):
    """Fast recovery that lasts until everything outstanding at its start is acknowledged (RFC 2582).

    A partial ACK shows the next loss, which is retransmitted at once: one round trip a loss.
    """

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config)
        self.impatient: bool = config.newreno_impatient
        self.careful: bool = config.newreno_careful
        self.avoid = config.newreno_avoid_multiple
        self.exit_flight: bool = config.newreno_exit_flight
        self.partials: int = 0

    def duplicate(self, s: Sender) -> None:
        growth = s.growth
        if self.recovering:
            growth.cwnd += growth.mss
            s.send_ready = True
        elif s.dupacks == DUPACK_THRESHOLD:
            if self.repeats(s) and (self.careful or s.snd_una < self.recover):
                return
            self.recovering = True
            self.partials = 0
            self.recover = s.snd_max
            self.reduce_flight(s)
            s.fast_retransmit(False)
            growth.cwnd = growth.ssthresh + DUPACK_THRESHOLD * growth.mss

    def new_ack(self, s: Sender, ack: int) -> bool:
        if not self.recovering:
            return True
        if ack >= self.recover:
            self.recovering = False
            growth = s.growth
            cwnd = growth.ssthresh
            if self.exit_flight:
                flight = s.snd_max - ack + growth.mss
                if flight < cwnd:
                    cwnd = flight
            growth.cwnd = cwnd
            return False
        self.partials += 1
        self.hold_timer = self.impatient and self.partials > 1
        return False

    def advanced(self, s: Sender, acked: int) -> None:
        growth = s.growth
        cwnd = growth.cwnd - acked
        if acked >= growth.mss:
            cwnd += growth.mss
        growth.cwnd = cwnd if cwnd > growth.mss else growth.mss
        s.retransmit(s.snd_una, s.snd_max)
        s.send_ready = True


REGISTRATION: Final = Registration(
    "newreno",
    1999,
    NewReno,
    "fast recovery until everything outstanding at its start is acknowledged (RFC 2582)",
    (
        Setting(
            "newreno_impatient",
            FLAG,
            False,
            "Restart the retransmission timer at the first partial ACK only (RFC 2582 section 4, impatient); otherwise "
            "at each (slow-but-steady)",
        ),
        Setting(
            "newreno_careful",
            FLAG,
            True,
            "After a time-out no fast retransmission until more than ``recover`` is acknowledged (RFC 2582 section 5, "
            "careful). Otherwise an ACK of exactly ``recover`` suffices (less careful)",
        ),
        Setting(
            "newreno_avoid_multiple",
            FLAG,
            True,
            "Avoid repeated fast retransmissions after a time-out at all (RFC 2582 section 5)",
        ),
        Setting(
            "newreno_exit_flight",
            FLAG,
            True,
            "At the end of recovery cwnd = min(ssthresh, flight + MSS), against bursts (RFC 2582 section 3 step 5, "
            "first option); otherwise cwnd = ssthresh",
        ),
    ),
)
