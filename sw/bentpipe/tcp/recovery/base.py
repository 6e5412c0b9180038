"""The base of all loss recoveries, on the frame of 4.4BSD's ``tcp_input``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig
    from bentpipe.tcp.sender import Sender

__all__ = ["Recovery"]


class Recovery:
    """A loss recovery: it finds lost data by duplicate ACKs and retransmits it; the growth decides how far the window
    shrinks.

    The sender calls :meth:`duplicate` for each duplicate ACK, and, while duplicates or a recovery are pending,
    :meth:`new_ack` before and :meth:`advanced` after an ACK moved ``snd_una``.

    Members
    -------
    recovering : bool
        A recovery is on that ends with an ACK beyond ``recover`` (New Reno, SACK).
    sends : bool
        In this recovery :meth:`send` decides what is sent (SACK).
    hold_timer : bool
        The present ACK does not restart the retransmission timer (New Reno, impatient).
    """

    def __init__(self, config: TcpConfig) -> None:
        self.recovering: bool = False
        self.sends: bool = False
        self.hold_timer: bool = False
        self.recover: int = 0
        self.avoid: bool = config.habit_avoid_multiple
        self.reduces_again: bool = config.reduces_again

    def start(self, s: Sender) -> None:
        """Start with the sequence numbers of the SYN that was sent."""
        self.recover = s.iss

    def reduce_window(self, s: Sender) -> None:
        """Reduce the window: the growth sets ssthresh, here in whole segments (``tcp_input``)."""
        growth = s.growth
        growth.on_loss(s.window_in_use(), s.timers.now)
        growth.ssthresh -= growth.ssthresh % growth.mss

    def reduce_flight(self, s: Sender) -> None:
        """Reduce by the outstanding data (RFC 2581 equation 3); limited transmit does not count (RFC 5681 3.2)."""
        s.growth.on_loss(s.snd_max - s.snd_una - s.limited, s.timers.now)

    def repeats(self, s: Sender) -> bool:
        """Return whether another fast retransmission for the same window of data is to be avoided."""
        return self.avoid and s.snd_una <= self.recover

    def timeout(self, s: Sender) -> None:
        """Handle a retransmission time-out: ssthresh in whole segments (``tcp_timers``), and slow start."""
        growth = s.growth
        if self.reduces_again or s.rto.failures == 1:
            growth.on_timeout(s.window_in_use(), s.timers.now)
            growth.ssthresh -= growth.ssthresh % growth.mss
        growth.cwnd = growth.mss
        self.recovering = False
        self.sends = False
        self.hold_timer = False
        self.recover = s.snd_max

    def duplicate(self, s: Sender) -> None:
        """Handle a duplicate ACK, which was counted in ``s.dupacks``."""
        raise NotImplementedError

    def new_ack(self, s: Sender, ack: int) -> bool:
        """Prepare for an ACK of new data after duplicates; return True if it opens the window as usual."""
        return True

    def advanced(self, s: Sender, acked: int) -> None:
        """Handle an advance of ``snd_una`` within a recovery."""

    def send(self, s: Sender) -> None:
        """Send what the recovery lets go."""
