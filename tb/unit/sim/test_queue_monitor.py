"""The queue at a port, followed by the event loop cell by cell; a network that has a state of its own again."""

from collections import Counter
from itertools import pairwise

import pytest

from bentpipe_hdl.nic.control import NicLine
from bentpipe_hdl.switch.control import SwitchSettings
from bentpipe_hdl.switch.options.histograms.control import HistogramSettings
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.interface import PduStatus
from bentpipe_sim.network import Network
from models.lines import switch_ports

OC3C, TICK_PS = 149_760_000, 176_950
SLOT_PS = 16 * TICK_PS


def network(cells=12, **settings):
    """Two hosts that send to a third, over a port at which one is too many."""
    made = Network(seed=3)
    switch = made.add_switch("switch", SwitchSettings(buffer_cells=cells, **settings), ports=switch_ports((OC3C,) * 3))
    nics = [made.add_nic(f"host{k}", line=NicLine(OC3C)) for k in range(3)]
    for port, nic in enumerate(nics):
        made.connect(nic, (switch, port))
        made.connect((switch, port), nic)
    vcs = [made.add_vc([nics[k], switch, nics[2]], 0, 40 + k) for k in range(2)]
    vcs.append(made.add_vc([nics[2], switch, nics[0]], 0, 50))
    return made, switch, nics, vcs


def send(made, nics, vcs, octets=480):
    for nic, vc in zip(nics, vcs, strict=True):
        made.send(nic.index, vc, bytes(octets - 8))


def test_a_monitor_counts_what_the_switch_counts():
    made, switch, nics, vcs = network()
    monitor = made.monitor_queue(switch, 2)
    made.start()
    for _ in range(5):
        send(made, nics, vcs, 48 * 40)  # the way back is another port's
        for _ in range(40):
            made.run(made.now_ps + 3 * SLOT_PS)
            monitor.verify()
    counts, counters = monitor.counts, switch.counters()
    to = [0, 1]  # the VCs that leave by the port
    lost = sum(sum(counters[f"drop_{reason}"][vc] for vc in to) for reason in ("full", "epd", "ppd"))
    assert counts.lost == lost > 0
    assert counts.came == sum(counters["accepted"][vc] for vc in to) + lost == 5 * 80
    assert counts.queue == 0 and sum(monitor.heights()) == counts.cycles > 0
    assert sum(monitor.heights()) == 0  # cleared


def test_a_run_stops_at_the_level_and_when_the_queue_is_empty():
    made, switch, nics, vcs = network(cells=100)
    monitor = made.monitor_queue(switch, 2)
    made.start()
    monitor.arm(7, True)
    send(made, nics, vcs)
    (event,) = (e for e in made.run(10**12) if e.nic == switch.index)
    assert (event.status, event.vc) == (PduStatus.QUEUE_LEVEL, 2)
    assert monitor.counts.queue == 7 == monitor.counts.most and not monitor.counts.armed
    monitor.verify()
    assert event.time_ps == made.now_ps
    monitor.arm(0, True)
    found = []
    while not found:
        found = [e for e in made.run(10**12) if e.nic == switch.index]
    assert found[0].status == PduStatus.QUEUE_EMPTY
    assert monitor.counts.queue == 0 and monitor.counts.most >= 7 and int(switch.csr.occupancy) == 0


def test_a_monitor_that_is_not_armed_says_nothing():
    made, switch, nics, vcs = network()
    made.monitor_queue(switch, 2)
    send(made, nics, vcs)
    while events := made.run(10**12):
        assert all(e.nic != switch.index for e in events)


def test_a_network_has_one_monitor_at_a_port_that_is_there_before_it_runs():
    made, switch, *_ = network()
    with pytest.raises(NetworkError, match="has no port 3"):
        made.monitor_queue(switch, 3)
    made.monitor_queue(switch, 2)
    with pytest.raises(NetworkError, match="has a queue monitor already"):
        made.monitor_queue(switch, 1)
    other, switch, *_ = network()
    other.start()
    with pytest.raises(NetworkError, match="runs already"):
        other.monitor_queue(switch, 2)


def test_copies_of_cells_can_not_be_followed():
    made = Network()
    switch = made.add_switch("switch", ports=switch_ports((OC3C,) * 3))
    nics = [made.add_nic(f"host{k}", line=NicLine(OC3C)) for k in range(3)]
    for port, nic in enumerate(nics):
        made.connect(nic, (switch, port))
        made.connect((switch, port), nic)
    made.add_vc([nics[0], switch, nics[1]], 0, 40, branches=[[nics[0], switch, nics[2]]])
    monitor = made.monitor_queue(switch, 2)
    with pytest.raises(NetworkError, match="makes copies"):
        monitor.check()


def test_an_open_network_has_a_state_again_that_it_had():
    made, switch, nics, vcs = network()
    monitor = made.monitor_queue(switch, 2)
    made.trace()
    send(made, nics, vcs, 48 * 30)
    made.run(20 * SLOT_PS)
    taken, counts = made.take(), monitor.counts
    assert counts.queue > 0

    def to_the_end():
        events = []
        while found := made.run(10**10):
            events += [(e.time_ps, e.nic, e.vc, int(e.status)) for e in found]
        return events, made.digests(), monitor.counts, made.counters()

    first = to_the_end()
    made.give(taken)
    assert monitor.counts == counts
    monitor.verify()
    assert to_the_end() == first


def test_late_cells_are_those_of_the_switchs_histogram():
    """The switch counts delays in gates, in bins of 4 ticks. Its delays are shorter by a constant: it takes a cell and
    sends one some ticks after the monitor sees them."""
    histograms = HistogramSettings(bins="linear", delay_bin_ps=4 * TICK_PS)
    late = []
    for late_from in range(1, 260):
        made, switch, nics, vcs = network(cells=100, histograms=histograms)
        monitor = made.monitor_queue(switch, 2, late_from)
        made.start()
        send(made, nics, vcs)
        for _ in range(8):  # a state that is taken and given again has the cells that wait
            made.give(made.take())
            made.run(made.now_ps + 5 * SLOT_PS)
        assert monitor.counts.came == 20 and monitor.counts.queue == 0
        late.append(monitor.counts.late)
        if late[-1] == 0:
            break
    counted = dict(switch.counters()["delay_by_port"][2])
    waits = [wait for wait, (longer, more) in enumerate(pairwise(late), 1) for _ in range(longer - more)]
    assert len(waits) == sum(counted.values()) == 20
    assert [c for c in range(8) if Counter((wait - c) // 4 * 4 for wait in waits) == counted] != []
