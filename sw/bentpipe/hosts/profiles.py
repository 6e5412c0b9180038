"""The published hosts and what a segment costs them (``profiles.toml``)."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from bentpipe.hosts.clock import HostClock
from bentpipe.hosts.config import HostConfig

__all__ = ["HostProfile", "host_clock", "host_costs", "load_profiles", "profile"]

_PS_PER_US = 1_000_000


@dataclass(frozen=True)
class HostProfile:
    """A published host.

    Members
    -------
    send_us, receive_us : float
        Processor time per segment (TCP processing and operating system).
    send_limit_mbps, receive_limit_mbps : float or None
        Best published TCP throughput as a sender and as a receiver, for comparison; not used by the model.
    source : str
        Where the cost comes from.
    clock_hz, clock_us, clock_ppm : float
        Clock interrupts a second, the processor time that each takes, and by how much the clock is off at most.
    """

    name: str
    title: str
    send_us: float
    receive_us: float
    source: str
    clock_hz: float
    clock_us: float
    clock_ppm: float
    send_limit_mbps: float | None = None
    receive_limit_mbps: float | None = None

    @property
    def clock_cost_ps(self) -> int:
        """Processor time of a clock interrupt."""
        return round(self.clock_us * _PS_PER_US)


@lru_cache(maxsize=1)
def load_profiles() -> dict[str, HostProfile]:
    """All profiles by name."""
    text = resources.files("bentpipe.hosts").joinpath("profiles.toml").read_text(encoding="utf-8")
    return {name: HostProfile(name=name, **values) for name, values in tomllib.loads(text).items()}


def profile(name: str) -> HostProfile:
    """The profile of this name; ValueError with the nearest known name if there is none."""
    known = load_profiles()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(sorted(known))}"
        raise ValueError(f"no host profile {name!r}{hint}")
    return known[name]


def host_costs(config: HostConfig) -> tuple[int, int]:
    """Processor time in picoseconds per segment (sent, received) of a host: as configured, else as the profile says."""
    send, receive = 0, 0
    if config.profile is not None:
        published = profile(config.profile)
        send, receive = round(published.send_us * _PS_PER_US), round(published.receive_us * _PS_PER_US)
    if config.send_cost_ps is not None:
        send = config.send_cost_ps
    if config.receive_cost_ps is not None:
        receive = config.receive_cost_ps
    return (send, receive)


def host_clock(config: HostConfig) -> HostClock:
    """The clock of a host: as configured, else as the profile says; ValueError where its interrupts leave no time."""
    hz, cost_ps, ppm = config.clock_hz, config.clock_cost_ps, config.clock_tolerance_ppm
    published = profile(config.profile) if config.profile is not None else None
    if hz is None:
        hz = published.clock_hz if published else 0.0
    if cost_ps is None:
        cost_ps = published.clock_cost_ps if published else 0
    if ppm is None:
        ppm = published.clock_ppm if published else 0.0
    try:
        return HostClock(hz, cost_ps, ppm, f"{config.seed} clock {config.name}")
    except ValueError as error:
        raise ValueError(f"host {config.name}: {error}") from None
