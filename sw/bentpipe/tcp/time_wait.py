"""The rest of a connection in TIME_WAIT: enough to answer late segments as the connection itself would."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from bentpipe.tcp.connection import Connection
from bentpipe.tcp.constants import CLOSED, MAX_WINDOW, TIME_WAIT

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["TimeWait", "closed_connection"]


@final
class TimeWait:
    """The state of a connection in TIME_WAIT, which has neither data to send nor to receive.

    A connection has many parts, and there may be as many connections in TIME_WAIT as ports; a late segment is rare.
    So the parts are let go, and made again when one comes.

    Members
    -------
    wait : int
        When TIME_WAIT is over, as :class:`~bentpipe.tcp.timers.Timers` counts.
    exact : bool
        That is in picoseconds, not in ticks of the host.
    """

    __slots__ = (
        "_ack_now", "_config", "_fin_seq", "_last_ack_sent", "_last_receive", "_max_sndwnd", "_mss", "_numbers",
        "_own_shift", "_rcv_shift", "_receiving", "_sacked", "_sacks", "_snd_shift", "_timestamps", "_ts_recent",
        "exact", "wait",
    )  # fmt: skip

    def __init__(self, connection: Connection) -> None:
        send, take = connection.sender, connection.receiver
        self.wait: int = connection.timers.wait
        self.exact: bool = connection.ideal
        self._config: TcpConfig = connection.config
        self._mss: int = send.maxseg
        self._receiving: bool = connection.receiving
        self._last_receive: int = connection.last_receive
        self._numbers: tuple[int, int, int, int, int, int, int, int] = (
            send.iss, send.snd_una, send.snd_end, send.snd_wnd, send.snd_wl1, send.snd_wl2, take.rcv_nxt, take.rcv_adv,
        )  # fmt: skip
        self._max_sndwnd: int = send.max_sndwnd
        self._snd_shift: int = send.snd_shift
        self._timestamps: bool = send.timestamps
        self._sacked: bool = send.sacked
        self._rcv_shift: int = take.rcv_shift
        self._own_shift: int = take.own_shift
        self._fin_seq: int = take.fin_seq
        self._last_ack_sent: int = take.last_ack_sent
        self._ack_now: bool = take.ack_now
        self._sacks: bool = take.sacks
        self._ts_recent: int = take.ts_recent

    def connection(self) -> Connection:
        """Return the connection; its counters begin at 0."""
        iss, una, end, window, wl1, wl2, rcv_nxt, rcv_adv = self._numbers
        made = Connection(self._config, self._mss, iss, self._last_receive)
        made.state = TIME_WAIT
        made.closing = True
        made.receiving = self._receiving
        made.last_receive = self._last_receive
        made.timers.wait = self.wait
        send, take = made.sender, made.receiver
        send.timestamps = self._timestamps
        send.set_mss(self._mss)
        send.sacked = self._sacked
        send.snd_una = send.snd_nxt = send.snd_max = una
        send.scoreboard.clear(una)
        send.snd_base = una  # nothing of the stream is this one's
        send.snd_end = end
        send.fin_wanted = send.fin_sent = True
        send.snd_wnd, send.snd_wl1, send.snd_wl2 = window, wl1, wl2
        send.max_sndwnd = self._max_sndwnd
        send.snd_shift = self._snd_shift
        take.rcv_nxt = rcv_nxt
        take.rcv_base = rcv_nxt - 1  # likewise: the FIN alone
        take.rcv_adv = rcv_adv
        take.rcv_shift, take.own_shift = self._rcv_shift, self._own_shift
        take.rcv_max_window = MAX_WINDOW << self._rcv_shift
        take.fin_seq, take.fin_received = self._fin_seq, True
        take.last_ack_sent = self._last_ack_sent
        take.ack_now = self._ack_now
        take.sacks = self._sacks
        take.ts_recent = self._ts_recent
        return made


def closed_connection(config: TcpConfig) -> Connection:
    """Return a connection that is closed at both ends, and never was in another state."""
    made = Connection(config, config.segment_size(576), 0)
    made.state = CLOSED
    made.closing = True
    made.receiving = False
    made.receiver.fin_received = True
    return made
