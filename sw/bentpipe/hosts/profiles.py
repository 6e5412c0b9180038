"""The published hosts and what a segment costs them (``profiles.toml``)."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

__all__ = ["HostProfile", "load_profiles", "profile"]

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
    send_cost_ps, receive_cost_ps, clock_cost_ps, clock_tolerance_ppm : int, int, int, float
        The same, as for :class:`bentpipe.hosts.config.HostSettings`.
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
    def send_cost_ps(self) -> int:
        return round(self.send_us * _PS_PER_US)

    @property
    def receive_cost_ps(self) -> int:
        return round(self.receive_us * _PS_PER_US)

    @property
    def clock_cost_ps(self) -> int:
        return round(self.clock_us * _PS_PER_US)

    @property
    def clock_tolerance_ppm(self) -> float:
        return self.clock_ppm


@lru_cache(maxsize=1)
def load_profiles() -> dict[str, HostProfile]:
    """Return all profiles by name."""
    text = resources.files("bentpipe.hosts").joinpath("profiles.toml").read_text(encoding="utf-8")
    return {name: HostProfile(name=name, **values) for name, values in tomllib.loads(text).items()}


def profile(name: str) -> HostProfile:
    """Return the profile of this name; ValueError with the nearest known name if there is none."""
    known = load_profiles()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(sorted(known))}"
        raise ValueError(f"no host profile {name!r}{hint}")
    return known[name]
