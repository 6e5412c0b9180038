"""The switch as software sees it: its registers, its settings, its driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from bentpipe_hdl.driver import Balance, Driver
from bentpipe_hdl.lookup_table import lookup_table
from bentpipe_hdl.oam.cells import END_VCI, SEGMENT_VCI
from bentpipe_hdl.plcp import FramesName
from bentpipe_hdl.registers import Bus, RegisterMap, check_vcs
from bentpipe_hdl.settings import CELLS, COUNT, IN_RUN, NUMBER, RATE, SHARE, TIME, Settings, wrong
from bentpipe_hdl.switch.options import OPTIONS, Setup, options_of
from bentpipe_hdl.switch.options.base import Option
from bentpipe_hdl.switch.options.credits.control import MOST_SHARE, CreditSettings
from bentpipe_hdl.switch.options.histograms.control import HistogramSettings
from bentpipe_hdl.switch.options.oam.control import OamPoint, OamSettings, OamSwitchSettings
from bentpipe_hdl.switch.options.police.control import PoliceSettings
from bentpipe_hdl.switch.options.queue_limit.control import QueueLimitSize
from bentpipe_hdl.switch.options.reactive.control import ReactiveSettings
from bentpipe_hdl.switch.options.red.control import RedSettings
from bentpipe_hdl.switch.options.scheduling import Scheduler
from bentpipe_hdl.switch.options.shape.control import ShapeSettings
from bentpipe_hdl.switch.options.weighted_priority.control import MOST_WEIGHT, PRIORITIES
from bentpipe_hdl.switch.registers import REASON_BITS, REASONS, core_registers
from bentpipe_hdl.ticks import MOST_CELLS, cell_period, round_ticks
from bentpipe_hdl.units import MAX_RATE_BPS

__all__ = [
    "POLICIES",
    "PortSettings",
    "SwitchDriver",
    "SwitchPort",
    "SwitchSettings",
    "SwitchVc",
    "VcSettings",
    "options_for",
    "switch_registers",
]

Policy = Literal["tail", "ppd", "epd", "selective", "fba"]

POLICIES: Final[dict[str, dict[str, int]]] = {
    "tail": {}, "ppd": {"ppd": 1}, "epd": {"ppd": 1, "epd": 1}, "selective": {"ppd": 1}, "fba": {"ppd": 1},
}  # fmt: skip
"""The bits of a VC's policy word by the name of its policy."""


_SHARE: Final = SHARE.within(
    0.0, 1.0, beyond="{given!r} is neither a number of cells nor a share of the buffer, 0.0 to 1.0"
)


_CELLS_OR_SHARE: Final = CELLS.counting("cells, or a share of the buffer as 0.9").within(
    CELLS.low, CELLS.high, name=CELLS.name
)
_HINTS: Final = {("policy", "red"): "RED is a setting of ports: give the line or host red = { low = …, high = … }"}


