"""The parts that every switch has, put together, and their registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter, or_
from typing import Any, Self

from amaranth.hdl import Module, Value
from amaranth.lib import wiring

from bentpipe_hdl.arrival import Arrival
from bentpipe_hdl.csr import CsrMap
from bentpipe_hdl.lookup import Lookup
from bentpipe_hdl.switch.core.admission import (
    Admission,
    ClpThreshold,
    EarlyPacketDiscard,
    FullBuffer,
    Rank,
    Stage,
    UserCapacity,
)
from bentpipe_hdl.switch.core.buffer import CellBuffer
from bentpipe_hdl.switch.core.counters import Changes, Counters
from bentpipe_hdl.switch.core.egress import Egress
from bentpipe_hdl.switch.core.injection import InjectionMux
from bentpipe_hdl.switch.core.port_queues import PortQueues
from bentpipe_hdl.switch.core.port_rate_scheduler import PortRateScheduler
from bentpipe_hdl.switch.core.round_robin import RoundRobin
from bentpipe_hdl.switch.core.vc_table import DEPARTURE, VcField, VcTable
from bentpipe_hdl.tick_schedule import TickSchedule

__all__ = ["Additions", "Build", "Core"]


@dataclass(frozen=True)
class Build:
    """The arguments with which every part of a switch is built.

    Members
    -------
    m : Module
    slot : TickSchedule
    csr : CsrMap
    now : Value
        The present tick.
    width, vcs, cells, ports : int
    settings : Mapping
        The core's settings, by the names of their registers.
    """

    m: Module
    slot: TickSchedule
    csr: CsrMap
    now: Value
    width: int
    vcs: int
    cells: int
    ports: int
    settings: Mapping[str, Value]

    @property
    def count_bits(self) -> int:
        """Bits of a count of cells in the buffer."""
        return (self.cells + 1).bit_length()

    @property
    def places(self) -> int:
        """Places of the payload memory."""
        return self.cells + self.vcs


@dataclass(frozen=True)
class Additions:
    """The additions of a switch's options to its core.

    Members
    -------
    arguments : Mapping
        Keyword arguments of core parts, by the part's name in :class:`Core`.
    stages : sequence of (Rank, Stage)
    reservations : component or None
        Counter of places of the buffer that are reserved for VCs, and of shared ones.
    offers : sequence of OfferSignature interfaces
        Sources of cells made in the switch, in order of precedence.
    scheduler : component or None
        Replacement of :class:`~.round_robin.RoundRobin`.
    vc_fields : sequence of VcField
    cell_fields : Mapping
        Shapes, by name, of values kept with each cell in the buffer.
    clears : int
        Entries of the largest table that is cleared after reset.
    counts_ports, changes_cells : bool
        The switch has :class:`~.port_queues.PortQueues` and :class:`~.counters.Changes`.
    """

    arguments: Mapping[str, Mapping[str, Any]]
    stages: Sequence[tuple[int, Stage]] = ()
    reservations: Any = None
    offers: Sequence[Any] = ()
    scheduler: Any = None
    vc_fields: Sequence[VcField] = ()
    cell_fields: Mapping[str, Any] | None = None
    clears: int = 0
    counts_ports: bool = False
    changes_cells: bool = False


@dataclass(frozen=True)
class Core:
    """The parts that every switch has, by name. ``injection``, ``port_queues`` and ``changes`` are None where nothing
    asks for them.

    Members
    -------
    cells_in : CellSignature interface
        Cells as they arrive, those made in the switch among them.
    periods : sequence of Value
        Of the ports, as software has set them.
    """

    build: Build
    cells_in: Any
    injection: Any
    arrival: Arrival
    lookup: Lookup
    buffer: Any
    scheduler: Any
    port_queues: Any
    counters: Any
    vc_table: Any
    admission: Any
    port_rate_scheduler: Any
    egress: Any
    changes: Any
    periods: Sequence[Value]

    @classmethod
    def of(cls, build: Build, i: Any, additions: Additions) -> Self:
        """Make the parts of a switch whose cells arrive at ``i``."""
        m, slot, csr, vcs, ports = build.m, build.slot, build.csr, build.vcs, build.ports
        stages = _stages(build, additions)
        injection = _injection(build, i, additions.offers) if additions.offers else None
        cells_in = injection.o if injection else wiring.flipped(i)
        arrival = Arrival(m, slot, injection.o if injection else i)
        lookup = Lookup(m, slot, csr, vcs=vcs, ports=ports, nni=build.settings["nni"])

        def more(part: str) -> Mapping[str, Any]:
            return additions.arguments.get(part, {})

        port = {"port": range(max(ports, 2))} if additions.counts_ports else {}
        buffer = m.submodules.buffer = CellBuffer(
            slot, cells=build.cells, vcs=vcs, at=DEPARTURE + 2, kept={**port, **(additions.cell_fields or {})},
            **more("buffer"),
        )  # fmt: skip
        scheduler = m.submodules.scheduler = additions.scheduler or RoundRobin(
            slot, vcs=vcs, ports=ports, at=DEPARTURE - 2, **more("scheduler")
        )
        queues = PortQueues(slot, ports=ports, count_bits=buffer.count_bits) if additions.counts_ports else None
        if queues:
            m.submodules.port_queues = queues
        counters = m.submodules.counters = Counters(slot, vcs=vcs, ports=ports)
        vc_table = m.submodules.context = VcTable(
            slot, vcs=vcs, ports=ports, clears=max(counters.clears, additions.clears),
            fields=(*_core_fields(buffer), *Admission.fields(stages), *additions.vc_fields), **more("vc_table"),
        )  # fmt: skip
        if injection:
            m.d.comb += injection.hold.eq(vc_table.clearing)
        admission = m.submodules.admission = Admission(
            slot, vcs=vcs, count_bits=buffer.count_bits, state=vc_table.rows["state"], stages=stages,
            port_queues=additions.counts_ports, reservations=additions.reservations is not None,
        )  # fmt: skip
        rates = m.submodules.port_clock = PortRateScheduler(slot, ports=ports, **more("port_rate_scheduler"))
        egress = m.submodules.egress = Egress(
            slot, width=build.width, ports=ports, places=build.places, **more("egress")
        )
        changes = Changes(slot, vcs=vcs) if additions.changes_cells else None
        if changes:
            m.submodules.changes = changes
        return cls(
            build, cells_in, injection, arrival, lookup, buffer, scheduler, queues, counters, vc_table, admission,
            rates, egress, changes, csr.registers("period"),
        )  # fmt: skip

    def connect_clearing(self) -> None:
        """Clear tables after reset, an entry a clock."""
        table = self.vc_table
        self.build.m.d.comb += [self.counters.clearing.eq(table.clearing), self.counters.clear.eq(table.clear)]

    def connect_periods(self, periods: Sequence[Value] | None, gates: Sequence[Any]) -> None:
        """Connect the ports' periods (None: those that software has set), and what stalls ports."""
        m, rates = self.build.m, self.port_rate_scheduler
        if gates:
            for name, of_gate in (("stalled", "stalled"), ("still_stalled", "still_stalled"), ("rechecks", "changes")):
                m.d.comb += getattr(rates, name).eq(reduce(or_, (getattr(gate, of_gate) for gate in gates)))
        m.d.comb += [one.eq(period) for one, period in zip(rates.period, periods or self.periods, strict=True)]

    def connect_registers(self) -> None:
        """Connect what software reads and writes of the core."""
        m, csr = self.build.m, self.build.csr
        buffer, table, counters = self.buffer, self.vc_table, self.counters
        csr.status("occupancy", buffer.occupancy)
        csr.status("high_water", buffer.high_water)
        with csr.written("high_water"):
            m.d.comb += buffer.restart.eq(1)
        csr.status("flushed", counters.flushes)
        for name, index, entry, en in (
            ("vc_policy", table.policy_vc, table.policy, table.policy_en),
            ("vc_header", table.header_vc, table.header, table.header_en),
        ):
            at, word, written = csr.write_port(name)
            m.d.comb += [index.eq(at), Value.cast(entry).eq(word), en.eq(written)]
        csr.read_port("accepted", table.arrival_of, table.arrival_row.accepted)
        csr.read_port("departed", table.departure_of, table.departure_row.departed)
        csr.read_port("dropped", counters.dropped_index, counters.dropped)
        csr.read_port("unknown", counters.unknown_port, counters.unknown)
        csr.read_port("hec", counters.hec_port, counters.hec)


