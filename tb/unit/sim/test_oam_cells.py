"""Single cells and OAM cells in a network: the ledger and every account hold with them between the cells of PDUs."""

import random

import pytest

from bentpipe.apps.loopback import LoopbackCells
from bentpipe.hosts.config import HostConfig
from bentpipe.hosts.engine import Engine
from bentpipe.hosts.oam import EndPoint
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicSettings, PacingSettings
from bentpipe_hdl.oam.cells import END_POINT, END_PTI, location_of
from bentpipe_hdl.switch.control import SwitchSettings
from bentpipe_hdl.ticks import ticks_to_ps
from bentpipe_sim.errors import SimulationError
from bentpipe_sim.interface import PduStatus
from bentpipe_sim.network import Network
from models.lines import switch_ports

MS = 10**9
OAM = {4: PduStatus.OAM_SEGMENT, 5: PduStatus.OAM_END_TO_END}


def chain(rate_bps=149_760_000, *, oam=(True, True), **link):
    """A host, a line, a switch with a slower port if so asked for, a host; two VCs."""
    network = Network(seed=3)
    a, b = (network.add_nic(name, NicSettings(oam=has)) for name, has in zip("ab", oam, strict=True))
    switch, line = (
        network.add_switch("s", SwitchSettings(buffer_cells=64), ports=switch_ports((149_760_000, rate_bps))),
        network.add_link("line", LinkSettings(**link)),
    )
    for ends in ((a, line), (line, (switch, 0)), ((switch, 0), a), (b, (switch, 1)), ((switch, 1), b)):
        network.connect(*ends)
    vcs = [network.add_vc([a, line, switch, b], 0, vci) for vci in (40, 41)]
    return network, a, b, line, vcs


def until(network, end_ps):
    events = []
    while network.now_ps < end_ps:
        events += network.run(end_ps)
    return events