class SwitchSettings(Settings):
    """One network module with a shared cell buffer."""

    hints: ClassVar = _HINTS

    buffer_cells: Annotated[int, CELLS.within(1, MOST_CELLS)] = Field(
        default=8192, description="cells of the shared buffer"
    )
    policy: Policy = Field(
        default="epd",
        description="tail drop, partial or early packet discard, selective drop or fair buffer allocation, for each VC "
        "through it",
        json_schema_extra=IN_RUN,
    )
    epd_threshold: Annotated[
        Annotated[int, _CELLS_OR_SHARE, Tag("|cells")] | Annotated[float, _SHARE, Tag("|share")],
        Discriminator(lambda given: "|share" if isinstance(given, float) else "|cells"),
    ] = Field(
        default=0.9,
        description="threshold of EPD: cells of the shared buffer, or a share of it such as `0.9`",
        json_schema_extra=IN_RUN,
    )
    clp_threshold: Annotated[int, CELLS] = Field(
        default=0,
        description="cells of the buffer from which on cells with CLP = 1 are dropped; 0: never",
        json_schema_extra=IN_RUN,
    )
    oam_reserve: Annotated[int, CELLS] = Field(
        default=0, description="cells of the buffer that only OAM and RM cells may take", json_schema_extra=IN_RUN
    )
    vc_limit: Annotated[int, CELLS] = Field(
        default=0, description="cells that one VC may have queued; 0: no limit", json_schema_extra=IN_RUN
    )
    scheduler: Scheduler = Field(
        default="round-robin",
        description="order of a port's cells: a cell of each VC in turn, as many as its weight, or in order of arrival",
    )
    fair_share: Annotated[float, NUMBER.within(0.01, 8.0, name="factor")] = Field(
        default=0.8,
        description="factor Z of a VC's equal share of the queue, for the policies `selective` and `fba`",
        json_schema_extra=IN_RUN,
    )
    vc_minimum: Annotated[int, CELLS] = Field(
        default=0, description="cells that each VC may always have queued, whatever the others have"
    )
    efci_threshold: Annotated[int, CELLS] = Field(
        default=0,
        description="cells of the buffer from which on user cells are marked by EFCI; 0: never",
        json_schema_extra=IN_RUN,
    )
    processing_delay_ps: Annotated[int, TIME.within(0, "10 ms")] = Field(
        default=5_000_000, description="time from a cell's arrival to its queue"
    )
    credits: CreditSettings | None = Field(
        default=None, description="credits: VCs send to the switch only cells for which it has places"
    )

    oam: OamSwitchSettings | None = Field(
        default=None, description="OAM functions for the VCs through the switch; `{}`: the defaults"
    )
    histograms: HistogramSettings | None = Field(
        default=None, description="histograms of queues and delays, by port and by VC; `{}`: the defaults"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if isinstance(self.epd_threshold, int) and self.epd_threshold > self.buffer_cells:
            what = f"{self.epd_threshold} cells are more than the buffer's {self.buffer_cells}"
            raise wrong(f"{what}; give a share of it, as 0.9, or fewer cells", "epd_threshold")
        if self.oam_reserve == self.buffer_cells:
            raise wrong(f"{self.oam_reserve} are all cells of the buffer; leave one for user cells", "oam_reserve")
        for key in ("clp_threshold", "oam_reserve", "vc_limit", "vc_minimum", "efci_threshold"):
            if getattr(self, key) > self.buffer_cells:
                raise wrong(f"{getattr(self, key)} is out of range 0..{self.buffer_cells}", key)
        return self

    @property
    def share(self) -> int:
        """Cells of the buffer for each VC that has no credits of its own."""
        return self.credits.share if self.credits else 0

    @property
    def epd_cells(self) -> int:
        """``epd_threshold`` in cells."""
        share = self.epd_threshold
        return int(self.buffer_cells * share) if isinstance(share, float) else share


class PortSettings(Settings):
    """Settings of a switch's output port, beside its rate."""

    reactive: ReactiveSettings | None = Field(
        default=None, description="load-reactive port: its capacity follows its queue"
    )
    frames: FramesName | None = Field(
        default=None, description="frames in whose slots cells begin: 12 in 125 us and a trailer, the PLCP of a DS-3"
    )
    queue_limit: QueueLimitSize | None = Field(
        default=None, description="packets queued for the port from which on it accepts no others; default: no limit"
    )
    red: RedSettings | None = Field(default=None, description="random early detection, on packets")
    scheduler: Scheduler | None = Field(default=None, description="scheduler of the port; default: the switch's")
    epd_threshold: Annotated[int, CELLS.within(1, 32768)] | None = Field(
        default=None,
        description="cells queued for the port from which on EPD refuses frames to it, as by the switch's buffer",
    )
    efci_threshold: Annotated[int, CELLS.within(1, 32768)] | None = Field(
        default=None, description="cells queued for the port from which on user cells to it are marked by EFCI"
    )


class VcSettings(Settings):
    """Settings of a VC at its switches."""

    hints: ClassVar = _HINTS

    policy: Policy | None = Field(
        default=None, description="discard policy of the VC; default: the switches'", json_schema_extra=IN_RUN
    )
    limit: Annotated[int, CELLS.within(0, 65535)] = Field(
        default=0,
        description="cells that the VC may have queued in a switch; 0: the switches' `vc_limit`",
        json_schema_extra=IN_RUN,
    )
    epd_threshold: Annotated[int, CELLS.within(0, 65535)] | None = Field(
        default=None,
        description="cells in the VC's own queue from which on EPD refuses frames; default: EPD by the switch's buffer",
        json_schema_extra=IN_RUN,
    )
    weight: Annotated[int, COUNT.within(1, MOST_WEIGHT)] = Field(
        default=1, description="cells that the VC sends in a turn, at `weighted` ports", json_schema_extra=IN_RUN
    )
    priority: Annotated[int, COUNT.within(0, PRIORITIES - 1)] = Field(
        default=0,
        description="priority: at each port VCs of a higher priority are served first",
        json_schema_extra=IN_RUN,
    )
    service_rate_bps: Annotated[int, RATE.within(10_000, MAX_RATE_BPS)] | None = Field(
        default=None,
        description="cell rate at ports with `virtual-clock`; default: an equal part of the rest",
        json_schema_extra=IN_RUN,
    )
    minimum: Annotated[int, CELLS.within(0, 32768)] | None = Field(
        default=None, description="cells that the VC may always have queued; default: the switches' `vc_minimum`"
    )
    efci_threshold: Annotated[int, CELLS.within(1, 65535)] | None = Field(
        default=None,
        description="cells in the VC's queue from which on its user cells are marked by EFCI",
        json_schema_extra=IN_RUN,
    )
    police: PoliceSettings | None = Field(default=None, description="contract by which the VC is policed")
    shape: ShapeSettings | None = Field(default=None, description="contract to which the VC is shaped")
    oam: OamSettings | None = Field(
        default=None,
        description="OAM functions of switches for the VC and the VC in the opposite direction",
    )
    credits: Annotated[int, CELLS.within(1, MOST_SHARE)] | None = Field(
        default=None, description="cells of each switch's buffer reserved for the VC, also the most in flight to it"
    )

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.credits:
            for key in ("limit", "policy", "epd_threshold", "minimum"):
                if getattr(self, key):
                    raise wrong("a VC with credits has places of its own: nothing of it is dropped", key)
        return self

    def named_switches(self) -> list[str]:
        """Return the switches that the settings name; the VC's path has to pass them."""
        return [each.at for each in (self.police, self.shape) if each is not None and each.at is not None]

    def of_switch(self, name: str, *, first: bool) -> VcSettings:
        """Return the settings for the switch with this name, which is the first or another one of the VC's path."""
        not_here = {
            key: None
            for key, given in (("police", self.police), ("shape", self.shape))
            if given is not None and not (first if given.at is None else given.at == name)
        }
        return self.model_copy(update=not_here) if not_here else self


@dataclass(frozen=True)
class SwitchPort:
    """A port: its rate in bits of cells a second, by a clock so many ppm too fast; whether its headers are NNI ones;
    what it has besides."""

    rate_bps: float = 149_760_000
    clock_ppm: float = 0.0
    nni: bool = False
    settings: PortSettings = field(default_factory=PortSettings)

    @property
    def period(self) -> int:
        """Ticks a cell, in units of 2**-16; ValueError if there is no such rate."""
        return cell_period(self.rate_bps, self.clock_ppm)

    @property
    def shortest_period(self) -> int:
        """The same at the highest rate that it may have."""
        reactive = self.settings.reactive
        return self.period if reactive is None else cell_period(reactive.cell_ceiling_bps, self.clock_ppm)


@dataclass(frozen=True)
class SwitchVc:
    """A VC through a switch: where it comes in (``in_port`` -1: it gets copies of another's cells) and goes out, what
    it may have; of credits, the places that it has here and in the next switch (0: none), and the index of the VC the
    other way; what its OAM flows have here; the index of the VC that gets a copy of its cells (``leaf``). Or
    a virtual path connection (``vpc``): all that comes in with its VPI, and goes out with the VCI that it has. Or the
    end of one (``ends_path``): its OAM cells that come, and those that go back."""

    in_port: int
    in_vpi: int
    in_vci: int
    out_port: int
    out_vpi: int
    out_vci: int
    settings: VcSettings
    credits_in: int = 0
    credits_out: int = 0
    back: int | None = None
    vpc: bool = False
    ends_path: bool = False
    oam: OamPoint | None = None
    leaf: int | None = None

    def policy(self, switch: SwitchSettings) -> Policy:
        """Return the VC's discard policy: its own, or else the switch's for all VCs.

        A VC with credits, a virtual path, and the VC that ends one have "tail" instead of the switch's.
        """
        by_cells = self.credits_in or self.vpc or self.ends_path
        return self.settings.policy or ("tail" if by_cells else switch.policy)

    @property
    def keys(self) -> list[tuple[int, int, int]]:
        """Port, VPI and VCI of its cells; of copies, and of a virtual path that passes, there are none."""
        vcis = () if self.vpc or self.in_port < 0 else (SEGMENT_VCI, END_VCI) if self.ends_path else (self.in_vci,)
        return [(self.in_port, self.in_vpi, vci) for vci in vcis]


def options_for(setup: Setup) -> int:
    """Return the options with which a switch of these settings is built, as the shape's word."""
    return sum(option.wanted(setup) << option.bit for option in OPTIONS)


def switch_registers(*, vcs: int = 64, cells: int = 8192, ports: int = 4, options: int = 0) -> RegisterMap:
    """Return the registers of a switch with so many VCs, cells of buffer and ports, and these options.

    Raises
    ------
    ValueError
        No switch is built so: VCs are a power of two from 2 to 4096, cells 1 to 65535, ports 1 to 16.
    """
    check_vcs(vcs)
    if not 1 <= cells <= MOST_CELLS:
        raise ValueError(f"cells must be from 1 to {MOST_CELLS}, not {cells!r}")
    if not 1 <= ports <= 16:
        raise ValueError(f"ports must be from 1 to 16, not {ports!r}")
    return _registers(vcs, cells, ports, options, options_of(options))


@cache
def _registers(vcs: int, cells: int, ports: int, options: int, given: tuple[Option, ...]) -> RegisterMap:
    """Return the map of one shape: the same object for all nodes of it."""
    return RegisterMap(
        "switch",
        "BPSW",
        3,
        {"vcs": vcs, "cells": cells, "ports": ports, "options": options},
        (
            *core_registers(
                vcs=vcs, cells=cells, ports=ports, makes_cells=any(option.makes_cells for option in given),
                changes_cells=any(option.changes_cells for option in given),
            ),
            *(register for option in given for register in option.registers(vcs=vcs, cells=cells, ports=ports)),
        ),
    )  # fmt: skip


class SwitchDriver(Driver):
    """The software side of a switch with so many VCs, cells of buffer and ports, and these options."""

    kind = "switch"

    def __init__(self, bus: Bus, *, vcs: int, cells: int, ports: int, options: int = 0):
        super().__init__(bus, switch_registers(vcs=vcs, cells=cells, ports=ports, options=options))
        self.options = options_of(options)
        self._vcs: Sequence[SwitchVc] = ()
        self._setup = Setup(SwitchSettings(), (), ())

    def configure(
        self,
        settings: SwitchSettings,
        ports: Sequence[SwitchPort],
        vcs: Sequence[SwitchVc],
        seed: str = "",
        name: str = "",
    ) -> None:
        """Write all settings of a switch with this name that was reset; random numbers, if it needs some, are from
        ``seed``."""
        csr, cells = self.csr, settings.buffer_cells
        csr.capacity = cells
        csr.epd_threshold = settings.epd_cells
        csr.clp_threshold = settings.clp_threshold or cells
        csr.user_capacity = cells - settings.oam_reserve
        csr.processing_delay = max(1, round_ticks(settings.processing_delay_ps))
        self._vcs, self._setup = vcs, Setup(settings, ports, vcs, seed, name)
        self.configure_ports(ports)
        for index in range(len(vcs)):
            self.set_up(index, settings)
        entries = {key: index for index, vc in enumerate(vcs) for key in vc.keys}
        lookup_table(csr.map.shape["vcs"], entries).write(csr)
        for option in self.options:
            option.configure(csr, self._setup)

    def configure_ports(self, ports: Sequence[SwitchPort]) -> None:
        """Write the rates of the ports of a switch, and nothing that options have of them."""
        csr = self.csr
        csr.nni = sum(port.nni << k for k, port in enumerate(ports))
        for k, port in enumerate(ports):
            csr.period[k] = port.period
        self._setup = replace(self._setup, ports=ports)

    def set_up(self, index: int, settings: SwitchSettings) -> None:
        """Write what a VC may have, and its header as it leaves."""
        vc = self._vcs[index]
        own = vc.settings.epd_threshold
        self.csr.vc_policy[index] = {
            "limit": vc.credits_in or vc.settings.limit or settings.vc_limit or settings.buffer_cells,
            "epd_threshold": own or 0,
            "port": vc.out_port,
            **POLICIES[vc.policy(settings)],
            "epd_own": own is not None,
            "enabled": 1,
        }
        self.csr.vc_header[index] = {"vpi": vc.out_vpi, "vci": 0 if vc.vpc or vc.ends_path else vc.out_vci}

    def counters(self) -> dict[str, Any]:
        csr, count = self.csr, len(self._vcs)
        return {
            "occupancy": csr.occupancy,
            "high_water": csr.high_water,
            "flushed": csr.flushed,
            "accepted": csr.accepted[:count],
            "departed": csr.departed[:count],
            "drop_unknown": csr.unknown[:],
            "drop_hec": csr.hec[:],
            **{
                f"drop_{reason}": csr.dropped[k : count << REASON_BITS : 1 << REASON_BITS]
                for k, reason in enumerate(REASONS)
            },
            **(
                {"tagged": csr.tagged[:count], "marked": csr.marked[:count]}
                if any(option.changes_cells for option in self.options)
                else {}
            ),
            **({"injected": csr.injected} if any(option.makes_cells for option in self.options) else {}),
            **{name: value for option in self.options for name, value in option.counters(csr, self._setup).items()},
        }

    def sample(self) -> dict[str, dict[int, int]]:
        """Return the options' values to be recorded over time: by port, by the names of their series."""
        return {name: value for option in self.options for name, value in option.sample(self.csr, self._setup).items()}

    def account(self, cells_in: int, cells_out: int) -> Iterator[Balance]:
        now = self.counters()
        accepted, departed = sum(now["accepted"]), sum(now["departed"])
        drops = sum(sum(now[f"drop_{reason}"]) for reason in (*REASONS, "unknown", "hec"))
        taken = sum(option.taken(self.csr, now) for option in self.options)
        made = sum(option.made(now) for option in self.options)
        own = now.get("injected", 0)
        yield Balance("cells in + its own = queued + dropped + taken", cells_in + own, accepted + drops + taken)
        yield Balance("queued = sent + still queued", accepted, departed + now["occupancy"])
        yield Balance("cells sent or flushed + made = cells out", departed + made, cells_out + now["flushed"])

    def vc_counters(self, number: int) -> tuple[int, int]:
        return self.csr.map["accepted"].addr + number, self.csr.map["departed"].addr + number

    def buffered(self) -> int:
        return self.csr.map["occupancy"].addr

    def replication_counter(self) -> tuple[int, int]:
        return self.csr.map["copies_waiting"].addr, 0

    def ledger_counts(self) -> Iterator[tuple[str, int, int]]:
        now = self.counters()
        for k, reason in enumerate(REASONS):
            for vc, count in enumerate(now[f"drop_{reason}"]):
                yield f"cells of VC {vc} dropped ({reason}) = reported to the ledger", 64 * vc + k, count
