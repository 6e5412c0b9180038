"""A switch's histograms in RTL against what the model's cells find, on both datapaths."""

import random
from collections import Counter, deque

import pytest

from bentpipe_hdl.cell import WIDE
from bentpipe_hdl.nodes import Switch
from bentpipe_hdl.switch.control import SwitchPort, SwitchSettings, SwitchVc, VcSettings
from bentpipe_hdl.switch.options import Setup, options_of, options_word
from bentpipe_hdl.switch.options.histograms.control import BIN_BITS, BINS, HistogramSettings, lower_bounds
from models.cell import Cell, Header
from models.histograms import bin_of
from models.switch import Switch as Model
from models.switch import Vc
from unit.hdl.bench import WIDTHS, Arrival
from unit.hdl.bench import run_compiled as run
from unit.hdl.test_switch_rtl import Judge, configure, small


class Counting(Model):
    """Keeps what each cell of a known VC finds, and how long it stays."""

    now = 0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.counts, self.sums = Counter(), Counter()
        self.came = [deque() for _ in self.vcs]

    def arrive(self, port, header, hec_error=False, cell=None):
        index = self._routes.get((port, header.vpi, header.vci))
        if index is not None and not hec_error:
            vc = self.vcs[index]
            found = sum(len(other.queue) for other in self.vcs if other.out_port == vc.out_port)
            self.counts["vc_queue", index, bin_of(len(vc.queue), width=1, logarithmic=True)] += 1
            self.counts["port_queue", vc.out_port, bin_of(found, width=1, logarithmic=True)] += 1
            self.sums["queue", vc.out_port] += found
        accepted, why = super().arrive(port, header, hec_error, cell)
        if accepted:
            self.came[index].append(self.now)
        return accepted, why

    def depart(self, port, priority=None):
        left = super().depart(port, priority)
        delay = self.now - self.came[left[1]].popleft()
        self.counts["vc_delay", left[1], bin_of(delay, width=4, logarithmic=True)] += 1
        self.counts["port_delay", port, bin_of(delay, width=4, logarithmic=True)] += 1
        self.sums["delay", port] += delay
        return left


@pytest.mark.parametrize("width", WIDTHS)
def test_histograms_are_of_every_cell_of_a_known_vc(width):
    """Also of those that are dropped, but for their delay; not of unknown ones or of bad headers."""
    rng = random.Random(2)
    model = Counting([Vc(k % 3, 0, 32 + k, k * 3 % 8 % 3, 0, 64 + k, limit=6) for k in range(8)], ports=3, capacity=20)

    async def test(bench):
        await configure(bench, model, [2.5, 9, 3.25])
        await bench.set("queue_scale", 1 << 5)
        await bench.set("delay_scale", 2 | 1 << 5)
        judge = Judge(bench, model)
        for step in range(400 if width == WIDE else 150):
            k = rng.randrange(9)  # the last is unknown
            header = Header(0, 32 + k)
            busy = step // 60 % 2 == 0
            comes = Arrival(Cell(header, bytes(48)), k % 3, rng.random() < 0.03)
            await judge.tick(comes if rng.random() < (0.9 if busy else 0.3) else None)
        for _ in range(120):
            await judge.tick()
        await judge.finish()
        assert model.occupancy == 0
        found = Counter()
        for of, count in (("vc", 8), ("port", 3)):
            for what in ("queue", "delay"):
                for index in range(count << BIN_BITS):
                    if cells := await bench.get(f"{of}_{what}_bins", index):
                        found[f"{of}_{what}", index >> BIN_BITS, index % BINS] = cells
        assert found == model.counts
        sums = {}
        for what in ("queue", "delay"):
            for port in range(3):
                assert await bench.get(f"{what}_sum_high", port) == 0
                sums[what, port] = await bench.get(f"{what}_sum_low", port)
        assert sums == model.sums

    run(small(width, cells=80, options=options_word(("histograms",))), test)
    assert any(vc.drops for vc in model.vcs)


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("shift", [0, 4])
def test_bins_have_the_models_bounds(shift, logarithmic):
    for number, least in enumerate(lower_bounds(shift, logarithmic)):
        assert bin_of(least, width=1 << shift, logarithmic=logarithmic) == number
        assert number == 0 or bin_of(least - 1, width=1 << shift, logarithmic=logarithmic) == number - 1


def test_a_switch_with_histograms_has_256_vcs_at_most():
    (option,) = options_of(options_word(("histograms",)))
    vcs = [SwitchVc(0, 0, 32 + k, 0, 0, 32 + k, VcSettings()) for k in range(257)]
    message = [list(option.check(Setup(SwitchSettings(), [SwitchPort()], vcs[:count]))) for count in (256, 257)]
    assert message == [[], ["histograms are of 256 VCs at most, and 257 pass it"]]
    with pytest.raises(ValueError, match="histograms are of 256 VCs at most, not 1024"):
        Switch(vcs=1024, options=options_word(("histograms",)))


def test_widths_of_bins_are_the_next_powers_of_two():
    assert HistogramSettings().shifts == (0, 0)
    assert HistogramSettings(queue_bin=5, delay_bin_ps=700_000).shifts == (3, 2)
    assert HistogramSettings(delay_bin_ps=10**14).shifts == (0, 30)
