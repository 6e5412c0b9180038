"""Cells that go by a link are as if it had taken each of them: the same cells at the same ticks, the same counters,
whatever is set when.

A link at whose input a capture writes takes each cell."""

import random

import pytest

from bentpipe_hdl.link.control import BurstSettings, LinkSettings
from bentpipe_hdl.nic.control import NicLine
from bentpipe_hdl.ticks import ticks_to_ps
from bentpipe_sim.network import Network

BERS = (0.0, 1e-12, 1e-6, 1e-4, 1e-3)


class Line:
    """Two NICs and a link between them, whose errors change as a seed says."""

    def __init__(self, tmp_path, taken, seed, *, engine=None, faults=False, listed=(), rate=149_760_000):
        self.rng = random.Random(seed)
        self.network = network = Network(seed=seed, engine=engine)
        self.nics = a, b = network.add_nic("a", line=NicLine(rate)), network.add_nic("b")
        bursts = BurstSettings(good_cells=30.0, bad_cells=4.0, ber=1e-4, loss=0.3) if faults else None
        self.link = link = network.add_link(
            "line", LinkSettings(ber=self.rng.choice(BERS), delay_ps=30_000_000, bursts=bursts)
        )
        network.connect(a, link)
        network.connect(link, b)
        network.connect(b, a)
        self.vc = network.add_vc([a, link, b], 0, 40)
        if listed:
            link.lose(0, 40, pdus=listed)
        network.trace()
        if taken:
            capture = network.loop.capture(str(tmp_path / "cells").encode(), 1, 0)
            network.loop.capture_input(capture, link.index, 0, 0)
        self.faults, self.now = faults, 0

    def step(self):
        """Return the cells that came in a while, and the state of the link then."""
        rng, network, link = self.rng, self.network, self.link
        for _ in range(rng.randrange(3)):
            network.send(self.nics[0].index, self.vc, b"head", key=1, length=rng.choice((8, 400, 4000)))
        self.now += rng.choice((1, 2, 3, 15, 16, 17, 100, 1000, 5000))
        events = []
        while network.now_ps < ticks_to_ps(self.now):
            events += network.run(ticks_to_ps(self.now))
        self._change()
        stats = {name: dict(each) for name, each in network.stats().items()}
        for each in stats.values():
            each.pop("evaluations")
        network.check_conservation()
        return events, link.counters(), stats, network.digests(), network.ledger()

    def _change(self):
        rng, link = self.rng, self.link
        what = rng.randrange(12 if self.faults else 8)
        if what == 0:
            link.change(ber=rng.choice(BERS))
        elif what == 1:
            link.driver.csr.gap = rng.choice((0, 1, 423, 424, 425, 10_000, 1 << 41, (1 << 56) - 1))
        elif what == 2:
            link.driver.csr.seed = rng.getrandbits(64) | 1
        elif what == 3:
            link.driver.csr.error_enable = rng.randrange(2)
        elif what == 8:
            link.change(outage=not link.settings.outage)
        elif what == 9:
            link.driver.csr.burst_enable = rng.randrange(2)
        elif what == 10:
            link.driver.csr.length = rng.randrange(40)
        elif what == 11:
            link.driver.csr.burst_cells = rng.randrange(2)

    @property
    def evaluations(self):
        return self.network.stats()["line"]["evaluations"]


def same(tmp_path, seed, steps, **how):
    taken, passed = (Line(tmp_path, which, seed, **how) for which in (True, False))
    for step in range(steps):
        assert taken.step() == passed.step(), f"seed {seed}, step {step}, tick {taken.now}"
    return taken, passed


@pytest.mark.parametrize("faults", [False, True], ids=["without faults", "with faults"])
@pytest.mark.parametrize("seed", range(6))
def test_all_is_as_if_the_link_took_each_cell(tmp_path, seed, faults):
    taken, passed = same(tmp_path, seed, 150, faults=faults)
    cells = taken.link.counters()["cells"]
    assert cells > 500
    assert passed.evaluations < taken.evaluations


@pytest.mark.parametrize("seed", range(2))
def test_a_cell_that_is_still_being_sent_is_at_no_link_yet(tmp_path, seed):
    """A cell of 180 ticks: most changes come in the middle of one, which has gone by in advance."""
    taken, passed = same(tmp_path, seed, 150, rate=13_312_000)
    assert taken.link.counters()["cells"] > 300
    assert passed.evaluations < taken.evaluations


def test_most_cells_go_by(tmp_path):
    line = Line(tmp_path, False, 1)
    line.link.change(ber=1e-9)
    line.network.send(line.nics[0].index, line.vc, b"head", key=1, length=60_000)
    line.network.run(10**11)
    assert line.link.counters()["cells"] == 1251
    assert line.evaluations == 1  # behind a change one passes unhurt, and draws a gap


def test_a_link_with_listed_losses_takes_each_cell(tmp_path):
    taken, passed = same(tmp_path, 3, 40, listed=(2, 5))
    assert passed.evaluations == taken.evaluations
    assert taken.link.counters()["drop_listed"] > 0


def test_the_reference_engine_lets_the_same_cells_go_by(tmp_path):
    native, verilator = (Line(tmp_path, False, 5, engine=engine) for engine in ("native", "verilator"))
    for _ in range(60):
        assert native.step() == verilator.step()
    assert native.evaluations == verilator.evaluations < native.link.counters()["cells"]
