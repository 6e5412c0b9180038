"""The settings of a host, and the configuration from which a host is made."""

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
    """Return the published hosts, by name."""
    return {name: profile.title for name, profile in load_profiles().items()}


class ContinuitySettings(Settings):
    """Continuity check of a VC from host to host."""

    continuity_check: Literal["none", "idle", "always"] = Field(
        default="none",
        description="OAM cells that tell the sink that the VC works (I.610): `idle` in seconds without user cells, "
        "`always` in every second. Both hosts need `oam`",
    )


class HostSettings(Settings):
    """A host. None where the profile decides, and is 0 without one."""

    profile: Annotated[str, Words(profile_titles)] | None = Field(
        default=None, description="profile of a published host: defaults of cost and clock settings"
    )
    send_cost_ps: Annotated[int, _COST] | None = Field(
        default=None, description="processor time to send a segment, ACK or datagram; default: the profile's"
    )
    receive_cost_ps: Annotated[int, _COST] | None = Field(
        default=None, description="processor time to receive a segment; default: the profile's"
    )
    cost_spread: Annotated[float, _SPREAD] = Field(
        default=0.0,
        description="greatest deviation of a segment's cost, as a share of it; drawn evenly for each segment",
    )
    clock_hz: Annotated[float, _HZ] | None = Field(
        default=None, description="clock interrupts per second (BSD's hz), 0 for none; default: the profile's"
    )
    clock_cost_ps: Annotated[int, _COST] | None = Field(
        default=None, description="processor time of a clock interrupt; segments that cost nothing do not wait for it"
    )
    clock_tolerance_ppm: Annotated[float, _PPM] | None = Field(
        default=None,
        description="greatest deviation of the host's clock in ppm, drawn once per host; affects timers and interrupts",
    )
    mtu: Annotated[int, _MTU] = Field(default=9180, description="largest IP datagram, octets")
    interface_queue: Count = Field(default=0, description="length of the interface queue, PDUs; 0: no limit")
    input_queue: Count = Field(
        default=0, description="received PDUs that may wait for the processor (BSD's ipintrq has 50); 0: no limit"
    )
    timer_phase_ps: Annotated[int, _COST] | None = Field(
        default=None,
        description="phase of BSD's 200 ms and 500 ms timers; default: spread evenly over the hosts",
    )


class HostConfig(HostSettings):
    """The configuration from which a host is made."""

    name: str = Field(description="name of the host")
    seed: int = Field(
        default=1, description="seed of the host's random numbers; each host has its own sequence, by its name"
    )


def host_costs(config: HostConfig) -> tuple[int, int]:
    """Return a host's processor time in ps per segment (sent, received): as configured, or as the profile has it."""
    return _of(config, "send_cost_ps"), _of(config, "receive_cost_ps")


def host_clock(config: HostConfig) -> HostClock:
    """Return the clock of a host: as configured, or as the profile has it.

    Raises
    ------
    ValueError
        The clock's interrupts leave no time for other work.
    """
    hz, cost_ps, ppm = (_of(config, name) for name in ("clock_hz", "clock_cost_ps", "clock_tolerance_ppm"))
    try:
        return HostClock(hz, cost_ps, ppm, f"{config.seed} clock {config.name}")
    except ValueError as error:
        raise ValueError(f"host {config.name}: {error}") from None


def _of(config: HostConfig, name: str) -> Any:
    """Return a setting of a host, or else its profile's; 0 without one."""
    value = getattr(config, name)
    if value is None:
        value = 0 if config.profile is None else getattr(profile(config.profile), name)
    return value
