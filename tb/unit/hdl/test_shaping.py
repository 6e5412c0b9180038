"""Shaping with peak and sustained rates: what is shaped conforms to the same contract, and a cell more does not."""

import random
from fractions import Fraction
from functools import partial
from itertools import pairwise

import pytest

from bentpipe_hdl.traffic.pacer import Pacer
from models.gcra import LeakyBucket
from models.shaper import Shaper, burst_tolerance
from unit.hdl.bench import WIDTHS
from unit.hdl.test_nic_parts import run


def units(value):
    return int(Fraction(value) * 65536)


async def write(part, vc, peak, sustained=None, burst=0):
    """A VC's rates, as increments in ticks, and its burst tolerance."""
    part.set(period_index=vc, period=units(peak), period_en=1)
    if sustained:
        part.set(rate_index=vc, rate=units(sustained) | 1 << 40, rate_en=1)
        part.set(burst_index=vc, burst=units(burst), burst_en=1)
    await part.clock()
    part.set(period_en=0, rate_en=0, burst_en=0)


def paced(width, contracts, *, line, tolerance, ticks, chance=1.0, seed=1, skip=0):
    """Cells as ``(tick, VC)``, and from when on each could have gone; of VCs whose next PDU is posted with a chance a
    tick. ``skip`` ticks are left out now and then, once between two PDUs."""
    sent, ready = [], []

    async def test(part):
        rng = random.Random(seed)
        await part.clear(8)
        part.set(line_period=units(line), tolerance=tolerance)
        for vc, contract in enumerate(contracts):
            await write(part, vc, *contract)
        left, since, offered = {}, {}, None
        end, skipped = 100 + ticks, 0
        while part.now < end:
            idle = [vc for vc in range(len(contracts)) if vc not in left]
            if offered is None and idle and rng.random() < chance:
                offered = rng.choice(idle), rng.randrange(1, 30)
            part.set(post=offered is not None, post_fits=1, post_vc=offered[0] if offered else rng.randrange(4))

            def early():
                part.set(last=part.get("sends") and left[part.get("vc")] == 1)

            def late():
                nonlocal offered
                vc = part.get("vc")
                if part.get("sends"):
                    sent.append((part.now, vc))
                    ready.append(since[vc])
                    since[vc] = part.now + 1
                    left[vc] -= 1
                    if not left[vc]:
                        del left[vc]
                elif part.get("posts"):
                    assert part.get("accepts")
                    left[vc], since[vc], offered = offered[1], part.now + 1, None

            await part.tick(early, late)
            if sent and sent[-1][0] > skipped and not left and offered is None and rng.random() < 0.05:
                part.now, end = part.now + skip, end + skip
                skipped = part.now

    run(partial(Pacer, vcs=4, sustained=True), width, test)
    return sent, ready


def random_contracts(rng, line):
    for _ in range(4):
        peak = line * Fraction(rng.randrange(4, 30), 4) + Fraction(rng.randrange(65536), 65536)
        sustained = peak * rng.choice([1, Fraction(3, 2), 4])
        sustained = Fraction(units(sustained), 65536)
        yield peak, sustained, burst_tolerance(rng.choice([1, 2, 5, 20]), peak, sustained)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_shaped_conforms_at_both_widths_alike(seed):
    rng = random.Random(f"shaped {seed}")
    line, tolerance = Fraction(3, 2), 2
    contracts = [*random_contracts(rng, line)]
    made = [
        paced(width, contracts, line=line, tolerance=tolerance, ticks=500, chance=0.3, seed=seed) for width in WIDTHS
    ]
    assert made[0] == made[1]
    sent, _ = made[0]
    for vc, (peak, sustained, burst) in enumerate(contracts):
        ticks = [tick for tick, number in sent if number == vc]
        assert len(ticks) > 8
        for bucket in (LeakyBucket(peak, tolerance), LeakyBucket(sustained, burst)):
            assert all(bucket.conforms(tick) for tick in ticks), vc


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("mbs", [1, 7])
def test_a_shaped_vc_sends_as_soon_as_its_contract_lets_it(width, mbs):
    """A VC with always more to send sends every cell but the first of a PDU in its first conforming tick; a tick
    earlier the cell would not conform.
    """
    peak, sustained = Fraction(units("2.3"), 65536), Fraction(units("9.1"), 65536)
    burst = burst_tolerance(mbs, peak, sustained)
    sent, ready = paced(width, [(peak, sustained, burst)], line=1, tolerance=0, ticks=900, chance=0.02)
    model, waited = Shaper([(peak, Fraction(0)), (sustained, burst)]), 0
    for (tick, _), since in zip(sent, ready, strict=True):
        due = model.due(since)
        waited += due > since
        assert tick == due
        model.sent(tick)
    assert waited > 20
    gaps = [b - a for (a, _), (b, _) in pairwise(sent)]
    assert min(gaps) == (3 if mbs > 1 else 10)


@pytest.mark.parametrize("width", WIDTHS)
def test_after_long_silence_a_vc_has_its_burst_again(width):
    """Silence of about half the range of keys, and of that of times."""
    for skip in ((1 << 39) - 50, (1 << 47) + 12345):
        peak, sustained = Fraction(2), Fraction(30)
        burst = burst_tolerance(5, peak, sustained)
        sent, ready = paced(width, [(peak, sustained, burst)], line=1, tolerance=0, ticks=2000, chance=0.01, skip=skip)
        assert sent[-1][0] > skip
        model = Shaper([(peak, Fraction(0)), (sustained, burst)])
        for (tick, _), since in zip(sent, ready, strict=True):
            assert tick == model.due(since)
            model.sent(tick)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vc_that_is_set_up_again_has_no_past(width):
    """A burst, and when the next cell could just go, the set-up: there is all of a burst again."""
    found = []

    async def test(part):
        await part.clear(8)
        part.set(line_period=units(1), tolerance=0, post_fits=1, post_vc=0)
        await write(part, 0, 2, 100, 98)  # two cells
        for _ in range(2):
            part.set(set_up_vc=0, set_up=1)
            await part.clock()
            part.set(set_up=0)
            await part.clock()
            sent, posted, start = [], [], part.now
            while part.now < start + 105:

                def early(sent=sent):
                    part.set(last=part.get("sends") and len(sent) == 1)

                def late(sent=sent, posted=posted):
                    if part.get("sends"):
                        sent.append(part.now)
                    elif part.get("accepts"):
                        posted.append(part.now)

                part.set(post=not posted)
                await part.tick(early, late)
            found.append(sent)

    run(partial(Pacer, vcs=4, sustained=True), width, test)
    assert [b - a for a, b in found] == [2, 2]
