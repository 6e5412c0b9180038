"""Datagrams of one cell in the slots of a line."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

import pytest

from bentpipe.apps.draws import RandomStream
from bentpipe.apps.slots import Slots
from bentpipe.hosts.udp import UdpReport
from models.pair import Pair

OC12 = 599_040_000
US = 10**6
S = 10**12


def sent(app: Slots, seconds: float) -> tuple[list[int], UdpReport]:
    """The slots of an OC-12c line in which datagrams leave a host without costs."""
    pair = Pair(delay_ps=10 * US, keep_log=True)
    flow = pair.engine.add_udp_flow("flow", pair.source, pair.sink, pair.forth_vc, app, 4)
    report = pair.run(flow, seconds)
    times = [time for time, nic, _, _ in pair.network.log or [] if nic == 0]
    slots = [time * OC12 // (424 * S) for time in times]
    for time, slot in zip(times, slots, strict=True):
        assert 0 < time - slot * 424 * S / OC12 < 176_000  # in the slot's first tick
    return slots, report


def test_a_load_gives_each_slot_a_cell_with_its_probability() -> None:
    slots, report = sent(Slots(OC12, 0.2, 0, 0, RandomStream(3, 1)), 0.02)
    gaps = [b - a for a, b in pairwise(slots)]
    assert min(gaps) == 1
    assert len(slots) == pytest.approx(0.2 * 28257, rel=0.03)
    for k in (1, 2, 5):  # geometric
        assert fmean(gap > k for gap in gaps) == pytest.approx(0.8**k, abs=0.02)
    assert 0 < report.datagrams_received <= len(slots) < report.datagrams_received + 16  # some are on their way
    assert report.datagrams_lost == 0
    assert report.delay_mean_ps == 10 * US


def test_a_full_load_leaves_no_slot() -> None:
    slots, _ = sent(Slots(OC12, 1.0, 0, 0, RandomStream(3, 1)), 1e-4)
    assert [b - a for a, b in pairwise(slots)] == [1] * (len(slots) - 1)


def test_a_period_begins_anywhere_and_is_drawn_again_after_its_rounds() -> None:
    """Sources with other numbers have other phases, and draw in the same slots."""
    for number in range(3):
        slots, _ = sent(Slots(OC12, 0.0, 40, 5, RandomStream(3, number)), 0.01)
        assert slots[:5] == [slots[0] + 40 * k for k in range(5)]
        assert slots[0] < 40
        rounds = {slot // 240 for slot in slots}
        assert rounds == set(range(max(rounds) + 1))
        assert all(slot % 240 < 200 for slot in slots)
        assert len({slot % 40 for slot in slots}) > 5


@pytest.mark.parametrize(("load", "period"), [(0.0, 0), (0.5, 3), (1.5, 0), (-0.1, 0), (0.0, -1)])
def test_settings_out_of_range(load: float, period: int) -> None:
    with pytest.raises(ValueError, match="give a load"):
        Slots(OC12, load, period, 0, RandomStream(1, 1))
