"""Tahoe's recovery: fast retransmission, then slow start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.declarations import FLAG, Setting
from bentpipe.tcp.constants import DUPACK_THRESHOLD
from bentpipe.tcp.recovery.base import Recovery
from bentpipe.tcp.settings import Registration

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig
    from bentpipe.tcp.sender import Sender

__all__ = ["REGISTRATION", "Tahoe"]


@final
class Tahoe(Recovery):
    """Fast retransmission, then slow start (4.3BSD-Tahoe; Jacobson 1988).

    It goes back to the lost segment as Fall and Floyd describe it; 4.3BSD-Tahoe itself sent on from where it was
    (``habit_tahoe_keeps_snd_nxt``).
    """

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config)
        self.keep: bool = config.habit_tahoe_keeps_snd_nxt

    def duplicate(self, s: Sender) -> None:
        if s.dupacks == DUPACK_THRESHOLD and not self.repeats(s):
            self.recover = s.snd_max
            self.reduce_window(s)
            s.growth.cwnd = s.growth.mss
            s.fast_retransmit(not self.keep)


REGISTRATION: Final = Registration(
    "tahoe",
    1988,
    Tahoe,
    "fast retransmission, then slow start (4.3BSD-Tahoe)",
    (
        Setting(
            "habit_tahoe_keeps_snd_nxt",
            FLAG,
            False,
            "After its fast retransmission Tahoe continues with new data (4.3BSD-Tahoe ``tcp_input``). Otherwise it "
            "goes back to the lost segment, as in Fall and Floyd's description and ns",
        ),
    ),
)
