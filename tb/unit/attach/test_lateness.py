"""Tests of what a session reports beside late packets: stolen processor time, and the time that requests took."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from bentpipe.attach.machine import stolen_s
from bentpipe.attach.rpc import Service
from bentpipe.attach.slack import Slack
from bentpipe.attach.verdict import verdict_of

_TICKS = 100
"""Of the kernel's statistics in a second (``SC_CLK_TCK`` of Linux on all common processors)."""


@pytest.mark.parametrize(
    ("text", "wanted_s"),
    [
        ("cpu  1 2 3 4 5 6 7 345 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n", 3.45),
        ("cpu  1 2 3 4 5 6 7\n", 0.0),  # a kernel that does not count it
        ("cpu  1 2 3 4 5 6 7 x 9 10\n", 0.0),
        ("", 0.0),
    ],
)
def test_the_stolen_time_is_the_eighth_figure_of_the_first_line(tmp_path: Path, text: str, wanted_s: float) -> None:
    (tmp_path / "stat").write_text(text)
    assert stolen_s(tmp_path / "stat") == wanted_s


def test_a_machine_without_the_statistics_has_no_stolen_time(tmp_path: Path) -> None:
    assert stolen_s(tmp_path / "stat") == 0.0
    assert stolen_s() >= 0.0


def _row(late: int) -> dict[str, Any]:
    names = ("injected", "released", "early", "malformed", "too_long", "hec_errors", "no_vc", "no_vlan", "oam")
    others = ("pdu_wrong", "queue_full", "kernel_full", "late_dropped", "out_late_dropped", "out_full", "unsent")
    counts = dict.fromkeys((*names, *others), 0) | {"late": 0, "out_late": late}
    spread = {"count": late, "most": 10**7}
    return {"counts": counts, "late": {"count": 0}, "computed_late": spread, "jitter": {"count": 0}}


@pytest.mark.parametrize(
    ("late", "stolen", "named"), [(3, 0.86, True), (3, 0.0, False), (3, 0.009, False), (0, 0.86, False)]
)
def test_the_verdict_names_stolen_time_beside_late_packets(late: int, stolen: float, named: bool) -> None:
    slack = Slack(0, 0, 0, {}, {}, (), {})
    text = verdict_of([_row(late)], slack, 1.0, "normal", stolen)
    assert ("the hypervisor kept processors from this machine for 0.86 s" in text) == named


class _Session:
    """A session of which a request takes a fifth of a second."""

    def queue(self) -> dict[str, int]:
        time.sleep(0.2)
        return {}


def test_a_session_knows_how_long_requests_have_kept_it() -> None:
    service = Service(cast(Any, _Session()), cast(Any, None))
    service.turn(0)
    assert (service.requests, service.longest_s) == (0, 0.0)
    asked = [threading.Thread(target=service.answer, args=(_QUEUE,)) for _ in range(2)]
    for each in asked:
        each.start()
    until = time.monotonic() + 5
    turns = []
    while service.requests < 2 and time.monotonic() < until:
        before = service.requests
        service.turn(0)
        turns.append(service.requests - before)
    for each in asked:
        each.join()
    assert max(turns) == 1, "a turn of 4 ms ends with the request that took longer"
    assert 0.2 <= service.longest_s < 5


_QUEUE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "queue"})
