"""Tests of the application ``my_model``: ``python -m pytest``."""

from pathlib import Path

from bentpipe import run

FILE = Path(__file__).with_name("my_model.toml")


def test_blocks_come_as_often_as_the_mean_gap_says() -> None:
    (flow,) = run(FILE, seed=1).flows.to_dict("records")
    assert 900 <= flow["blocks_written"] <= 1100  # 1000 are expected, with a standard deviation of 32
    assert flow["datagrams_lost"] == 0


def test_another_seed_gives_other_times() -> None:
    found = [run(FILE, seed=seed, duration="100 ms").flows.to_dict("records") for seed in (1, 2, 3)]
    counts = {flow["blocks_written"] for flows in found for flow in flows}
    assert len(counts) > 1
