"""The applications that an experiment can name, with their settings: one table for TOML, NetSpec, documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bentpipe_hdl.units import format_rate, format_size, format_time

if TYPE_CHECKING:  # the applications themselves are host code, which reading an experiment doesn't need
    from bentpipe.apps.app import Application
    from bentpipe.apps.ftp import FtpSession

__all__ = [
    "APPLICATIONS",
    "COMMON",
    "MAX_SIZE",
    "UDP_WRITE",
    "Kind",
    "Setting",
    "check_values",
    "make_application",
    "make_session",
    "settings_text",
]

MAX_SIZE: Final = 2**30
"""Largest block or write, in octets."""
UDP_WRITE: Final = 8192
"""Default write of ttcp over UDP (ttcp's own buffer)."""

_TIMES: Final = ("exponential", "fixed")
_MODES: Final = ("get", "put")
_PS_PER_S: Final = 10**12


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of an application.

    Members
    -------
    kind : str
        ``"size"``, ``"time"``, ``"rate"``, ``"count"``, ``"choice"``, ``"sizes"`` and ``"times"`` (one, or two bounds).
    default : Any
        In base units (octets, ps, b/s); None: none, the setting may be left out. :data:`REQUIRED`: it may not.
    """

    name: str
    kind: str
    default: Any
    text: str
    choices: tuple[str, ...] = ()


REQUIRED: Final[Any] = object()
"""The default of a setting that must be given."""

_LATE: Final = Setting(
    "late",
    "choice",
    "queue",
    "blocks that are due while the socket is full are written in turn, or left out",
    ("queue", "skip"),
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One application."""

    name: str
    text: str
    settings: tuple[Setting, ...]
    protocols: tuple[str, ...] = ("tcp", "udp")


COMMON: Final = (
    Setting("size", "size", None, "how much to send; without it the flow is endless"),
    Setting("duration", "time", None, "when the application stops writing, counted from the connection"),
)
"""Settings of every application."""

APPLICATIONS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            "ttcp",
            "full blast: writes as fast as the socket takes it",
            (Setting("write", "size", None, "octets a write: 65536 over TCP, 8192 (a datagram) over UDP"),),
        ),
        Kind(
            "cbr",
            "constant rate: blocks at fixed times",
            (
                Setting("block", "size", REQUIRED, "octets a block"),
                Setting("period", "time", None, "from one block to the next; this or the rate"),
                Setting("rate", "rate", None, "of the blocks' octets, instead of the period"),
                Setting("count", "count", 1, "blocks each period"),
                _LATE,
            ),
        ),
        Kind(
            "random",
            "blocks of random sizes at random times, drawn uniformly",
            (
                Setting("block", "sizes", REQUIRED, "bounds of the octets of a block"),
                Setting("gap", "times", REQUIRED, "bounds of the time from one block to the next"),
                _LATE,
            ),
        ),
        Kind(
            "onoff",
            "blocks at a constant rate while on, nothing while off",
            (
                Setting("block", "size", REQUIRED, "octets a block"),
                Setting("rate", "rate", REQUIRED, "of the blocks' octets while on"),
                Setting("on", "time", REQUIRED, "how long on (exponential times: in the mean)"),
                Setting("off", "time", REQUIRED, "how long off"),
                Setting("times", "choice", _TIMES[0], "how the times are chosen", _TIMES),
                _LATE,
            ),
        ),
        Kind(
            "ftp",
            "a file over a data connection, after a dialogue on a control connection; `size` is the file's",
            (
                Setting(
                    "mode", "choice", _MODES[0], "whether the sink fetches the file or the source stores it", _MODES
                ),
                Setting("block", "size", 8192, "octets read or written at once"),
                Setting("disk_read", "rate", None, "of the source's disk; without it the disk takes no time"),
                Setting("disk_write", "rate", None, "of the sink's disk"),
            ),
            ("tcp",),
        ),
    )
}
"""By name."""


def check_values(kind: str, protocol: str, values: Mapping[str, Any], size: int | None) -> tuple[str, str] | None:
    """What is wrong with settings that are each right: the setting and the reason; None if nothing is."""
    if protocol not in APPLICATIONS[kind].protocols:
        return "protocol", f"{kind} runs over {' and '.join(APPLICATIONS[kind].protocols)} only"
    if kind == "cbr":
        if values["period"] is None and values["rate"] is None:
            return "", "cbr needs 'period' or 'rate'"
        if values["period"] is not None and values["rate"] is not None:
            return "rate", "give either 'period' or 'rate'"
    if kind == "ftp" and size is None:
        return "size", "ftp needs the size of the file"
    return None


def make_session(values: Mapping[str, Any], size: int) -> FtpSession:
    """The session of one flow of ftp."""
    from bentpipe.apps.ftp import FtpSession

    put = values["mode"] == "put"
    return FtpSession(size, values["block"], values["disk_read"] or 0, values["disk_write"] or 0, put)


def make_application(
    kind: str, protocol: str, values: Mapping[str, Any], size: int | None, duration_ps: int, seed: int, number: int
) -> Application:
    """The application of one flow: the ``number``-th of an experiment with this seed."""
    from bentpipe.apps.blocks import Cbr, Draws, OnOff, RandomBlocks
    from bentpipe.apps.ttcp import Ttcp

    skip = values.get("late") == "skip"
    draws = Draws(seed, number)
    match kind:
        case "ttcp":
            return Ttcp(size, values["write"] or (UDP_WRITE if protocol == "udp" else 65536), duration_ps)
        case "cbr":
            period = values["period"] or values["block"] * values["count"] * 8 * _PS_PER_S // values["rate"]
            return Cbr(values["block"], period, values["count"], size, duration_ps, skip)
        case "random":
            return RandomBlocks(values["block"], values["gap"], draws, size, duration_ps, skip)
        case "onoff":
            on, off = values["on"], values["off"]
            return OnOff(values["block"], values["rate"], on, off, values["times"], draws, size, duration_ps, skip)
    raise AssertionError(kind)


def settings_text(kind: str, values: Mapping[str, Any]) -> str:
    """The settings that are given, in words: ``(block 18.6 kB, period 30 ms)``."""
    formats = {"size": format_size, "time": format_time, "rate": format_rate}
    parts = []
    for setting in APPLICATIONS[kind].settings:
        value = values[setting.name]
        if value is None or (value == setting.default and setting.kind in ("count", "choice")):
            continue
        show = formats.get(setting.kind.removesuffix("s"), str)
        text = " to ".join(show(v) for v in value) if isinstance(value, tuple) else show(value)
        parts.append(f"{setting.name} {text}")
    return f"({', '.join(parts)})" if parts else ""
