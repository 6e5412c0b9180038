"""The network builder's errors, conservation, repeatability, and that only the digest of the cells counts."""

import dataclasses

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine, NicSettings, PacingSettings
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_hdl.ticks import cell_period, ps_to_ticks, ticks_to_ps
from bentpipe_sim.errors import NetworkError, SimulationError
from bentpipe_sim.interface import PduStatus
from bentpipe_sim.network import Network
from models.lines import switch_ports

MS = 10**9


def satellite(*, engine=None, seed=1, ber=1e-5, start=True, reassembly_timeout_ps=0):
    """A NIC, a switch, a link with errors, a switch, a NIC; the second VC shares the line and overruns the buffer."""
    network = Network(seed=seed, engine=engine)
    a, b, c = (network.add_nic(name, NicSettings(reassembly_timeout_ps=reassembly_timeout_ps)) for name in "abc")
    west = network.add_switch("west", SwitchSettings(buffer_cells=512, epd_threshold=300))
    east = network.add_switch("east", SwitchSettings(buffer_cells=512))
    out = network.add_link("out", LinkSettings(delay_ps=2 * MS, ber=ber))
    back = network.add_link("back", LinkSettings(delay_ps=2 * MS))
    for node, face in ((a, (west, 0)), (c, (west, 1)), (b, (east, 0))):
        network.connect(node, face)
        network.connect(face, node)
    network.connect((west, 3), out)
    network.connect(out, (east, 3))
    network.connect((east, 3), back)
    network.connect(back, (west, 3))
    vcs = (
        network.add_vc([a, west, out, east, b], 0, 100),
        network.add_vc([c, west, out, east, b], 1, 200, VcSettings(policy="ppd", limit=200)),
        network.add_vc([b, east, back, west, a], 0, 101),
    )
    if start:
        network.start()
    return network, (a, b, c), vcs


def run(network, nics, vcs):
    """Two senders, 60 PDUs each; everything that arrives, and the digests of all faces."""
    network.trace()
    a, _, c = nics
    for k in range(60):
        network.send(a.index, vcs[0], b"first", key=1, offset=1000 * k, length=4000)
        network.send(c.index, vcs[1], b"second", key=2, offset=500 * k, length=1500 + 17 * k)
    events = []
    while network.now_ps < 60 * MS:
        events += network.run(60 * MS)
    network.check_conservation()
    return events, network.digests(), network.counters()


def test_each_output_has_a_digest_of_its_own():
    network, (a, b, _), vcs = satellite(ber=0)
    network.trace()
    of = {
        "there": {("a", 0), ("west", 3), ("out", 0), ("east", 0)},
        "back": {("b", 0), ("east", 3), ("back", 0), ("west", 0)},
    }
    network.send(a.index, vcs[0], b"there", key=1, offset=0, length=4000)
    network.run(10 * MS)
    there = network.digests()
    assert {output for output, digest in there.items() if digest} == of["there"]
    network.send(b.index, vcs[2], b"back", key=1, offset=0, length=4000)
    network.run(20 * MS)
    both = network.digests()
    assert {output for output, digest in both.items() if digest} == of["there"] | of["back"]
    assert {output: both[output] for output in of["there"]} == {output: there[output] for output in of["there"]}


def test_a_node_is_evaluated_when_a_cell_comes_and_when_one_goes():
    network, nics, vcs = satellite()
    network.send(nics[0].index, vcs[0], b"head", length=40_000)
    network.run(60 * MS)
    stats = network.stats()
    sends, passes, receives = (stats[name] for name in ("a", "west", "b"))
    assert sends["cells_in"] == 0
    assert receives["evaluations"] == receives["cells_in"] == 834
    assert 0 <= sends["evaluations"] - sends["cells_out"] < 5
    assert passes["evaluations"] == passes["cells_in"] + passes["cells_out"]


def test_the_same_seed_gives_the_same_cells_at_the_same_ticks():
    first, second, other = (run(*satellite(seed=seed)) for seed in (1, 1, 2))
    assert first == second
    assert first[1] != other[1]
    counters = first[2]
    assert counters["out"]["errored"] > 0
    assert sum(counters["west"]["drop_epd"]) > 0


def test_the_public_interface_of_verilator_gives_the_same():
    assert run(*satellite()) == run(*satellite(engine="verilator"))


