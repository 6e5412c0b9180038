"""OAM of VCs in networks: what an interrupted line does, who hears of it and when, and that every account holds."""

import itertools
import random

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.oam.cells import location_of_node
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_hdl.switch.options.oam.control import OamSettings, OamSwitchSettings
from bentpipe_hdl.ticks import round_ticks, ticks_to_ps
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from models.lines import switch_ports, vc_settings

US, MS, S = 10**6, 10**9, 10**12
OC3 = 149_760_000
HALF = 2 * MS
"""What half a second of the standard is here, so that runs are short."""


def chain(*, switches=3, seed=1, delay_ps=MS // 4, ber=0.0, slow=OC3, **settings):
    """Hosts at the ends of a chain of switches; a VC each way, with ``settings``. Their lines are ``slow``."""
    network = Network(seed=seed)
    given = {"oam": OamSwitchSettings(scan_ps=HALF), "buffer_cells": 300}
    nodes = [
        network.add_switch(
            f"s{k}",
            SwitchSettings(**given),
            ports=switch_ports([OC3 if k else slow, slow if k == switches - 1 else OC3, OC3, OC3]),
        )
        for k in range(switches)
    ]
    links = {}
    for k, (a, b) in enumerate(itertools.pairwise(nodes)):
        for name, one, two, ports in ((f"l{k}", a, b, (1, 0)), (f"b{k}", b, a, (0, 1))):
            links[name] = network.add_link(name, LinkSettings(delay_ps=delay_ps, ber=ber, outage=True))
            links[name].note()  # that it may be
            links[name].change(outage=False)
            network.connect((one, ports[0]), links[name])
            network.connect(links[name], (two, ports[1]))
    nics = [network.add_nic(name) for name in ("here", "there")]
    for nic, face in zip(nics, ((nodes[0], 0), (nodes[-1], 1)), strict=True):
        network.connect(nic, face)
        network.connect(face, nic)
    there = [nics[0], *(n for k, s in enumerate(nodes) for n in (s, links.get(f"l{k}")) if n), nics[1]]
    back = [nics[1], *(n for k, s in reversed([*enumerate(nodes)]) for n in (s, links.get(f"b{k - 1}")) if n), nics[0]]
    vcs = [network.add_vc(there, 0, 100, **vc_settings(**settings)), network.add_vc(back, 0, 100)]
    return network, nodes, links, vcs


def run(network, until_ps):
    while network.now_ps < until_ps:
        network.run(until_ps)


def log(network, switch):
    """``(time in ps, VC, states)`` of each change."""
    return [(ticks_to_ps(tick), vc, set(states)) for tick, vc, states in network.counters()[switch.name]["oam_log"]]


def sent(network, switch, kind):
    return network.counters()[switch.name][f"oam_sent_{kind}"]


def test_an_outage_is_told_downstream_and_back_and_both_ends_recover():
    """For five seconds the switch behind the line sends AIS and the far end RDI; both states end by themselves."""
    network, (s0, s1, s2), links, _ = chain(oam=OamSettings(ends=True))
    network.start()
    run(network, 10 * MS)
    links["l0"].change(outage=True)
    run(network, 10 * MS + 10 * HALF)
    links["l0"].change(outage=False)
    run(network, 10 * MS + 26 * HALF)
    delay, near = MS // 4, 100 * US
    (entered, vc, states), (left, *_) = log(network, s2)
    assert (vc, states) == (0, {"ais"})
    assert 10 * MS + 2 * delay <= entered < 10 * MS + 2 * delay + near, "after two lines"
    end = 10 * MS + 10 * HALF
    assert 5 * HALF - 2 * HALF <= left - end <= 6 * HALF + 2 * delay, "the last cell was up to a second before"
    (rdi, vc, states), (clear, *_) = log(network, s0)
    assert (vc, states) == (1, {"rdi"})
    assert entered + 2 * delay <= rdi < entered + 2 * delay + near
    assert 5 * HALF - 2 * HALF <= clear - left <= 6 * HALF + 2 * delay
    assert log(network, s1) == [], "a connecting point is in no state"
    assert sent(network, s1, "ais")[0] in (5, 6), "at once, and each second"
    assert sum(sent(network, s0, "ais")) + sum(sent(network, s2, "ais")) == 0
    assert sent(network, s2, "rdi")[1] >= 5
    network.check_conservation()
    network.ledger()


def test_user_cells_end_ais_at_once():
    network, (_, _, s2), links, (vc, _) = chain(oam=OamSettings(ends=True))
    network.start()
    links["l0"].change(outage=True)
    run(network, 5 * HALF)
    links["l0"].change(outage=False)
    network.send(next(n.index for n in network.nodes if n.name == "here"), vc, b"x" * 100)
    before = network.now_ps
    run(network, before + HALF)
    assert len(log(network, s2)) == 2
    assert log(network, s2)[1][0] - before < MS
    network.check_conservation()
    assert network.ledger()[0].delivered == 1


def test_a_segment_whose_line_is_cut_loses_continuity():
    """Without alarms: the end of the segment finds out by itself, and tells downstream."""
    network, (s0, s1, s2, _), links, _ = chain(
        switches=4, oam=OamSettings(segment=("s0", "s2"), check="idle", alarms=True)
    )
    network.start()
    run(network, 10 * HALF)
    assert log(network, s2) == []
    assert sent(network, s0, "cc")[0] == 5
    s1.csr.oam_point[0] = {"port": 0}  # it doesn't tell
    links["l0"].change(outage=True)
    begin = network.now_ps
    run(network, begin + 12 * HALF)
    [(at, vc, states)] = log(network, s2)
    assert (vc, states) == (0, {"segment_loc"})
    assert 5 * HALF < at - begin < 8 * HALF + MS
    assert sent(network, s2, "ais")[0] >= 2
    network.check_conservation()


def test_a_round_trip_takes_as_long_as_the_lines():
    network, (s0, *_), _, _ = chain(oam=OamSettings(ends=True, segment=("s0", "s1")))
    network.start()
    s0.csr.oam_request = {"vc": 0}
    run(network, 3 * MS)
    counters = network.counters()["s0"]
    assert counters["oam_answered"] == 1
    assert 0 <= counters["oam_delay"] - round_ticks(MS) < 400, "four lines of a quarter of a millisecond"
    s0.csr.oam_request = {"vc": 0, "segment": 1}
    run(network, 6 * MS)
    counters = network.counters()["s0"]
    assert counters["oam_answered"] == 2
    assert 0 <= counters["oam_delay"] - round_ticks(MS // 2) < 200


def test_a_state_that_is_given_back_has_the_defects_that_are_to_come():
    """The line fails, and the switch behind it sees that later: both times, if time goes back in between."""
    network, (_, s1), links, _ = chain(switches=2, delay_ps=100 * US, oam=OamSettings(ends=True))
    network.start()
    run(network, 10 * US)
    links["l0"].change(outage=True)
    taken = network.take()
    for _ in range(2):
        assert s1.csr.oam_defects == 0
        run(network, 200 * US)
        assert s1.csr.oam_defects == 1
        network.give(taken)


def test_the_account_holds_in_the_tick_in_which_a_switch_takes_an_oam_cell():
    """A loopback cell, which the far switch takes and sends back: both switches count what they took a tick later."""
    network, (s0, s1), _, _ = chain(switches=2, delay_ps=2 * US, oam=OamSettings(ends=True))
    network.start()
    s0.csr.oam_request = {"vc": 0}
    taken = []
    for tick in range(250):
        run(network, ticks_to_ps(tick))
        network.check_conservation()
        taken.append((s1.csr.oam_uncounted, s0.csr.oam_uncounted))
    assert taken.count((1, 0)) == taken.count((0, 1)) == 1
    assert sum(map(sum, taken)) == 2


@pytest.mark.parametrize("seed", range(3))
def test_every_account_holds_while_lines_come_and_go_under_traffic(seed):
    rng = random.Random(seed)
    settings = OamSettings(ends=rng.random() < 0.7, segment=("s0", "s2"), check=rng.choice(["idle", "always"]))
    if seed == 2:
        network, switches, links, vcs = in_path(oam=settings)
    else:
        network, switches, links, vcs = chain(
            seed=seed, ber=rng.choice([0, 1e-6]), delay_ps=rng.choice([MS // 20, MS]), slow=20_000_000, oam=settings
        )
    network.start()
    nics = {node.name: node.index for node in network.nodes}
    for _ in range(60):
        for name, vc in zip(("here", "there"), vcs, strict=True):
            for _ in range(rng.choice([0, 0, 1, 6])):
                network.send(nics[name], vc, b"", key=vc + 1, length=rng.choice([40, 1500, 9180]))
        if rng.random() < 0.3:
            links[rng.choice([*links])].change(outage=rng.random() < 0.5)
        if rng.random() < 0.3:
            switch = rng.choice(switches)
            vc = rng.randrange(len(switch.vcs))
            switch.csr.oam_request = {
                "vc": vc, "segment": rng.getrandbits(1), "path": switch.vcs[vc].vpc or switch.vcs[vc].ends_path
            }  # fmt: skip
        run(network, network.now_ps + rng.randrange(3 * HALF))
    network.check_conservation()
    accounts = network.ledger()
    assert sum(account.delivered for account in accounts) > 5
    assert seed == 2 or any(where in ("s0", "s2") for account in accounts for where, _ in account.lost)
    assert sum(sum(sent(network, s, kind)) for s in switches for kind in ("ais", "cc", "loopback")) > 20


def test_states_are_sampled_by_the_port_that_a_vc_comes_in_by():
    """One that gets copies of another's cells comes in by none."""
    network, (s0, *_), links, _ = chain(oam=OamSettings(ends=True))
    third = network.add_nic("third")
    network.connect(third, (s0, 2))
    network.connect((s0, 2), third)
    nodes = {node.name: node for node in network.nodes}
    far = [nodes[name] for name in ("here", "s0", "l0", "s1", "l1", "s2", "there")]
    network.add_vc(far, 0, 300, branches=[[*far[:2], third]])
    network.start()
    run(network, MS)
    links["b1"].change(outage=True)
    run(network, 3 * MS)
    assert {name: count for name, count in network.sample().items() if count and ".queue" not in name} == {
        "s0:1.ais": 1, "s2:0.rdi": 1,
    }  # fmt: skip


def test_a_switch_has_no_oam_and_credits():
    network, _, _, _ = chain(oam=OamSettings(), credits=10)
    with pytest.raises(NetworkError, match="a switch has OAM or credits"):
        network.start()


def test_a_name_that_is_too_long_for_a_location_is_shortened():
    long = "the-network-module-of-goddard"
    assert location_of_node("short") == b"short".ljust(16, b"\0")
    assert location_of_node(long) != location_of_node(f"{long}-2")
    network = Network()
    switch = network.add_switch(long, SwitchSettings(oam=OamSwitchSettings()), ports=switch_ports([OC3] * 4))
    network.start()
    assert b"".join(word.to_bytes(4, "little") for word in switch.csr.oam_location[:]) == location_of_node(long)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"segment": ("s2", "s0")}, "'s0' before 's2'"),
        ({"segment": ("s0", "s7")}, "no switch 's7'"),
    ],
)
def test_a_segment_is_a_part_of_the_vc(given, what):
    with pytest.raises(NetworkError, match=what):
        chain(oam=OamSettings(**given))


