"""Whole PDUs that a host's interface loses, sends twice, or lets others overtake: shares, the account, saved runs."""

import math
import pickle
from itertools import pairwise

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicSettings
from bentpipe_sim.network import Network
from models.gilbert import Z99

MS = 10**9


def line_of(seed=1, vcs=1, **settings):
    network = Network(seed=seed)
    a, b = network.add_nic("a", NicSettings(**settings)), network.add_nic("b")
    link = network.add_link("link", LinkSettings(delay_ps=MS))
    network.connect(a, link)
    network.connect(link, b)
    return network, a, [network.add_vc([a, link, b], 0, 32 + k) for k in range(vcs)]


def sent(made, pdus, octets=40, copied=False, every_ps=0):
    """Send so many PDUs, by turns on each VC, and return the numbers of those that came, by VC, and the accounts."""
    network, a, vcs = made
    found = [[] for _ in vcs]

    def run(until):
        while network.now_ps < until:
            for event in network.run(until):
                assert event.status == 0
                found[vcs.index(event.vc)].append(int.from_bytes(event.head[:4], "big"))

    for number in range(pdus):
        network.send(a.index, vcs[number % len(vcs)], number.to_bytes(4, "big") * (octets // 4))
        if every_ps:
            run(network.now_ps + every_ps)
        if copied and number in (pdus // 3, pdus // 2):
            saved, network = network.save(), pickle.loads(pickle.dumps(network))
            network.restore(saved)
    run(network.now_ps + 20 * MS + pdus * 4_000_000 * (octets // 48 + 1))
    network.check_conservation()
    return found, network.ledger()


def within(count, number, share):
    assert abs(count - number * share) <= Z99 * math.sqrt(number * share * (1 - share)), (count, number * share)


def test_shares_are_those_of_the_settings_and_the_account_has_them():
    pdus = 20_000
    _network, a, vcs = made = line_of(lose_frames=0.01, duplicate_frames=0.01, reorder_frames=0.01)
    (found,), (account,) = sent(made, pdus)
    did = a.frames(vcs[0])
    for what in ("lost", "duplicated", "reordered"):
        within(did[what], pdus, 0.01)
    assert account.sent == pdus + did["duplicated"] and account.delivered == len(found)
    assert account.lost == {("a", "lost frame"): did["lost"]} and account.duplicated == did["duplicated"]
    assert len({*found}) == pdus - did["lost"] and len(found) == pdus - did["lost"] + did["duplicated"]
    overtaken = sum(after < before for before, after in pairwise(found))
    assert did["reordered"] - overtaken in (0, 1)  # of the last PDU


def test_pdus_of_many_cells_stay_whole_and_vcs_do_not_touch_each_other():
    _network, _a, _vcs = made = line_of(vcs=2, reorder_frames=0.3, duplicate_frames=0.2)
    found, accounts = sent(made, 400, octets=400)
    for k, (numbers, account) in enumerate(zip(found, accounts, strict=True)):
        assert {*numbers} == {*range(k, 400, 2)} and not account.lost
        assert all(abs(place - number // 2) < 100 for place, number in enumerate(numbers))


def test_a_pdu_that_nothing_overtakes_is_sent_after_the_wait():
    network, a, (vc,) = line_of(reorder_frames=1.0, reorder_wait_ps=3 * MS)
    network.send(a.index, vc, bytes(40))
    events = network.run(10 * MS)
    assert a.frames(vc)["reordered"] == 1 and a.frames(vc)["held"] == 0
    assert 4 * MS <= events[0].time_ps < 4 * MS + MS // 100
    network.send(a.index, vc, bytes(40))
    (account,) = network.ledger()
    assert account.sent == 2 and account.lost == {("", "under way"): 1}


def test_a_copy_goes_on_as_the_run_itself():
    settings = {"lose_frames": 0.1, "duplicate_frames": 0.1, "reorder_frames": 0.3}
    whole = sent(line_of(**settings), 300, every_ps=MS // 50)
    assert sent(line_of(**settings), 300, every_ps=MS // 50, copied=True) == whole
    assert sent(line_of(seed=2, **settings), 300, every_ps=MS // 50) != whole


def test_shares_change_in_a_run():
    _network, a, _vcs = made = line_of()
    sent(made, 100)
    a.change(lose_frames=1.0)
    (found,), (account,) = sent(made, 100)
    assert not found and account.lost == {("a", "lost frame"): 100}
    a.change(lose_frames=0.0)
    assert len(sent(made, 100)[0][0]) == 100
