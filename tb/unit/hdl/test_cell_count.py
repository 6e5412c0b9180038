"""Counts of cells with a threshold and an interrupt, in the switch on both datapaths."""

import random

import pytest

from bentpipe_hdl.switch.control import SwitchDriver, SwitchPort, SwitchSettings, SwitchVc, VcSettings, options_for
from bentpipe_hdl.switch.options import Setup, options_word
from models.switch import Switch as Model
from unit.hdl.bench import WIDTHS, run
from unit.hdl.test_switch_rtl import Judge, configure, random_cell, random_vcs, small

COUNT = options_word(["cell_count"])


@pytest.mark.parametrize("width", WIDTHS)
def test_counts_are_what_is_queued_and_a_threshold_interrupts_once(width):
    rng = random.Random("cell count")
    model = Model(random_vcs(rng), ports=3, capacity=12, epd_threshold=6)
    thresholds = {2: 5, 4: 1, 5: 1000}

    async def test(bench):
        await configure(bench, model, [2.5, 4, 3.25])
        for vc, threshold in thresholds.items():
            await bench.set("count_threshold", threshold, vc)
        judge, frames = Judge(bench, model), [[] for _ in range(8)]
        interrupted = {}
        for _ in range(200):
            await judge.tick(random_cell(rng, model, frames) if rng.random() < 0.8 else None)
            if bench.ctx.get(bench.node.interrupt):
                vc = await bench.get("count_vc")
                assert await bench.get("count_reached") == 1
                interrupted[vc] = await bench.get("count_cells", vc)
                await bench.write(bench.node.registers["count_reached"].addr, 0)
                assert not bench.ctx.get(bench.node.interrupt)
        await judge.finish()
        counts = [await bench.get("count_cells", vc) for vc in range(8)]
        assert counts == [vc.accepted for vc in model.vcs]
        assert interrupted == {2: 5, 4: 1}

    run(small(width, 12, 3, 8, COUNT), test, 1)


def test_a_vc_with_a_threshold_asks_for_it():
    ports, vcs = [SwitchPort()] * 2, [SwitchVc(0, 0, 32 + k, 1, 0, 64 + k, VcSettings()) for k in range(2)]
    assert options_for(Setup(SwitchSettings(), ports, vcs)) == 0
    vcs[1] = SwitchVc(0, 0, 33, 1, 0, 65, VcSettings(interrupt_at=9))
    assert options_for(Setup(SwitchSettings(), ports, vcs)) == COUNT
    written = {}

    class Bus:
        def read(self, addr):
            return 0

        def write(self, addr, value):
            written[addr] = value

    driver = SwitchDriver(Bus(), vcs=4, cells=24, ports=2, options=COUNT)
    driver.configure(SwitchSettings(buffer_cells=24), ports, vcs)
    at = driver.csr.map["count_threshold"].addr
    assert [written[at + k] for k in range(2)] == [0, 9]
