"""Our TCP against the Linux kernel's, through a TUN device: data, options, recovery from losses (``make interop``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

SIZE = 2_000_000
MSS = 1448  # with timestamps, on an MTU of 1500
TIMESTAMPS, SACK, SCALING = 1, 2, 4  # tcpi_options
LOSSES = [400, 402, 405, 800]
ONE_WINDOW = {"habit_window_update_resets_dupacks": False}
"""The kernel's window changes with what it has to keep: for 4.4BSD such an ACK is no duplicate."""
FOLDER = Path(__file__).parent
PROGRAM: list[subprocess.Popen[str]] = []


@pytest.fixture(scope="module", autouse=True)
def kernel() -> Iterator[None]:
    """The program that does transfers (``tun.py``), for all tests here."""
    paths = os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(FOLDER / "tun.py")]
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment) as program:
        PROGRAM.append(program)
        yield
        PROGRAM.clear()


def transfer(sender: str, losses: list[int] | None = None, **tcp: Any) -> dict[str, Any]:
    """A transfer over 20 ms of round trip; ``losses`` are the segments with data that don't arrive."""
    drops = {"drop_sent": [], "drop_received": []}
    drops["drop_sent" if sender == "ours" else "drop_received"] = losses or []
    settings = {"sender": sender, "size": SIZE, "buffer": 1 << 18, "delay_ps": 10**10, **drops}
    (program,) = PROGRAM
    assert program.stdin is not None and program.stdout is not None
    print(json.dumps({**settings, "tcp": tcp}), file=program.stdin, flush=True)
    result = json.loads(program.stdout.readline())
    if "not_here" in result:
        pytest.skip(result["not_here"])
    assert "failed" not in result, result
    # Whatever else: all data arrived, in order, as it was; both closed; options and window scale as agreed.
    ours, kernel = result["ours"], result["kernel"]
    assert kernel["right"] and (ours["error"], ours["bad_octets"], result["checksum_errors"]) == ("", 0, 0)
    assert (ours["acknowledged"], ours["delivered"]) == ((SIZE, 0) if sender == "ours" else (0, SIZE))
    assert kernel["options"] == TIMESTAMPS | SCALING | (SACK if tcp["variant"] == "sack" else 0)
    assert ours["timestamps"] and kernel["segment_size"] == MSS
    assert kernel["scales"] == result["scales"]
    assert min(kernel["scales"]) > 0
    assert ours["sacked"] == ours["sacks"] == (tcp["variant"] == "sack")
    return result


@pytest.mark.parametrize("sender", ["ours", "kernel"])
@pytest.mark.parametrize("timers", ["bsd", "ideal"])
def test_without_losses_nothing_is_sent_twice(sender: str, timers: str) -> None:
    result = transfer(sender, variant="sack", timers=timers, rto_min_ps=10**12)
    assert result["ours"]["retransmits"] == result["kernel"]["retransmitted_segments"] == 0
    assert result["blocks"] == [0, 0]


@pytest.mark.parametrize("pipe", ["rfc3517", "fall-floyd"])
def test_sack_of_the_kernel_tells_us_what_is_lost(pipe: str) -> None:
    """Three losses of one window and one of another: exactly these are sent again, without a time-out."""
    result = transfer("ours", LOSSES, variant="sack", sack_pipe=pipe, **ONE_WINDOW)
    ours = result["ours"]
    assert result["dropped_octets"] == [4 * MSS, 0]
    assert (ours["retransmits"], ours["retransmitted_octets"], ours["fast_retransmits"]) == (4, 4 * MSS, 2)
    assert ours["timeouts"] == 0
    assert result["blocks"][1] > 0 and result["kernel_counters"]["TCPOFOQueue"] > 0


def test_new_reno_without_sack() -> None:
    result = transfer("ours", LOSSES, variant="newreno", **ONE_WINDOW)
    ours = result["ours"]
    assert (ours["retransmits"], ours["fast_retransmits"], ours["timeouts"]) == (4, 2, 0)
    assert result["blocks"] == [0, 0]


@pytest.mark.parametrize("variant", ["tahoe", "reno"])
def test_older_variants_get_it_through(variant: str) -> None:
    assert transfer("ours", LOSSES, variant=variant)["ours"]["retransmits"] >= 4


def test_our_sack_tells_the_kernel_what_is_lost() -> None:
    """The kernel's recoveries are SACK's, end without a time-out, and it never finds our blocks untrue."""
    result = transfer("kernel", LOSSES, variant="sack")
    counters = result["kernel_counters"]
    assert result["dropped_octets"] == [0, 4 * MSS]
    assert result["ours"]["out_of_order"] > 0 and result["blocks"][0] > 0
    assert 1 <= counters["TCPSackRecovery"] <= 2
    assert (counters["TCPTimeouts"], counters["TCPSACKReneging"]) == (0, 0)
    assert result["kernel"]["retransmitted_segments"] == 4


def test_the_kernel_without_our_sack() -> None:
    result = transfer("kernel", LOSSES, variant="newreno")
    assert result["blocks"] == [0, 0] and result["kernel_counters"]["TCPSackRecovery"] == 0
    assert result["kernel"]["retransmitted_segments"] >= 4


@pytest.mark.parametrize("sender", ["ours", "kernel"])
def test_every_fiftieth_segment_is_lost(sender: str) -> None:
    result = transfer(sender, list(range(49, 3000, 50)), variant="sack")
    sent_again = result["ours"]["retransmits"] if sender == "ours" else result["kernel"]["retransmitted_segments"]
    assert sent_again >= 25
