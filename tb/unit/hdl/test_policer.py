"""The policer against the vectors and the model, on both datapaths."""

import json
import random
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from bentpipe_hdl.cell import TIME_BITS
from bentpipe_hdl.switch.options.police.policer import Policer
from models.gcra import LeakyBucket, VirtualScheduling
from models.policer import Bucket
from models.policer import Policer as Model
from unit.hdl.bench import WIDTHS
from unit.hdl.test_switch_parts import run

GCRA = json.loads((Path(__file__).parents[2] / "vectors" / "gcra.json").read_text())["vectors"]
VCS = 16


class Rig:
    """A policer whose VCs' states are kept here, as the switch keeps them."""

    def __init__(self, ctx, part, ticks):
        self.ctx, self.part, self.ticks = ctx, part, ticks
        self.states = [0] * VCS

    async def contract(self, vc, bucket, increment, limit, **flags):
        ctx, part = self.ctx, self.part
        entry = {"increment": int(increment * 65536), "enabled": 1, **flags}
        for name, value in (("rate", entry), ("limit", int(limit * 65536))):
            ctx.set(getattr(part, f"{name}_index"), 2 * vc + bucket)
            ctx.set(getattr(part, name), value)
            ctx.set(getattr(part, f"{name}_en"), 1)
        await ctx.tick()
        ctx.set(part.rate_en, 0)
        ctx.set(part.limit_en, 0)

    async def cell(self, time, vc=0, clp=0, user=1, last=0):
        """``(discard, CLP)`` of a cell in tick ``time``."""
        ctx, part = self.ctx, self.part
        self.ticks.now = time % (1 << TIME_BITS)
        ctx.set(part.now, self.ticks.now)
        for name, value in {"arrives": 1, "vc": vc, "clp": clp, "user": user, "last": last}.items():
            ctx.set(getattr(part, name), value)
        ctx.set(part.state.as_value(), self.states[vc])

        def look():
            return ctx.get(part.discard), ctx.get(part.new_clp), ctx.get(part.new_state.as_value())

        discard, new_clp, self.states[vc] = await self.ticks.tick(look, seen=1)
        ctx.set(part.arrives, 0)
        return discard, new_clp

    async def tagged(self, vc):
        self.ctx.set(self.part.tagged_index, vc)
        await self.ctx.tick()
        return self.ctx.get(self.part.tagged)


def police(width, test):
    async def bench(ctx, part, ticks):
        await test(Rig(ctx, part, ticks))

    run(width, partial(Policer, vcs=VCS), bench)


@pytest.mark.parametrize("vector", GCRA, ids=lambda v: v["name"])
@pytest.mark.parametrize("width", WIDTHS)
def test_vectors(width, vector):
    async def test(rig):
        await rig.contract(1, 0, Fraction(vector["I"]), Fraction(vector["L"]))
        found = [await rig.cell(int(time), vc=1) for time in vector["times"]]
        assert [1 - discard for discard, _ in found] == vector["conform"]

    police(width, test)


@pytest.mark.parametrize("form", [VirtualScheduling, LeakyBucket])
@pytest.mark.parametrize("width", WIDTHS)
def test_random_arrivals(width, form):
    """Frames and OAM cells of VCs with all kinds of buckets against the model: what becomes of each cell, and how many
    were tagged."""
    rng = random.Random(f"policer {form}")
    models = []

    async def test(rig):
        for vc in range(VCS):
            packets, buckets = rng.getrandbits(1), []
            for k, (clp0, tag) in enumerate(((vc & 1, vc & 2), (vc & 4, vc & 8))):
                increment = Fraction(rng.randrange(60 << 16, 400 << 16), 65536)
                limit = rng.choice([0, Fraction(rng.randrange(600 << 16), 65536), rng.randrange(600)])
                if vc or k:  # VC 0 has the second bucket alone
                    buckets.append(Bucket(form(increment, limit), clp0=bool(clp0), action="tag" if tag else "discard"))
                    flags = {"clp0": int(bool(clp0)), "tag": int(bool(tag)), "packets": packets}
                    await rig.contract(vc, k, increment, limit, **flags)
            models.append(Model(buckets, packets=bool(packets)))
        time, left = 0, [0] * VCS
        for _ in range(1800):
            time += rng.choice([1, 1, 1, 1, 2, 3, 5, 9, 60])
            vc, user, clp = rng.randrange(VCS), int(rng.random() < 0.9), int(rng.random() < 0.3)
            if user:
                left[vc] = (left[vc] or rng.randrange(1, 9)) - 1
            last = int(not left[vc]) if user else rng.getrandbits(1)
            fate, out = models[vc].cell(time, clp, bool(user), bool(last))
            discard, new_clp = await rig.cell(time, vc, clp, user, last)
            assert bool(discard) == (fate == "discarded"), (time, vc, fate)
            assert discard or new_clp == out, (time, vc, fate)
        for vc, model in enumerate(models):
            assert await rig.tagged(vc) == model.counts["tagged"]

    police(width, test)
    total = {fate: sum(model.counts[fate] for model in models) for fate in ("passed", "tagged", "discarded")}
    assert min(total.values()) > 150


