"""Proportional rate reduction against the examples of RFC 6937, section 3.1."""

from __future__ import annotations

import pytest

from bentpipe.tcp.config import TcpConfig
from bentpipe.tcp.connection import ENDLESS, Connection
from bentpipe.tcp.constants import ACK, SYN
from bentpipe.tcp.segment import Options, Segment

MSS = 1000
WINDOW = 60_000


def sent_by_each_ack(lost: int, prr: str) -> tuple[list[str], Connection]:
    """Return what the sender sends for the ACK of each other segment when the first ``lost`` of a window of 20 segments
    are lost: N new, R retransmitted.
    """
    config = TcpConfig(
        variant="sack", sack_prr=prr, limited_transmit=True, mss=MSS, initial_cwnd=20, window_scale=False,
        round_buffers=False,
    )  # fmt: skip
    tcp = Connection(config, MSS, 0)
    tcp.open(0)
    options = Options()
    options.mss, options.sack_permitted = MSS, True
    tcp.receive(Segment(0, 1, SYN | ACK, WINDOW, 0, 0, options), 0)
    tcp.write(ENDLESS, 0)
    highest = 1 + 20 * MSS
    found = []
    for arrived in range(lost, 20):
        tcp.out.clear()
        blocks = Options()
        blocks.blocks = [(1 + lost * MSS, 1 + (arrived + 1) * MSS)]
        tcp.receive(Segment(1, 1, ACK, WINDOW, 0, 0, blocks), 0)
        found.append("".join("R" if segment.seq < highest else "N" for segment in tcp.out))
    return found, tcp


@pytest.mark.parametrize("prr", ["crb", "ssrb"])
def test_one_loss(prr: str) -> None:
    """Segments leave in step with what is delivered, one for about every other ACK; ssthresh is in the pipe at the end.

    (The
    flight of 20 is 22 with what limited transmit sent, so that not all places are those of the example.)"""
    found, tcp = sent_by_each_ack(1, prr)
    assert found[:11] == ["N", "N", "R", "", "N", "", "N", "", "N", "", "N"]
    assert all(len(sent) <= 1 for sent in found)
    sender = tcp.sender
    assert sender.growth.ssthresh == 10 * MSS
    assert sender.scoreboard.pipe(sender.snd_max) == 10 * MSS


@pytest.mark.parametrize(
    ("prr", "expected"),
    [("crb", ["N", "N", "R", "R", "R"]), ("ssrb", ["N", "N", "RR", "RR", "RR"])],
)
def test_fifteen_losses(prr: str, expected: list[str]) -> None:
    found, _ = sent_by_each_ack(15, prr)
    assert found == expected


def test_without_it_the_hole_is_filled_at_once() -> None:
    """RFC 3517, as the example has RFC 6675: from 4 in the pipe to cwnd at once (11 there, with limited transmit's)."""
    found, _ = sent_by_each_ack(15, "off")
    assert found[:3] == ["N", "N", "R" * 6]


def test_the_window_is_ssthresh_afterwards() -> None:
    _, tcp = sent_by_each_ack(1, "ssrb")
    tcp.receive(Segment(1, tcp.sender.snd_max, ACK, WINDOW, 0, 0, None), 0)
    assert tcp.sender.growth.cwnd == tcp.sender.growth.ssthresh == 10 * MSS


@pytest.mark.parametrize("settings", [{"variant": "reno"}, {"variant": "sack", "sack_pipe": "fall-floyd"}])
def test_it_needs_a_scoreboard(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="sack_prr needs variant sack and sack_pipe rfc3517"):
        TcpConfig(sack_prr="crb", **settings)
