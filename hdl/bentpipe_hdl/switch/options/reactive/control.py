"""Load-reactive ports as software sees them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from bentpipe_hdl import registers as reg
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import COUNT, IN_RUN, RATE, SHARE, SIZE, TIME, Settings, wrong
from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.ticks import MOST_CELLS, cell_period, round_ticks
from bentpipe_hdl.units import MAX_RATE_BPS, format_rate, parse_rate

__all__ = ["CAPACITY_BITS", "LEVEL_FRACTION", "OCTETS_A_CELL", "OPTIONS", "UNIT_BPS", "Reactive", "ReactiveSettings"]

UNIT_BPS: Final = 1000
"""Capacities are whole multiples of this."""

CAPACITY_BITS: Final = 22

OCTETS_A_CELL: Final = 48
"""What a queued cell counts in octets: its payload."""

_CELL_OCTETS: Final = 53

LEVEL_FRACTION: Final = 8
"""Fraction bits of thresholds."""

_RATE: Final = RATE.within(UNIT_BPS, MAX_RATE_BPS, or_zero=True, read=partial(parse_rate, zero=True))
_LEVEL: Final = COUNT.within(0, MOST_CELLS * OCTETS_A_CELL)

Counted = Literal["octets", "cells", "packets"]


class ReactiveSettings(Settings):
    """A port whose capacity follows its queue (Krishnan and Sterbenz 2001): by hysteresis."""

    floor_bps: Annotated[int, _RATE] = Field(
        description="least capacity, bits of cells a second in steps of 1 kb/s; 0: the port may stall",
        json_schema_extra=IN_RUN,
    )
    ceiling_bps: Annotated[int, RATE.within(UNIT_BPS, MAX_RATE_BPS)] = Field(
        description="greatest capacity, likewise", json_schema_extra=IN_RUN
    )
    initial_bps: Annotated[int, _RATE] | None = Field(default=None, description="initial capacity; default: the floor")
    low: Annotated[int, _LEVEL] = Field(
        description="queue of the port below which the capacity shrinks", json_schema_extra=IN_RUN
    )
    high: Annotated[int, _LEVEL] = Field(
        description="queue of the port above which the capacity grows; between both it stays", json_schema_extra=IN_RUN
    )
    counted: Counted = Field(
        default="octets", description="unit of `low` and `high`: octets of payload (48 a cell), cells, or packets"
    )
    up_bps: Annotated[int, _RATE] = Field(
        default=50_000, description="increase of the capacity at a check", json_schema_extra=IN_RUN
    )
    down_bps: Annotated[int, _RATE] = Field(
        default=50_000, description="decrease of the capacity at a check", json_schema_extra=IN_RUN
    )
    interval_ps: Annotated[int, TIME.within("20 us", "100 s")] = Field(
        default=10**11, description="time between checks of the queue", json_schema_extra=IN_RUN
    )
    packet: Annotated[int, SIZE.within(1, 65535)] | None = Field(
        default=None,
        description="size of IP packets for which rates, and thresholds in octets, are meant; cells carry more "
        "(LLC/SNAP, AAL5). Without it they are meant for cells",
    )
    average: Annotated[float, SHARE.within(2**-16, 1.0, name="weight")] = Field(
        default=1.0,
        description="weight of the present queue in its average, which is compared with the thresholds; 1: no average",
        json_schema_extra=IN_RUN,
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key in ("floor_bps", "ceiling_bps", "initial_bps", "up_bps", "down_bps"):
            value = getattr(self, key)
            if value is not None and value % UNIT_BPS:
                raise wrong(f"{value} b/s is no multiple of 1 kb/s", key.removesuffix("_bps"))
        if self.low > self.high:
            raise wrong(f"{self.low} is above high, which is {self.high}", "low")
        if self.floor_bps > self.ceiling_bps:
            raise wrong(
                f"{format_rate(self.floor_bps)} is above the ceiling of {format_rate(self.ceiling_bps)}", "floor"
            )
        return self

    def check_start(self) -> None:
        """Raise ValueError if ``initial`` is not between floor and ceiling at the start; an event may move both."""
        if self.start_bps != (self.floor_bps if self.initial_bps is None else self.initial_bps):
            raise ValueError(f"{format_rate(self.initial_bps or 0)} is not between floor and ceiling")

    @property
    def start_bps(self) -> int:
        """Capacity at the start, in bit/s: ``initial`` (default: the floor), limited by floor and ceiling."""
        first = self.floor_bps if self.initial_bps is None else self.initial_bps
        return min(max(first, self.floor_bps), self.ceiling_bps)

    @property
    def cells_a_packet(self) -> int:
        """Return the number of cells of a ``packet``, with 8 octets of RFC 1483's LLC/SNAP header and 8 of AAL5's
        trailer."""
        return -(-((self.packet or 0) + 16) // OCTETS_A_CELL)

    def units(self, rate_bps: int) -> int:
        """Return a capacity as the hardware has it, in kb/s of cells."""
        if self.packet is None:
            return rate_bps // UNIT_BPS
        return round(Fraction(rate_bps * self.cells_a_packet * _CELL_OCTETS, self.packet * UNIT_BPS))

    def rate_bps(self, units: int) -> int:
        """Return the rate in b/s of a capacity in units of the hardware; the inverse of :meth:`units`."""
        if self.packet is None:
            return units * UNIT_BPS
        return round(Fraction(units * UNIT_BPS * self.packet, self.cells_a_packet * _CELL_OCTETS))

    @property
    def cell_ceiling_bps(self) -> int:
        """The ceiling in bits of cells."""
        return self.units(self.ceiling_bps) * UNIT_BPS

    @property
    def octets_a_cell(self) -> Fraction:
        """Return the number of octets for which a queued cell counts."""
        return Fraction(OCTETS_A_CELL) if self.packet is None else Fraction(self.packet, self.cells_a_packet)

    @property
    def levels(self) -> tuple[int, int]:
        """Both thresholds as the hardware compares them: cells or packets, with 8 fraction bits."""
        each = self.octets_a_cell if self.counted == "octets" else 1
        scale = 1 << LEVEL_FRACTION
        return ceil(self.low * scale / each), floor(self.high * scale / each)


class Reactive(Option):
    """Ports whose rate a hysteresis controller sets from what is queued for them."""

    name = "reactive"
    bit = 0
    needs_port_queues = True
    series: ClassVar[dict[str, str]] = {
        "capacity": "capacity of each load-reactive port, b/s, of what its settings are of",
        "port_queue": "cells queued for such a port",
    }

    def wanted(self, setup: Setup) -> bool:
        return any(port.settings.reactive for port in setup.ports)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del vcs, cells
        return (
            Register(
                "rate_control", 0x0300, "control of a port's rate by its queue", "wo", 2, ports,
                fields=(
                    reg.Field("enabled", 0, text="the controller sets the rate; otherwise PERIOD does"),
                    reg.Field("packets", 1, text="thresholds count packets (last cells), not cells"),
                ),
                on_write="with ``enabled`` the capacity becomes RATE_INITIAL, and the first interval begins",
            ),
            Register("rate_low", 0x0310, "queue below which the capacity shrinks", "rw", 24, ports, "1/256"),
            Register("rate_high", 0x0320, "queue above which the capacity grows", "rw", 24, ports, "1/256"),
            Register("rate_up", 0x0330, "step up", "rw", CAPACITY_BITS, ports, "kb/s"),
            Register("rate_down", 0x0340, "step down", "rw", CAPACITY_BITS, ports, "kb/s"),
            Register("rate_floor", 0x0350, "least capacity", "rw", CAPACITY_BITS, ports, "kb/s"),
            Register("rate_ceiling", 0x0360, "greatest capacity", "rw", CAPACITY_BITS, ports, "kb/s"),
            Register("rate_initial", 0x0370, "capacity at the begin", "rw", CAPACITY_BITS, ports, "kb/s"),
            Register(
                "rate_interval", 0x0380, "interval from one look at the queue to the next",
                "rw", 30, ports, "ticks",
            ),
            Register(
                "rate_weight", 0x0390, "weight of the queue in its average, 1 to 65536",
                "rw", 17, ports, "1/65536",
            ),
            Register("rate_cell", 0x03A0, "period of cells at 1 kb/s", "wo", 40, ports, "ticks / 2**16"),
            Register("rate_capacity", 0x03C0, "capacity of the port now", "ro", CAPACITY_BITS, ports, "kb/s"),
            Register("port_cells", 0x03D0, "cells queued for the port", "ro", 17, ports, "cells"),
            Register("port_frames", 0x03E0, "cells queued for the port that end a frame", "ro", 17, ports, "cells"),
        )  # fmt: skip

    def check(self, setup: Setup) -> Iterator[Fault]:
        for k, port in enumerate(setup.ports):
            given = port.settings.reactive
            if given is not None and max(given.levels) >= 1 << 24:
                what = f"port {k}: a threshold of {given.high} {given.counted} is more than 65535 cells"
                yield Fault(what, "reactive.high", port=k)

    def configure(self, csr: Registers, setup: Setup) -> None:
        for k, port in enumerate(setup.ports):
            given = port.settings.reactive
            if given is None:
                continue
            csr.rate_low[k], csr.rate_high[k] = given.levels
            for name in ("up", "down", "floor", "ceiling"):
                getattr(csr, f"rate_{name}")[k] = given.units(getattr(given, f"{name}_bps"))
            csr.rate_initial[k] = given.units(given.start_bps)
            csr.rate_interval[k] = round_ticks(given.interval_ps)
            csr.rate_weight[k] = max(1, round(given.average * 65536))
            csr.rate_cell[k] = cell_period(UNIT_BPS, port.clock_ppm)
            csr.rate_control[k] = {"enabled": 1, "packets": given.counted == "packets"}

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        ports = len(setup.ports)
        return {
            "capacity_bps": [UNIT_BPS * kbps for kbps in csr.rate_capacity[:ports]],
            "port_cells": csr.port_cells[:ports],
            "port_frames": csr.port_frames[:ports],
        }

    def sample(self, csr: Registers, setup: Setup) -> dict[str, dict[int, int]]:
        ports = {k: port.settings.reactive for k, port in enumerate(setup.ports) if port.settings.reactive}
        return {
            "capacity": {k: given.rate_bps(csr.rate_capacity[k]) for k, given in ports.items()},
            "port_queue": {k: csr.port_cells[k] for k in ports},
        }


OPTIONS: Final = (Reactive(),)
