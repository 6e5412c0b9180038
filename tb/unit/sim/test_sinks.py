"""PDUs that are checked in C++: of few VCs when they have come, of many as they come."""

import random

import pytest

from bentpipe_hdl.nic.control import NicLine
from bentpipe_sim.network import Network
from bentpipe_sim.pattern import pattern

RATE_BPS = 149_760_000
KEY = 5
FEW, MANY = 1, 40  # VCs in use each way: of more than 64 PDUs are checked cell by cell (csrc/pdu.hpp)


def network_of(vcs, later=0, **more):
    """Two interfaces back to back, and VCs each way: so many that have been used, and others."""
    network = Network(seed=1)
    ends = [network.add_nic(name, line=NicLine(RATE_BPS)) for name in ("a", "b")]
    network.connect(*ends)
    network.connect(*ends[::-1])
    ways = [
        (k, network.add_vc([ends[k], ends[1 - k]], 0, 100 + n, **more)) for n in range(vcs + later) for k in range(2)
    ]
    network.start()
    use(network, ways[: 2 * vcs])
    return network, ways


def use(network, ways):
    """A PDU on each of these VCs."""
    for nic, vc in ways:
        network.send(nic, vc, b"octets")
    came = []
    for _ in range(1000):
        came += network.run(network.now_ps + 10**9)
        if len(came) == len(ways):
            return
    raise AssertionError(came)


def go_on(network, ps):
    """So long, whatever comes."""
    until = network.now_ps + ps
    while network.now_ps < until:
        network.run(until)


def counts(network, nic=1, vc=0):
    """PDUs that its sink found right and wrong."""
    right, wrong = (network.loop.ffi.new("uint64_t *") for _ in range(2))
    network.loop.sink_counts(nic, vc, right, wrong)
    return right[0], wrong[0]


def lay(network, sdus):
    """Some SDUs one after the other; how many the sink finds right and wrong."""
    for sdu in sdus:
        network.send(0, 0, sdu)
    go_on(network, 10**9 * len(sdus))
    return counts(network)


@pytest.mark.parametrize("vcs", [FEW, MANY])
def test_right_and_wrong_pdus(vcs):
    """In PDUs of each length each octet is wrong once: at a cell's begin and end, in the last cells, beside padding."""
    network, _ = network_of(vcs)
    network.loop.sink(1, 0, KEY, 0, 0, 0)
    rng = random.Random(vcs)
    offset = right = wrong = 0
    for length in (1, 7, 8, 39, 40, 41, 47, 48, 49, 87, 88, 89, 95, 96, 97, 136, 144, 145, 191, 1000):
        for place in [None, 0, length - 1, *(rng.randrange(length) for _ in range(6)), None]:
            sdu = bytearray(pattern(KEY, offset, length))
            if place is not None:
                sdu[place] ^= 1 << rng.randrange(8)
            right, wrong = right + (place is None), wrong + (place is not None)
            assert lay(network, [bytes(sdu)]) == (right, wrong), (length, place)
            offset += length


@pytest.mark.parametrize("vcs", [FEW, MANY])
def test_several_wrong_cells(vcs):
    network, _ = network_of(vcs)
    network.loop.sink(1, 0, KEY, 0, 0, 0)
    rng = random.Random(3)
    sdus, right, offset = [], 0, 0
    for _ in range(300):
        length = rng.randrange(1, 500)
        sdu = bytearray(pattern(KEY, offset, length))
        flips = rng.randrange(4)
        for place in rng.sample(range(length), min(flips, length)):
            sdu[place] ^= 0x10
        right += not flips
        sdus.append(bytes(sdu))
        offset += length
    assert lay(network, sdus) == (right, len(sdus) - right)


@pytest.mark.parametrize("vcs", [FEW, MANY])
def test_a_source_and_its_answers(vcs):
    """Every second PDU of a source is answered."""
    network, ways = network_of(vcs)
    network.loop.sink(1, 0, KEY, ways[1][1], 40, 2)
    network.loop.source(0, 0, 9180, KEY)
    go_on(network, 10**10)
    right, wrong = counts(network)
    assert (right >= 15, wrong) == (True, 0)
    assert network.stats()["b"]["cells_out"] == vcs + right // 2


def test_sinks_become_many():
    """PDUs that are under way when a 65th VC is used are checked as they were begun."""
    network, ways = network_of(24, later=10)
    vcs = [vc for nic, vc in ways[:48] if nic == 0]
    for vc in vcs:
        network.loop.sink(1, vc, vc, 0, 0, 0)
        network.loop.source(0, vc, 3000, vc)
    go_on(network, 7 * 10**9)
    before = [counts(network, vc=vc)[0] for vc in vcs]
    assert all(before)
    use(network, ways[48:])
    go_on(network, 7 * 10**9)
    found = [counts(network, vc=vc) for vc in vcs]
    assert all(right > there and not wrong for (right, wrong), there in zip(found, before, strict=True)), found


@pytest.mark.parametrize("vcs", [FEW, MANY])
def test_a_pdu_that_is_too_long_is_wrong(vcs):
    """All its octets are right, but the interface has given it up."""
    network, _ = network_of(vcs, max_sdu=1000)
    network.loop.sink(1, 0, KEY, 0, 0, 0)
    assert lay(network, [pattern(KEY, 0, 2000)]) == (0, 1)


@pytest.mark.parametrize("vcs", [FEW, MANY])
def test_a_state_with_a_pdu_under_way(vcs):
    """A network that is made alike goes on from it, wherever in a PDU it was taken."""
    octets, cell_ps = 300, 2_831_000
    network, _ = network_of(vcs)
    other, _ = network_of(0, later=vcs)
    network.loop.sink(1, 0, KEY, 0, 100, 3)
    network.loop.source(0, 0, octets, KEY)
    for _ in range(3 * (octets // 48 + 1)):
        go_on(network, cell_ps)
        other.give(network.take())
        go_on(other, 40 * cell_ps)
        before = network.take()
        go_on(network, 40 * cell_ps)
        assert (counts(other), other.stats()) == (counts(network), network.stats())
        right, wrong = counts(network)
        assert not wrong
        network.give(before)
    assert right > 5
