"""Histograms of queues and delays, alone, on both datapaths."""

import random
from collections import Counter
from functools import partial

import pytest

from bentpipe_hdl.cell import WIDE
from bentpipe_hdl.switch.options.histograms.control import BIN_BITS
from bentpipe_hdl.switch.options.histograms.histograms import Histograms
from models.histograms import bin_of
from unit.hdl.bench import WIDTHS
from unit.hdl.test_switch_parts import run

SCALES = [(0, 0), (3, 0), (0, 1), (2, 1)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("width", WIDTHS)
def test_what_comes_and_goes_is_counted_in_the_models_bins(width, scale):
    shift, logarithmic = scale
    rng = random.Random(3)
    expected = {name: Counter() for name in ("vc_queues", "port_queues", "vc_delays", "port_delays")}
    sums = {"queue_sums": [0] * 3, "delay_sums": [0] * 3}
    into = {"width": 1 << shift, "logarithmic": bool(logarithmic)}

    async def test(ctx, part, ticks):
        for name in ("queue_scale", "delay_scale"):
            ctx.set(getattr(part, name), {"shift": shift, "logarithmic": logarithmic})
        ticks.now = (1 << 48) - 900  # the time wraps meanwhile
        places = {}
        for _ in range(150):
            now = ticks.now
            ctx.set(part.now, now)
            comes, goes = rng.random() < 0.7, bool(places) and rng.random() < 0.6
            cells = [int(2 ** rng.uniform(0, 16)) - 1 for _ in range(2)]
            vc, port = rng.randrange(4), rng.randrange(3)
            queued = comes and len(places) < 7 and rng.random() < 0.8
            tail = rng.choice([p for p in range(8) if p not in places])
            for name, value in (("a_vc", vc), ("a_port", port), ("vc_cells", cells[0]), ("port_cells", cells[1]),
                                ("tail", tail)):  # fmt: skip
                ctx.set(getattr(part, name), value)
            if comes:
                expected["vc_queues"][vc, bin_of(cells[0], **into)] += 1
                expected["port_queues"][port, bin_of(cells[1], **into)] += 1
                sums["queue_sums"][port] += cells[1]
            if goes:
                head = rng.choice(list(places))
                d_vc, d_port = rng.randrange(4), rng.randrange(3)
                for name, value in (("head", head), ("d_vc", d_vc), ("d_port", d_port)):
                    ctx.set(getattr(part, name), value)
                delay = (now - places.pop(head)) % (1 << 48)
                sums["delay_sums"][d_port] += delay
                into_bin = bin_of(delay, **into)
                expected["vc_delays"][d_vc, into_bin] += 1
                expected["port_delays"][d_port, into_bin] += 1
            if queued:
                places[tail] = now
            await ticks.tick(comes=comes, queued=queued, goes=goes)
            ticks.now += rng.choice([0, 0, 1, 7, 90]) if width == WIDE else 0
            ticks.now %= 1 << 48
        ctx.set(part.time.tick, 0)
        await ticks.tick(comes=0, queued=0, goes=0)
        assert not ctx.get(part.pending)
        for name, totals in sums.items():
            assert [ctx.get(total) for total in getattr(part, name)] == totals
        for name, counts in expected.items():
            found = Counter()
            for index in range((4 if name.startswith("vc") else 3) << BIN_BITS):
                ctx.set(part.vc_index if name.startswith("vc") else part.port_index, index)
                for _ in range(1 if width == WIDE else 2):
                    await ctx.tick()
                if count := ctx.get(getattr(part, name)):
                    found[index >> BIN_BITS, index & 63] = count
            assert found == counts, name

    run(width, partial(Histograms, vcs=4, ports=3, places=8, at=8), test)
