"""The retransmission time-out: BSD's integer arithmetic in 500 ms ticks, the same without ticks, and RFC 6298's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.tcp.constants import MAX_RETRANSMIT_SHIFT, PS_PER_S, SLOW_TICK_PS

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["BACKOFF", "RetransmissionTimeout"]

BACKOFF: Final = (1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 64)
"""Factor of the RTO after 0..12 time-outs in a row (``tcp_backoff``)."""

_TICKS_MAX: Final = 128
_TICKS_PERSIST_MIN: Final = 10
_TICKS_PERSIST_MAX: Final = 120
_PS_GRANULARITY: Final = 1_000_000_000
_PATIENCE_PS: Final = 100 * PS_PER_S
"""Data that nothing acknowledges is sent again for so long at least (R2 of RFC 1122 4.2.3.5)."""
_PATIENCE_SYN_PS: Final = 180 * PS_PER_S
"""The same of a SYN."""
_TOTAL_BACKOFF: Final = 511
"""``tcp_totbackoff``, of all of :data:`BACKOFF`."""


@final
class RetransmissionTimeout:
    """Round-trip time estimator and retransmission time-out of one connection.

    In ticks (``ideal`` false) it is ``tcp_xmit_timer`` and the back-off of 4.4BSD-Lite2, to the integer:
    ``srtt`` is 8 times, ``rttvar`` 4 times the value in ticks, a round trip within one tick counts 1. With
    ``ideal`` true the unit is the picosecond, ``srtt`` and ``rttvar`` are not scaled, the gains are the same
    1/8 and 1/4, and RTO = srtt + max(1 ms, 4 rttvar). That is RFC 6298, too, except for the first RTO (section 2.1, and
    5.7 if the SYN was lost), and for the back-off, which it does not end (5.5): ``standard``.

    Members
    -------
    current : int
        The time-out for the next transmission, backed off (``t_rxtcur``).
    shift : int
        Time-outs since the last round trip that was measured (``t_rxtshift``).
    failures : int
        Time-outs in a row. BSD counts by ``shift``; as an ideal RTO may be shorter than a round trip of a filling
        queue, which then is never measured, there an ACK of anything new ends the row.
    waited : int
        How long these time-outs took, all together.
    patience : int
        In a row that took less the connection is not given up, where time-outs may be short (``ideal``).
    """

    __slots__ = (
        "current",
        "failures",
        "ideal",
        "maximum",
        "minimum",
        "patience",
        "rttvar",
        "shift",
        "srtt",
        "standard",
        "waited",
    )

    def __init__(self, ideal: bool, minimum: int, maximum: int, standard: bool = False, initial: int = 0) -> None:
        self.ideal = ideal
        self.standard = standard
        self.minimum = minimum
        self.maximum = maximum
        self.srtt: int = 0
        self.shift: int = 0
        self.failures: int = 0
        self.waited: int = 0
        self.patience: int = _PATIENCE_SYN_PS if ideal else 0
        if ideal:
            usual = PS_PER_S if standard else 3 * PS_PER_S
            self.rttvar: int = (initial if initial else usual) // 4
            self.current: int = self._clamp(4 * self.rttvar) if standard else 4 * self.rttvar
        else:
            self.rttvar = 24
            self.current = 12

    @staticmethod
    def of(config: TcpConfig) -> RetransmissionTimeout:
        """Return the time-out that the settings select."""
        if config.timers == "bsd":
            return RetransmissionTimeout(False, config.rto_min_ticks, _TICKS_MAX)
        standard = config.timers == "rfc6298"
        return RetransmissionTimeout(True, config.rto_min_ps, config.rto_max_ps, standard, config.rto_initial_ps)

    def established(self) -> None:
        """Handle the end of the handshake: if the SYN timed out, data starts with 3 s (RFC 6298 section 5.7)."""
        if self.ideal:
            self.patience = _PATIENCE_PS
        if self.standard and self.shift and self.srtt == 0:
            self.rttvar = 3 * PS_PER_S // 4
            self.shift = 0
            self.current = self._clamp(4 * self.rttvar)

    def sample(self, rtt: int) -> None:
        """Take a measured round trip: ``rtt`` is 1 plus the ticks that passed, or picoseconds."""
        srtt = self.srtt
        if self.ideal:
            if srtt:
                delta = rtt - srtt
                srtt += delta >> 3
                if delta < 0:
                    delta = -delta
                self.rttvar += (delta - self.rttvar) >> 2
            else:
                srtt = rtt
                self.rttvar = rtt >> 1
            self.srtt = srtt if srtt > 0 else 1
        elif srtt:
            delta = rtt - 1 - (srtt >> 3)
            srtt += delta
            self.srtt = srtt if srtt > 0 else 1
            if delta < 0:
                delta = -delta
            rttvar = self.rttvar
            rttvar += delta - (rttvar >> 2)
            self.rttvar = rttvar if rttvar > 0 else 1
        else:
            self.srtt = rtt << 3
            self.rttvar = rtt << 1
        self.shift = 0
        self.failures = 0
        self.current = self._clamp(self.base())

    def base(self) -> int:
        """Return the time-out without back-off and limits (``TCP_REXMTVAL``)."""
        if self.ideal:
            spread = 4 * self.rttvar
            return self.srtt + (spread if spread > _PS_GRANULARITY else _PS_GRANULARITY)
        return (self.srtt >> 3) + self.rttvar

    def back_off(self) -> bool:
        """Back off after a time-out; return False if there were too many in a row, so the connection is to be
        dropped."""
        self.shift += 1
        self.failures += 1
        self.waited = self.current if self.failures == 1 else self.waited + self.current
        if self.shift > MAX_RETRANSMIT_SHIFT:
            self.shift = MAX_RETRANSMIT_SHIFT
            if not self.ideal:
                return False
        if self.failures > MAX_RETRANSMIT_SHIFT and self.waited >= self.patience:
            return False
        if self.standard:
            self.current = self._clamp(2 * self.current)
        elif self.ideal:
            self.current = self._clamp(self._clamp(self.base()) * BACKOFF[self.shift])
        else:
            self.current = self._clamp(self.base() * BACKOFF[self.shift])
        if self.shift > MAX_RETRANSMIT_SHIFT // 4 and not self.ideal:
            # The estimate is suspect: start again with a variance that keeps the present RTO.
            self.rttvar += self.srtt >> 3
            self.srtt = 0
        return True

    def persist_interval(self) -> int:
        """Return the time until the next window probe (``tcp_setpersist``, 5 s to 60 s); it counts as a back-off.

        ``tcp_setpersist`` doubles what a round trip suggests, a tick at least, and then applies its limits. Of an exact
        round trip nothing would reach them, so there the limited value is doubled.
        """
        if self.ideal:
            low = _TICKS_PERSIST_MIN * SLOW_TICK_PS
            high = _TICKS_PERSIST_MAX * SLOW_TICK_PS
            interval = self._clamp(self.base())
            interval = (interval if interval > low else low) << self.shift
        else:
            interval = (((self.srtt >> 2) + self.rttvar) >> 1) * BACKOFF[self.shift]
            low = _TICKS_PERSIST_MIN
            high = _TICKS_PERSIST_MAX
        if self.shift < MAX_RETRANSMIT_SHIFT:
            self.shift += 1
        return low if interval < low else high if interval > high else interval

    def probe_limit(self) -> int:
        """Return the time for which a peer may leave window probes unanswered (``tcp_timers``, TCPT_PERSIST).

        The time-out is a tick at least, as BSD's is: so the limit is above the longest time between two probes, and
        whoever answers them stays connected (RFC 1122 4.2.2.17).
        """
        base = self.base()
        if self.ideal and base < SLOW_TICK_PS:
            base = SLOW_TICK_PS
        return base * _TOTAL_BACKOFF

    def _clamp(self, value: int) -> int:
        return self.minimum if value < self.minimum else self.maximum if value > self.maximum else value
