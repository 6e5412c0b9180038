"""Ports with slots in frames: the grid of a DS-3's PLCP, at both widths, with cells and without."""

import itertools
import random
from fractions import Fraction
from functools import partial

import pytest

from bentpipe_hdl.cell import WIDE
from bentpipe_hdl.plcp import in_units
from bentpipe_hdl.switch.control import PortSettings, SwitchDriver, SwitchPort, SwitchSettings, SwitchVc, VcSettings
from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.options.frames.slot_timer import SlotTimer
from bentpipe_hdl.switch.switch import Switch
from models.cell import Cell, Header
from models.plcp import PAYLOAD_BPS, slots
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run
from unit.hdl.test_switch_parts import run as run_part

TICK = Fraction(53, 299_520_000)
PLCP = SwitchPort(40_704_000, settings=PortSettings(frames="plcp"))
OPTIONS = options_word(["frames"])


def test_the_model_keeps_the_line_s_eight_kilohertz():
    """12 cells in 125 us on average, and never more than a nibble away from that."""
    begins, trailers = zip(*itertools.islice(slots(), 36 * 2000), strict=True)
    frames = begins[::12]
    assert set(trailers) == {0, 13, 14}
    assert all(abs(begin - 125 * k * Fraction(1, 10**6)) < Fraction(1, 10**7) for k, begin in enumerate(frames))
    stuffed = sum(n == 14 for n in trailers) / (len(frames))
    assert stuffed == pytest.approx(47 / 85, abs=1e-3)


def test_the_grid_keeps_its_place_over_hundreds_of_frames():
    """100 cycles of three frames, slot by slot, as whoever skips idle ticks sees them; in step with another port."""
    shape = {"cycle": in_units(Fraction(375, 10**6)), "slot": in_units(57 * 8 / PAYLOAD_BPS)}
    begun = []

    async def test(ctx, node, ticks):
        for name, value in shape.items():
            ctx.set(getattr(node, name)[1], value)
        ticks.now = 1000
        for _ in range(3600):
            await ticks.tick()
            assert ctx.get(node.stalled) == 2
            ticks.now = ctx.get(node.due)
            begun.append(ticks.now - 1000)

    run_part(WIDE, partial(SlotTimer, ports=2), test)
    wanted = [begin / TICK for begin, _ in itertools.islice(slots(), 1, 3601)]
    nibble = 4 / PAYLOAD_BPS / TICK  # by which a choice between two as good ones may differ
    assert max(abs(tick - exact) for tick, exact in zip(begun, wanted, strict=True)) < 1 + nibble
    mean = (begun[-1] - begun[0]) / (len(begun) - 1)
    assert mean * TICK * 96_000 == pytest.approx(1, rel=1e-5)


def set_up(delay_ps=0):
    """A switch with a VC from port 0 to port 1, which has slots."""
    shape = {"vcs": 4, "cells": 30, "ports": 2, "options": OPTIONS}
    settings = SwitchSettings(buffer_cells=30, policy="tail", processing_delay_ps=delay_ps)
    vc = SwitchVc(0, 0, 40, 1, 0, 40, VcSettings())

    def write(bus):
        SwitchDriver(bus, **shape).configure(settings, [SwitchPort(), PLCP], [vc])

    return shape, write


async def begin(bench, write):
    await bench.reset()
    for words in written_by(write):
        await bench.write(*words)


def written_by(write):
    from bentpipe_hdl.registers import Recorder

    recorder = Recorder()
    write(recorder)
    return recorder.writes


@pytest.mark.parametrize("width", WIDTHS)
def test_cells_leave_in_the_slots_of_the_frames(width):
    """A port that always has cells: each leaves in the tick behind that in which its slot begins, for over two frames,
    and its last bit with that of the slot. The first one comes when the first slot has begun."""
    shape, write = set_up()
    count = 30

    async def test(bench):
        await begin(bench, write)
        cell = Cell(Header(vci=40), bytes(48))
        grid = [int(begin / TICK) for begin, _ in itertools.islice(slots(), 1, count + 1)]
        for tick in range(grid[-1] + 2):
            await bench.tick(Arrival(cell) if tick % 16 == 0 else None)
        await bench.ticks(2)
        assert [out.tick for out in bench.came_out] == [tick + 1 for tick in grid]
        row = 57 * 8 / PAYLOAD_BPS
        assert bench.ends == [int((begin + row) / TICK) for begin, _ in itertools.islice(slots(), 1, count + 1)]

    run(Switch(width=width, **shape), test)


def test_a_cell_that_finds_its_port_idle_waits_for_the_next_slot():
    """Single cells at random times: each leaves with the first slot that begins a processing delay after it came."""
    rng = random.Random(5)
    shape, write = set_up(delay_ps=3_000_000)

    async def test(bench):
        await begin(bench, write)
        grid = [int(begin / TICK) for begin, _ in itertools.islice(slots(), 200)]
        expected = []
        tick = 0
        for _ in range(30):
            gap = rng.randrange(60, 300)
            for k in range(gap):
                await bench.tick(Arrival(Cell(Header(vci=40), bytes(48))) if k == gap - 1 else None)
                tick += 1
            ready = tick - 1 + 17  # 3 us
            expected.append(next(slot for slot in grid if slot >= ready) + 1)
            await bench.ticks(80)
            tick += 80
        assert [out.tick for out in bench.came_out] == expected

    run(Switch(**shape), test)


def test_idle_slots_need_no_evaluation_between_them():
    """Whoever drives the switch may leave out the ticks before ``due``: the cells leave as without."""
    found = []
    for skips in (False, True):
        shape, write = set_up()

        async def test(bench, skips=skips, write=write):
            await begin(bench, write)
            arrivals = [100, 700, 705, 2500, 2501, 2502, 4000]
            end = 4200
            while bench.now < end:
                if skips:
                    due = min(bench.ctx.get(bench.node.status.due), *(a for a in [*arrivals, end] if a >= bench.now))
                    bench.now = max(bench.now, due)
                await bench.tick(Arrival(Cell(Header(vci=40), bytes(48))) if bench.now in arrivals else None)
            found.append([out.tick for out in bench.came_out])

        run(Switch(**shape), test)
    assert found[0] == found[1] and len(found[0]) == 7


@pytest.mark.parametrize(
    ("port", "message"),
    [
        (SwitchPort(149_760_000, settings=PortSettings(frames="plcp")), 'frames = "plcp" are those of a DS-3'),
    ],
)
def test_frames_of_another_line_are_refused(port, message):
    from bentpipe_hdl.switch.options import Setup, options_of

    (option,) = options_of(OPTIONS)
    assert message in next(option.check(Setup(SwitchSettings(), [SwitchPort(), port], [])))
