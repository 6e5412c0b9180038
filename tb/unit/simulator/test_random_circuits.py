"""Random circuits in the native simulator: every signal and every row of a memory is what Amaranth's simulator says,
before and after each clock. ``make soak`` has more of them."""

import pytest

from models.simulators import compared

ALL = ("sync", "fast", "falling", "cleared")


@pytest.mark.parametrize("seed", [3, 8, 22])
def test_expressions_and_memories(seed):
    assert compared(seed, 30, ("sync",)) is None


@pytest.mark.parametrize("seed", [101, 105])
def test_several_clocks(seed):
    assert compared(seed, 30, ALL) is None


@pytest.mark.parametrize("seed", [205, 204])
def test_resets(seed):
    assert compared(seed, 40, ALL, is_reset=True) is None
