"""Recovery from Fall and Floyd's losses as ns-2 does it (tb/vectors/ns2_fall_floyd.json, made by tb/oracles/ns2)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bentpipe.tcp.config import TcpConfig
from models.pair import Pair

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ns2_fall_floyd.json").read_text())
LINE = VECTORS["line"]
MSS = 952  # 1000 octets with LLC/SNAP, IP and TCP headers
PACKET_S = 8 * LINE["octets"] / LINE["rate_bps"]
RTT_S = PACKET_S + 2 * LINE["delay_s"] + 8 * LINE["ack_octets"] / LINE["rate_bps"]


@dataclass
class Run:
    """One of our runs in the vectors' terms."""

    retransmissions: list[tuple[float, int]]
    timeouts: list[float]
    recovered: float


def ours(variant: str, drops: list[int], **tcp: Any) -> Run:
    """ns's sender has no limit of its own but 105 packets, its receiver acknowledges each, its ticks are BSD's."""
    pair = Pair(rate_bps=LINE["rate_bps"], delay_ps=round(LINE["delay_s"] * 10**12))
    pair.forth.drop_data = set(drops)
    buffer = 105 * MSS
    config = TcpConfig(
        variant=variant, mss=MSS, ack_policy="immediate", send_buffer=buffer, receive_buffer=buffer, **tcp
    )
    flow = pair.flow(config, LINE["packets"] * MSS)
    report = pair.run(flow, 100)
    assert report.finished and report.octets_delivered == LINE["packets"] * MSS
    source = flow.source.connection
    start = source.established_ps

    def acknowledged(packets: int) -> float:
        return (next(t for t, una in pair.recorder.samples["flow1.una"] if una >= packets * MSS) - start) / 10**12

    events = [((t - start) / 10**12, kind, value // MSS) for _, t, kind, value in pair.recorder.events]
    return Run(
        [(time, number) for time, kind, number in events if kind == "retransmit"],
        [time for time, kind, _ in events if kind == "timeout"],
        acknowledged(29),
    )


def since(times: list[float], origins: list[float]) -> list[float]:
    """Times since the last time-out, or since the start: a time-out itself comes when the clock's tick does."""
    return [time - max([origin for origin in origins if origin <= time], default=0.0) for time in times]


CASES = [
    pytest.param(case, id=f"{case['variant']}-{len(case['drops'])}" + "-avoid" * case["avoid_multiple"])
    for case in VECTORS["cases"]
]


@pytest.mark.parametrize("case", CASES)
def test_the_same_segments_at_the_same_times(case: dict[str, Any]) -> None:
    """The same segments are sent again in the same order, with the same time-outs; times agree to two packets', 0.1
    round trips.
    """
    tcp: dict[str, Any] = {"habit_avoid_multiple": case["avoid_multiple"]}
    if case["variant"] == "sack":
        tcp["sack_pipe"] = "fall-floyd"
    run = ours(case["variant"], case["drops"], **tcp)
    assert [number for _, number in run.retransmissions] == [number for _, number in case["retransmissions"]]
    assert len(run.timeouts) == len(case["timeouts"])
    here = [time for time, _ in run.retransmissions] + [run.recovered]
    there = [time for time, _ in case["retransmissions"]] + [case["recovered"]]
    assert since(here, run.timeouts) == pytest.approx(since(there, case["timeouts"]), abs=2 * PACKET_S)


@pytest.mark.parametrize("case", [c for c in CASES if c.id.startswith("sack")])
def test_a_scoreboard_is_as_good_as_their_pipe(case: dict[str, Any]) -> None:
    """RFC 3517's pipe: the same segments, no time-out, recovered as soon to a fifth of a round trip."""
    run = ours("sack", case["drops"])
    assert [number for _, number in run.retransmissions] == case["drops"]
    assert run.timeouts == []
    assert run.recovered == pytest.approx(case["recovered"], abs=0.2 * RTT_S)