def test_a_bit_error_ratio_changed_in_a_run():
    """None, then 1e-12, then 1e-3, then none: errors come with the third, at once and at its rate."""
    network, nics, vcs = satellite(ber=0)
    (out,) = (node for node in network.nodes if node.name == "out")
    hit = []
    for k, ber in enumerate((0, 1e-12, 1e-3, 0)):
        out.change(ber=ber)
        before = out.counters()
        network.send(nics[0].index, vcs[0], b"head", key=9, length=60000)
        network.run((k + 1) * 30 * MS)
        network.run((k + 1) * 30 * MS)
        after = out.counters()
        hit.append(after["error_bits"] - before["error_bits"])
        assert after["cells"] - before["cells"] == 1251
    mean = 1250 * 0.424
    assert hit[:2] == [0, 0] and hit[3] == 0
    assert abs(hit[2] - mean) < 5 * mean**0.5
    with pytest.raises(NetworkError, match=r"^link out: ber: 0\.01 is out of range: 0, or 1e-15 to 0\.001$"):
        out.change(ber=0.01)
    with pytest.raises(NetworkError, match=r"^link out is built without a delay that changes: "):
        out.change(delay_ps=7 * MS)


def test_a_vc_whose_pace_changes_keeps_all_else():
    _network, nics, _ = satellite(ber=0, start=False)
    source = nics[0]
    index = next(iter(source.sends))
    source.sends[index] = dataclasses.replace(source.sends[index], credits=7, back=3)
    before = source.sends[index]
    source.change_send(index, 1e6)
    after = source.sends[index]
    assert after == dataclasses.replace(before, period=after.period) and after.period > before.period


def test_data_that_arrives_is_right():
    network, nics, vcs = satellite(ber=0)
    network.send(nics[0].index, vcs[0], b"head", key=9, offset=5, length=9000)
    (event,) = network.run(60 * MS)
    assert (event.nic, event.vc, event.length, event.status) == (nics[1].index, vcs[0], 9004, 0)
    assert network.check(event.handle, 4, 9, 5, 9000)
    # 188 cells of 2.8312 us, 2 ms, two switches of 5 us and a cell time each
    assert 2.5 * MS < event.time_ps < 2.6 * MS


def test_any_vpi_vci_beside_any_other():
    """Every number of VPI/VCI whose exclusive or has the low bits of 0/32, as many as the nodes have VCs."""
    network, (a, b, _), _ = satellite(ber=0, start=False)
    path = [network.nodes[k] for k in (0, 3, 5, 4, 1)]
    names = [(0, 32), (1, 33), (2, 34), (0, 288), (0, 544), (255, 223), (255, 65503)]
    names += [(k, 256 * k + (k ^ 32)) for k in range(3, 57)]
    vcs = [network.add_vc(path, *name) for name in names]
    assert {node.shape().parameters[-1] for node in network.nodes if node.kind != "link"} == {("vcs", 64)}
    network.nodes[5].lose(0, 32, pdus=[2])
    network.nodes[5].lose(1, 33, pdus=[1])
    for _ in range(2):
        for k, vc in enumerate(vcs):
            network.send(a.index, vc, bytes([k]) * 30)
    events = []
    while network.now_ps < 60 * MS:
        events += network.run(60 * MS)
    wanted = sorted([*range(len(vcs))] * 2)
    wanted.remove(0)
    wanted.remove(1)
    assert sorted(e.head[0] for e in events) == wanted
    assert {(e.nic, vcs[e.head[0]]) for e in events} == {(b.index, e.vc) for e in events}
    network.check_conservation()


def test_the_other_way_of_a_vc_is_the_first_that_has_none():
    network, _, _ = satellite(start=False)
    forth, back = ([network.nodes[k] for k in path] for path in ((0, 3, 5, 4, 1), (1, 4, 6, 3, 0)))
    for k, path in enumerate((forth, back, forth, forth, back, back, forth)):
        network.add_vc(path, 2, 40 + k)
    ways = {channel.vci: channel.back and channel.back.vci for channel in network._channels}
    assert ways == {100: 101, 101: 100, 200: None, 40: 41, 41: 40, 42: 44, 44: 42, 43: 45, 45: 43, 46: None}


def test_more_vcs_than_a_node_has_are_refused():
    network, _, _ = satellite(start=False)
    path = [network.nodes[k] for k in (0, 3, 5, 4, 1)]
    with pytest.raises(NetworkError, match="a: 4097 VCs are more than 4096"):
        for k in range(4096):
            network.add_vc(path, 2, 32 + k)


def test_a_reassembly_timer_gives_up_a_pdu_without_its_end():
    """A PDU whose last cell is lost: the one after it is whole, and the loss has one cause."""
    network, (a, b, _), vcs = satellite(ber=0, start=False, reassembly_timeout_ps=10 * MS)
    network.nodes[5].lose(0, 100, cells=[21])
    network.send(a.index, vcs[0], bytes(1000))
    (event,) = network.run(30 * MS)
    assert (event.nic, event.vc, event.status, event.length) == (b.index, vcs[0], PduStatus.TIMEOUT, 0)
    assert 12 * MS <= event.time_ps <= 14.6 * MS
    assert network.run(30 * MS) == []
    network.send(a.index, vcs[0], bytes(1000))
    assert [e.status for e in network.run(60 * MS)] == [PduStatus.OK]
    network.check_conservation()
    assert network.counters()["b"]["pdus_timeout"] == [1, 0]
    assert network.ledger()[0].lost == {("out", "listed loss"): 1}


