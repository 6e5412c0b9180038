"""What can be set of a host, and what a host is made from."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from bentpipe.hosts.clock import MAX_CLOCK_HZ, MAX_CLOCK_PPM, HostClock
from bentpipe.hosts.profiles import load_profiles, profile
from bentpipe_hdl.settings import COUNT, NUMBER, PPM, TIME, Count, Settings, Words

__all__ = ["ContinuitySettings", "HostConfig", "HostSettings", "host_clock", "host_costs", "profile_titles"]

_SPREAD: Final = NUMBER.within(0, 1, name="share", beyond="is a share of the cost, between 0 and 1 (0.05: within 5 %)")
_HZ: Final = NUMBER.within(
    1, MAX_CLOCK_HZ, or_zero=True, beyond="{given!r} is neither 0 nor in the range {low} to {high}"
)
_COST: Final = TIME.within(0, "1 s")
_PPM: Final = PPM.within(0, MAX_CLOCK_PPM)
_MTU: Final = COUNT.within(104, 65527)


def profile_titles() -> dict[str, str]:
    """The published hosts, by name."""
    return {name: profile.title for name, profile in load_profiles().items()}


class ContinuitySettings(Settings):
    """Continuity check of a VC from host to host."""

    continuity_check: Literal["none", "idle", "always"] = Field(
        default="none",
        description="OAM cells by which the sink knows that the VC is there (I.610): in seconds in which no user cell "
        "goes, or in all; both hosts have `oam`",
    )


class HostSettings(Settings):
    """A host. None where the profile decides, and is 0 without one."""

    profile: Annotated[str, Words(profile_titles)] | None = Field(
        default=None, description="a published host, which gives cost and clock where they aren't given"
    )
    send_cost_ps: Annotated[int, _COST] | None = Field(
        default=None, description="processor time of a segment sent, ACKs and datagrams too; the profile's unless given"
    )
    receive_cost_ps: Annotated[int, _COST] | None = Field(
        default=None, description="processor time of a segment received; the profile's unless given"
    )
    cost_spread: Annotated[float, _SPREAD] = Field(
        default=0.0, description="share of the cost by which a segment's differs at most, drawn evenly for each"
    )
    clock_hz: Annotated[float, _HZ] | None = Field(
        default=None, description="clock interrupts a second (BSD's hz), 0 for none; the profile's unless given"
    )
    clock_cost_ps: Annotated[int, _COST] | None = Field(
        default=None, description="processor time of a clock interrupt; what costs nothing doesn't wait for it"
    )
    clock_tolerance_ppm: Annotated[float, _PPM] | None = Field(
        default=None,
        description="ppm that its clock is off at most, drawn once a host; timers and interrupts go by it",
    )
    mtu: Annotated[int, _MTU] = Field(default=9180, description="octets of an IP datagram, at most")
    interface_queue: Count = Field(default=0, description="PDUs that wait for the interface at most; 0: no limit")
    timer_phase_ps: Annotated[int, _COST] | None = Field(
        default=None,
        description="when BSD's timers tick in each 200 ms and 500 ms; spread evenly over the hosts unless given",
    )


class HostConfig(HostSettings):
    """What a host is made from."""

    name: str = Field(description="its name")
    seed: int = Field(default=1, description="of its random choices; each host has its own sequence, by its name")


def host_costs(config: HostConfig) -> tuple[int, int]:
    """Processor time in picoseconds per segment (sent, received) of a host: as configured, else as the profile says."""
    return _of(config, "send_cost_ps"), _of(config, "receive_cost_ps")


def host_clock(config: HostConfig) -> HostClock:
    """The clock of a host: as configured, else as the profile says; ValueError where its interrupts leave no time."""
    hz, cost_ps, ppm = (_of(config, name) for name in ("clock_hz", "clock_cost_ps", "clock_tolerance_ppm"))
    try:
        return HostClock(hz, cost_ps, ppm, f"{config.seed} clock {config.name}")
    except ValueError as error:
        raise ValueError(f"host {config.name}: {error}") from None


def _of(config: HostConfig, name: str) -> Any:
    """A setting of a host, or else its profile's; 0 without one."""
    value = getattr(config, name)
    if value is None:
        value = 0 if config.profile is None else getattr(profile(config.profile), name)
    return value
