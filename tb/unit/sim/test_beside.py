"""Tests that a path is not changed by its surroundings: nodes without work, in networks of few nodes and of many (up to
8, 64, 128 and one more each); traces and captures that begin and end, registers that are read and states that are taken
while cells are on their way, also among many VCs; a run to a time that is over.
"""

import random

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_sim.network import Network

TIMES = [10**8 * k for k in range(1, 41)]


def path(beside=0, first=False):
    """Two NICs with a switch, a link and a switch between them, each with 3 PDUs to send; and idle NICs."""
    network = Network(seed=1)
    idle = [lambda k=k: network.add_nic(f"idle{k}") for k in range(beside)]
    for add in idle if first else ():
        add()
    a, b = network.add_nic("a"), network.add_nic("b")
    west, east = network.add_switch("west"), network.add_switch("east")
    out, back = (network.add_link(name, LinkSettings(delay_ps=30_000_000, ber=1e-6)) for name in ("out", "back"))
    for host, switch in ((a, west), (b, east)):
        network.connect(host, (switch, 0))
        network.connect((switch, 0), host)
    for here, link, there in ((west, out, east), (east, back, west)):
        network.connect((here, 1), link)
        network.connect(link, (there, 1))
    for add in () if first else idle:
        add()
    ways = [(a, network.add_vc([a, west, out, east, b], 0, 40)), (b, network.add_vc([b, east, back, west, a], 0, 41))]
    return network, ways, (out, back)


def ran(network, ways, meanwhile=lambda time: None):
    """Return the result of the path: events but for the numbers of NICs, counters of nodes on the path, PDUs."""
    names = [node.name for node in network.nodes if not node.name.startswith("idle")]
    nics = {nic.index: nic.name for nic, _ in ways}
    found = []
    for time in TIMES:
        meanwhile(time)
        if time in TIMES[:3]:
            for nic, vc in ways:
                network.send(nic.index, vc, b"head", key=vc, length=9000)
        while network.now_ps < time:
            found += [(nics[e.nic], e.time_ps, e.vc, e.status, e.length, e.head, e.sum) for e in network.run(time)]
    network.check_conservation()
    stats = network.stats()
    return found, [{k: v for k, v in stats[name].items() if k != "evaluations"} for name in names], network.ledger()


@pytest.mark.parametrize("nodes", [8, 9, 64, 65, 128, 129])
@pytest.mark.parametrize("first", [False, True], ids=["behind", "before"])
def test_nodes_without_work_change_nothing(nodes, first):
    alone = ran(*path()[:2])
    assert sum(event[3] == 0 for event in alone[0]) >= 5  # PDUs came
    assert ran(*path(nodes - 6, first)[:2])[:2] == alone[:2]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_looked_at_changes_nothing(tmp_path, seed):
    rng = random.Random(seed)
    network, ways, lines = path()

    def look(time):
        what = rng.randrange(6)
        if what == 0 and time > TIMES[0]:
            network.loop.trace(rng.choice(network.nodes[:4]).index, rng.randrange(2), rng.randrange(2))
        elif what == 1 and time > TIMES[0]:
            network.loop.trace(rng.choice(lines).index, 0, rng.randrange(2))
        elif what == 2 and time > TIMES[0]:
            capture = network.loop.capture(str(tmp_path / f"cells{time}").encode(), 1, 0)
            network.loop.capture_input(capture, rng.choice(network.nodes).index, 0, 0)
        elif what == 3 and time > TIMES[0]:
            network.counters()  # of registers, which are read without time passing
        elif what == 4 and time > TIMES[0]:
            network.give(network.take())

    assert ran(network, ways, look) == ran(*path()[:2])


@pytest.mark.parametrize("idle", [0, 4])
def test_time_does_not_go_back(idle):
    network, ways, _ = path(idle)
    found = []
    for time, (nic, vc) in zip((10 * 10**9, 10 * 10**9 + 10**8), ways, strict=True):
        assert network.run(time) == []
        network.send(nic.index, vc, b"head", key=vc, length=9000)
        assert network.run(5 * 10**9) == []
        assert network.now_ps == time
    while network.now_ps < 20 * 10**9:
        found += [(event.vc, event.status) for event in network.run(20 * 10**9)]
    network.check_conservation()
    assert sorted(found) == [(0, 0), (1, 0)]


def test_a_network_without_nodes():
    network = Network(seed=1)
    assert network.run(10**9) == []
    assert network.now_ps == 10**9


@pytest.mark.parametrize("engine", ["native", "verilator"])
def test_many_vcs(engine):
    vcs, octets = 80, 3000  # whose cells are copied late (csrc/nic.hpp)
    rng = random.Random(1)
    network = Network(seed=1, engine=engine)
    a, b = network.add_nic("a"), network.add_nic("b")
    network.connect(a, b)
    network.connect(b, a)
    ways = [network.add_vc([a, b], 0, 40 + k) for k in range(vcs)]
    network.start()
    for vc in ways:
        for part in range(2):
            network.send(a.index, vc, b"head", key=vc, offset=part * octets, length=octets)
    found = []

    def run(longest):
        events = network.run(network.now_ps + rng.randrange(1, longest))
        for event in events:
            part = sum(vc == event.vc for vc, _ in found)
            found.append((event.vc, network.check(event.handle, 4, event.vc, part * octets, octets)))
        return events

    while len(found) < 2 * vcs and network.now_ps < 50 * 10**9:
        run(40 * 10**6)
        what = rng.randrange(5)
        if what == 0:
            network.counters()
        elif what == 1 and network.saves:
            taken = network.take()
            if not run(4 * 10**6):
                network.give(taken)  # once more from there
    network.check_conservation()
    assert sorted(found) == sorted((vc, True) for vc in ways for _ in range(2))
