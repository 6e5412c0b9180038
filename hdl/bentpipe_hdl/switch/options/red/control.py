"""Random early detection as software sees it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import Field, model_validator

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import NUMBER, SHARE, TIME, Settings, wrong
from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.switch.options.queue_limit.control import frames_known
from bentpipe_hdl.ticks import TICK_PS

__all__ = [
    "DECAY_FRACTION",
    "LEVEL_FRACTION",
    "OPTIONS",
    "PROBABILITY_BITS",
    "RATE_FRACTION",
    "TOTAL_FRACTION",
    "TYPICAL_OCTETS",
    "Red",
    "RedSettings",
    "packet_ticks",
    "red_seed",
    "red_words",
]  # fmt: skip

LEVEL_FRACTION: Final = 16
PROBABILITY_BITS: Final = 24
RATE_FRACTION: Final = 32
DECAY_FRACTION: Final = 24
"""Fraction bits of thresholds in frames, of shares and probabilities, of packets a tick, of halvings a packet."""

TOTAL_FRACTION: Final = 8
"""Fraction bits of sums of averages."""

TYPICAL_OCTETS: Final = 500
"""Octets of a packet of typical size, as in ns-2 (``mean_pktsize_``)."""

_FRAMES: Final = NUMBER.within(0.0, 32768.0, name="frames")


class RedSettings(Settings):
    """Random early detection of a port (Floyd and Jacobson 1993), on frames, as in ns-2."""

    low: Annotated[float, _FRAMES] = Field(default=5.0, description="average below which no frame is refused, frames")
    high: Annotated[float, _FRAMES] = Field(default=15.0, description="average from which on each frame is refused")
    weight: Annotated[float, SHARE.within(1e-5, 1.0, name="weight")] = Field(
        default=0.002, description="weight of the queue in its average at each arriving frame"
    )
    max_probability: Annotated[float, SHARE.within(1e-5, 1.0, name="probability")] = Field(
        default=0.1, description="probability that a frame is refused with the average at `high`"
    )
    wait: bool = Field(
        default=True,
        description="spacing of refused frames: at least 1/p frames; `false`: any number up to 1/p",
    )
    packet_time_ps: Annotated[int, TIME.within("1 us", "10 s")] | None = Field(
        default=None,
        description=(
            "time of a packet, for the decay of an idle queue's average; default: 500 octets at the port's rate"
        ),
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.high < self.low + 1:
            raise wrong(f"{self.high:g} is not above low, which is {self.low:g}, by a frame or more", "high")
        return self


def packet_ticks(settings: RedSettings, period: int) -> float:
    """Return the time of a typical packet, in ticks, at a port where a cell takes ``period`` (2**-16 ticks)."""
    if settings.packet_time_ps is not None:
        return settings.packet_time_ps / TICK_PS
    return -(-(TYPICAL_OCTETS + 8) // 48) * period / 65536


def red_words(settings: RedSettings, packet_ticks: float) -> dict[str, dict[str, int]]:
    """Return the registers of a port, by name and field; ``packet_ticks`` is the time of a typical packet."""
    one, level = 1 << PROBABILITY_BITS, 1 << LEVEL_FRACTION
    keep = min(max(round(one * (1 - settings.weight)), 0), one - 1)
    halvings = -math.log2(keep / one) if keep else math.inf
    most = (1 << 32) - 1
    return {
        "red_levels": {"low": round(settings.low * level), "high": round(settings.high * level)},
        "red_weights": {
            "keep": keep,
            "slope": round(one * settings.max_probability / (settings.high - settings.low)),
        },
        "red_idle": {
            "rate": min(round((1 << RATE_FRACTION) / packet_ticks), most),
            "decay": round(min(halvings * (1 << DECAY_FRACTION), most)),
        },
    }


def red_seed(seed: str, port: int) -> int:
    """Return the first state of a port's generator."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{port}/red".encode()).digest()[:8], "little") or 1


