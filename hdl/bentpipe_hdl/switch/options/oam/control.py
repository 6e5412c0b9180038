"""OAM flows F4 and F5 in a switch as software sees them (I.610)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from bentpipe_hdl import registers as reg
from bentpipe_hdl.oam.cells import LOCATION_OCTETS, location_of, location_of_node
from bentpipe_hdl.registers import Register, Registers
from bentpipe_hdl.settings import IN_RUN, TIME, Settings, wrong
from bentpipe_hdl.switch.options.base import Fault, Option, Setup
from bentpipe_hdl.switch.options.credits.control import Credits
from bentpipe_hdl.ticks import round_ticks

__all__ = [
    "ABSENT",
    "COMMAND",
    "HALF_SECOND_PS",
    "INTERVAL_BITS",
    "LOG",
    "MADE",
    "MOST_VCS",
    "OPTIONS",
    "POINT",
    "SILENT",
    "STATES",
    "TAKEN",
    "Oam",
    "OamPoint",
    "OamSettings",
    "OamSwitchSettings",
    "point_at",
]

HALF_SECOND_PS: Final = 500_000_000_000

INTERVAL_BITS: Final = 32

MOST_VCS: Final = 1024
"""VCs of a switch with OAM at most: its tables have no more entries."""

ABSENT: Final = 6
"""Scans that age after which no AIS or RDI cell has arrived for long enough: 2.5 to 3 s of half seconds (I.610 clauses
9.2.1.1 and 9.2.2.1: 2.5 s, give or take 0.5 s)."""

SILENT: Final = 7
"""Scans in a row without a cell since the scan before, for loss of continuity: half a second each, so 3.5 to 4 s after
the last cell (I.610 clauses 9.2.1.2 and 9.2.2.2: 3.5 s, give or take 0.5 s)."""

LOG: Final = 256
"""Changes of states that are kept, the last ones."""

TAKEN: Final = ("ais", "rdi", "cc", "looped", "returned", "other", "bad", "no_place")
"""What became of an OAM cell that was taken, in the order of the counters: AIS, RDI and CC cells; loopback cells that
went back, that came back; cells that say nothing here; with a bad CRC-10; loopback cells that found no place."""

MADE: Final = ("ais", "rdi", "cc", "loopback")
"""OAM cells that were sent, in the order of the counters; those that went back are loopback cells."""

STATES: Final = ("ais", "rdi", "segment_loc", "end_loc")
"""What a VC may be in, a bit each: AIS state, RDI state, loss of continuity of the segment, end to end."""

POINT: Final = (
    reg.Field("segment_end", 0, text="end point of the segment flow"),
    reg.Field("end", 1, text="end point of the end-to-end flow"),
    reg.Field("loops", 2, text="loopback point of the segment: cells for this location are sent back"),
    reg.Field("alarms", 3, text="AIS is sent while the line before the switch is interrupted"),
    reg.Field("segment_source", 4, text="source of the segment's continuity check"),
    reg.Field("end_source", 5, text="source of the continuity check end to end"),
    reg.Field("always", 6, text="CC cells are sent with and without user cells"),
    reg.Field("segment_sink", 7, text="sink of the segment's continuity check"),
    reg.Field("end_sink", 8, text="sink of the continuity check end to end"),
    reg.Field("path", 9, text="VP connection: F4 flows, by VCI"),
    reg.Field("inside", 10, text="part of the VP connection `parent`, which ends here"),
    reg.Field("port", 11, 4, "input port"),
    reg.Field("back", 15, 12, "VC in the opposite direction"),
    reg.Field("parent", 27, 12),
)

COMMAND: Final = (
    reg.Field("vc", 0, 12),
    reg.Field("segment", 12, text="segment flow, not end to end"),
    reg.Field("path", 13, text="VP connection"),
)


class OamSwitchSettings(Settings):
    """OAM in a switch."""

    location: str = Field(
        default="",
        description="loopback location ID: 32 hexadecimal digits, or a text of up to 16 octets, followed by zeros; "
        "default: the switch's name, shortened if necessary",
    )
    scan_ps: Annotated[int, TIME.within("1 us", "10 s")] = Field(
        default=HALF_SECOND_PS,
        description="length of half a second of I.610's timers; standard: 500 ms",
        json_schema_extra=IN_RUN,
    )

    @model_validator(mode="after")
    def _is_location(self) -> Self:
        if self.location:
            try:
                location_of(self.location)
            except ValueError as error:
                raise wrong(str(error), "location") from None
        return self


class OamSettings(Settings):
    """OAM of a VC, both ways."""

    ends: bool = Field(
        default=False,
        description="true: the first and last switch are the ends of the end-to-end flow; false: the hosts",
    )
    segment: tuple[str, str] | None = Field(
        default=None, description="switches at which a segment begins and ends; default: the hosts"
    )
    alarms: bool = Field(
        default=True, description="alarms: switches send AIS downstream while the line before them is interrupted"
    )
    check: Literal["none", "idle", "always"] = Field(
        default="none",
        description="continuity checks of flows that end at switches: in seconds without user cells, or in all",
    )

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.check != "none" and not self.ends and self.segment is None:
            raise wrong("no flow ends at switches: give `ends` or `segment`, too", "check")
        if self.segment is not None and self.segment[0] == self.segment[1]:
            raise wrong(f"a segment that begins and ends at {self.segment[0]!r} has no line", "segment")
        return self

    def other_way(self) -> OamSettings:
        """Return the settings seen from the VC in the opposite direction."""
        return self if self.segment is None else self.model_copy(update={"segment": self.segment[::-1]})


@dataclass(frozen=True)
class OamPoint:
    """The functions of a VC's OAM flows at a switch, with the members of :data:`POINT`."""

    segment_end: bool = False
    end: bool = False
    loops: bool = False
    alarms: bool = False
    segment_source: bool = False
    end_source: bool = False
    always: bool = False
    segment_sink: bool = False
    end_sink: bool = False
    path: bool = False
    inside: bool = False
    parent: int = 0

    def both(self, other: OamPoint) -> OamPoint:
        """Return the functions that either of two points has."""
        return OamPoint(
            **{field.name: getattr(self, field.name) or getattr(other, field.name) for field in fields(self)}
        )


