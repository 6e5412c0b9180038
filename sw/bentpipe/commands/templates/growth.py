"""Growth of the congestion window ``my_model``: a segment in so many round trips.

Change :class:`MyModel` (the base class ``Growth`` describes each method) and the settings in ``REGISTRATION``. Their
names begin with that of the growth. ``bentpipe help tcp --plugin my_model.py`` shows what users see of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bentpipe.declarations import Setting
from bentpipe.tcp.growth.base import Growth
from bentpipe.tcp.settings import Registration
from bentpipe_hdl.units import COUNT

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["REGISTRATION", "MyModel"]


class MyModel(Growth):
    """Slow start as Reno's; then a segment in ``my_model_round_trips``. A loss halves the window."""

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(always=False)  # grows only while the window is used
        self.round_trips: int = config.my_model_round_trips
        self.acked = 0  # octets since the window grew

    def on_ack(self, acked: int, rtt: int, now: int) -> None:
        self.acked += acked
        if self.cwnd < self.ssthresh or self.acked >= self.round_trips * self.cwnd:
            self.acked = 0
            self.cwnd = min(self.cwnd + self.mss, self.limit)

    def on_loss(self, in_use: int, now: int) -> None:
        self.ssthresh = max(in_use // 2, 2 * self.mss)


REGISTRATION: Final = Registration(
    "my_model",
    2026,
    MyModel,
    "a segment in ``my_model_round_trips``",
    (Setting("my_model_round_trips", COUNT.within(1, 1000), 4, "Round trips for a segment"),),
)
