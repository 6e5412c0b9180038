"""A cell arrives when its last bit does: each line of its path adds the time of a cell.

Expected times are exact numbers, worked out line by line. The network gives ticks, and rounds down once a line."""

import random
from fractions import Fraction

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine
from bentpipe_hdl.switch.control import PortSettings, SwitchSettings
from bentpipe_hdl.switch.options.reactive.control import ReactiveSettings
from bentpipe_sim.network import Network
from models.lines import switch_ports

MS = 10**9
S = 10**12
TICK = Fraction(53 * S, 299_520_000)
OC3 = 149_760_000


def cell(rate_bps):
    """Picoseconds of a cell of 53 octets."""
    return Fraction(424 * S) / Fraction(rate_bps)


def both_ways(network, a, b):
    network.connect(a, b)
    network.connect(b, a)


def came(network, end_ps):
    """Return when PDUs arrived."""
    times = []
    while network.now_ps < end_ps:
        times += [event.time_ps for event in network.run(end_ps) if event.status == 0]
    network.check_conservation()
    return times


def send(network, nic, vc, cells=1):
    network.send(nic.index, vc, b"", key=1, length=48 * cells - 8)


def chain(rates, delay_ps=0, clock_ppm=0.0, **given):
    """A NIC and switches, each with a line of its rate, and links of a delay between switches; a NIC at the end."""
    network = Network(**given)
    source, sink = network.add_nic("source", line=NicLine(rates[0], clock_ppm=clock_ppm)), network.add_nic("sink")
    path, before = [source], source
    for k, rate in enumerate(rates[1:]):
        switch = network.add_switch(
            f"s{k}", SwitchSettings(processing_delay_ps=0), ports=switch_ports([OC3, rate], clocks_ppm=[0, clock_ppm])
        )
        if k and delay_ps:
            link = network.add_link(f"l{k}", LinkSettings(delay_ps=delay_ps))
            network.connect(before, link)
            path.append(link)
            before = link
        network.connect(before, (switch, 0))
        path.append(switch)
        before = switch, 1
    network.connect(before, sink)
    network.connect(sink, source)
    return network, source, network.add_vc([*path, sink], 0, 40)


def stored_and_forwarded(rates, cells, delay_ps=0):
    """Return when the last cell arrives, if all are there at 0: each line takes it when it has come and the line is
    free.
    """
    arrived = [Fraction(0)] * cells
    for k, rate in enumerate(rates):
        free = Fraction(0)
        for number, there in enumerate(arrived):
            free = max(free, there) + cell(rate)
            arrived[number] = free + (delay_ps if 0 < k < len(rates) - 1 else 0)
    return arrived[-1]


@pytest.mark.parametrize("engine", ["native", "verilator"])
@pytest.mark.parametrize(
    ("rates", "delay_ps", "clock_ppm"),
    [
        ([64_000], 0, 0.0),
        ([64_000], 0, -1000.0),
        ([64_000] * 4, 0, 0.0),
        ([1_000_000, 64_000, 2_000_000, OC3], 0, 0.0),
        ([OC3] * 4, 0, 0.0),
        ([64_000, 1_000_000, 64_000, OC3], 20 * MS, 0.0),
        ([64_000] * 3, 0, 1000.0),
    ],
)
def test_each_line_adds_the_time_of_a_cell(engine, rates, delay_ps, clock_ppm):
    network, source, vc = chain(rates, delay_ps, clock_ppm, engine=engine)
    exact = [rate * (1 + Fraction(clock_ppm) / 10**6) for rate in rates]
    for cells in (1, 3):
        began = network.now_ps
        send(network, source, vc, cells)
        (time,) = came(network, began + S)
        assert abs(time - began - stored_and_forwarded(exact, cells, delay_ps)) < (len(rates) + 3) * TICK