class Red(Option):
    """Random early detection on the frames queued for a port."""

    name = "red"
    bit = 2
    needs_port_queues = True
    series: ClassVar[dict[str, str]] = {
        "red_average": "RED's average of what is queued for such a port, 1/1000 packet",
        "red_judged": "frames so far that found a cell queued for such a port",
        "red_refused": "those of them that RED refused",
        "red_total": "the sum of the averages with which they were judged, 1/256 packet",
    }

    def wanted(self, setup: Setup) -> bool:
        return bool(self._ports(setup))

    @staticmethod
    def _ports(setup: Setup) -> list[int]:
        return [k for k, port in enumerate(setup.ports) if port.settings.red is not None]

    def check(self, setup: Setup) -> Iterator[Fault]:
        yield from frames_known(setup, "RED", self._ports(setup))

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells
        return (
            Register("red_enabled", 0x0100, "ports with RED, a bit for each", width=ports),
            Register(
                "red_waits", 0x0101, "ports at which refused frames are at least 1/p apart, a bit for each",
                width=ports,
            ),
            Register(
                "red_levels", 0x0120, "thresholds of a port", "wo", 64, ports,
                fields=(
                    reg.Field("low", 0, 32, "average below which no frame is refused", "frames / 2**16"),
                    reg.Field("high", 32, 32, "average from which on each frame is refused", "frames / 2**16"),
                ),
            ),
            Register(
                "red_weights", 0x0140, "weights of a port's average and probability",
                "wo", 2 * PROBABILITY_BITS + 1, ports,
                fields=(
                    reg.Field("keep", 0, PROBABILITY_BITS, "share of the average that remains with a frame", "2**-24"),
                    reg.Field(
                        "slope", PROBABILITY_BITS, PROBABILITY_BITS + 1, "slope of the probability",
                        "2**-24 a frame",
                    ),
                ),
            ),
            Register(
                "red_idle", 0x0160, "decay of a port's average while the port is idle", "wo", 64, ports,
                fields=(
                    reg.Field("rate", 0, 32, "rate of typical packets", "2**-32 a tick"),
                    reg.Field("decay", 32, 32, "halvings of the average by a typical packet", "2**-24"),
                ),
            ),
            Register("red_seed", 0x0180, "state of a port's generator, not 0", "wo", 64, ports),
            Register(
                "red_average", 0x01A0, "average of a port; at 32 bits, after an idle time, a tick late", "ro", 32,
                ports, "frames / 2**16",
            ),
            Register("red_judged", 0x01D0, "frames that found a cell queued for the port", "ro", 32, ports, "frames"),
            Register("red_refused", 0x01E0, "frames refused among those", "ro", 32, ports, "frames"),
            Register(
                "red_total", 0x01F0, "sum of the averages at these frames, low word", "ro", 32, ports,
                "frames / 2**8",
            ),
            Register(
                "red_total_high", 0xD4000, "sum of the averages at these frames, high word",
                "ro", 16, ports, "frames * 2**24",
            ),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        enabled = waits = 0
        for k in self._ports(setup):
            port = setup.ports[k]
            settings = port.settings.red
            for name, words in red_words(settings, packet_ticks(settings, port.period)).items():
                getattr(csr, name)[k] = words
            csr.red_seed[k] = red_seed(setup.seed, k)
            enabled |= 1 << k
            waits |= settings.wait << k
        csr.red_waits = waits
        csr.red_enabled = enabled

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        ports = len(setup.ports)
        return {
            "red_average": [word / (1 << LEVEL_FRACTION) for word in csr.red_average[:ports]],
            "red_judged": csr.red_judged[:ports],
            "red_refused": csr.red_refused[:ports],
        }

    def sample(self, csr: Registers, setup: Setup) -> dict[str, dict[int, int]]:
        ports = self._ports(setup)
        return {
            "red_average": {k: csr.red_average[k] * 1000 >> LEVEL_FRACTION for k in ports},
            "red_judged": {k: csr.red_judged[k] for k in ports},
            "red_refused": {k: csr.red_refused[k] for k in ports},
            "red_total": {k: csr.red_total[k] | csr.red_total_high[k] << 32 for k in ports},
        }


OPTIONS: Final = (Red(),)
