"""OAM in the switch: timers of states count every scan that ages once, and no scan leaves out a VC."""

from unittest.mock import patch

import pytest
from amaranth.hdl import Module, Mux, Signal

from bentpipe_hdl.cell import WIDE, TimeSignature
from bentpipe_hdl.switch.options.oam.control import ABSENT, SILENT
from bentpipe_hdl.switch.options.oam.oam import SECOND, Oam
from bentpipe_hdl.tick_schedule import TickSchedule
from formal.proof import Probe, Proof, Spec

VCS = 2
VC = 1
"""The VC whose timers are watched."""


@pytest.fixture(scope="module")
def proof():
    """Hold for any state and input, with any CRC-10."""
    time = TimeSignature().create()
    good, crc = Signal(), Signal(10)
    with (
        patch("bentpipe_hdl.oam.receiver.crc10_holds", lambda _: good),
        patch("bentpipe_hdl.oam.sender.crc10_cell", lambda _: crc),
    ):
        oam = Oam(TickSchedule(Module(), time, WIDE), width=WIDE, vcs=VCS, ports=2)
        probe = Probe(oam)
        spec = Spec(probe)
    spec.inputs += [time.tick, good, crc]
    m = spec.m
    states = [oam.states.read(vc) for vc in range(VCS)]
    point, activity = oam.points.read(VC), oam.activities.read(VC)
    steps, ages, at, rx_event, from_vc, scans = (
        probe[f"_look_up.{name}"] for name in ("steps", "ages", "at", "rx_event_r", "from_vc", "scans")
    )
    spec.condition("quiet", oam.clearing == 0, oam.last == VCS - 1)
    spec.condition(
        "bounds",
        *(state[name] <= ABSENT for state in states for name in ("ais", "rdi")),
        *(state[name] <= SECOND for state in states for name in ("ais_wait", "rdi_wait", "check_wait")),
    )

    # What the last clock was to the VC, and what its timers were before
    aged, touched, seen = (spec.ghost(1, name) for name in ("aged", "touched", "seen"))
    set_up = oam.entry_en & (oam.entry_vc == VC)
    state = states[VC]
    m.d.sync += [
        aged.eq(time.tick & steps & ages & (at == VC)),
        touched.eq(set_up | (time.tick & rx_event & (from_vc == VC))),
        seen.eq(activity.seen != state.seen),
    ]
    counts = []
    for name in ("ais", "rdi"):
        before = spec.ghost(3, name)
        m.d.sync += before.eq(state[name])
        after = Mux((before == 0) | (before == ABSENT), 0, before + 1)
        counts.append(touched | (state[name] == Mux(aged, after, before)))
    for flow in ("segment", "end"):
        before, sign, watches = spec.ghost(3, f"{flow}_idle"), spec.ghost(1, f"{flow}_sign"), spec.ghost(1, flow)
        m.d.sync += [
            before.eq(state[f"{flow}_idle"]),
            sign.eq(state[f"{flow}_checked"]),
            watches.eq(point[f"{flow}_sink"]),
        ]
        after = Mux(~watches | seen | sign, 0, Mux(before == SILENT, SILENT, before + 1))
        counts.append(touched | (state[f"{flow}_idle"] == Mux(aged, after, before)))
    spec.condition("counts", *counts)

    # Which VCs a scan has looked at
    visited, scanned = spec.ghost(VCS, "visited"), spec.ghost(1, "scanned")
    looked = spec.value(Mux(time.tick & steps, visited | (1 << at)[:VCS], visited), "looked")
    m.d.sync += [visited.eq(Mux(scans, looked, 0)), scanned.eq(scans)]
    spec.condition("scan", ~scans | (visited == ((1 << at) - 1)[:VCS]), ~scanned | scans | visited.all())
    return Proof("oam", spec)


def test_timers_count_each_scan_once(proof):
    assert proof.possible("quiet", "bounds", "scan")
    assert proof.holds_at_reset("bounds", "scan") is None
    assert proof.is_kept("bounds", given=["quiet"]) is None
    assert proof.leads_to("counts", given=["quiet", "bounds"]) is None


def test_a_scan_looks_at_each_vc_once(proof):
    assert proof.is_kept("scan", given=["quiet"]) is None
