"""Recovery by selective acknowledgements (RFC 2018, 3517, 6937)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from bentpipe.declarations import Setting
from bentpipe.tcp.constants import DUPACK_THRESHOLD
from bentpipe.tcp.recovery.base import Recovery
from bentpipe.tcp.settings import Registration

if TYPE_CHECKING:
    from bentpipe.tcp.config import TcpConfig
    from bentpipe.tcp.sender import Sender

__all__ = ["REGISTRATION", "Sack"]


@final
class Sack(Recovery):
    """Recovery from a scoreboard (RFC 3517), or with Fall and Floyd's pipe (``sack_pipe``); with ``sack_prr`` the
    window shrinks as proportional rate reduction has it (RFC 6937, whose names these are).

    While it is on, the sender's output is :meth:`send`, after each ACK (RFC 3517 section 5, B and C).
    """

    def __init__(self, config: TcpConfig) -> None:
        super().__init__(config)
        self.counted: bool = config.sack_pipe == "fall-floyd"
        self.pipe: int = 0
        self.prr: bool = config.sack_prr != "off"
        self.slow_start: bool = config.sack_prr == "ssrb"
        self.prr_delivered: int = 0
        self.prr_out: int = 0
        self.recover_fs: int = 0
        self.first: int = 0  # the fast retransmission, as long as it is not in prr_out
        self.held: int = 0  # what was acknowledged and SACKed by the ACK before

    def duplicate(self, s: Sender) -> None:
        growth = s.growth
        if self.recovering:
            self.pipe -= growth.mss
        elif s.dupacks == DUPACK_THRESHOLD:
            una = s.snd_una
            if una < self.recover:
                return
            board = s.scoreboard
            self.recovering = True
            self.sends = True
            self.recover = s.snd_max
            self.reduce_flight(s)
            growth.cwnd = growth.ssthresh
            board.start_recovery()
            # The lost segment stays in Fall and Floyd's pipe for its retransmission (ns-2, tcp-sack1.cc).
            self.pipe = s.snd_max - una - DUPACK_THRESHOLD * growth.mss
            self.prr_delivered = 0
            self.recover_fs = s.snd_max - una
            self.held = una + board.sacked - s.newly_sacked  # the third duplicate's own news count (section 3)
            self.prr_out = 0
            end = s.fast_retransmit(False)
            self.first = end - una
            board.retransmitted(end)

    def new_ack(self, s: Sender, ack: int) -> bool:
        if not self.recovering:
            return True
        if ack >= self.recover:
            self.recovering = False
            self.sends = False
            if self.prr:
                s.growth.cwnd = s.growth.ssthresh
        return False

    def advanced(self, s: Sender, acked: int) -> None:
        self.pipe -= 2 * s.growth.mss

    def _proportional(self, s: Sender, pipe: int) -> None:
        """Set ``cwnd`` after an ACK by proportional rate reduction (RFC 6937 section 3)."""
        growth = s.growth
        held = s.snd_una + s.scoreboard.sacked
        delivered = held - self.held
        self.held = held
        self.prr_delivered += delivered
        if pipe > growth.ssthresh:  # in whole segments, as section 3.1 counts
            count = -(-self.prr_delivered * growth.ssthresh // (self.recover_fs * growth.mss)) * growth.mss
            count -= self.prr_out
        else:
            limit = self.prr_delivered - self.prr_out
            if self.slow_start and delivered:
                limit = (limit if limit > delivered else delivered) + growth.mss
            room = growth.ssthresh - pipe
            count = room if room < limit else limit
        growth.cwnd = pipe + (count if count > 0 else 0)

    def send(self, s: Sender) -> None:
        board = s.scoreboard
        mss = s.growth.mss
        if self.counted:
            lost = board.highest
            pipe = self.pipe if self.pipe > 0 else 0
        else:
            lost = board.lost_below()
            pipe = board.pipe(s.snd_max)
        if self.prr:
            # By the window as it was before the fast retransmission, of which only what is not SACKed is in the pipe.
            self._proportional(s, pipe - board.retransmitted_unsacked if self.first else pipe)
            self.prr_out += self.first
            self.first = 0
        while s.growth.cwnd - pipe >= mss and s.may_send():
            start, end = board.hole(lost)
            if end == 0:
                sent = s.send_new()
                if sent == 0 and not self.counted:
                    start, end = board.hole(board.highest)
                if sent == 0 and end == 0:
                    break
                pipe += sent
                self.prr_out += sent
            if end:
                end = s.retransmit(start, end)
                board.retransmitted(end)
                pipe += end - start
                self.prr_out += end - start
        self.pipe = pipe


REGISTRATION: Final = Registration(
    "sack",
    2003,
    Sack,
    "selective acknowledgements (RFC 2018, 3517); as Reno if the other end doesn't permit them",
    (
        Setting(
            "sack_pipe",
            ("rfc3517", "fall-floyd"),
            "rfc3517",
            '``rfc3517``: pipe from the scoreboard. ``fall-floyd``: the counter of Fall and Floyd, "Simulation-based '
            'comparisons of Tahoe, Reno and SACK TCP" (1996). It falls by one per duplicate ACK, by two per '
            "partial ACK",
        ),
        Setting(
            "sack_prr",
            ("off", "crb", "ssrb"),
            "off",
            "Proportional rate reduction (RFC 6937): the window shrinks in step with what is delivered, not at once. "
            "Below ssthresh ``crb`` keeps to conservation of packets, ``ssrb`` adds a segment an ACK",
        ),
    ),
)
