"""Tests of the option ``my_model``: ``python -m pytest``. The first run compiles the switch, which takes a minute."""

from pathlib import Path

from bentpipe import run

FILE = Path(__file__).with_name("my_model.toml")


def test_one_cell_in_fifty_is_dropped() -> None:
    metrics = run(FILE).metrics
    assert metrics["cells_sent"] == 1200
    assert metrics["cells_lost"] == 24


def test_a_switch_without_the_key_drops_nothing() -> None:
    assert run(FILE, {"network.switches.lan.my_model": 0}).metrics["cells_lost"] == 0
