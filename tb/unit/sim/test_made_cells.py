"""Duplicated and misinserted cells and patterns of losses in a network: shares, the account, copies of a run, both
engines."""

import math
import pickle
from itertools import pairwise

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from models.gilbert import Z99

MS = 10**9
RATE = 149_760_000
CELLS_A_SECOND = RATE / 424
VC = "0/32"


def line_of(engine=None, **settings):
    """Two interfaces and the line between them, with a VC that is used and one that is not."""
    network = Network(seed=1, engine=engine)
    a, b = (network.add_nic(name, line=NicLine(RATE)) for name in "ab")
    link = network.add_link("link", LinkSettings(delay_ps=MS, **settings))
    network.connect(a, link)
    network.connect(link, b)
    vcs = [network.add_vc([a, link, b], 0, vci) for vci in (32, 33)]
    return network, a, link, vcs


def sent(made, pdus, octets=4, until=None, copied=False):
    """Send so many PDUs on the first VC; return each that came: number and status."""
    network, a, _link, (vc, _) = made
    for number in range(pdus):
        network.send(a.index, vc, number.to_bytes(4, "big") * (octets // 4))
    cells = pdus * -(-(octets + 8) // 48)
    end = network.now_ps + (until or 2 * MS + round(cells / CELLS_A_SECOND * 1e12))
    found = []
    for part in range(1, 8):
        while network.now_ps < end * part // 7:
            events = network.run(end * part // 7)
            found += [(int.from_bytes(event.head[:4], "big"), event.status) for event in events]
        network.check_conservation()
        for each in network.ledger():
            assert 0 <= each.cells.received + sum(each.cells.lost.values()) <= each.cells.sent
        if copied:
            saved, network = network.save(), pickle.loads(pickle.dumps(network))
            network.restore(saved)
    return found, network.ledger()[0], network.nodes[2].counters()


def within(count, number, share):
    assert abs(count - number * share) <= Z99 * math.sqrt(number * share * (1 - share)), (count, number * share)


def test_the_share_of_duplicates_and_what_the_account_says_of_them():
    """PDUs of one cell: each duplicate is a PDU that comes twice."""
    pdus = 60_000
    found, account, counts = sent(line_of(duplicate=2e-3), pdus)
    copies = counts["made_copies"]
    within(copies, pdus, 2e-3)
    assert account.delivered == pdus and not account.lost and account.cells.received == pdus
    assert account.repeated == account.cells.duplicated == account.cells.misinserted == copies == len(found) - pdus
    twice = [one for (one, _), (other, _) in pairwise(found) if one == other]
    assert len(twice) == copies and [*dict.fromkeys(number for number, _ in found)] == [*range(pdus)]


def test_a_duplicate_within_a_pdu_breaks_it_and_one_of_its_end_does_not():
    _found, account, counts = sent(line_of(duplicate=0.01), 2000, 400)
    broken = account.lost.pop(("link", "duplicated cell"))
    assert not account.lost and account.delivered == 2000 - broken and account.repeated == 0
    assert 60 < broken < counts["made_copies"] < 250


@pytest.mark.parametrize("busy", [True, False])
def test_misinserted_cells_a_second(busy):
    """In the VC of the last cell, and in one without traffic: the figure of I.356 is theirs."""
    more = {} if busy else {"misinsert_vc": "0/33"}
    made = line_of(misinsert=2000.0, **more)
    _, account, counts = sent(made, 20_000, until=200 * MS)
    other = made[0].ledger()[1]
    assert abs(counts["made_misinserted"] - 400) <= Z99 * math.sqrt(400)
    assert (account.cells.misinserted, other.cells.misinserted)[not busy] == counts["made_misinserted"]
    assert account.delivered == 20_000 - sum(account.lost.values()) and {*account.lost} <= {
        ("link", "another VC's cell")
    }
    assert bool(account.lost) == busy


def test_cells_of_unknown_vcs_are_the_next_nodes_affair():
    _, account, counts = sent(line_of(misinsert=5000.0, misinsert_vc="7/7"), 5000)
    assert counts["made_misinserted"] > 20 and account.delivered == 5000 and account.cells.misinserted == 0


def test_a_pattern_of_losses_in_the_account():
    _, account, counts = sent(line_of(lose=2, lose_of=500), 5001)
    assert counts["drop_pattern"] == account.lost["link", "lost in a pattern"] == 21


ALL = {"duplicate": 0.02, "misinsert": 5000.0, "lose": 1, "lose_of": 97, "ber": 1e-5}


def test_a_copy_goes_on_as_the_run_itself_and_both_engines_do_the_same():
    runs = [
        sent(line_of(**ALL), 600, 400),
        sent(line_of(**ALL), 600, 400, copied=True),
        sent(line_of("verilator", **ALL), 600, 400),
    ]
    assert runs[0] == runs[1] == runs[2] and runs[0][1].lost


def test_settings_of_a_link_that_is_built_for_them_change_in_a_run():
    _network, _a, link, (_vc, _) = made = line_of()
    link.may_impair()
    sent(made, 1000)
    link.change(duplicate=0.5)
    _, account, _ = sent(made, 1000)
    assert 400 < account.repeated < 600
    link.change(duplicate=0.0, lose=1, lose_of=2)
    _, after, _ = sent(made, 1000)
    assert after.repeated == account.repeated and after.lost["link", "lost in a pattern"] == 500


def test_a_link_that_is_not_built_for_them_refuses_them():
    network, _, link, _ = line_of()
    network.start()
    with pytest.raises(NetworkError, match="link link is built without duplicated and misinserted cells"):
        link.change(duplicate=0.5)
