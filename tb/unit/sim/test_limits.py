"""Tests that a network refuses what it cannot carry, or counts it where it happens, and that lines have clocks of their
own.
"""

import pytest

from bentpipe_hdl.nic.control import NicLine, PacingSettings
from bentpipe_hdl.switch.control import SwitchSettings
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from bentpipe_sim.nodes import Nic, Switch
from models.lines import switch_ports

OC12 = 599_040_000
OC3 = 149_760_000
MS = 10**9
TICK = 53e12 / 299_520_000  # ps


def pairs(count, rate, *, clock_ppm=0.0):
    """Hosts that each fill their line to a host of their own, over one switch."""
    network = Network()
    switch = network.add_switch("hub", ports=switch_ports(rates_bps=[rate] * 2 * count))
    sources = [network.add_nic(f"from{k}", line=NicLine(rate, clock_ppm=clock_ppm)) for k in range(count)]
    sinks = [network.add_nic(f"to{k}", line=NicLine(rate, clock_ppm=clock_ppm)) for k in range(count)]
    for port, nic in enumerate([*sources, *sinks]):
        network.connect(nic, (switch, port))
        network.connect((switch, port), nic)
    vcs = [network.add_vc([a, switch, b], 0, 32 + k) for k, (a, b) in enumerate(zip(sources, sinks, strict=True))]
    return network, switch, sources, sinks, vcs


def send(network, sources, vcs, pdus, length=9000):
    """All PDUs at once; when each ended."""
    for nic, vc in zip(sources, vcs, strict=True):
        for _ in range(pdus):
            network.send(nic.index, vc, b"", key=1, length=length)
    ends = []
    while network.now_ps < 40 * MS:
        ends += [event for event in network.run(40 * MS) if event.length == length]
    return ends


def test_lines_that_bring_more_than_a_switch_moves_are_refused():
    """Eight hosts at OC-12c to eight others: 16 lines of 599 Mb/s at a switch that moves four."""
    network, *_ = pairs(8, OC12)
    with pytest.raises(NetworkError, match=r"^switch hub: its lines bring up to 9584\.64 Mb/s .* moves 2396\.16 Mb/s"):
        network.start()


def test_a_switch_is_refused_for_what_its_lines_take_as_well():
    network = Network()
    hub = network.add_switch("hub", ports=switch_ports(rates_bps=[OC12] * 5))
    for port in range(5):
        nic = network.add_nic(f"nic{port}", line=NicLine(OC3))
        network.connect(nic, (hub, port))
        network.connect((hub, port), nic)
    with pytest.raises(NetworkError, match=r"^switch hub: its lines take up to 2995\.20 Mb/s"):
        network.start()


def test_a_switch_that_its_lines_just_fill_carries_all_in_time():
    """Two pairs of OC-12c, four lines in and out: each flow at its line's rate, no cell waits but for its turn."""
    network, _, sources, sinks, vcs = pairs(2, OC12)
    ends = send(network, sources, vcs, 100)
    cells = 100 * 188
    for sink in sinks:
        last = max(event.time_ps for event in ends if event.nic == sink.index)
        assert cells * 424 / OC12 < last / 1e12 < cells * 424 / OC12 + 20e-6
    assert len(ends) == 200
    assert network.stats()["hub"]["ingress_most"] <= 1
    network.check_conservation()


def test_sixteen_lines_have_equal_shares():
    """Eight pairs at OC-3c, all lines full: every transfer ends within a round of the others."""
    network, _, sources, sinks, vcs = pairs(8, OC3)
    ends = send(network, sources, vcs, 30)
    last = [max(event.time_ps for event in ends if event.nic == sink.index) for sink in sinks]
    assert len(ends) == 240
    assert max(last) - min(last) < 20 * 176_950
    assert min(last) / 1e12 == pytest.approx(30 * 188 * 424 / OC3, rel=1e-3)
    counters = network.counters()["hub"]
    assert 1 <= counters["ingress_most"] <= 2
    assert counters["drop_ingress"] == 0
    network.check_conservation()


def test_cells_that_come_at_once_are_taken_in_turn():
    """Three lines with one exact clock bring a cell each in the same tick: each line's comes first as often."""
    network = Network()
    hub = network.add_switch(
        "hub", SwitchSettings(processing_delay_ps=0), ports=switch_ports(rates_bps=[OC3, OC3, OC3, OC12])
    )
    sources = [network.add_nic(name) for name in "abc"]
    sink = network.add_nic("sink", line=NicLine(OC12))
    for port, nic in enumerate([*sources, sink]):
        network.connect(nic, (hub, port))
        network.connect((hub, port), nic)
    vcs = [network.add_vc([nic, hub, sink], 0, 32 + k) for k, nic in enumerate(sources)]
    order = [vcs.index(event.vc) for event in send(network, sources, vcs, 60, length=30)]
    rounds = [order[k : k + 3] for k in range(0, 180, 3)]
    assert all(sorted(each) == [0, 1, 2] for each in rounds)
    assert [sum(each[0] == k for each in rounds) for k in range(3)] == [20, 20, 20]