def test_a_pdu_that_takes_longer_than_the_reassembly_timer_is_lost_by_it():
    network, (a, *_), _ = satellite(ber=0, start=False, reassembly_timeout_ps=10 * MS)
    path = [network.nodes[k] for k in (0, 3, 5, 4, 1)]
    vc = network.add_vc(path, 2, 300, pacing=PacingSettings(cell_rate_bps=424 * 1000))  # a cell a millisecond
    network.send(a.index, vc, bytes(48 * 15))
    statuses = [e.status for _ in range(2) for e in network.run(100 * MS)]
    assert statuses == [PduStatus.TIMEOUT, PduStatus.LENGTH]
    assert network.ledger()[-1].lost == {("b", "reassembly timer"): 1}


def test_simulated_time_ends_before_the_ticks_wrap():
    network, *_ = satellite(ber=0)
    with pytest.raises(SimulationError, match=r"simulated time ends after 1\.5 years"):
        network.run(50 * 10**6 * 10**12)


def test_listed_losses():
    """The second and fourth PDU of one VC, the first cell of another; nothing else, and the account balances."""
    network, nics, vcs = satellite(ber=0, start=False)
    out, back = network.nodes[5:7]
    out.lose(0, 100, pdus=[4, 2])
    back.lose(0, 101, cells=[1])
    network.start()
    for k in range(6):
        network.send(nics[0].index, vcs[0], bytes([k]) * 500)
        network.send(nics[1].index, vcs[2], bytes([k]) * 500)
    events = []
    while network.now_ps < 60 * MS:
        events += network.run(60 * MS)
    forth = [(e.head[0], e.status) for e in events if e.nic == nics[1].index]
    assert forth == [(k, PduStatus.OK) for k in (0, 2, 4, 5)]
    statuses = [e.status for e in events if e.nic == nics[0].index]
    assert statuses == [PduStatus.LENGTH, *[PduStatus.OK] * 5]
    network.check_conservation()
    counters = network.counters()
    assert (counters["out"]["drop_listed"], counters["back"]["drop_listed"]) == (22, 1)


def test_pdus_are_reported_as_sent_where_that_is_asked_for():
    network, (a, _, c), vcs = satellite(ber=0)
    network.report_sent(a.index)
    for _ in range(2):
        network.send(a.index, vcs[0], b"x" * 1000)
        network.send(c.index, vcs[1], b"y" * 1000)
    events = []
    while network.now_ps < 60 * MS:
        events += network.run(60 * MS)
    sent = [e for e in events if e.status == PduStatus.SENT]
    assert [(e.nic, e.vc, e.length) for e in sent] == [(a.index, vcs[0], 1000)] * 2
    # 21 cells a PDU, back to back
    assert abs(sent[1].time_ps - sent[0].time_ps - 21 * 2_831_197) < 2 * 176_950
    assert len(events) == 6


def test_a_run_may_bring_more_events_than_any_before():
    network = Network()
    pairs = []
    for k in range(4):
        one, two = (network.add_nic(f"{name}{k}") for name in ("one", "two"))
        network.connect(one, two)
        network.connect(two, one)
        pairs.append((one.index, two.index, network.add_vc([one, two], 0, 100)))
    for together in (pairs[3:], pairs[:3]):
        for one, _, vc in together:
            network.send(one, vc, bytes([one]) * 40)
        events = network.run(network.now_ps + MS)
        assert [(event.nic, event.head) for event in events] == [(two, bytes([one]) * 40) for one, two, _ in together]


@pytest.mark.parametrize("what", ["lost", "doubled"])
def test_a_cell_that_is_not_accounted_for_is_an_error(what):
    network, nics, vcs = satellite(ber=0)
    network.send(nics[0].index, vcs[0], b"x" * 1000)
    network.run(60 * MS)
    network.check_conservation()
    real = network.stats

    def stats():
        found = real()
        found["out"]["cells_out"] += 1 if what == "doubled" else -1
        return found

    network.stats = stats
    with pytest.raises(NetworkError, match="out: cells got lost or doubled"):
        network.check_conservation()


