"""The handshake: SYNs out and in, and the options that they settle (RFC 793, 1323, 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.tcp.constants import ACK, MASK32, MAX_WINDOW, MAX_WINDOW_SHIFT, SYN
from bentpipe.tcp.receiver import Receiver
from bentpipe.tcp.segment import Options, Segment
from bentpipe.tcp.sender import Sender

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig

__all__ = ["Handshake"]

_DEFAULT_MSS: Final = 536
"""MSS of a peer that gives none (RFC 1122 4.2.2.6)."""
_LEAST_MSS: Final = 32
"""A smaller one counts as this (4.4BSD ``tcp_mss``): so a segment with options has room for data."""


@final
class Handshake:
    """The handshake: it offers the options of the settings, and sets up sender and receiver by what both ends offered.

    Members
    -------
    scales : bool
        Both ends offered window scaling.
    """

    def __init__(self, config: TcpConfig, mss: int, sender: Sender, receiver: Receiver) -> None:
        self.config: TcpConfig = config
        self.mss: int = mss
        self.sender: Sender = sender
        self.receiver: Receiver = receiver
        self.scales: bool = False

    def output(self, answer: bool) -> None:
        """Send the SYN, or (``answer``) SYN and ACK, for the first time or as there is a reason to send it again."""
        sender = self.sender
        receiver = self.receiver
        if sender.snd_max != sender.iss and sender.snd_nxt > sender.iss and not receiver.ack_now:
            return
        config = self.config
        options = Options()
        options.mss = self.mss
        if config.window_scale and (not answer or self.scales):
            options.window_shift = receiver.own_shift
        if config.offers_sack and (not answer or receiver.sacks):
            options.sack_permitted = True
        if config.timestamps and (not answer or sender.timestamps):
            sender.stamp(options)
        if answer:
            ack, flags, window = receiver.rcv_nxt & MASK32, SYN | ACK, receiver.advertise_syn()
        else:
            ack, flags, window = 0, SYN, receiver.syn_window()
        sender.send_syn(Segment(sender.iss & MASK32, ack, flags, window, 0, -1, options))

    def take(self, segment: Segment) -> None:
        """Take sequence number and options from the peer's SYN."""
        sender = self.sender
        receiver = self.receiver
        config = self.config
        receiver.start(segment.seq)
        options = segment.options
        peer_mss = _DEFAULT_MSS
        if options is not None:
            if options.mss:
                peer_mss = options.mss if options.mss > _LEAST_MSS else _LEAST_MSS
            if options.window_shift >= 0 and config.window_scale:
                shift = options.window_shift
                sender.snd_shift = shift if shift < MAX_WINDOW_SHIFT else MAX_WINDOW_SHIFT
                receiver.rcv_shift = receiver.own_shift
                self.scales = True
            if options.has_timestamp and config.timestamps:
                sender.timestamps = True
                receiver.ts_recent = options.ts_value
            if options.sack_permitted and config.offers_sack:
                receiver.sacks = True
                if config.variant == "sack":
                    sender.use_sack(config)
        sender.growth.limit = MAX_WINDOW << sender.snd_shift
        receiver.rcv_max_window = MAX_WINDOW << receiver.rcv_shift
        size = peer_mss if peer_mss < self.mss else self.mss
        sender.set_mss(size)
        receiver.set_mss(size)
        sender.snd_wnd = segment.window
        sender.max_sndwnd = segment.window
        sender.snd_wl1 = segment.seq

    def forget(self) -> None:
        """Forget all of a peer that went away before the handshake was complete."""
        self.scales = False
        self.sender.forget_peer(self.config)
        self.receiver.forget_peer()
        self.sender.set_mss(self.mss)
        self.receiver.set_mss(self.mss)