def test_one_of_two_cells_that_come_at_once_waits():
    network, _, sources, _, vcs = pairs(2, OC3)
    ends = send(network, sources, vcs, 1, length=30)
    assert network.stats()["hub"]["ingress_most"] == 1
    assert [event.vc for event in ends] == vcs


def ticks_of_three(delays, step):
    """Return when cells end that three lines of one exact clock and of these delays, in ticks, bring to a switch; the
    run is stopped so often.
    """
    network = Network()
    hub = network.add_switch(
        "hub", SwitchSettings(processing_delay_ps=0), ports=switch_ports(rates_bps=[OC3, OC3, OC3, OC12])
    )
    sources = [network.add_nic(name) for name in "abc"]
    sink = network.add_nic("sink", line=NicLine(OC12))
    for port, (nic, delay) in enumerate(zip([*sources, sink], [*delays, 0], strict=True)):
        network.connect(nic, (hub, port), delay_ps=int(delay * TICK))
        network.connect((hub, port), nic)
    vcs = [network.add_vc([nic, hub, sink], 0, 32 + k) for k, nic in enumerate(sources)]
    for nic, vc in zip(sources, vcs, strict=True):
        for _ in range(10):
            network.send(nic.index, vc, b"", key=1, length=30)
    ends, now = [], 0
    while now < 250:
        now += step
        while network.now_ps < int(now * TICK):
            ends += network.run(int(now * TICK))
        network.check_conservation()
    return [(round(event.time_ps / TICK), vcs.index(event.vc)) for event in ends if event.length == 30]


@pytest.mark.parametrize("delays", [(0, 0, 0), (0, 1, 2), (2, 1, 0), (1, 0, 5), (0, 3, 0)])
def test_cells_come_in_their_ticks_whatever_comes_besides_and_wherever_the_run_stops(delays):
    at_once = ticks_of_three(delays, 250)
    assert sorted(vc for _, vc in at_once) == [vc for vc in range(3) for _ in range(10)]
    assert ticks_of_three(delays, 1) == at_once
    if len(set(delays)) == 3:  # none waits for another but for the line's four ticks of a cell
        order = sorted(range(3), key=lambda k: delays[k])
        assert [vc for _, vc in at_once] == order * 10


def test_cells_that_find_an_input_full_are_counted_and_fail_the_run(monkeypatch):
    """The refusal left out: the switch falls behind, its inputs fill, what finds no place is counted."""
    monkeypatch.setattr(Switch, "check_rates", lambda self: None)
    network, _, sources, _, vcs = pairs(8, OC12)
    send(network, sources, vcs, 20)
    counters = network.counters()["hub"]
    assert counters["ingress_most"] == 8
    assert counters["drop_ingress"] > 1000
    assert network.stats()["hub"]["cells_in"] + counters["drop_ingress"] == 8 * 20 * 188
    with pytest.raises(NetworkError, match=r"^hub: \d+ cells found the 8 places of an input full$"):
        network.check_conservation()


def test_a_wire_that_holds_more_than_its_delay_and_rate_fails_the_run(monkeypatch):
    network = Network()
    a, b = network.add_nic("a"), network.add_nic("b")
    network.connect(a, b, delay_ps=MS)
    network.connect(b, a)
    vc = network.add_vc([a, b], 0, 32)
    network.send(a.index, vc, b"", key=1, length=60_000)
    network.run(10 * MS)
    network.check_conservation()
    monkeypatch.setattr(Nic, "spacing", lambda self, port: 2 * self.period)
    with pytest.raises(  # 353.2 cells in 1 ms, so 354 at most, and one that is being sent
        NetworkError, match=r"^the wire from a to b: 355 cells at once, and its rate and delay take \d+$"
    ):
        network.check_conservation()


@pytest.mark.parametrize("cell_rate_bps", [None, 140_000_000])
@pytest.mark.parametrize("ppm", [-20, 100])
def test_a_clock_that_is_off_moves_the_line_and_its_paced_vcs(ppm, cell_rate_bps):
    """PDUs of 34 ms take as much longer or shorter as the interface's clock is off, within a tick or two."""
    times = []
    for offset in (0, ppm):
        network = Network()
        a, b = network.add_nic("a", line=NicLine(clock_ppm=offset)), network.add_nic("b")
        network.connect(a, b)
        network.connect(b, a)
        vc = network.add_vc([a, b], 0, 32, pacing=PacingSettings(cell_rate_bps=cell_rate_bps))
        times.append(max(event.time_ps for event in send(network, [a], [vc], 60)))
    assert times[0] / times[1] - 1 == pytest.approx(ppm * 1e-6, abs=8e-6)


def test_a_clock_out_of_range_is_refused():
    with pytest.raises(NetworkError, match=r"^NIC a: a clock is from 1000 ppm slow to 1000 ppm fast, not 1001 ppm$"):
        Network().add_nic("a", line=NicLine(clock_ppm=1001))
    with (
        pytest.raises(NetworkError, match=r"^switch s: port_clock_ppm has a value for each of 4 ports$"),
        pytest.warns(DeprecationWarning),
    ):
        Network().add_switch("s", port_clock_ppm=[0, 1])
