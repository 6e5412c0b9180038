"""RTO arithmetic against the values of 4.4BSD-Lite2's own C code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.rto import RetransmissionTimeout

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "bsd_rto.json").read_text())


def bsd() -> RetransmissionTimeout:
    return RetransmissionTimeout(False, 2, 128)


@pytest.mark.parametrize("case", VECTORS["xmit_timer"], ids=lambda case: case["name"])
def test_samples(case: dict) -> None:
    rto = bsd()
    assert (rto.srtt, rto.rttvar, rto.current) == tuple(case["initial"].values())
    for step in case["steps"]:
        rto.sample(step["rtt"])
        assert (rto.srtt, rto.rttvar, rto.current) == (step["srtt"], step["rttvar"], step["rxtcur"])


def _backs_off(rto: RetransmissionTimeout, steps: list[dict | None]) -> None:
    for step in steps:
        if step is None:
            assert not rto.back_off()
            continue
        assert rto.back_off()
        assert (rto.shift, rto.current, rto.srtt, rto.rttvar) == (
            step["rxtshift"],
            step["rxtcur"],
            step["srtt"],
            step["rttvar"],
        )


def test_syn_back_off() -> None:
    rto = bsd()
    first, *steps = VECTORS["syn_backoff_no_rtt"]
    assert rto.current == first["initial_syn_timeout_ticks"]
    _backs_off(rto, steps)


def test_back_off_after_lan_round_trips() -> None:
    rto = bsd()
    for _ in range(10):
        rto.sample(1)
    _backs_off(rto, VECTORS["backoff_after_lan_rtt"])


def test_persist_interval_backs_off_within_limits() -> None:
    rto = bsd()
    rto.sample(1)
    assert [rto.persist_interval() for _ in range(9)] == [10, 10, 10, 16, 32, 64, 120, 120, 120]


def test_ideal() -> None:
    rto = RetransmissionTimeout(True, 0, 64 * 10**12)
    rto.sample(100 * 10**9)
    assert (rto.srtt, rto.rttvar, rto.current) == (100 * 10**9, 50 * 10**9, 300 * 10**9)
    rto.sample(108 * 10**9)
    assert (rto.srtt, rto.rttvar, rto.current) == (101 * 10**9, 39_500_000_000, 259 * 10**9)
    for _ in range(100):
        rto.sample(100 * 10**9)
    assert 101 * 10**9 <= rto.current <= 101 * 10**9 + 10**8  # srtt and the granularity of 1 ms
    assert rto.back_off() and rto.current >= 202 * 10**9


@pytest.mark.parametrize(("timers", "usual"), [("ideal", 3), ("rfc6298", 1)])
def test_the_first_rto_can_be_set(timers, usual):
    s = 10**12
    assert RetransmissionTimeout.of(TcpConfig(timers=timers)).current == usual * s
    assert RetransmissionTimeout.of(TcpConfig(timers=timers, rto_initial_ps=6 * s)).current == 6 * s


@pytest.mark.parametrize("timers", ["ideal", "rfc6298"])
@pytest.mark.parametrize("least_ms", [0, 20, 1000])
@pytest.mark.parametrize(("of", "least_s"), [("data", 100), ("SYN", 180)])
def test_a_short_rto_is_no_reason_to_give_up(timers: str, least_ms: int, of: str, least_s: int) -> None:
    """RFC 1122 4.2.3.5: data is sent again for 100 s at least, a SYN for 3 minutes; here twelve times at least."""
    rto = RetransmissionTimeout.of(TcpConfig(timers=timers, rto_min_ps=least_ms * 10**9, rto_initial_ps=10**10))
    if of == "data":
        rto.established()
        rto.sample(2 * 10**9)
    waits = [rto.current]
    while rto.back_off():
        waits.append(rto.current)
    assert len(waits) >= 13 and sum(waits) >= least_s * 10**12


@pytest.mark.parametrize("timers", ["ideal", "rfc6298"])
def test_exact_probes_back_off_whatever_the_round_trip(timers: str) -> None:
    rto = RetransmissionTimeout.of(TcpConfig(timers=timers, rto_min_ps=0))
    rto.sample(2 * 10**9)
    intervals = [rto.persist_interval() // 10**12 for _ in range(14)]
    assert intervals == [5, 10, 20, 40] + 10 * [60]
    assert rto.probe_limit() > 4 * 60 * 10**12  # several probes unanswered, one after the other


def test_an_rto_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="rto_max_ps must be 1000000000"):
        TcpConfig(timers="ideal", rto_min_ps=0, rto_max_ps=0)
