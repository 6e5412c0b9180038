"""The interpreter and the concatenation indicators against the model, word by word."""

import random

import pytest

from benches.simulator import Simulator
from bentpipe_hdl.sonet.pointer import ConcatenationIndicator, PointerInterpreter, PointerState
from models.sonet.pointer import ConcatenationModel, PointerModel


def run(dut, bench):
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()


def words(rng, model, count):
    """Words in runs: valid ones, movements, NDF, all ones, words that are none of these."""
    while count > 0:
        kind = rng.choice(["same", "new", "inc", "dec", "ndf", "ais", "bad", "any"])
        offset = rng.randrange(783)
        for _ in range(rng.choice([1, 2, 3, 7, 8, 9])):
            active = model.active
            yield {
                "same": 0x6000 | active,
                "new": 0x6000 | offset,
                "inc": 0x6000 | active ^ 0x2AA,
                "dec": 0x6000 | active ^ 0x155,
                "ndf": 0x9000 | rng.randrange(783),
                "ais": 0xFFFF,
                "bad": rng.choice([0x63FE, 0xF000 | offset, 0x93FF]),
                "any": rng.getrandbits(16),
            }[kind]
            count -= 1


@pytest.mark.parametrize("seed", range(4))
def test_interpreter(seed):
    rng = random.Random(seed)
    dut, model = PointerInterpreter(), PointerModel()
    transitions = set()

    async def bench(ctx):
        assert ctx.get(dut.state) == PointerState[model.state]
        ctx.set(dut.strobe, 1)
        for word in words(rng, model, 3000):
            ctx.set(dut.word, word)
            await ctx.delay(1e-9)
            if rng.random() < 0.05:  # a frame's word is missed
                ctx.set(dut.strobe, 0)
                ctx.set(dut.missed, 1)
                await ctx.tick()
                ctx.set(dut.strobe, 1)
                ctx.set(dut.missed, 0)
                model.miss()
                assert not ctx.get(dut.sure)
            moves = ctx.get(dut.positive) - ctx.get(dut.negative)
            before = model.state
            _, move = model.step(word)
            transitions.add((before, model.state))
            await ctx.tick()
            assert moves == move
            assert ctx.get(dut.sure) == model.sure
            assert ctx.get(dut.state).name == model.state
            if model.state == "NORM":
                assert ctx.get(dut.active) == model.active

    run(dut, bench)
    assert len(transitions) == 9  # each state to each


def test_eight_invalid_pointers_lead_from_ais_to_lop():
    dut = PointerInterpreter()
    seen = []

    async def bench(ctx):
        ctx.set(dut.strobe, 1)
        for word in [0xFFFF] * 3 + [0x63FF] * 8:
            ctx.set(dut.word, word)
            await ctx.tick()
            seen.append(ctx.get(dut.state).name)

    run(dut, bench)
    assert seen == ["LOP"] * 2 + ["AIS"] * 8 + ["LOP"]


@pytest.mark.parametrize("seed", range(2))
def test_concatenation_indicator(seed):
    rng = random.Random(seed)
    dut, model = ConcatenationIndicator(), ConcatenationModel()
    names = {"NORM": "CONC", "LOP": "LOPC", "AIS": "AISC"}
    transitions = set()

    async def bench(ctx):
        ctx.set(dut.strobe, 1)
        for _ in range(1000):
            word = rng.choice([0x93FF, 0x9FFF, 0xFFFF, 0xFFFF, 0x600A, 0x93FE, 0x83FF, 0xF3FF, 0xFFFE])
            for _ in range(rng.choice([1, 2, 3, 7, 8, 9])):
                h1, h2 = word >> 8, word & 0xFF
                conc, ais = (h1 & 0xF3, h2) == (0x93, 0xFF), word == 0xFFFF
                ctx.set(dut.conc, conc)
                ctx.set(dut.ais, ais)
                if rng.random() < 0.05:  # a frame's word is missed
                    ctx.set(dut.strobe, 0)
                    ctx.set(dut.missed, 1)
                    await ctx.tick()
                    ctx.set(dut.strobe, 1)
                    ctx.set(dut.missed, 0)
                    model.miss()
                before = model.state
                model.step(word)
                transitions.add((before, model.state))
                await ctx.tick()
                assert names[ctx.get(dut.state).name] == model.state

    run(dut, bench)
    assert len(transitions) == 9
