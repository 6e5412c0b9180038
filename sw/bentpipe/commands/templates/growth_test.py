"""Tests of the growth ``my_model``: ``python -m pytest``."""

from pathlib import Path

from bentpipe import run

FILE = Path(__file__).with_name("my_model.toml")


def last_window(round_trips: int) -> float:
    return run(FILE, {"hosts.tcp.my_model_round_trips": round_trips}).series("flow1.cwnd").iloc[-1]


def test_a_window_grows_faster_with_fewer_round_trips() -> None:
    assert 40_000 <= last_window(8) < last_window(4) < last_window(1)