@pytest.mark.parametrize(
    ("call", "settings", "message"),
    [
        ("add_nic", {"reassembly_timeout_ps": 400 * 10**12}, "timeout_ps: 4.* is out of range 0 s to 380 s"),
        ("add_switch", {"buffer_cells": 0}, r"^switch n: buffer_cells: 0 is out of range 1..65535$"),
        ("add_switch", {"epd_threshold": 9000}, "epd_threshold: 9000 cells are more than"),
        ("add_switch", {"oam_reserve": 8192}, "oam_reserve: 8192 are all cells of the buffer"),
        ("add_link", {"delay_ps": -1}, "link n: delay_ps: -1 is out of range 0 s to 1 s"),
        ("add_link", {"ber": 0.01}, "ber: 0.01 is out of range: 0, or 1e-15 to 0.001"),
        ("add_link", {"speed": 1}, "speed: unknown key"),
        ("add_sonet_line", {"sts": 9}, "sts: "),
    ],
)
def test_settings_as_keyword_arguments_are_refused_in_a_line(call, settings, message):
    with pytest.raises(NetworkError, match=message), pytest.warns(DeprecationWarning):
        getattr(Network(), call)("n", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"policy": "red"}, "policy: unknown value 'red'"), ({"cell_rate_bps": -1}, "a rate must be positive")],
)
def test_a_vcs_settings_as_keyword_arguments_are_refused_in_a_line(settings, message):
    network, (a, b, _), _ = satellite(start=False)
    west, out, east = network.nodes[3], network.nodes[5], network.nodes[4]
    with pytest.raises(NetworkError, match=message), pytest.warns(DeprecationWarning):
        network.add_vc([a, west, out, east, b], 0, 90, **settings)


def test_errors_of_the_builder():
    network, nics, _ = satellite(start=False)
    west, out, east = network.nodes[3], network.nodes[5], network.nodes[4]
    a, b, c = nics
    cases = [
        (lambda: network.add_nic("a"), "two nodes are called a"),
        (lambda: network.add_nic("fast", line=NicLine(3e9)), "NIC fast: a line carries at most 2396.16 Mb/s"),
        (lambda: network.add_nic("still", line=NicLine(0)), "NIC still: a rate must be positive"),
        (lambda: network.add_switch("s", ports=switch_ports(rates_bps=[])), "from 1 to 16 ports"),
        (lambda: out.lose(0, 100), "give the numbers of PDUs or of cells"),
        (lambda: out.lose(0, 100, pdus=[0]), "numbers start at 1, not 0"),
        (lambda: network.connect(a, (west, 2)), "output 0 of a is connected twice"),
        (lambda: network.connect((west, 2), b), "input 0 of b is connected twice"),
        (lambda: network.connect((west, 4), b), "west has no port 4"),
        (lambda: network.add_vc([a, east, b], 0, 300), "a is not connected to east"),
        (lambda: network.add_vc([a, west, out, east], 0, 300), "from a NIC to a NIC"),
        (
            lambda: network.add_vc([a, west, out, east, network.nodes[6], west, out, east, b], 0, 91),
            "passes the line from west to out twice, both times as VPI/VCI 0/91",
        ),
        (lambda: network.add_vc([a, west, out, east, b], 0, 31), "VCI from 32"),
        (lambda: network.add_vc([a, west, out, east, b], 300, 40), "needs NNI lines"),
        (lambda: network.add_vc([a, west, out, east, b], 0, 100), "0/100 is used twice at port 0 of west"),
        (lambda: network.add_vc([a, west, out, east, b], 0, 90, max_sdu=70000), "1 to 65535 octets"),
    ]
    for action, message in cases:
        with pytest.raises(NetworkError, match=message):
            action()
    assert len(network.nodes) == 7 and not west.outputs.keys() - {0, 1, 3}
    network.start()
    with pytest.raises(NetworkError, match="runs already"):
        network.add_nic("late")
    with pytest.raises(SimulationError, match="1 to 65535 octets"):
        network.send(a.index, 0, b"")
    assert c.index == 2


def test_a_network_that_is_refused_keeps_its_vcs():
    network, (a, _, b), _ = satellite(start=False)
    before = [len(node.vcs) for node in network.nodes if node.kind == "switch"]
    with pytest.raises(NetworkError):
        network.add_vc([a, *network.nodes[3:4], b], 0, 100)
    assert before == [len(node.vcs) for node in network.nodes if node.kind == "switch"]


def test_ticks_and_picoseconds():
    assert ticks_to_ps(299_520_000) == 53 * 10**12
    for tick in (0, 1, 2, 12345, 10**12 + 7):
        assert ps_to_ticks(ticks_to_ps(tick)) == tick
        assert tick == 0 or ps_to_ticks(ticks_to_ps(tick) - 1) == tick - 1
    assert cell_period(149_760_000) == 16 << 16
    assert cell_period(599_040_000) == 4 << 16
    assert abs(cell_period(40_704_000) / 65536 - 2396.16e6 / 40.704e6) < 1e-5
