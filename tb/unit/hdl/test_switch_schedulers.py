"""Switches with FIFO ports, weights and priorities in RTL against the model, on both datapaths."""

import dataclasses
import random

import pytest

from bentpipe_hdl.cell import WIDE
from bentpipe_hdl.switch.options import options_word
from models.aal5 import segment
from models.cell import Cell, Header
from models.scheduling import Clocked, VirtualClocks
from models.switch import Switch as Model
from models.switch import Vc
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run
from unit.hdl.test_switch_rtl import Judge, compare_counters, configure, small, write_policy

CELLS = 80
OPTIONS = {"fifo": ("fifo",), "shares": ("shares",), "both": ("fifo", "shares")}


async def share(bench, model, index, *, weight, priority):
    model.vcs[index].weight, model.vcs[index].priority = weight, priority
    await bench.set("share", weight | priority << 8, index)


def vcs_of(rng, shares):
    return [
        Vc(k % 3, 0, 32 + k, k * 3 % 8 % 3, 0, 64 + k, weight=rng.choice([1, 2, 5]) if shares else 1,
           priority=rng.randrange(3) if shares else 0, ppd=k % 2 == 0)
        for k in range(8)
    ]  # fmt: skip


@pytest.mark.parametrize("names", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("width", WIDTHS)
def test_random_traffic_leaves_in_the_models_order(width, names):
    """Frames and single cells of eight VCs for three ports, two of them FIFO, into a small buffer; VCs get other ports,
    weights and priorities meanwhile."""
    rng = random.Random(11)
    shares = "shares" in names
    model = Model(vcs_of(rng, shares), ports=3, capacity=14, fifo=frozenset({0, 2}) if "fifo" in names else frozenset())

    async def test(bench):
        await configure(bench, model, [2.5, 4, 3.25])
        if "fifo" in names:
            await bench.set("fifo", 0b101)
        if shares:
            for index, vc in enumerate(model.vcs):
                await share(bench, model, index, weight=vc.weight, priority=vc.priority)
        judge = Judge(bench, model)
        frames = [[] for _ in range(8)]
        steps = 500 if width == WIDE else 220
        for step in range(steps):
            if step % 40 == 20 and width == WIDE:
                await judge.change(rng.randrange(8), out_port=rng.randrange(3))
            if step % 50 == 30 and shares and width == WIDE:
                vc = rng.randrange(8)
                await share(bench, model, vc, weight=rng.choice([1, 3]), priority=rng.randrange(4))
            k = rng.randrange(8)
            if not frames[k]:
                vc = model.vcs[k]
                frames[k] = segment(Header(vc.in_vpi, vc.in_vci), rng.randbytes(rng.choice([1, 60, 150])))
            comes = rng.random() < (0.95 if step // 80 % 2 == 0 else 0.5)
            await judge.tick(Arrival(frames[k].pop(0), model.vcs[k].in_port) if comes else None)
        for _ in range(120):
            await judge.tick()
        await judge.finish()
        assert model.occupancy == 0
        await compare_counters(bench, model, judge.high_water)

    run(small(width, CELLS, options=options_word(names)), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_saturated_port_shares_its_rate_by_weight_below_strict_priority(width):
    """Three VCs of weights 1, 2 and 4 have 10, 20 and 40 cells when the port begins: ten rounds of 1, 2 and 4. A VC of
    a higher priority goes first at once, and the turn that it interrupts goes on behind it."""
    model = Model(
        [Vc(0, 0, 32 + k, 1, 0, 64 + k, weight=(1, 2, 4, 1)[k], priority=int(k == 3)) for k in range(4)],
        ports=3, capacity=80,
    )  # fmt: skip

    async def test(bench):
        await configure(bench, model, [4, 2, 4], delay=100)
        for index, vc in enumerate(model.vcs):
            await share(bench, model, index, weight=vc.weight, priority=vc.priority)
        for vci in [32, 33, 33, 34, 34, 34, 34] * 10:
            await bench.tick(Arrival(Cell(Header(0, vci), bytes(48))))
        await bench.ticks(50)
        urgent = []
        for _ in range(3):
            urgent.append(bench.now)
            await bench.tick(Arrival(Cell(Header(0, 35), bytes(48))))
            await bench.ticks(10)
        await bench.ticks(150)
        left = [(d.tick, (d.header >> 4 & 0xFFFF) - 64) for d in bench.came_out]
        assert [vc for _, vc in left if vc != 3] == [0, 1, 1, 2, 2, 2, 2] * 10
        gone = [tick for tick, vc in left if vc == 3]
        assert all(0 < tick - came <= 2 for came, tick in zip(urgent, gone, strict=True))

    run(small(width, CELLS, options=options_word(("shares",))), test)


class Heads(VirtualClocks):
    """Virtual clocks as the model of the switch asks a scheduler."""

    switch: Model

    def arrive(self, vc):
        super().arrive(vc, self.switch.now)

    def level(self, port):
        return self.first(port)

    def depart(self, port, level):
        super().depart(level, self.switch.now)
        return level

    def check(self):
        pass


@pytest.mark.parametrize("width", WIDTHS)
def test_random_traffic_leaves_by_virtual_clocks(width):
    """VCs at rates of their own, some beyond them, for three ports; they get other ports meanwhile."""
    rng = random.Random(7)
    model = Model([Vc(k % 3, 0, 32 + k, k * 3 % 8 % 3, 0, 64 + k, limit=6) for k in range(8)], ports=3, capacity=16)
    periods = [3 << 16, 3 << 16, 8 << 16, 20 << 16, 70_001, 5 << 16, 1 << 36, (1 << 40) - 1]
    model.scheduler = Heads([Clocked(vc.out_port, periods[k]) for k, vc in enumerate(model.vcs)], ports=3)
    model.scheduler.switch = model

    async def test(bench):
        await configure(bench, model, [2.5, 4, 3.25])
        for index, period in enumerate(periods):
            await bench.set("service_period", period, index)
        judge = Judge(bench, model)
        for step in range(500 if width == WIDE else 200):
            if step % 40 == 20 and width == WIDE:
                await judge.change(rng.randrange(8), out_port=rng.randrange(3))
            k = rng.randrange(8)
            comes = rng.random() < (0.95 if step // 80 % 2 == 0 else 0.5)
            await judge.tick(Arrival(Cell(Header(0, 32 + k), bytes([k]) * 48), k % 3) if comes else None)
        for _ in range(120):
            await judge.tick()
        await judge.finish()
        assert model.occupancy == 0
        await compare_counters(bench, model, judge.high_water)

    run(small(width, CELLS, options=options_word(("virtual-clock",))), test)


@pytest.mark.parametrize("names", [("fifo", "shares"), ("virtual-clock",), ("histograms",)])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_that_is_torn_down_leaves_the_buffer_in_its_turns_and_the_others_go_on(width, names):
    model = Model([Vc(0, 0, 32 + k, 1, 0, 64 + k) for k in range(2)], ports=3, capacity=40)

    async def test(bench):
        await configure(bench, model, [4, 4, 4])
        if "fifo" in names:
            await bench.set("fifo", 0b010)
        for k in range(20):
            await bench.tick(Arrival(Cell(Header(0, 32 + k % 2), bytes(48))))
        await write_policy(bench, 0, model.vcs[0], enabled=False)
        await bench.ticks(60)
        sent = sum(d.header >> 4 & 0xFFFF == 64 for d in bench.came_out)
        assert await bench.get("flushed") == 10 - sent
        assert sum(d.header >> 4 & 0xFFFF == 65 for d in bench.came_out) == 10
        assert await bench.get("occupancy") == 0
        if "histograms" in names:  # what leaves without being sent has no delay
            delays = [await bench.get("port_delay_bins", 64 + k) for k in range(64)]
            assert sum(delays) == 10 + sent < 20

    run(small(width, CELLS, options=options_word(names)), test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_fifo_vc_with_a_new_port_keeps_the_old_ports_clock_until_it_is_empty(width):
    """The cell that comes in the tick in which its VC's last one leaves follows it, a period later."""
    model = Model([Vc(0, 0, 32, 1, 0, 64)], ports=3, capacity=12)

    async def test(bench):
        await configure(bench, model, [10, 10, 10])
        await bench.set("fifo", 0b111)
        await bench.ticks(30)
        cell, first = Arrival(Cell(Header(0, 32), bytes(48))), bench.now
        await bench.tick(cell)
        await bench.tick(cell)
        await write_policy(bench, 0, dataclasses.replace(model.vcs[0], out_port=2))
        await bench.ticks(first + 11 - bench.now)
        await bench.tick(cell)
        await bench.ticks(15)
        await bench.tick(cell)
        await bench.ticks(15)
        assert [(d.tick - first, d.port) for d in bench.came_out] == [(1, 1), (11, 1), (21, 1), (28, 2)]

    run(small(width, CELLS, options=options_word(("fifo",))), test)
