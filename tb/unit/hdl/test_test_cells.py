"""Test cells of an interface: their format, the generator, and the analyser beside a model written from the rules."""

import random
from dataclasses import replace

import numpy as np
import pytest
from amaranth.sim import Simulator

from benches.stream import CELL
from benches.testers import HEADER, SENDS, Tester, measure
from bentpipe_hdl.cell import NARROW, WIDE
from bentpipe_hdl.nic.options.test_cells.control import analyse, read_analysis, stop
from bentpipe_hdl.part_harness import PartHarness
from bentpipe_hdl.test_cells.analyser import TestCellAnalyser as Analyser
from bentpipe_hdl.test_cells.cells import TestCell as Content
from bentpipe_hdl.test_cells.cells import TestCellError as ContentError
from bentpipe_hdl.test_cells.cells import block_of_rate, pack, stamp_of, unpack
from models.analyser import AnalyserModel, stamp
from models.crc import divide

NODES = [(WIDE, "native"), (NARROW, "verilator")]


def test_format():
    """The vectors of the layout, and the CRC-16 by division."""
    assert pack(Content(1, 2))[46:].hex() == "41a0"
    assert pack(Content(0xFFFFFFFF, 0x01020304))[46:].hex() == "eaee"
    cell = pack(Content(7, 9))
    assert divide(cell[:46], width=16, polynomial=0x1021, register=0xFFFF) == int.from_bytes(cell[46:], "big")
    assert unpack(cell) == Content(7, 9)
    with pytest.raises(ContentError, match="CRC-16"):
        unpack(cell[:9] + b"\0" + cell[10:])
    with pytest.raises(ValueError, match="32 bits"):
        pack(Content(1 << 32, 0))


