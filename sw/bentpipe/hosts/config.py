"""The settings of a host."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe.hosts.clock import MAX_CLOCK_HZ, MAX_CLOCK_PPM

__all__ = ["HostConfig"]


@dataclass(frozen=True)
class HostConfig:
    """Settings of a host.

    Parameters
    ----------
    name : str
    send_cost_ps, receive_cost_ps : int or None
        Processor time per segment sent and received, an ACK and a UDP datagram being segments too. None: the
        profile's, or 0.
    cost_spread : float
        Share, 0 to 1, by which the cost of a segment differs from the mean at most: each is drawn evenly between.
        Where two hosts and a line always take the same times, a run locks into one cycle (Floyd and Jacobson, "On
        traffic phase effects in packet-switched gateways", 1992).
    clock_hz : float or None
        Clock interrupts a second (BSD's ``hz``), 1 to 100000, or 0 for none. None: the profile's, or 0.
    clock_cost_ps : int or None
        Time that a clock interrupt takes from the processor; less than lies between two. Segments that cost nothing
        don't wait for it. None: the profile's, or 0.
    clock_tolerance_ppm : float or None
        Parts per million, 0 to 1000, by which the host's clock is off at most: drawn evenly, once a host. It paces the
        interrupts and BSD's timers. None: the profile's, or 0.
    seed : int
        Seed of these draws; each host has its own sequence, by its name.
    interface_queue : int
        PDUs that wait for the interface at most, 0 for no limit (BSD's IFQ_MAXLEN is 50).
    mtu : int
        IP MTU in octets.
    profile : str or None
        A published host of ``profiles.toml``.
    timer_phase_ps : int or None
        When, in each 200 ms and 500 ms of its own clock, the host's ticks come; a clock interrupt comes with the
        first slow one. None: spread evenly over the hosts of an engine.
    """

    name: str
    send_cost_ps: int | None = None
    receive_cost_ps: int | None = None
    cost_spread: float = 0.0
    clock_hz: float | None = None
    clock_cost_ps: int | None = None
    clock_tolerance_ppm: float | None = None
    seed: int = 1
    interface_queue: int = 0
    mtu: int = 9180
    profile: str | None = None
    timer_phase_ps: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("send_cost_ps", self.send_cost_ps), ("receive_cost_ps", self.receive_cost_ps)):
            if value is not None and value < 0:
                raise ValueError(f"{name} of host {self.name} must not be negative, not {value!r}")
        if not 0 <= self.cost_spread <= 1:
            raise ValueError(f"cost_spread of host {self.name} must be 0..1, not {self.cost_spread!r}")
        if self.clock_hz and not 1 <= self.clock_hz <= MAX_CLOCK_HZ:
            raise ValueError(f"clock_hz of host {self.name} must be 0 or 1..{MAX_CLOCK_HZ}, not {self.clock_hz!r}")
        if self.clock_cost_ps is not None and self.clock_cost_ps < 0:
            raise ValueError(f"clock_cost_ps of host {self.name} must not be negative, not {self.clock_cost_ps!r}")
        if self.clock_tolerance_ppm is not None and not 0 <= self.clock_tolerance_ppm <= MAX_CLOCK_PPM:
            raise ValueError(
                f"clock_tolerance_ppm of host {self.name} must be 0..{MAX_CLOCK_PPM}, not {self.clock_tolerance_ppm!r}"
            )
        if self.interface_queue < 0:
            raise ValueError(f"interface_queue of host {self.name} must not be negative, not {self.interface_queue!r}")
        if not 104 <= self.mtu <= 65527:
            raise ValueError(f"mtu of host {self.name} must be 104..65527, not {self.mtu!r}")