def in_path(**settings):
    """Four switches in a chain; a VC each way whose ends are switches, in a virtual path from the first to the third
    of them."""
    network, switches, links, _ = chain(switches=4, oam=None)
    nodes = {node.name: node for node in network.nodes}
    ways = (("s0", "l0", "s1", "l1", "s2"), ("s2", "b1", "s1", "b0", "s0"))
    for way in ways:
        network.add_vp([nodes[name] for name in way], 7, VcSettings(**settings if way is ways[0] else {}))
    beyond = (
        ("here", "s0", "l0", "s1", "l1", "s2", "l2", "s3", "there"),
        ("there", "s3", "b2", "s2", "b1", "s1", "b0"),
    )
    oam = OamSettings(ends=True)
    vcs = [
        network.add_vc([nodes[name] for name in beyond[0]], 0, 200, VcSettings(oam=oam)),
        network.add_vc([nodes[name] for name in (*beyond[1], "s0", "here")], 0, 200),
    ]
    return network, switches, links, vcs


def end_of_path(switch):
    return next(k for k, vc in enumerate(switch.vcs) if vc.ends_path)


def test_a_path_that_is_interrupted_tells_its_end_and_that_its_vcs():
    network, (s0, s1, s2, s3), links, _ = in_path(oam=OamSettings(ends=True))
    network.start()
    run(network, 10 * MS)
    links["l0"].change(outage=True)
    run(network, 10 * MS + 6 * HALF)
    links["l0"].change(outage=False)
    run(network, 10 * MS + 24 * HALF)
    assert sum(sent(network, s1, "ais")) in (3, 4), "on the path alone, of which it knows"
    assert [(vc, states) for _, vc, states in log(network, s2)] == [
        (end_of_path(s2), {"ais"}),
        (end_of_path(s2), set()),
    ]
    assert next((vc, states) for _, vc, states in log(network, s0)) == (end_of_path(s0), {"rdi"})
    vc = next(k for k, each in enumerate(s2.vcs) if each.oam is not None and each.oam.inside)
    assert sent(network, s2, "ais")[vc] >= 3, "downstream, on the VC"
    numbers = {vc for _, vc, states in log(network, s3) if "ais" in states}
    assert [s3.vcs[number].in_vci for number in numbers] == [200]
    network.check_conservation()
    network.ledger()