def test_units():
    """Stamps are those of the model, which are true to 10 ns in 42 s; blocks those of I.356's table."""
    for tick in (0, 1, 1000, 10**8, 242_000_000, 1 << 40):
        assert stamp_of(tick) == stamp(tick)
    assert 0 <= 242_000_000 * 33125 / 1872 - stamp(242_000_000) < 1.2
    rates = {3200: 128, 3201: 256, 6400: 256, 353_207: 16384, 819_200: 32768}
    assert {rate: 1 << block_of_rate(rate)[0] for rate in rates} == rates
    assert all(limit == (1 << size) // 32 for size, limit in map(block_of_rate, rates))


def test_a_stream_of_100_000_cells():
    """Losses, errors, misinsertions, second cells, delays, cells out of order: the analyser is its model, and differs
    from the truth by the cancellations that have names alone."""
    counts, truth, _ = measure(100_000, seed=1)
    assert min(truth.lost, truth.errored, truth.misinserted) > 500
    assert truth.cancelled > 5 and truth.reordered > 50 and truth.strangers > 50
    assert counts["secbs"] > 50


def stream(rng, number, tick, cells):
    """Cells with numbers, stamps and faults of every kind, as an array; the number and the tick behind them."""
    made = np.zeros(cells, CELL)
    for k in range(cells):
        draw = rng.random()
        if draw < 0.1:
            far = (65535, 65536) if rng.random() < 0.1 else (65537, 1 << 31)
            number += rng.choice([1, 2, 5, 40, 300, 3000, *far])
        this = number
        if draw < 0.75:
            number += 1
        elif draw < 0.85:
            this -= rng.choice([1, 2, 60, 65536, 65537])
        age = rng.choice([0, 3, 700, 701, 900, 100_000])
        payload = bytearray(pack(Content(this % (1 << 32), stamp(tick - age))))
        if draw > 0.9:
            payload[rng.randrange(48)] ^= 1 << rng.randrange(8)
        made[k] = (tick, HEADER, rng.random() < 0.02, np.frombuffer(bytes(payload), np.uint8))
        tick += rng.choice([1, 1, 2, 9])
    return made, number, tick


@pytest.mark.parametrize(("width", "engine"), NODES)
def test_streams_of_every_kind(width, engine):
    """Gaps over many blocks, other sequences, blocks of every size, numbers and stamps that wrap, starts and a reset in
    the middle: as the model has it, at both widths."""
    rng = random.Random("streams")
    now = (1 << 32) * 1872 // 33125 - 2000  # the stamp is about to wrap
    node = Tester(width, engine, now)
    number, severe, resyncs = (1 << 32) - 150, 0, 0
    for part in range(14):
        size = rng.choice([1, 2, 4, 7, 12, 16])
        first = rng.choice([None, number % (1 << 32)])
        node.analyse(size, rng.randrange(min(1 << size, 9)), rng.choice([0, 3, 8, 22]), first)
        cells, number, tick = stream(rng, number, now + 1, 250)
        node.receive(cells)
        counts, now = node.check(), tick + 2
        severe, resyncs = max(severe, counts["secbs"]), max(resyncs, counts["resyncs"])
        if part == 6:
            cells, number, tick = stream(rng, number, now + 1, 20)
            node.receive(cells)
            node.reset()
            node.configure()
            now = tick
    assert severe > 300
    assert resyncs > 0


def generated(node, ticks):
    return [unpack(bytes(cell["payload"])) for cell in node.run(node.now + ticks, most=ticks)]


@pytest.mark.parametrize(("width", "engine"), NODES)
def test_generator(width, engine):
    """A generator sends as many cells as are asked for, from a number on. It stops, starts again while it sends, and is
    reset; stamps are those of the ticks.
    """
    node = Tester(width, engine)
    node.generate(first=(1 << 32) - 3, count=5)
    cells = node.run(100, most=100)
    found = [unpack(bytes(cell["payload"])) for cell in cells]
    assert [each.number for each in found] == [(1 << 32) - 3, (1 << 32) - 2, (1 << 32) - 1, 0, 1]
    assert [each.stamp for each in found] == [stamp(int(tick)) for tick in cells["tick"]]
    assert set(cells["header"]) == {HEADER}
    assert int(cells["tick"][-1] - cells["tick"][0]) in (5, 6)  # 1.5 ticks a cell, of which it may catch up one
    assert int(node.csr.test_state) == 0
    node.generate()
    assert len(generated(node, 60)) in range(37, 41)
    node.generate(first=1000)  # one more cell of the old numbers
    numbers = [each.number for each in generated(node, 30)]
    assert numbers.index(1000) < 4
    stop(node.csr)
    before = int(node.csr.tx_cells[SENDS])
    assert len(generated(node, 50)) <= 2
    node.generate()
    assert generated(node, 10)[0].number == 0
    node.reset()
    node.configure()
    assert generated(node, 20) == [] and node.csr.tx_cells[SENDS] == 0
    node.generate(count=1)
    assert [each.number for each in generated(node, 20)] == [0]
    assert before > 40


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_counters_go_on_behind_32_bits(width):
    """A run of more than 2**32 cells: its counters, near there from the beginning, carry into their second word."""
    top = (1 << 32) - 2
    harness = PartHarness(lambda slot: Analyser(slot, vcs=8), width=width, commit=11)
    part = harness.part
    for name in ("in_order", "errored", "lost", "misinserted", "secb_lost", "secb_errored"):
        getattr(part, name)._init = top
    part.delay_sum._init = (1 << 40) - 5
    model = AnalyserModel(size=2, limit=1, first=None)

    async def bench(ctx):
        async def tick(now, valid=0):
            ctx.set(harness.time.now, now)
            for clock in range(1 if width == WIDE else 13):
                ctx.set(harness.time.tick, clock == 0)
                ctx.set(harness.valid, valid)
                await ctx.tick()

        ctx.set(harness.size, 2)
        ctx.set(harness.limit, 1)
        ctx.set(harness.class_width, 8)
        rng, number = random.Random(4), top - 20
        for now in range(1, 120):
            good, number = rng.random() < 0.8, number + rng.choice([1, 1, 1, 2, 7])
            payload = pack(Content(number % (1 << 32), stamp(now - 1)))
            model.cell(payload if good else payload[:-1] + bytes([payload[-1] ^ 1]), now)
            for name, value in (("good", good), ("number", number % (1 << 32)), ("stamp", stamp(now - 1))):
                ctx.set(getattr(harness, name), value)
            ctx.set(harness.came, stamp(now))
            await tick(now, 1)
        expected = model.result()
        for name in ("in_order", "errored", "lost", "secb_lost", "secb_errored"):
            assert ctx.get(getattr(harness, name)) == top + expected[name] > 1 << 32, name
        assert ctx.get(harness.misinserted) == top + expected["misinserted"]
        assert ctx.get(harness.delay_sum) == (1 << 40) - 5 + expected["delay_sum"]

    simulator = Simulator(harness)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_what_the_driver_refuses_and_reads():
    node = Tester()
    with pytest.raises(ValueError, match="cell block"):
        analyse(node.csr, 5, block=(3, 8))
    with pytest.raises(ValueError, match="class of delays"):
        analyse(node.csr, 5, delay_class=23)
    node.generate(count=200)
    node.analyse(width=6)
    cells = node.run(400, most=300)
    cells["tick"] += 500
    cells["tick"][100:] += 40  # a step of 708 * 10 ns, 11 classes of 64 of them
    node.receive(cells)
    node.check()
    found = read_analysis(node.csr)
    assert found.sent == found.in_order == 200 and found.delay_mean_ps is not None
    assert found.delay_min_ps == found.reference_ps <= found.quantile_ps(0.5) < found.delay_max_ps
    assert found.quantile_ps(0.5) - found.reference_ps in (640_000, 1_280_000)
    assert found.quantile_ps(0.99) == found.delay_max_ps
    far = replace(found, classes=(0,) * 63 + (10,))
    assert replace(found, classes=(10,) + (0,) * 63).quantile_ps(0.5) is None
    assert far.quantile_ps(0.5) == found.delay_max_ps
    assert replace(far, delay_max_ps=10**12).quantile_ps(0.5) is None