@pytest.mark.parametrize("width", WIDTHS)
def test_a_frame_is_policed_whole(width):
    """A frame that loses its first cell goes whole; one that loses a later one goes but for its last cell; if that is
    lost as well, so is the next frame."""

    async def test(rig):
        await rig.contract(0, 0, 10, 0, packets=1)
        cells = [
            (0, 0, 1), (10, 0, 1), (15, 0, 0), (30, 0, 0), (40, 1, 1),  # the third is early
            (45, 0, 0), (60, 0, 0), (70, 1, 0),  # a first cell that is early
            (80, 0, 1), (85, 1, 0), (100, 0, 0), (110, 1, 1),  # a last cell that is: so goes the next frame
            (120, 0, 1),
        ]  # fmt: skip
        for time, last, passes in cells:
            assert await rig.cell(time, last=last) == (1 - passes, 0), time

    police(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_that_is_set_up_anew_has_no_past(width):
    async def test(rig):
        await rig.contract(0, 0, 100, 0)
        assert [(await rig.cell(time))[0] for time in (5, 6)] == [0, 1]
        rig.states[0] = 0  # as the switch does
        assert [(await rig.cell(time))[0] for time in (7, 8)] == [0, 1]

    police(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_contract_that_changes_keeps_the_time_of_the_next_cell(width):
    async def test(rig):
        await rig.contract(0, 0, 100, 50)
        assert [(await rig.cell(time))[0] for time in (1000, 1049, 1050)] == [0, 1, 0]  # the next conforms from 1150 on
        await rig.contract(0, 0, 120, 0)
        assert [(await rig.cell(time))[0] for time in (1149, 1150, 1269, 1270)] == [1, 0, 1, 0]
        await rig.contract(0, 0, 10, 0)  # the old increment is longer than the new one: not 1390
        assert [(await rig.cell(time))[0] for time in (1271, 1280, 1281)] == [0, 1, 0]
        await rig.contract(0, 0, 10, 0, enabled=0)
        assert (await rig.cell(1282)) == (0, 0)
        await rig.contract(0, 0, 10, 0)  # policed anew
        assert [(await rig.cell(time))[0] for time in (1283, 1284)] == [0, 1]

    police(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_further_ahead_than_an_increment_is_left_over(width):
    async def test(rig):
        for vc, increment, early in ((0, 10, 1), (1, 10 - Fraction(1, 65536), 0)):
            await rig.contract(vc, 0, 100, 0)
            await rig.cell(1000, vc)
            await rig.contract(vc, 0, increment, 0)
            assert (await rig.cell(1090, vc))[0] == early

    police(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_long_silence_and_the_wrap_of_time(width):
    """After any silence shorter than the range of time less an increment, the VC has all of its limit again."""
    wrap = 1 << TIME_BITS

    async def test(rig):
        await rig.contract(0, 0, 10, 15)
        for start in (wrap - 5, 2 * wrap - 50, 2 * wrap + wrap // 2):
            found = [(await rig.cell(start + time))[0] for time in (0, 0, 0, 5, 14, 15)]
            assert found == [0, 0, 1, 0, 1, 0], start

    police(width, test)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_longest_increment_and_limit_are_exact(width):
    increment, limit = Fraction((1 << 40) - 1, 65536), Fraction((1 << 48) - 1, 65536)

    async def test(rig):
        await rig.contract(0, 0, increment, limit)
        model, time = VirtualScheduling(increment, limit), 1 << 40
        for _ in range(257):  # 1 + L / I cells at once
            assert (await rig.cell(time))[0] == 1 - model.conforms(time)
        for _ in range(3):
            time = -int(-(model.tat - limit) // 1)
            assert (await rig.cell(time - 1))[0] == 1
            assert (await rig.cell(time))[0] == 1 - model.conforms(time)

    police(width, test)
