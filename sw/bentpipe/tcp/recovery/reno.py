"""Reno's recovery: fast retransmission and fast recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.declarations import FLAG, Setting
from bentpipe.tcp.constants import DUPACK_THRESHOLD
from bentpipe.tcp.recovery.base import Recovery
from bentpipe.tcp.settings import Registration

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig
    from bentpipe.tcp.sender import Sender

__all__ = ["REGISTRATION", "Reno"]


@final
class Reno(Recovery):
    """Fast retransmission and fast recovery of 4.3BSD-Reno: the first ACK of new data ends the recovery."""

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config)
        self.deflate_above: int = DUPACK_THRESHOLD if config.habit_deflation_bug else DUPACK_THRESHOLD - 1
        self.inflates: bool = False  # the third of these duplicates retransmitted

    def duplicate(self, s: Sender) -> None:
        growth = s.growth
        if s.dupacks == DUPACK_THRESHOLD:
            self.inflates = not self.repeats(s)
            if self.inflates:
                self.recover = s.snd_max
                self.reduce_window(s)
                s.fast_retransmit(False)
                growth.cwnd = growth.ssthresh + DUPACK_THRESHOLD * growth.mss
        elif s.dupacks > DUPACK_THRESHOLD and self.inflates:
            growth.cwnd += growth.mss
            s.send_ready = True

    def new_ack(self, s: Sender, ack: int) -> bool:
        growth = s.growth
        if self.inflates and s.dupacks > self.deflate_above and growth.cwnd > growth.ssthresh:
            growth.cwnd = growth.ssthresh
        return True


REGISTRATION: Final = Registration(
    "reno",
    1990,
    Reno,
    "fast retransmission and fast recovery, which the first ACK of new data ends (4.3BSD-Reno)",
    (
        Setting(
            "habit_deflation_bug",
            FLAG,
            False,
            "Fast recovery left at exactly three duplicate ACKs keeps its inflated window. (4.3BSD-Reno to "
            "4.4BSD-Lite2 ``tcp_input`` test ``> 3``; later releases test ``>= 3``)",
        ),
    ),
)
