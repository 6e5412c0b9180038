"""A switch at 32 bits does what it does at 416 with any options: verdicts, cells, counters and account at every step.

Here in switches that are built with more options than are asked for, so that few are compiled; ``python -m
soak.widths`` builds each with just its options.
"""

import random

import pytest

from bentpipe_hdl.switch.control import options_for
from models.switch_options import ASKS, BUILT, NAMES, alone, combination
from models.switch_pair import same_at_both_widths

TICKS = 600


def built(setup):
    options = options_for(setup)
    return next(more for more in reversed(BUILT) if more & options == options)


@pytest.mark.parametrize("name", NAMES)
def test_an_option_alone(name):
    rng = random.Random(f"options {name}")
    setup = alone(rng, name)
    record = same_at_both_widths(rng, [name], setup, TICKS, built(setup))
    assert len(record.came_out) > 50
    assert len(record.verdicts) > 10


@pytest.mark.parametrize("seed", range(3))
def test_random_options_together(seed):
    rng = random.Random(f"options {seed}")
    names, setup = combination(rng)
    record = same_at_both_widths(rng, names, setup, TICKS, built(setup))
    assert len(record.came_out) > 10
    assert len(record.verdicts) > 10


def test_every_option_can_be_asked_for():
    assert set(ASKS) == set(NAMES)