def _stages(build: Build, additions: Additions) -> list[Stage]:
    """Return all admission stages, by their ranks."""
    settings = build.settings
    ranked = [
        (Rank.BUFFER_EPD, EarlyPacketDiscard(settings["epd_threshold"])),
        (Rank.FULL, FullBuffer(settings["capacity"], additions.reservations)),
        (Rank.USER_CAPACITY, UserCapacity(settings["user_capacity"])),
        (Rank.CLP, ClpThreshold(settings["clp_threshold"])),
        *additions.stages,
    ]
    return [stage for _, stage in sorted(ranked, key=itemgetter(0))]


def _injection(build: Build, i: Any, offers: Sequence[Any]) -> InjectionMux:
    """Return the multiplexer between arrivals and cells made in the switch, connected."""
    m = build.m
    injection = m.submodules.inlet = InjectionMux(
        build.slot, width=build.width, ports=build.ports, vcs=build.vcs, offers=len(offers)
    )
    wiring.connect(m, wiring.flipped(i), injection.i)
    for place, offer in zip(injection.offers, offers, strict=True):
        wiring.connect(m, offer, place)
    build.csr.status("injected", injection.injected)
    return injection


def _core_fields(buffer: CellBuffer) -> tuple[VcField, ...]:
    """Return the fields that every switch keeps of each VC: its queue's ends and its counts of cells."""
    return (
        VcField("tail", buffer.place_bits, "arrival", starts_as_index=True),
        VcField("accepted", 32, "arrival"),
        VcField("head", buffer.place_bits, "departure", starts_as_index=True),
        VcField("departed", 32, "departure"),
    )
