"""A switch at 32 bits does what it does at 416 with options of its scheduler: verdicts, cells, counters and account at
every step.

``python -m soak.widths`` has each option alone, and random combinations.
"""

import random

import pytest

from bentpipe_hdl.switch.control import options_for
from models.switch_options import ASKS, BUILT, NAMES, alone
from models.switch_pair import same_at_both_widths

TICKS = 600


def built(setup):
    options = options_for(setup)
    return next(more for more in reversed(BUILT) if more & options == options)


@pytest.mark.parametrize("name", ["fifo", "shares", "shape"])
def test_an_option_alone(name):
    rng = random.Random(f"options {name}")
    setup = alone(rng, name)
    record = same_at_both_widths(rng, [name], setup, TICKS, built(setup))
    assert len(record.came_out) > 50
    assert len(record.verdicts) > 10


def test_every_option_can_be_asked_for():
    assert set(ASKS) == set(NAMES)
