"""Some random networks of those that ``make soak`` runs: accounts at every stop, whatever is done with them."""

import pytest

from bentpipe_hdl.switch.control import SwitchSettings
from bentpipe_hdl.switch.options import options_word
from bentpipe_hdl.switch.options.histograms.control import HistogramSettings
from bentpipe_sim.network import Network
from models.lines import switch_ports
from models.random_network import KINDS, play


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


def test_an_oam_cell_that_a_switch_makes_is_in_the_accounts_of_all_leaves_behind_it():
    """A loopback cell of the first switch goes to both leaves of the second; the list of losses takes out the PDU
    behind it, and no other, for both."""
    network = Network(seed=1)
    kind, given = KINDS["all"], {"histograms": HistogramSettings()}
    first, second = (
        network.add_switch(
            name, SwitchSettings(buffer_cells=kind.cells, **given), ports=switch_ports([149_760_000] * kind.ports)
        )
        for name in "st"
    )
    for switch in (first, second):
        switch._more_options = options_word(kind.options)
    source, one, two = (network.add_nic(name) for name in "abc")
    link = network.add_link("l")
    faces = (source, (first, 0)), ((first, 1), link), (link, (second, 0)), ((second, 1), one), ((second, 2), two)
    for ends in faces:
        network.connect(*ends)
    way = [source, first, link, second]
    vc = network.add_vc([*way, one], 0, 100, branches=[[*way, two]])
    link.lose(0, 100, pdus=[2])
    for number in range(3):
        network.send(source.index, vc, b"", length=300)
        for until in (1, 2):
            while network.now_ps < (2 * number + until) * 10**9:
                network.run((2 * number + until) * 10**9)
            if number == 0 and until == 1:
                first.csr.oam_request = {"vc": 0}
    assert network.counters()["s"]["oam_sent_loopback"] == [1]
    network.check_conservation()
    for account in network.ledger():
        assert (account.sent, account.delivered, account.lost) == (3, 2, {("l", "listed loss"): 1})
