"""Some random networks of those that ``make soak`` runs: accounts at every stop, whatever is done with them."""

import pytest

from models.random_network import play


@pytest.mark.parametrize("seed", range(3))
def test_accounts_hold_at_every_stop_and_both_engines_carry_the_same_cells(seed):
    """Plain switches: stops, saves, copies and ways back change nothing, and Verilator's nodes do the same."""
    disturbed = play("plain", seed, steps=12)
    assert disturbed.checks > 12 and len(disturbed.events) > 5
    assert disturbed == play("plain", seed, steps=12, disturbed=False)
    assert disturbed == play("plain", seed, steps=12, engine="verilator", disturbed=False)


@pytest.mark.parametrize("seed", range(3))
def test_accounts_hold_at_every_stop_with_every_option(seed):
    """OAM, copies, virtual paths, policing, changes of settings."""
    disturbed = play("all", seed, steps=12)
    assert disturbed.checks > 12 and len(disturbed.events) > 5
    assert disturbed == play("all", seed, steps=12, disturbed=False)