def point_at(given: OamSettings, switches: list[str], place: int) -> OamPoint:
    """Return the OAM functions of a VC with these settings at the switch in this ``place`` of its path.

    Raises
    ------
    ValueError
        The VC does not pass its segment, or not in that order.
    """
    checks, segment = given.check != "none", given.segment
    first, last = 0, len(switches) - 1
    begin = end = -1
    if segment is not None:
        for name in segment:
            if switches.count(name) != 1:
                times = "no switch" if name not in switches else "twice the switch"
                raise ValueError(f"it passes {', '.join(switches)}, and {times} {name!r}")
        begin, end = (switches.index(name) for name in segment)
        if begin > end:
            raise ValueError(
                f"it passes {segment[1]!r} before {segment[0]!r}: name the ends of the segment in its order"
            )
    return OamPoint(
        segment_end=place == end,
        end=given.ends and place == last,
        loops=begin < place < end or (segment is None and not given.ends),
        alarms=given.alarms,
        segment_source=checks and place == begin,
        end_source=checks and given.ends and place == first,
        always=given.check == "always",
        segment_sink=checks and place == end,
        end_sink=checks and given.ends and place == last,
    )


class Oam(Option):
    """End points, points of loopback, alarms and continuity checks of VCs."""

    name = "oam"
    bit = 16
    makes_cells = True
    series: ClassVar = {
        "ais": "VCs from a port that are in AIS state, of a switch with OAM",
        "rdi": "VCs from a port that are in RDI state",
        "loc": "VCs from a port with loss of continuity",
    }

    def wanted(self, setup: Setup) -> bool:
        return setup.settings.oam is not None or any(vc.oam is not None for vc in setup.vcs)

    def check(self, setup: Setup) -> Iterator[Fault]:
        vc = setup.vc_with("oam") if setup.settings.oam is None else None
        if setup.entries > MOST_VCS:
            yield Fault(f"OAM is of {MOST_VCS} VCs at most, and {setup.entries} pass it", "oam", vc=vc)
        if Credits().wanted(setup):
            yield Fault("OAM cells that a switch makes have no credits: a switch has OAM or credits", "oam", vc=vc)

    def registers(self, *, vcs: int, cells: int, ports: int) -> tuple[Register, ...]:
        del cells
        if vcs > MOST_VCS:
            raise ValueError(f"OAM is of {MOST_VCS} VCs at most, not {vcs!r}")
        unset, ends = 0x6A6A6A6A, 0xFFFFFFFF
        states = tuple(reg.Field(name, k) for k, name in enumerate(STATES))
        return (
            Register(
                "oam_interval", 0x0520, "half a second of I.610's timers; 0: timers off", width=INTERVAL_BITS,
                unit="ticks", most=1 << 31, on_write="the next half second begins",
            ),
            Register("oam_last", 0x0521, "last VC that is scanned", width=(vcs - 1).bit_length()),
            Register(
                "oam_defects", 0x0522, "ports with an interrupted line into the switch, a bit for each",
                width=ports,
            ),
            Register(
                "oam_request", 0x0523, "request of a loopback cell", width=14, fields=COMMAND,
                on_write="a loopback cell is sent",
            ),
            Register(
                "oam_location", 0x0524,
                "loopback location ID of this switch, its first octet in the low bits; 6A hex in each octet: none",
                count=LOCATION_OCTETS // 4, reset=unset,
            ),
            Register(
                "oam_target", 0x0528, "location ID in loopback cells that the switch sends",
                count=LOCATION_OCTETS // 4, reset=ends,
            ),
            Register("oam_late", 0x0530, "half seconds that began before the last scan was complete", "ro"),
            Register("oam_tag", 0x0531, "correlation tag of the last requested loopback cell", "ro"),
            Register("oam_answered", 0x0532, "loopback cells of the switch that returned", "ro"),
            Register("oam_answer", 0x0533, "correlation tag of the last returned loopback cell", "ro"),
            Register("oam_delay", 0x0534, "round trip of that loopback cell", "ro", unit="ticks"),
            Register("oam_changes", 0x0535, "changes of VCs' OAM states", "ro"),
            Register("oam_uncounted", 0x0536, "OAM cells taken that will be counted in the next tick", "ro", width=1),
            Register(
                "oam_point", 0xE9000, "functions of a VC's OAM flows here; to be written before the VC is enabled",
                "wo", 39, vcs,
                fields=POINT,
            ),
            Register("oam_state", 0xE9800, "OAM states of a VC", "ro", width=4, count=vcs, fields=states),
            Register("oam_log_low", 0xE9C00, "tick of the change with this number modulo 256, low word", "ro",
                     count=LOG),
            Register(
                "oam_log_high", 0xE9D00, "rest of the change with this number modulo 256", "ro", count=LOG,
                fields=(
                    reg.Field("time", 0, 16, "upper bits of the tick"),
                    reg.Field("states", 16, 4, "states of the VC from then on, as in `oam_state`"),
                    reg.Field("vc", 20, 12),
                ),
            ),
            Register(
                "oam_taken", 0xEC000, f"OAM cells taken, by VC: {', '.join(TAKEN)}", "ro", count=vcs * len(TAKEN)
            ),
            Register("oam_made", 0xEE000, f"OAM cells sent, by VC: {', '.join(MADE)}", "ro", count=vcs * len(MADE)),
        )  # fmt: skip

    def configure(self, csr: Registers, setup: Setup) -> None:
        given = setup.settings.oam or OamSwitchSettings()
        location = location_of(given.location) if given.location else location_of_node(setup.name)
        for k in range(LOCATION_OCTETS // 4):
            csr.oam_location[k] = int.from_bytes(location[4 * k : 4 * k + 4], "little")
        csr.oam_last = max(0, len(setup.vcs) - 1)
        for index, vc in enumerate(setup.vcs):
            if vc.oam is None:
                csr.oam_point[index] = 0
            else:
                csr.oam_point[index] = {**asdict(vc.oam), "port": vc.in_port, "back": vc.back or 0}
        csr.oam_interval = round_ticks(given.scan_ps)

    def taken(self, csr: Registers, counters: Mapping[str, Any]) -> int:
        return sum(sum(counters[f"oam_taken_{name}"]) for name in TAKEN) + csr.oam_uncounted

    def counters(self, csr: Registers, setup: Setup) -> dict[str, Any]:
        """Return cells by VC, and the last changes of states as ``[tick, VC, states from then on]``."""
        count = len(setup.vcs)
        found: dict[str, Any] = {
            f"oam_taken_{name}": csr.oam_taken[k : count * len(TAKEN) : len(TAKEN)] for k, name in enumerate(TAKEN)
        }
        found |= {f"oam_sent_{name}": csr.oam_made[k : count * len(MADE) : len(MADE)] for k, name in enumerate(MADE)}
        changes = csr.oam_changes
        log = []
        for number in range(max(0, changes - LOG), changes):
            at = number % LOG
            entry = csr.oam_log_high[at]
            states = [name for k, name in enumerate(STATES) if entry.states >> k & 1]
            log.append([entry.time << 32 | csr.oam_log_low[at], entry.vc, states])
        return found | {
            "oam_state": csr.oam_state[:count],
            "oam_changes": changes,
            "oam_log": log,
            "oam_late": csr.oam_late,
            "oam_answered": csr.oam_answered,
            "oam_delay": csr.oam_delay,
        }

    def sample(self, csr: Registers, setup: Setup) -> dict[str, dict[int, int]]:
        states = csr.oam_state[: len(setup.vcs)] if csr.oam_changes else [0] * len(setup.vcs)
        found: dict[str, dict[int, int]] = {}
        for name, bits in (("ais", 0b0001), ("rdi", 0b0010), ("loc", 0b1100)):
            counts = dict.fromkeys(range(len(setup.ports)), 0)
            for vc, state in zip(setup.vcs, states, strict=True):
                if int(state) & bits:
                    counts[vc.in_port] += 1
            found[name] = counts
        return found


OPTIONS: Final = (Oam(),)