def test_the_round_trip_of_a_path():
    network, (s0, *_), _, _ = in_path(oam=OamSettings(ends=True, segment=("s0", "s1")))
    network.start()
    for segment, answered, delay in ((0, 1, MS), (1, 2, MS // 2)):
        s0.csr.oam_request = {"vc": end_of_path(s0), "segment": segment, "path": 1}
        run(network, network.now_ps + 3 * MS)
        counters = network.counters()["s0"]
        assert counters["oam_answered"] == answered
        assert 0 <= counters["oam_delay"] - round_ticks(delay) < 400
    network.check_conservation()


def test_continuity_of_a_path_is_checked():
    network, (s0, s1, s2, _), links, vcs = in_path(oam=OamSettings(ends=True, check="always", alarms=False))
    network.start()
    here = next(n.index for n in network.nodes if n.name == "here")
    for _ in range(10):
        network.send(here, vcs[0], b"x" * 500)
        run(network, network.now_ps + HALF)
    assert log(network, s2) == []
    assert sent(network, s0, "cc")[end_of_path(s0)] == 5
    links["l0"].change(outage=True)
    run(network, network.now_ps + 10 * HALF)
    assert [(vc, states) for _, vc, states in log(network, s2)] == [(end_of_path(s2), {"end_loc"})]
    assert sent(network, s2, "rdi")[end_of_path(s2)] >= 1
    assert sum(sent(network, s1, "ais")) == 0
    network.check_conservation()
    assert network.ledger()[2].delivered == 10


def test_a_line_is_interrupted_from_the_next_tick_on():
    """Before the first tick, and after it: the same, a tick later."""
    entered = []
    for ticks in (0, 1):
        network, (*_, last), links, _ = chain(oam=OamSettings(ends=True))
        network.start()
        if ticks:
            network.run(0)
        links["l0"].change(outage=True)
        run(network, MS)
        entered.append(network.counters()[last.name]["oam_log"][0][0])
    assert entered[1] - entered[0] == 1


def test_a_switch_has_the_defect_in_the_tick_in_which_a_cell_would_have_come():
    logs = []
    for told in (True, False):
        network, (_, near, last), links, _ = chain(oam=OamSettings(ends=True))
        network.start()
        run(network, MS)
        if told:
            links["l0"].change(outage=True)
        else:  # as if by hand, before that tick
            network.run(ticks_to_ps(network.loop.now() + links["l0"].delay))
            near.csr.oam_defects = 1
        run(network, 2 * MS)
        logs.append(network.counters()[last.name]["oam_log"])
    assert logs[0] == logs[1] != []
