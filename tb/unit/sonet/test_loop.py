"""Framer to deframer, and model to deframer."""

import random
from functools import partial

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from bentpipe_hdl.sonet.deframer import Deframer
from bentpipe_hdl.sonet.framer import Framer
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_sim.native import Simulator
from models.sonet.frame import ModelFramer
from unit.hdl.bench import run_component


def number(cell):
    return int.from_bytes(cell[4:], "little") | int.from_bytes(cell[:4], "big") << 384


def user_cells(rng, count):
    return [
        (rng.randrange(32, 65536) << 4).to_bytes(4, "big") + i.to_bytes(4, "big") + rng.randbytes(44)
        for i in range(count)
    ]


class Result:
    def __init__(self):
        self.cells, self.b1, self.b2, self.b3 = [], [], [], []
        self.frame_at = self.sync_at = None
        self.events = []


def receive(g, line, watch=None):
    """Words of ``line`` (bytes) through a deframer.

    ``watch`` is called in each frame's last word. With it only cells are looked for besides: a look takes as long as a
    clock.
    """
    out = Result()
    last = 810 * g.n - g.width

    async def bench(ctx, dut):
        for k in range(0, len(line) - g.width + 1, g.width):
            ctx.set(dut.line, int.from_bytes(line[k : k + g.width], "little"))
            await ctx.tick()
            if ctx.get(dut.valid):
                out.cells.append((k // (810 * g.n), ctx.get(dut.cell), ctx.get(dut.hec_error)))
            if watch:
                if k % (810 * g.n) == last:
                    watch(ctx, dut, k)
                continue
            if ctx.get(dut.parity_strobe):
                out.b1.append(ctx.get(dut.b1_errors))
                out.b2.append(ctx.get(dut.b2_errors))
            if ctx.get(dut.b3_strobe):
                out.b3.append((k // (810 * g.n), ctx.get(dut.b3_errors)))
            if out.frame_at is None and ctx.get(dut.in_frame):
                out.frame_at = k
            if out.sync_at is None and ctx.get(dut.state).value == 2:
                out.sync_at = k
            for name in ("positive", "negative", "new_pointer"):
                if ctx.get(getattr(dut, name)):
                    out.events.append((k // (810 * g.n), name))

    run_component(partial(Deframer, g), bench)
    return out


def shifted(line, bits):
    total = 8 * len(line) + bits
    value = int.from_bytes(line, "big") << (-total % 8)
    return value.to_bytes(-(-total // 8), "big")


@pytest.mark.parametrize(("n", "width", "offset"), [(3, 9, 0), (3, 9, 43), (12, 36, 13), (3, 1, 3), (12, 4, 19)])
def test_the_model_sends_at_any_bit_offset_with_pointer_movements(n, width, offset):
    g = Geometry(n, width)
    rng = random.Random(offset)
    first = rng.choice([0, 1, 780, 781, 782])
    framer = ModelFramer(n, pointer=first)
    frames = 22 if width > 1 else 9
    if width == 4:
        frames = 9
    up = first > 2
    line = b""
    sent = user_cells(rng, 44 * n)
    sent_at = 7 if width > 4 else 5
    plan = {}
    for k in range(frames):
        if k == sent_at:
            framer.source.queue = list(sent)
        action = ""
        if k >= sent_at and k % 4 == sent_at % 4:
            action = "inc" if up else "dec"
            if k > sent_at + 8:
                action = "dec" if up else "inc"
        plan[k] = action
        line += framer.frame(action)
    result = receive(g, shifted(line, offset))
    moves = [{"inc": "positive", "dec": "negative"}[a] for a in plan.values() if a]
    assert [name for at, name in result.events if at >= sent_at] == moves
    assert not any(result.b1 + result.b2)
    b3 = [errors for at, errors in result.b3 if at > 5]  # the pointer is found by then
    assert not any(b3)
    assert len(b3) >= frames - 7
    # nothing but the cells sent, from the time that the pointer has been found
    assert not any(bad for at, _, bad in result.cells if at >= sent_at)
    got = [cell for at, cell, bad in result.cells if at >= sent_at]
    assert len(got) > (100 if frames > 10 else 30)
    assert got == [number(c) for c in sent[: len(got)]]


SHAPES = [(3, 9), (12, 36), (3, 1), (12, 4)]


@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_no_payload_before_three_equal_pointers(n, width):
    """From reset on, at an offset far from that of a chip's default: no cell but those sent, none before NORM."""
    g = Geometry(n, width)
    rng = random.Random(n)
    framer = ModelFramer(n, pointer=100)
    frames = 8 if width < 9 else 12
    sent = user_cells(rng, 15 * n * frames)
    framer.source.queue = list(sent)
    line = b"".join(framer.frame() for _ in range(frames))
    states = {}

    def watch(ctx, dut, k):
        states[k // (810 * n)] = ctx.get(dut.lop)

    result = receive(g, line, watch)
    assert [states[k] for k in range(5)] == [1, 1, 1, 0, 0]  # found in frame 0, in frame in 1, the third pointer in 3
    right = {number(cell) for cell in sent}
    assert len(result.cells) > 20
    assert not [at for at, cell, bad in result.cells if bad or cell not in right]
    assert min(at for at, _, _ in result.cells) >= 3


@pytest.mark.parametrize(("n", "width"), SHAPES)
@pytest.mark.parametrize("which", ["all", "last", "ais"])
def test_concatenation_indications_are_followed(n, width, which):
    """8 frames without them (or 3 of all ones in one STS-1) are LOP-P, without cells; 3 with them end it."""
    g = Geometry(n, width)
    framer = ModelFramer(n, pointer=0)
    rng = random.Random(n)
    before, without, after = 5, 10, 6
    words = dict.fromkeys(range(1, n), 24576) if which == "all" else {n - 1: 0xFFFF if which == "ais" else 0x93FE}
    framer.source.queue = user_cells(rng, 15 * n * (before + without + after))
    line = b"".join(framer.frame(words=words if 0 <= k - before < without else None) for k in range(26))
    line = line[: 810 * n * (before + without + after)]
    states = {}

    def watch(ctx, dut, k):
        states[k // (810 * n)] = ctx.get(dut.lop)

    result = receive(g, line, watch)
    enter = 3 if which == "ais" else 8
    lops = [1] * 3 + [0] * (before - 3 + enter - 1) + [1] * (without - enter + 1 + 2) + [0] * (after - 2)
    assert list(states.values()) == lops
    silent = range(before + enter, before + without + 2)
    assert not [at for at, _, _ in result.cells if at in silent]
    assert [at for at, _, _ in result.cells if at == before + enter - 2]
    assert [at for at, _, _ in result.cells if at == before + without + after - 1]


class Loop(wiring.Component):
    """A framer and a deframer with bit errors in between."""

    def __init__(self, geometry, pointer=522):
        self.framer = Framer(geometry, pointer)
        self.deframer = Deframer(geometry)
        super().__init__({"errors": wiring.In(8 * geometry.width)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.framer = self.framer
        m.submodules.deframer = self.deframer
        m.d.comb += self.deframer.line.eq(self.framer.line ^ self.errors)
        return m


@pytest.mark.parametrize(("n", "width"), [(3, 9), (12, 36)])
def test_loop_delivers_every_cell(n, width):
    g = Geometry(n, width)
    dut = Loop(g)
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    rng = random.Random(1)
    sent = [number(c) for c in user_cells(rng, 100)]
    waiting = list(sent)
    got = []
    ports = dut.framer, dut.deframer

    async def bench(ctx):
        tx, rx = ports
        for k in range(9 * g.frame_words):
            ctx.set(tx.increment, k > 4 * g.frame_words)
            if ctx.get(tx.ready):
                ctx.set(tx.valid, bool(waiting) and k > 5 * g.frame_words and rng.random() < 0.7)
                if ctx.get(tx.valid):
                    ctx.set(tx.cell, waiting.pop(0))
            else:
                ctx.set(tx.valid, 0)
            await ctx.tick()
            if ctx.get(rx.valid):
                assert not ctx.get(rx.hec_error), k / g.frame_words
                got.append(ctx.get(rx.cell))

    sim.add_testbench(bench)
    sim.run()
    assert got == sent
