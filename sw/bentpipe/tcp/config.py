"""Settings of a TCP end: variant, growth, buffers, options, timers, and the habits of the BSD releases.

Not compiled: the class is made from the declarations, of which the files of :mod:`bentpipe.tcp.recovery` and
:mod:`bentpipe.tcp.growth` have their share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field, make_dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from bentpipe.declarations import FLAG, Setting
from bentpipe.tcp.growth import GROWTHS
from bentpipe.tcp.recovery import VARIANTS
from bentpipe.tcp.settings import Registration
from bentpipe_hdl.units import COUNT, SIZE, TIME

__all__ = ["SETTINGS", "TcpConfig", "add_growth"]

_MS: Final = 10**9
_S: Final = 10**12


def _choice(name: str, default: str, text: str, known: dict[str, Registration]) -> Setting:
    whole = text + ". " + "; ".join(f"``{kind.name}``: {kind.text}" for kind in known.values())
    return Setting(name, tuple(known), default, whole)


def _growth() -> Setting:
    return _choice("growth", "reno", "How the congestion window grows, and shrinks at a loss", GROWTHS)


_GENERAL: Final = (
    _choice("variant", "reno", "How losses are found and sent again", VARIANTS),
    _growth(),
    Setting("mss", SIZE.within(0, 65495), 0, "Largest payload of a segment (also advertised); 0: the MTU less 40"),
    Setting("send_buffer", SIZE.within(1, 2**30 - 1), 10 * 2**20, "The sender's socket buffer"),
    Setting(
        "receive_buffer", SIZE.within(1, 2**30 - 1), 10 * 2**20, "The receiver's socket buffer, which is the window"
    ),
    Setting("round_buffers", FLAG, True, "Round the socket buffers up to whole segments (4.4BSD ``tcp_mss``)"),
    Setting("window_scale", FLAG, True, "Offer RFC 1323 window scaling; without it no window exceeds 65535"),
    Setting(
        "timestamps", FLAG, False, "Offer RFC 1323 timestamps: 12 octets in every segment once both ends offer them"
    ),
    Setting("sack_permitted", FLAG, None, "Offer SACK (RFC 2018); if not given, where ``variant`` is ``sack``"),
    Setting(
        "handshake",
        FLAG,
        True,
        "Connect with SYNs. Otherwise both ends are connected from the start and have measured no round trip, "
        "as agents "
        "of ns-2: for links that are down at first",
    ),
    Setting("nagle", FLAG, True, "Hold back a small segment while data is unacknowledged (RFC 896)"),
    Setting("keepalive", FLAG, False, "Probe an idle peer after two hours (RFC 1122 4.2.3.6)"),
    Setting(
        "ack_policy",
        ("bsd", "every_second", "immediate"),
        "bsd",
        "``bsd``: data only marks the connection for the fast timer. Every second segment is acknowledged because the "
        "reader opens the window by two segments (4.4BSD-Lite ``tcp_output``). This gives stretch ACKs where "
        "segments are shorter than the MSS, as with timestamps. ``every_second``: an ACK at each "
        "second segment (Stevens, TCP/IP Illustrated vol. 2, exercise; later BSDs). ``immediate``: an ACK for each "
        "segment",
    ),
    Setting(
        "delayed_ack_ps",
        TIME.within(0, _S),
        200 * _MS,
        "With exact timers: how long an ACK may wait. BSD's waits for the next 200 ms tick of the host",
    ),
    Setting(
        "timers",
        ("bsd", "ideal", "rfc6298"),
        "bsd",
        "``bsd``: 200 ms and 500 ms ticks of the host, RTO in whole ticks (4.4BSD ``tcp_timer.c``). ``ideal``: exact "
        "times, RTO = srtt + max(1 ms, 4 rttvar) after Jacobson's 1988 paper, 3 s at first. ``rfc6298``: exact times, "
        "RTO after RFC 6298: 1 s at first, 3 s for data if the SYN was lost. It is doubled at each time-out up to "
        "``rto_max``",
    ),
    Setting(
        "rto_min_ps",
        TIME.within(0, 10**17),
        _S,
        "Least RTO with exact timers; 1 s after RFC 6298 2.4. A floor below ``delayed_ack`` and the round trip times "
        "out where nothing is lost",
    ),
    Setting(
        "rto_initial_ps",
        TIME.within(0, 10**14),
        0,
        "With exact timers: RTO before a round trip was measured; 0: 3 s (``ideal``), 1 s (``rfc6298``)",
    ),
    Setting("rto_max_ps", TIME.within(_MS, 10**17), 64 * _S, "Largest RTO with exact timers; BSD's is 128 ticks"),
    Setting(
        "rto_min_ticks", COUNT.counting("ticks").within(1, 128), 2, "Least RTO of BSD's timers, in 500 ms (TCPTV_MIN)"
    ),
    Setting("msl_ps", TIME.within(0, 240 * _S), 30 * _S, "Maximum segment lifetime; TIME_WAIT lasts two (BSD: 30 s)"),
    Setting("initial_cwnd", COUNT.counting("segments").within(1, 2**20), 1, "Congestion window at the start"),
    Setting(
        "initial_window",
        ("segments", "rfc6928"),
        "segments",
        "``segments``: the window starts with ``initial_cwnd``. ``rfc6928``: with min(10 MSS, max(2 MSS, 14600)), one "
        "segment if the SYN was lost; and so after an idle RTO",
    ),
    Setting("initial_ssthresh", SIZE.within(0, 2**30), 0, "Slow-start threshold at the start; 0: no limit"),
    Setting(
        "limited_transmit",
        FLAG,
        False,
        "The first two duplicate ACKs send a new segment each (RFC 3042), with SACK only if they bring news",
    ),
    Setting(
        "habit_window_update_resets_dupacks",
        FLAG,
        True,
        "An ACK with another window is no duplicate and resets the count (4.3BSD-Tahoe on)",
    ),
    Setting(
        "habit_mss_cluster",
        FLAG,
        False,
        "An MSS above 2048 is rounded down to a multiple of 2048 (4.4BSD ``tcp_mss``, MCLBYTES)",
    ),
    Setting(
        "habit_mss_off_subnet_512",
        FLAG,
        False,
        "An MSS of 512 as for a peer off the local network (4.4BSD ``tcp_mss``, ``in_localaddr``)",
    ),
    Setting("habit_idle_restart", FLAG, True, "Slow start after an idle RTO (4.3BSD-Reno on, ``tcp_output``)"),
    Setting(
        "habit_timeout_reduces_again",
        FLAG,
        None,
        "Each time-out in a row lowers ssthresh, the second one to two segments (4.4BSD ``tcp_timers``). Otherwise "
        "only the first does (RFC 5681 section 3.1). If not given, on unless ``timers`` is ``rfc6298``",
    ),
    Setting(
        "habit_setup_75_s",
        FLAG,
        True,
        "A connection that isn't established after 75 s is given up (4.4BSD, TCPTV_KEEP_INIT); otherwise after three "
        "minutes (RFC 1122 4.2.3.5)",
    ),
    Setting(
        "habit_quench",
        FLAG,
        True,
        "A full interface queue shuts cwnd to one segment (4.4BSD ``tcp_output``: ENOBUFS, ``tcp_quench``)",
    ),
    Setting(
        "habit_keepalive_octet",
        FLAG,
        False,
        "Keepalive probes carry one octet, for 4.2BSD peers (``tcp_keepalive`` with TCP_COMPAT_42)",
    ),
    Setting(
        "habit_reset_below_window",
        FLAG,
        False,
        "A RST with a sequence number below the window ends the connection (to 4.4BSD-Lite2: ``tcp_input`` trims the "
        "segment before it checks the flag). Otherwise only a RST in the window does (RFC 793, 3.4)",
    ),
    Setting(
        "habit_avoid_multiple",
        FLAG,
        False,
        "Tahoe and Reno: no fast retransmission until all data sent before the last fast retransmission or time-out "
        'is acknowledged. (ns\'s ``bugFix_``; Floyd, "TCP and successive fast retransmits", 1995)',
    ),
)

SETTINGS: Final[list[Setting]] = [
    *_GENERAL,
    *(setting for kinds in (VARIANTS, GROWTHS) for kind in kinds.values() for setting in kind.settings),
]
"""Every setting, in the order in which they are documented."""


class _Checked:
    """The methods of :class:`TcpConfig`, beside its fields."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **settings: Any) -> None:
        known = {setting.name: setting for setting in SETTINGS}
        for name, value in settings.items():
            if name not in known:
                raise TypeError(f"TCP has no setting {name!r}")
            known[name].check(value)
        for name, setting in known.items():
            object.__setattr__(self, name, settings.get(name, setting.default))
        self._check_together()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(vars(self).items(), key=lambda pair: pair[0])))

    @classmethod
    def of_read(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings with values that :meth:`Setting.read` has given: no value is checked again by itself.

        Raises
        ------
        ValueError
            Some of them do not go together.
        """
        made = object.__new__(cls)
        for setting in SETTINGS:
            object.__setattr__(made, setting.name, values.get(setting.name, setting.default))
        made._check_together()
        return made

    def _check_together(self) -> None:
        if self.rto_min_ps > self.rto_max_ps:
            raise ValueError(f"rto_min_ps must be 0..{self.rto_max_ps}, not {self.rto_min_ps!r}")
        if 0 < self.mss < 64:
            raise ValueError(f"mss must be 0 (from the MTU) or at least 64, not {self.mss}")
        if self.sack_prr != "off" and (self.variant != "sack" or self.sack_pipe != "rfc3517"):
            raise ValueError("sack_prr needs variant sack and sack_pipe rfc3517")

    def segment_size(self, mtu: int) -> int:
        """Return the MSS that an interface with this MTU gives."""
        size = self.mss or mtu - 40
        if size + 40 > mtu:
            raise ValueError(f"mss {size} needs an MTU of {size + 40}, the interface has {mtu}")
        if self.habit_mss_off_subnet_512:
            size = min(size, 512)
        if self.habit_mss_cluster and size > 2048:
            size -= size % 2048
        return size

    @property
    def reduces_again(self) -> bool:
        habit = self.habit_timeout_reduces_again
        return self.timers != "rfc6298" if habit is None else habit

    @property
    def offers_sack(self) -> bool:
        return self.variant == "sack" if self.sack_permitted is None else self.sack_permitted


if TYPE_CHECKING:

    class TcpConfig(_Checked):
        """Settings of one end of a connection: a frozen dataclass with a field for each of :data:`SETTINGS`.

        The defaults are those of the satellite testbed's hosts: an MSS of 9140 on an MTU of 9180 (RFC 1577), Reno,
        window scaling (RFC 1323), BSD's timers, no timestamps. A ``sack`` end asks for SACK in its SYN, and recovers as
        Reno if the other end does not; every end sends SACK blocks if the other asked for them and ``sack_permitted``
        is on.
        """

else:
    TcpConfig = make_dataclass(
        "TcpConfig",
        [(setting.name, object, field(default=setting.default)) for setting in SETTINGS],
        bases=(_Checked,),
        namespace={"__module__": __name__},
        frozen=True,
        init=False,
        eq=False,
    )


def add_growth(kind: Registration) -> None:
    """Add a growth of the window from outside of bentpipe, and its settings to :class:`TcpConfig`.

    Raises
    ------
    ValueError
        Its name or that of a setting is taken.
    """
    if kind.name in GROWTHS:
        raise ValueError(f"there is a growth {kind.name!r} already")
    known = {setting.name for setting in SETTINGS}
    for setting in kind.settings:
        if setting.name in known:
            raise ValueError(f"TCP has a setting {setting.name!r} already")
    GROWTHS[kind.name] = kind
    SETTINGS[1] = _growth()
    SETTINGS.extend(kind.settings)
    for setting in kind.settings:
        made = make_dataclass("Made", [(setting.name, object, field(default=setting.default))])
        fields: dict[str, Field[Any]] = vars(TcpConfig)["__dataclass_fields__"]
        fields[setting.name] = vars(made)["__dataclass_fields__"][setting.name]
        setattr(TcpConfig, setting.name, setting.default)  # of those that were made before
