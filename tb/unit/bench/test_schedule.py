"""The simulated schedule of parts on threads: cases with a known time, bounds, and what is recorded of a real run."""

from __future__ import annotations

import pytest

from bentpipe.bench.parts import CASES
from bentpipe.bench.schedule import Dependence, Recording, Window, elapsed, without_outliers


def independent(costs: list[float], ticks: int = 100) -> Recording:
    return Recording(len(costs), [Window(k, 0, ticks - 1, cost) for k, cost in enumerate(costs)], [])


@pytest.mark.parametrize(("threads", "seconds"), [(1, 6.0), (2, 3.0), (3, 2.0), (4, 1.5), (6, 1.0), (9, 1.0)])
def test_equal_parts_are_shared_by_the_turn(threads: int, seconds: float) -> None:
    """Four threads have six parts: each part has many turns, so nobody waits for a second round."""
    found = elapsed(independent([1.0] * 6, 10_000), threads, 0.0, 0.0)
    assert seconds <= found + 1e-9
    assert found == pytest.approx(seconds, rel=0.06)


def test_a_part_of_another_thread_is_taken_after_a_wait() -> None:
    assert elapsed(independent([3.0, 3.0, 3.0, 1.0, 1.0, 1.0], 10_000), 2, 0.0, 0.3) > 6.2


def test_a_thread_without_work_takes_parts_of_others() -> None:
    """The first thread owns the three parts that take long: without that it would need 9 s."""
    assert elapsed(independent([3.0, 3.0, 3.0, 1.0, 1.0, 1.0]), 2, 0.0, 0.0) == pytest.approx(6.0, rel=0.06)


def test_hand_overs_are_counted_where_threads_have_others_to_tell() -> None:
    assert elapsed(independent([1.0] * 6), 2, 0.5) == pytest.approx(3.0 + 18 * 0.5)  # six turns of each part
    assert elapsed(independent([1.0] * 6), 1, 0.5) == pytest.approx(6.0)


def test_parts_wait_for_those_before_them() -> None:
    """Each may be ten ticks ahead, and a tick takes 1 s and 3 s: the slow one decides."""
    windows = [Window(k, 10 * at, 10 * at + 9, 10.0 * pace) for at in range(10) for k, pace in ((0, 1.0), (1, 3.0))]
    both = [Dependence(0, 1, 10), Dependence(1, 0, 10)]
    assert elapsed(Recording(2, windows, both), 1, 0.0) == pytest.approx(400.0)
    assert 300.0 <= elapsed(Recording(2, windows, both), 2, 0.0) <= 310.0
    slow = [Dependence(0, 1, 1), Dependence(1, 0, 1)]  # no wire holds a cell: a tick each, in turns or at once
    assert elapsed(Recording(2, windows, slow), 2, 0.0) == pytest.approx(300.0, rel=0.02)
    assert elapsed(Recording(2, windows, slow), 2, 1.0) > 390.0


def test_all_parts_meet_after_a_stretch() -> None:
    first = [Window(0, 0, 9, 5.0), Window(1, 0, 9, 1.0)]
    second = [Window(0, 10, 19, 1.0), Window(1, 10, 19, 5.0)]
    assert elapsed(Recording(2, [*first, *second], []), 2, 0.0, 0.0) == pytest.approx(10.0)


def test_an_interrupted_window_takes_what_others_of_its_part_take() -> None:
    windows = [Window(0, 10 * k, 10 * k + 9, 1.0) for k in range(9)] + [Window(0, 90, 99, 80.0)]
    assert [each.seconds for each in without_outliers(windows)] == pytest.approx([1.0] * 10)
    assert without_outliers(windows[:9]) == windows[:9]


@pytest.mark.parametrize("case", ["30 nodes, 5 paths, 40 us", "120 nodes in a ring, 40 us"])
def test_windows_of_a_run_follow_each_other_and_keep_to_their_dependences(case: str) -> None:
    make, count, delay_ps = CASES[case]
    network = make(count, delay_ps, threads=1)
    loop = network.loop
    loop.record_windows()
    network.run(network.now_ps + 10**10)
    size = loop.recorded_windows(loop.ffi.NULL, 0)
    rows = loop.ffi.new("bp_window[]", size)
    assert loop.recorded_windows(rows, size) == size
    size = loop.dependences(loop.ffi.NULL, 0)
    ahead = loop.ffi.new("bp_dependence[]", size + 1)
    loop.dependences(ahead, size)
    before = {part: [] for part in range(network.parts_and_threads[0])}
    for link in ahead[0:size]:
        before[link.part].append((link.on, link.ahead))
    assert bool(size) == ("ring" in case)
    reached: dict[int, int] = {}
    begin = min(row.first for row in rows)
    for row in rows:
        assert row.first == reached.get(row.part, begin) <= row.last + 1 and row.nanoseconds > 0
        for on, most in before[row.part]:
            assert row.last < reached.get(on, begin) + most
        reached[row.part] = row.last + 1
    assert len(reached) == network.parts_and_threads[0] > 1 and len({*reached.values()}) == 1
    network.close()
