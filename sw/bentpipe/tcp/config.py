"""Settings of a TCP end: variant, buffers, options, timers, and the habits of the BSD releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ACK_POLICIES", "SACK_PIPES", "TIMERS", "VARIANTS", "TcpConfig"]

VARIANTS: Final = ("tahoe", "reno", "newreno", "sack")
ACK_POLICIES: Final = ("bsd", "every_second", "immediate")
TIMERS: Final = ("bsd", "ideal")
SACK_PIPES: Final = ("rfc3517", "fall-floyd")


@dataclass(frozen=True)
class TcpConfig:
    """Settings of one end of a connection. The defaults are those of the satellite testbed's hosts: an MSS
    of 9140 on an MTU of 9180 (RFC 1577), Reno, window scaling (RFC 1323), BSD's timers, no timestamps.

    Parameters
    ----------
    variant : str
        ``tahoe``, ``reno``, ``newreno`` or ``sack``. A ``sack`` end asks for SACK in its SYN, and recovers as
        Reno if the other end does not; every end sends SACK blocks if the other asked for them and
        ``sack_permitted`` is on.
    mss : int
        Largest payload of a segment in octets (also advertised); 0: the MTU less 40.
    send_buffer, receive_buffer : int
        Socket buffers in octets, 1..2**30 - 1; the receive buffer is the window.
    round_buffers : bool
        Round the socket buffers up to whole segments (4.4BSD ``tcp_mss``).
    window_scale : bool
        Offer RFC 1323 window scaling; without it no window exceeds 65535.
    timestamps : bool
        Offer RFC 1323 timestamps: 12 octets in every segment once both ends offer them.
    sack_permitted : bool or None
        Offer SACK (RFC 2018). None: if ``variant`` is ``sack``.
    nagle : bool
        Hold back a small segment while data is unacknowledged (RFC 896).
    keepalive : bool
        Probe an idle peer after two hours (RFC 1122 4.2.3.6).
    ack_policy : str
        ``bsd``: data only marks the connection for the fast timer; every second segment is acknowledged
        because the reader, draining the buffer, opens the window by two segments (4.4BSD-Lite
        ``tcp_output``), which gives stretch ACKs where segments are shorter than the MSS, as with timestamps.
        ``every_second``: an ACK at each second segment (Stevens, TCP/IP Illustrated vol. 2, exercise; later BSDs).
        ``immediate``: an ACK for each segment.
    delayed_ack_ps : int
        With ideal timers: how long an ACK may wait. BSD's waits for the next 200 ms tick of the host.
    timers : str
        ``bsd``: 200 ms and 500 ms ticks of the host, RTO in whole ticks (4.4BSD ``tcp_timer.c``).
        ``ideal``: exact times, RTO = srtt + max(1 ms, 4 rttvar) after Jacobson's 1988 paper.
    rto_min_ps, rto_max_ps : int
        Limits of the RTO with ideal timers; 1 s after RFC 6298 2.4. A floor below ``delayed_ack_ps`` and the round
        trip times out where nothing is lost. BSD's limits are 2 and 128 ticks.
    rto_min_ticks : int
        Lower limit of BSD's RTO in ticks of 500 ms (TCPTV_MIN).
    msl_ps : int
        Maximum segment lifetime; TIME_WAIT lasts two (BSD: 30 s).
    initial_cwnd : int
        Congestion window at the start, in segments.
    initial_ssthresh : int
        Slow-start threshold at the start in octets; 0: no limit.
    newreno_impatient : bool
        New Reno: restart the retransmission timer at the first partial ACK only (RFC 2582 section 4,
        "impatient"); otherwise at each ("slow-but-steady").
    newreno_careful : bool
        New Reno: after a time-out no fast retransmission until more than ``recover`` is acknowledged (RFC 2582
        section 5, "careful"); otherwise an ACK of exactly ``recover`` suffices ("less careful").
    newreno_avoid_multiple : bool
        New Reno: avoid repeated fast retransmissions after a time-out at all (RFC 2582 section 5).
    newreno_exit_flight : bool
        New Reno: at the end of recovery cwnd = min(ssthresh, flight + MSS), against bursts (RFC 2582
        section 3 step 5, first option); otherwise cwnd = ssthresh.
    sack_pipe : str
        ``rfc3517``: pipe from the scoreboard. ``fall-floyd``: the counter of Fall and Floyd, "Simulation-based
        comparisons of Tahoe, Reno and SACK TCP" (1996): less one a duplicate ACK, less two a partial ACK.
    habit_maxseg_eighth : bool
        Congestion avoidance adds a further MSS/8 per ACK (Net/2 to 4.4BSD-Lite ``tcp_input``; Lite2 dropped it; a known
        problem by RFC 2525, 2.6).
    habit_deflation_bug : bool
        Fast recovery left at exactly three duplicate ACKs keeps its inflated window, as the test is ``> 3``
        (4.3BSD-Reno to 4.4BSD-Lite2 ``tcp_input``; later releases test ``>= 3``).
    habit_window_update_resets_dupacks : bool
        An ACK with another window is no duplicate and resets the count (4.3BSD-Tahoe on).
    habit_mss_cluster : bool
        An MSS above 2048 is rounded down to a multiple of 2048 (4.4BSD ``tcp_mss``, MCLBYTES).
    habit_mss_off_subnet_512 : bool
        An MSS of 512 as for a peer off the local network (4.4BSD ``tcp_mss``, ``in_localaddr``).
    habit_idle_restart : bool
        Slow start after an idle RTO (4.3BSD-Reno on, ``tcp_output``).
    habit_quench : bool
        A full interface queue shuts cwnd to one segment (4.4BSD ``tcp_output``: ENOBUFS, ``tcp_quench``).
    habit_tahoe_keeps_snd_nxt : bool
        Tahoe sends on from where it was after its fast retransmission (4.3BSD-Tahoe ``tcp_input``), and doesn't
        go back to the lost segment as in Fall and Floyd's description and ns.
    habit_keepalive_octet : bool
        Keepalive probes carry one octet, for 4.2BSD peers (``tcp_keepalive`` with TCP_COMPAT_42).
    habit_reset_below_window : bool
        A RST whose sequence number is older than the window ends the connection (to 4.4BSD-Lite2: ``tcp_input`` trims
        it to the left edge before it looks at the flag); otherwise only one in the window (RFC 793 section 3.4).
    habit_avoid_multiple : bool
        Tahoe and Reno: no fast retransmission until more is acknowledged than had been sent at the last fast
        retransmission or time-out (ns's ``bugFix_``; Floyd, "TCP and successive fast retransmits", 1995).
    """

    variant: str = "reno"
    mss: int = 0
    send_buffer: int = 10 * 1024 * 1024
    receive_buffer: int = 10 * 1024 * 1024
    round_buffers: bool = True
    window_scale: bool = True
    timestamps: bool = False
    sack_permitted: bool | None = None
    nagle: bool = True
    keepalive: bool = False
    ack_policy: str = "bsd"
    delayed_ack_ps: int = 200_000_000_000
    timers: str = "bsd"
    rto_min_ps: int = 1_000_000_000_000
    rto_max_ps: int = 64_000_000_000_000
    rto_min_ticks: int = 2
    msl_ps: int = 30_000_000_000_000
    initial_cwnd: int = 1
    initial_ssthresh: int = 0
    newreno_impatient: bool = False
    newreno_careful: bool = True
    newreno_avoid_multiple: bool = True
    newreno_exit_flight: bool = True
    sack_pipe: str = "rfc3517"
    habit_maxseg_eighth: bool = False
    habit_deflation_bug: bool = False
    habit_window_update_resets_dupacks: bool = True
    habit_mss_cluster: bool = False
    habit_mss_off_subnet_512: bool = False
    habit_idle_restart: bool = True
    habit_quench: bool = True
    habit_tahoe_keeps_snd_nxt: bool = False
    habit_keepalive_octet: bool = False
    habit_reset_below_window: bool = False
    habit_avoid_multiple: bool = False

    def __post_init__(self) -> None:
        _among("variant", self.variant, VARIANTS)
        _among("ack_policy", self.ack_policy, ACK_POLICIES)
        _among("timers", self.timers, TIMERS)
        _among("sack_pipe", self.sack_pipe, SACK_PIPES)
        _between("mss", self.mss, 0, 65495)
        _between("send_buffer", self.send_buffer, 1, 2**30 - 1)
        _between("receive_buffer", self.receive_buffer, 1, 2**30 - 1)
        _between("rto_min_ticks", self.rto_min_ticks, 1, 128)
        _between("rto_min_ps", self.rto_min_ps, 0, self.rto_max_ps)
        _between("initial_cwnd", self.initial_cwnd, 1, 2**20)
        _between("initial_ssthresh", self.initial_ssthresh, 0, 2**30)
        _between("delayed_ack_ps", self.delayed_ack_ps, 0, 10**12)
        _between("msl_ps", self.msl_ps, 0, 240 * 10**12)
        if 0 < self.mss < 64:
            raise ValueError(f"mss must be 0 (from the MTU) or at least 64, not {self.mss}")

    def segment_size(self, mtu: int) -> int:
        """The MSS that an interface with this MTU gives."""
        size = self.mss or mtu - 40
        if size + 40 > mtu:
            raise ValueError(f"mss {size} needs an MTU of {size + 40}, the interface has {mtu}")
        if self.habit_mss_off_subnet_512:
            size = min(size, 512)
        if self.habit_mss_cluster and size > 2048:
            size -= size % 2048
        return size

    @property
    def offers_sack(self) -> bool:
        return self.variant == "sack" if self.sack_permitted is None else self.sack_permitted


def _among(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")


def _between(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} must be {low}..{high}, not {value!r}")