@pytest.mark.parametrize("names", [("slow", "fast", "far"), ("far", "fast", "slow"), ("slow", "far")])
def test_a_cell_arrives_before_one_that_was_given_earlier_at_another_input(names):
    """The event loop may hold the slow line's cell at the switch's input when the others are given."""
    network = Network()
    nics = {
        name: network.add_nic(name, line=NicLine(1_000_000 if name == "slow" else OC3, clock_ppm=0.0)) for name in names
    }
    sink = network.add_nic("sink")
    switch = network.add_switch(
        "switch", SwitchSettings(processing_delay_ps=0), ports=switch_ports([OC3] * 4, clocks_ppm=[0] * 4)
    )
    link = network.add_link("link", LinkSettings(delay_ps=MS // 50))
    both_ways(network, sink, (switch, 3))
    vcs = {}
    for port, (name, nic) in enumerate(nics.items()):
        network.connect((switch, port), nic)
        path = [nic, link, switch, sink] if name == "far" else [nic, switch, sink]
        network.connect(nic, path[1] if name == "far" else (switch, port))
        if name == "far":
            network.connect(link, (switch, port))
        vcs[name] = network.add_vc(path, 0, 40 + port)
    began = network.now_ps
    for name, nic in nics.items():
        send(network, nic, vcs[name])
    ways = {"fast": 2 * cell(OC3), "far": 2 * cell(OC3) + MS // 50, "slow": cell(1_000_000) + cell(OC3)}
    events = []
    while network.now_ps < began + MS:
        events += network.run(began + MS)
    network.check_conservation()
    for event, name in zip(events, sorted(names, key=ways.__getitem__), strict=True):
        assert (event.status, event.vc) == (0, names.index(name))  # the sink numbers VCs as they are made
        assert abs(event.time_ps - began - ways[name]) < 6 * TICK


def test_a_sonet_line_counts_the_time_of_its_octets_itself():
    network = Network()
    source, sink = network.add_nic("source", line=NicLine(1_000_000)), network.add_nic("sink")
    line = network.add_sonet_line("line")
    for nic, end in ((source, 0), (sink, 1)):
        network.connect(nic, (line, end))
        network.connect((line, end), nic)
    vc = network.add_vc([source, line, sink], 0, 40)
    network.run(20 * MS)  # both receivers have found their frames
    began = network.now_ps
    send(network, source, vc)
    (time,) = came(network, began + 20 * MS)
    assert cell(OC3) <= time - began < cell(1_000_000) / 4


def reactive(initial_bps, up_bps=0, down_bps=0, ceiling_bps=1_000_000, floor_bps=20_000):
    """A VC through a port whose capacity changes at looks 5 ms apart: it grows, whatever is queued, or shrinks."""
    grows = {"low": 0, "high": 0} if up_bps else {"low": 48_000, "high": 48_000}
    given = ReactiveSettings(
        floor_bps=floor_bps, ceiling_bps=ceiling_bps, initial_bps=initial_bps, up_bps=up_bps, down_bps=down_bps,
        interval_ps=5 * MS, **grows,
    )  # fmt: skip
    network = Network()
    switch = network.add_switch(
        "s",
        SwitchSettings(processing_delay_ps=0),
        ports=switch_ports([OC3] * 2, settings={1: PortSettings(reactive=given)}),
    )
    source, sink = network.add_nic("source"), network.add_nic("sink")
    both_ways(network, source, (switch, 0))
    both_ways(network, sink, (switch, 1))
    return network, switch, source, network.add_vc([source, switch, sink], 0, 40)


def test_a_cell_has_the_capacity_that_its_port_had_when_it_began():
    """From 20 kb/s to 1 Mb/s while the first of three cells is being sent, and from 1 Mb/s to 20 kb/s."""
    network, switch, source, vc = reactive(20_000, up_bps=980_000)
    network.run(MS)
    for _ in range(3):
        send(network, source, vc)
    times = came(network, 60 * MS)
    first = MS + cell(OC3) + cell(20_000)
    expected = [first + k * cell(1_000_000) for k in range(3)]
    assert all(abs(time - exact) < 5 * TICK for time, exact in zip(times, expected, strict=True))
    assert switch.csr.rate_capacity[1] == 1000

    network, switch, source, vc = reactive(1_000_000, down_bps=980_000)
    network.run(round(4.9 * MS))
    for _ in range(3):
        send(network, source, vc)
    times = came(network, 100 * MS)
    first = Fraction(4.9 * MS) + cell(OC3) + cell(1_000_000)
    expected = [first + k * cell(20_000) for k in range(3)]
    assert all(abs(time - exact) < 5 * TICK for time, exact in zip(times, expected, strict=True))
    assert switch.csr.rate_capacity[1] == 20


@pytest.mark.parametrize("link", [False, True], ids=["straight", "by a link"])
def test_no_cell_overtakes_one_that_began_at_a_lower_rate(link):
    """A port's rate is raised while its only cell is being sent: the next one begins when that has ended."""
    network = Network()
    source, sink = network.add_nic("source"), network.add_nic("sink")
    switch = network.add_switch("s", SwitchSettings(processing_delay_ps=0), ports=switch_ports([OC3, 64_000]))
    both_ways(network, source, (switch, 0))
    path = [source, switch, sink]
    if link:
        path.insert(2, network.add_link("line", LinkSettings(delay_ps=MS)))
    for before, behind in zip([(switch, 1), *path[2:]], path[2:], strict=False):
        network.connect(before, behind)
    vc = network.add_vc(path, 0, 40)
    send(network, source, vc)
    network.run(MS)
    switch.change_port(1, OC3, PortSettings())
    send(network, source, vc)
    times = came(network, 20 * MS)
    first = cell(OC3) + cell(64_000) + (MS if link else 0)
    assert all(abs(time - exact) < 6 * TICK for time, exact in zip(times, (first, first + cell(OC3)), strict=True))


@pytest.mark.parametrize("hops", [4, 8])
def test_a_state_in_the_middle_of_a_cell_goes_on_as_the_run_does(hops):
    """Taken and given back while cells are being sent on each of the lines; the wires' accounts hold then, too.
    With 8 hops there are more nodes than the small event queue holds."""
    rng = random.Random(3)
    seen = []
    for taken in (False, True):
        network, source, vc = chain([1_000_000, 500_000, 800_000, 600_000][:hops] * (hops // 4), 2 * MS)
        assert (len(network.nodes) > 8) == (hops > 4)
        for cells in (1, 4, 2):
            send(network, source, vc, cells)
        times = []
        while network.now_ps < 5 * hops * MS:
            times += [event.time_ps for event in network.run(network.now_ps + rng.randrange(1, 300_000_000))]
            network.check_conservation()
            if taken:
                state = network.take()
                before = network.run(network.now_ps + 10**8)
                if not before:
                    network.give(state)
                times += [event.time_ps for event in before]
        seen.append(times)
    assert seen[0] == seen[1] and len(seen[0]) == 3
