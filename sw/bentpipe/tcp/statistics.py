"""A sender's counters of segments, for reports. Nothing in TCP depends on them."""

from __future__ import annotations

from typing import final

__all__ = ["SenderStatistics"]


@final
class SenderStatistics:
    """The counters of one sender, from the start of its connection on.

    Members
    -------
    segments_sent, data_segments_sent, acks_sent : int
        All segments; those of an established connection with data, and without.
    retransmits, retransmitted_octets : int
        Segments that were sent again, and octets of data in them.
    timeouts, fast_retransmits : int
        Expiries of the retransmission timer; retransmissions after the third duplicate ACK.
    dup_acks : int
        Duplicate ACKs received.
    """

    def __init__(self) -> None:
        self.segments_sent: int = 0
        self.data_segments_sent: int = 0
        self.acks_sent: int = 0
        self.retransmits: int = 0
        self.retransmitted_octets: int = 0
        self.timeouts: int = 0
        self.fast_retransmits: int = 0
        self.dup_acks: int = 0

    def reset_segments(self) -> None:
        """Set the counters of segments to 0, after a handshake without a network."""
        self.segments_sent = 0
        self.acks_sent = 0