def test_cells_come_as_they_were_sent_between_those_of_pdus():
    network, a, _, _, vcs = chain(delay_ps=MS)
    rng, sent, pdus = random.Random(1), [], 0
    events = []
    for n in range(200):
        vc, pti = rng.choice(vcs), rng.choice([4, 5])
        if rng.random() < 0.3:
            network.send(a.index, vc, b"", key=1, length=rng.randrange(1, 3000))
            pdus += 1
        network.send_cell(a.index, vc, pti, n.to_bytes(48, "big"))
        sent.append((vc, OAM[pti], n.to_bytes(48, "big")))
        events += until(network, network.now_ps + rng.randrange(MS // 20))
    events += until(network, network.now_ps + 20 * MS)
    cells = [event for event in events if event.status in OAM.values()]
    for vc in vcs:
        came = [(event.vc, event.status, event.head) for event in cells if event.vc == vc]
        assert came == [each for each in sent if each[0] == vc]
    assert sum(event.status == PduStatus.OK for event in events) == pdus
    network.check_conservation()
    assert [account.lost for account in network.ledger()] == [{}, {}]
    assert network.counters()["b"]["oam_cells"] == len(sent)
    assert network.loop.ledger_records() < 5


@pytest.mark.parametrize(("seed", "ber"), [(1, 0.0), (2, 2e-5), (3, 1e-3)])
def test_the_ledger_finds_each_pdus_loss_among_oam_cells(seed, ber):
    """Overload at the switch and bit errors on the line, where OAM cells are lost as well: no loss of a PDU is without
    its cause, none of an OAM cell becomes one's, and all that was dropped is known."""
    network, a, _, line, vcs = chain(20_000_000, delay_ps=MS, ber=ber)
    line.lose(0, 41, cells=range(5, 500, 7))
    rng = random.Random(seed)
    for n in range(400):
        vc = rng.choice(vcs)
        if rng.random() < 0.4:
            network.send(a.index, vc, b"", key=1, length=rng.randrange(1, 3000))
        for _ in range(rng.randrange(4)):
            network.send_cell(a.index, vc, rng.choice([4, 5]), n.to_bytes(48, "big"))
        until(network, network.now_ps + rng.randrange(MS // 5))
    until(network, network.now_ps + 50 * MS)
    network.check_conservation()
    accounts = network.ledger()
    assert all(account.lost for account in accounts)
    assert ber > 1e-4 or all(account.delivered for account in accounts)
    reasons = {why for account in accounts for _, why in account.lost}
    assert {"listed loss", "EPD"} < reasons
    assert ("bit error" in reasons) == (ber > 0)
    if ber == 0:
        dropped = sum(network.counters()["s"]["drop_full"])
        lost = sum(pdus for account in accounts for (_, why), pdus in account.lost.items() if why == "full")
        assert dropped > lost > 0, "OAM cells were dropped, too"


def test_a_flood_of_oam_cells_takes_its_vcs_rate_and_no_more():
    """A paced VC with 5000 cells posted at once, beside one that sends PDUs: each has its rate, and nothing is lost."""
    network = Network(seed=1)
    a, b = network.add_nic("a", NicSettings(oam=True)), network.add_nic("b", NicSettings(oam=True))
    network.connect(a, b)
    network.connect(b, a)
    slow = network.add_vc([a, b], 0, 40, pacing=PacingSettings(cell_rate_bps=15_000_000))
    fast = network.add_vc([a, b], 0, 41)
    for n in range(5000):
        network.send_cell(a.index, slow, 5, n.to_bytes(48, "big"))
    for n in range(60):
        network.send(a.index, fast, b"", key=1, offset=9000 * n, length=9000)
    events = until(network, 40 * MS)
    cells = [event for event in events if event.status == PduStatus.OAM_END_TO_END]
    assert [int.from_bytes(event.head, "big") for event in cells] == list(range(len(cells)))
    assert abs(len(cells) - 15_000_000 / 424 * (0.04 - 424 / 149_760_000)) <= 2  # the last one is being sent
    pdus = [event.time_ps for event in events if event.status == PduStatus.OK]
    assert len(pdus) == 60
    assert pdus[-1] < 60 * 188 * 424 / (149_760_000 - 15_000_000) * 1e12 * 1.001 + MS // 100
    network.check_conservation()
    network.ledger()


def round_trips(delays, posts):
    """Round trips (ticks) of loopback cells between two hosts on a wire with this delay (ticks) each way."""
    network = Network()
    a, b = (network.add_nic(name, NicSettings(oam=True)) for name in "ab")
    network.connect(a, b, ticks_to_ps(delays))
    network.connect(b, a, ticks_to_ps(delays))
    vcs = [network.add_vc(path, 0, 40) for path in ([a, b], [b, a])]
    engine = Engine(network)
    hosts = [engine.add_host(HostConfig(name=nic.name), nic.index) for nic in (a, b)]
    point = EndPoint(location_of("a"))
    end = engine.add_oam_end(hosts[0], point, vcs[1], vcs[0])
    engine.add_oam_end(hosts[1], EndPoint(location_of("b")), vcs[0], vcs[1])
    app = LoopbackCells(ticks_to_ps(1000), posts)
    engine.add_loopback_flow("loop", hosts[0], hosts[1], end, app, END_POINT, END_PTI, MS)
    times = []
    app.received = lambda socket, octets, sent_ps, now_ps: times.append(now_ps - sent_ps) or 0
    engine.run(MS + ticks_to_ps(1000 * posts + 2 * delays + 1000))
    network.check_conservation()
    assert [account.lost for account in network.ledger()] == [{}, {}]
    return [round(time / ticks_to_ps(10**9) * 10**9) for time in times]


@pytest.mark.plain_hosts
@pytest.mark.parametrize("delay", [1, 16, 40, 333, 12_345])
def test_a_round_trip_in_an_idle_network_is_known_to_the_tick(delay):
    """Each way a tick in which the interface takes the cell, 16 in which its line sends it, and the wire's; at the far
    end it is taken in the tick after that in which it came."""
    assert round_trips(delay, 20) == [2 * (1 + 16 + delay) + 1] * 20


def test_an_interface_without_them_counts_oam_cells_and_sends_none():
    network, a, b, _, (vc, _) = chain(oam=(True, False), delay_ps=MS)
    network.send_cell(a.index, vc, 5, bytes(48))
    assert until(network, 3 * MS) == []
    assert network.counters()["b"]["drop_oam"] == 1
    network.check_conservation()
    with pytest.raises(SimulationError, match="NIC b is built without single cells"):
        network.send_cell(b.index, vc, 5, bytes(48))
    for pti, octets in ((8, 48), (5, 47)):
        with pytest.raises(SimulationError, match="48 octets"):
            network.send_cell(a.index, vc, pti, bytes(octets))
