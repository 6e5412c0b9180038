"""The base of all growths of the congestion window: the window, the slow-start threshold, and the events that change
them."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

__all__ = ["Growth"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Growth:
    """The congestion window and the slow-start threshold of one sender.

    Loss recovery (:mod:`bentpipe.tcp.recovery`) says when something was lost and how much was in use, and sets
    ``cwnd`` while it recovers; what the window is to be afterwards, and how it grows, is said here.

    Members
    -------
    cwnd, ssthresh : int
        Octets.
    mss : int
        Octets of a segment.
    limit : int
        What ``cwnd`` never exceeds: the largest window that can be advertised.
    always : bool
        :meth:`on_ack` comes with every ACK of new data, as in BSD; otherwise only while the window is what limits the
        sender, and :meth:`on_unused` comes while it does not.
    paces : bool
        :meth:`pacing_rate` is asked for.
    """

    def __init__(self, always: bool, paces: bool = False) -> None:
        self.cwnd: int = 0
        self.ssthresh: int = 0
        self.mss: int = 0
        self.limit: int = 0
        self.always: bool = always
        self.paces: bool = paces

    def on_established(self, rtt: int) -> None:
        """Start after the handshake; ``cwnd`` and ``ssthresh`` are as configured.

        ``rtt`` is the handshake's round trip in ps, 0 if it was not measured.
        """

    def on_ack(self, acked: int, rtt: int, now: int) -> None:
        """Grow the window after so many octets of new data were acknowledged, outside of recovery.

        ``rtt`` is the smoothed round trip (ps), 0 as long as none was measured; ``now`` is in ps.
        """
        raise NotImplementedError

    def on_unused(self, now: int) -> None:
        """Note that the sender has left a part of its window unused until now.

        It is called when an ACK of new data arrives, or something may be sent. Between two ACKs that open the window it
        is called whenever the sender looks for something to send. So a pause of either application ends with a call.
        """

    def on_idle(self, window: int) -> None:
        """Restart with ``window`` octets after an idle time of a time-out (RFC 5681 section 4.1)."""
        self.cwnd = window

    def on_loss(self, in_use: int, now: int) -> None:
        """Set ``ssthresh`` after duplicate ACKs have shown a loss, with ``in_use`` octets under way.

        ``cwnd`` still has its value from before the loss; the recovery sets it.
        """
        raise NotImplementedError

    def on_timeout(self, in_use: int, now: int) -> None:
        """Set ``ssthresh`` after a retransmission time-out, as :meth:`on_loss`; ``cwnd`` is set to a segment
        afterwards."""
        self.on_loss(in_use, now)

    def pacing_rate(self, window: int, rtt: int) -> int:
        """Return the rate (octets a second) to send ``window`` octets with this smoothed round trip (ps); 0: no
        pacing."""
        return 0
