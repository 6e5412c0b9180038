"""The clock of a host, against a processor that is stepped through time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.hosts.clock import HostClock
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.engine import Engine
from bentpipe.tcp.config import TcpConfig
from models.pair import Pair
from models.wire import WireNetwork

S = 10**12


def stepped(now: int, work: int, origin: int, period: int, cost: int) -> int:
    """Return when the work is done, one unit of time after the other; the units of an interrupt do none of it."""
    while work:
        work -= (now - origin) % period >= cost
        now += 1
    return now


@given(st.integers(0, 60), st.integers(1, 80), st.integers(-30, 90), st.integers(2, 20), st.data())
def test_work_goes_on_between_the_interrupts(
    now: int, work: int, origin: int, period: int, data: st.DataObject
) -> None:
    cost = data.draw(st.integers(0, period - 1))
    clock = HostClock(S / period, cost, 0, "")
    clock.origin_ps = origin
    assert clock.after(now, work) == stepped(now, work, origin, period, cost)


def test_an_interrupt_goes_before_work_of_no_time() -> None:
    clock = HostClock(1000, 100, 0, "")
    assert [clock.after(now, 0) for now in (0, 99, 100, 10**9 - 1, 10**9)] == [100, 100, 100, 10**9 - 1, 10**9 + 100]


def test_tolerance_paces_interrupts_and_timers() -> None:
    exact = HostClock(1024, 1, 0, "a")
    assert (exact.fast_ps, exact.slow_ps) == (S // 5, S // 2)
    errors = set()
    cost, work = 10**8, 9 * 10**14  # of a million periods of 1 ms, less 0.1 ms each
    for seed in range(200):
        clock = HostClock(1000, cost, 100, str(seed))
        error = clock.slow_ps / (S / 2) - 1
        assert abs(error) <= 100e-6
        assert clock.fast_ps / (S / 5) - 1 == pytest.approx(error, abs=1e-11)
        interrupts = (clock.after(0, work) - work) / cost
        assert interrupts == pytest.approx(work / (10**9 * (1 + error) - cost), abs=1.01)
        errors.add(error)
    assert len(errors) == 200 and min(errors) < -90e-6 and max(errors) > 90e-6


def test_no_time_left() -> None:
    with pytest.raises(ValueError, match="a clock interrupt takes 1000000000 ps, and one comes each 1000000000 ps"):
        HostClock(1000, 10**9, 0, "")


def test_hosts_have_clocks_of_their_own_by_the_seed() -> None:
    def ticks(seed: int) -> list[tuple[int, int]]:
        network = WireNetwork()
        engine = Engine(network)
        hosts = [
            engine.add_host(HostConfig(name=name, clock_tolerance_ppm=50, seed=seed), network.add_nic())
            for name in "abc"
        ]
        return [(host.clock.slow_ps, host.clock.fast_ps) for host in hosts]

    assert ticks(1) == ticks(1) != ticks(2)
    assert len(set(ticks(1))) == 3
    network = WireNetwork()
    published = Engine(network).add_host(HostConfig(name="a", profile="sparc-5"), network.add_nic())
    assert 0 < abs(published.clock.slow_ps / (S / 2) - 1) < 50e-6
    with pytest.raises(ValueError, match="host b: a clock interrupt takes"):
        Engine(network).add_host(HostConfig(name="b", clock_hz=1000, clock_cost_ps=S), network.add_nic())


def test_segments_that_cost_nothing_do_not_wait() -> None:
    """The processor is not asked for them, as without a clock."""
    source = HostConfig(name="source", clock_hz=1000, clock_cost_ps=S // 2000)
    pair = Pair(delay_ps=10**9, source=source, keep_log=True)
    pair.run(pair.flow(TcpConfig(), 1), 0.01)
    assert [time for time, *_ in pair.network.log or []][:2] == [0, 10**9]


def test_timers_keep_the_hosts_time() -> None:
    """A slow tick comes with an interrupt, and each 500 ms of the host's clock."""
    network = WireNetwork()
    engine = Engine(network)
    host = engine.add_host(
        HostConfig(name="a", clock_hz=1024, clock_cost_ps=5, clock_tolerance_ppm=1000, timer_phase_ps=S // 8),
        network.add_nic(),
    )
    assert host.clock.origin_ps == S // 8 and abs(host.clock.slow_ps - S // 2) > 10**6
    scheduler = engine.scheduler
    while host.ticks.count < 20:
        scheduler.now = scheduler.due
        scheduler.fire()
    slow = next(time for time, timer in scheduler.pending() if type(timer).__name__ == "SlowTick")
    assert slow == S // 8 + host.ticks.count * host.clock.slow_ps
    fast = next(time for time, timer in scheduler.pending() if type(timer).__name__ == "FastTick")
    assert (fast - S // 8) % host.clock.fast_ps == 0
