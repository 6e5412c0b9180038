"""Credits in networks: nothing is lost to full buffers, the rate that they allow, and what lost cells cost."""

import itertools
import random

import pytest
from pydantic import ValidationError

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine, NicSettings
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_hdl.switch.registers import REASONS
from bentpipe_hdl.ticks import ticks_to_ps
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from models.lines import switch_ports

MS = 10**9
OC3C = 149_760_000
CELL_PS = 424 * 10**12 // OC3C


def one_switch(share=0, *, delay_ps=MS // 10, rate_bps=OC3C, sonet=False, **credits):
    """A sender, a line, a switch, a receiver: with a ``share`` the VC has credits."""
    network = Network(seed=1)
    a, b = network.add_nic("a"), network.add_nic("b")
    given = {"credits": {"share": share} | credits} if share else {}
    switch = network.add_switch(
        "switch", SwitchSettings(buffer_cells=2048, **given), ports=switch_ports((OC3C, rate_bps))
    )
    if sonet:
        line = network.add_sonet_line("line")
        for face, port in ((a, 0), ((switch, 0), 1)):
            network.connect(face, (line, port), delay_ps)
            network.connect((line, port), face)
        out = back = line
    else:
        out, back = (network.add_link(name, LinkSettings(delay_ps=delay_ps)) for name in ("out", "back"))
        for ends in ((a, out), (out, (switch, 0)), ((switch, 0), back), (back, a)):
            network.connect(*ends)
    network.connect(b, (switch, 1))
    network.connect((switch, 1), b)
    vc = network.add_vc([a, out, switch, b], 0, 100)
    network.add_vc([b, switch, back, a], 0, 101)
    return network, a, b, switch, vc


def run(network, until_ps):
    events = []
    while network.now_ps < until_ps:
        events += network.run(until_ps)
    network.check_conservation()
    return events


@pytest.mark.parametrize("sonet", [False, True])
def test_a_vc_with_credits_loses_nothing_at_a_slower_port_and_fills_it(sonet):
    """A quarter of the line's rate, and a fifth of the time the line takes to say so in places."""
    rate_bps, pdus = OC3C // 4, 20
    finished = {}
    for share in (0, 64):
        network, a, b, switch, vc = one_switch(share, rate_bps=rate_bps, delay_ps=MS // 100, sonet=sonet)
        for k in range(pdus):
            network.send(a.index, vc, b"", key=1, offset=9000 * k, length=9000)
        events = run(network, 60 * MS)
        good = [event for event in events if event.nic == b.index and event.status == 0]
        finished[share] = len(good), good[-1].time_ps
        found = switch.counters()
        assert sum(found["drop_epd"]) == 0 if share else sum(found["drop_epd"]) > 500
        assert found["high_water"] <= share if share else found["high_water"] > 1000
    assert finished[0][0] < pdus
    assert finished[64][0] == pdus
    assert finished[64][1] < pdus * 188 * 424 * 10**12 // rate_bps + MS // 5


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("part", [0.25, 0.5, 0.9, 1.1])
def test_the_rate_is_what_the_places_bring_in_a_round_trip(batch, part):
    """``C T / (R + (N - 1) T)`` of the line's rate, and never more than all of it."""
    delay_ps, processing_ps = MS // 2, 5_000_000
    # A cell and its credit on their lines, both idle ports, and some ticks in which nodes take what came
    round_trip = 2 * (CELL_PS + delay_ps + processing_ps) + ticks_to_ps(4)
    share = round(part * (round_trip / CELL_PS + batch - 1) / batch) * batch
    expected = min(1.0, share * CELL_PS / (round_trip + (batch - 1) * CELL_PS))
    network, a, b, _, vc = one_switch(share, delay_ps=delay_ps, batch=batch)
    for k in range(60):
        network.send(a.index, vc, b"", key=1, offset=9000 * k, length=9000)
    times = [event.time_ps for event in run(network, 150 * MS) if event.nic == b.index and event.status == 0]
    assert len(times) == 60
    rate = 188 * CELL_PS * 50 / (times[-1] - times[9])
    assert rate == pytest.approx(expected, rel=0.015)


def two_switches(seed, *, ber, share, batch):
    """Two hosts at each of two switches, all lines with delay and errors; each host has a VC to each far one."""
    network = Network(seed=seed)
    nodes = {name: network.add_nic(name) for name in "abcd"}
    for name, slow in (("west", 60_000_000), ("east", 40_000_000)):
        credits = {"share": share, "batch": batch}
        nodes[name] = network.add_switch(
            name, SwitchSettings(buffer_cells=8 * share, credits=credits), ports=switch_ports((OC3C, slow, OC3C))
        )
    links = {}

    def line(one, face, other, far):
        for x, y, start, end in ((one, other, face, far), (other, one, far, face)):
            links[x, y] = network.add_link(f"{x}-{y}", LinkSettings(delay_ps=MS // 10, ber=ber))
            network.connect(start, links[x, y])
            network.connect(links[x, y], end)

    west, east = nodes["west"], nodes["east"]
    line("a", nodes["a"], "west", (west, 0))
    line("c", nodes["c"], "west", (west, 1))
    line("b", nodes["b"], "east", (east, 0))
    line("d", nodes["d"], "east", (east, 1))
    line("west", (west, 2), "east", (east, 2))
    vcs = {}
    for number, (x, y) in enumerate((x, y) for x in "ac" for y in "bd"):
        for k, names in enumerate(((x, "west", "east", y), (y, "east", "west", x))):
            path = [nodes[names[0]]]
            for here, there in itertools.pairwise(names):
                path += [links[here, there], nodes[there]]
            vcs[names[0] + names[-1]] = network.add_vc(path, 0, 100 + 2 * number + k)
    return network, nodes, links, vcs


def exchange(seed, *, ber, pdus, until_ps, share=96, batch=8):
    """Random traffic both ways through two switches, cells lost by list, bit errors in data, credit cells, probes: no
    switch drops a cell, no VC stops, and of each all cells are accounted for in the end. What the nodes counted."""
    network, nodes, links, vcs = two_switches(seed, ber=ber, share=share, batch=batch)
    rng = random.Random(seed)
    for link, vci in ((("west", "east"), 100), (("a", "west"), 100), (("east", "west"), 101), (("c", "west"), 106)):
        links[link].lose(0, vci, cells=rng.sample(range(1, 50 * pdus), 60))
    offsets = dict.fromkeys(vcs, 0)
    for _ in range(pdus):
        for vc, index in vcs.items():
            length = rng.choice([40, 1500, 4000, 9000])
            network.send(nodes[vc[0]].index, index, b"", key=1, offset=offsets[vc], length=length)
            offsets[vc] += length
    run(network, until_ps)
    for account in network.ledger():
        assert account.sent == pdus
        assert sum(account.lost.values()) == account.sent - account.delivered
        assert not any(why in ("full", "EPD", "PPD", "under way") for _, why in account.lost), account
    found = network.counters()
    for name in ("west", "east"):
        assert not any(sum(found[name][f"drop_{reason}"]) for reason in REASONS)
        assert found[name]["occupancy"] == 0
        assert found[name]["credit_holds"] > 0
        for k, vc in enumerate(nodes[name].vcs):
            assert not vc.credits_out or found[name]["credit_freed"][k] == found[name]["departed"][k]
    for name in "abcd":
        assert found[name]["credit_freed"] == found[name]["tx_cells"]
        assert found[name]["credit_holds"] > 0
        assert found[name]["credit_cells_late"] == 0
    assert sum(found["west"]["credit_lost"]) >= 60
    return found


@pytest.mark.parametrize(("seed", "ber"), [(1, 0), (2, 1e-5), (3, 3e-4)])
def test_nothing_is_lost_to_a_full_buffer_and_all_is_freed_in_the_end(seed, ber):
    found = exchange(seed, ber=ber, pdus=40, until_ps=200 * MS)
    bad = sum(found[name]["credit_cells_bad"] for name in found if "credit_cells_bad" in found[name])
    assert bad == 0 if ber == 0 else bad > (10 if ber < 1e-4 else 500)
    assert [found[name]["credit_skipped"] for name in ("west", "east")] == [0, 0]


def test_the_ledger_knows_lost_cells_among_lost_probes():
    """PDUs of a cell each, with a probe every few of them on a line with many errors; some are lost behind it, too. One
    that is taken for another has no cause then, which is an error."""
    network = Network(seed=5)
    a, b = network.add_nic("a", NicSettings(credit_resync_ps=10**7)), network.add_nic("b")
    switch = network.add_switch("switch", SwitchSettings(credits={"share": 64}), ports=switch_ports((OC3C, OC3C // 4)))
    out, down = (
        network.add_link("out", LinkSettings(delay_ps=MS // 10, ber=1e-3)),
        network.add_link("down", LinkSettings(delay_ps=MS // 10)),
    )
    for ends in ((a, out), (out, (switch, 0)), ((switch, 0), a), ((switch, 1), down), (down, b), (b, (switch, 1))):
        network.connect(*ends)
    vc = network.add_vc([a, out, switch, down, b], 0, 100)
    network.add_vc([b, switch, a], 0, 101)
    down.lose(0, 100, cells=range(3, 1503, 6))
    for k in range(2000):
        network.send(a.index, vc, b"", key=1, offset=40 * k, length=40)
    run(network, 100 * MS)
    account, _ = network.ledger()
    assert account.lost["down", "listed loss"] > 100
    assert network.counters()["a"]["credit_cells_out"] > 200


def test_when_all_is_freed_no_node_has_anything_to_do():
    network, a, _, _, vc = one_switch(64)
    network.send(a.index, vc, b"", key=1, length=9000)
    run(network, 20 * MS)
    before = network.stats()
    network.run(2000 * MS)
    assert network.stats() == before


def test_the_places_are_kept_whatever_others_have():
    """A VC without credits fills all that is left of the buffer, with CLP and OAM thresholds besides."""
    network = Network()
    a, b, c = (network.add_nic(name) for name in "abc")
    switch = network.add_switch(
        "switch",
        SwitchSettings(buffer_cells=256, oam_reserve=9, clp_threshold=20, epd_threshold=100),
        ports=switch_ports((OC3C, OC3C // 4, OC3C)),
    )
    for nic, port in ((a, 0), (b, 1), (c, 2)):
        network.connect(nic, (switch, port))
        network.connect((switch, port), nic)
    vc = network.add_vc([a, switch, b], 0, 100, VcSettings(credits=64))
    network.add_vc([b, switch, a], 0, 101, VcSettings(credits=16))
    other = network.add_vc([c, switch, b], 0, 102, VcSettings(policy="tail"))
    for k in range(20):
        network.send(a.index, vc, b"", key=1, offset=9000 * k, length=9000)
        network.send(c.index, other, b"", key=1, offset=9000 * k, length=9000)
    events = run(network, 80 * MS)
    assert [event.status for event in events if event.nic == b.index and event.vc == vc] == 20 * [0]
    found = switch.counters()
    assert sum(found["drop_full"]) > 500
    assert sum(sum(found[f"drop_{reason}"][:2]) for reason in REASONS) == 0
    assert found["high_water"] > 200


# What is refused


def test_credits_need_a_vc_the_other_way():
    network, a, b, switch, _ = one_switch(64)
    (out,) = (node for node in network.nodes if node.name == "out")
    network.add_vc([a, out, switch, b], 0, 102)
    with pytest.raises(
        NetworkError, match="VC 0/102 from a to b: it has credits, and no VC the other way to bring them"
    ):
        network.start()


def test_places_are_those_of_the_buffer():
    network, *_ = one_switch(1025)
    with pytest.raises(
        NetworkError, match="switch switch: the minima of its 2 VCs are 2050 cells, more than the buffer's 2048"
    ):
        network.start()


def test_a_batch_is_no_more_than_a_vcs_places():
    network, *_ = one_switch(8, batch=9)
    with pytest.raises(NetworkError, match=r"VC 0/100 has credits for 8 cells, and a credit cell comes after 9"):
        network.start()


@pytest.mark.parametrize("given", [{"limit": 5}, {"policy": "epd"}, {"epd_threshold": 3}, {"minimum": 2}])
def test_nothing_of_a_vc_with_credits_is_dropped(given):
    network = Network()
    a, b = network.add_nic("a"), network.add_nic("b")
    network.connect(a, b)
    with pytest.raises(ValidationError, match="a VC with credits has places of its own"):
        network.add_vc([a, b], 0, 100, VcSettings(credits=5, **given))


def test_a_port_with_credits_is_no_fifo():
    network = Network()
    a, b = network.add_nic("a"), network.add_nic("b")
    switch = network.add_switch(
        "switch", SwitchSettings(credits={"share": 9}, scheduler="fifo"), ports=switch_ports((OC3C, OC3C))
    )
    for nic, port in ((a, 0), (b, 1)):
        network.connect(nic, (switch, port))
        network.connect((switch, port), nic)
    network.add_vc([a, switch, b], 0, 100)
    network.add_vc([b, switch, a], 0, 101)
    with pytest.raises(NetworkError, match='scheduler "fifo" cannot be combined with credits'):
        network.start()


def test_an_interface_takes_credit_cells_as_fast_as_oc_12c_brings_them():
    network = Network()
    a = network.add_nic("a", line=NicLine(rate_bps=600_000_000))
    b = network.add_nic("b")
    switch = network.add_switch("switch", SwitchSettings(credits={"share": 9}), ports=switch_ports((OC3C, OC3C)))
    for nic, port in ((a, 0), (b, 1)):
        network.connect(nic, (switch, port))
        network.connect((switch, port), nic)
    with pytest.raises(NetworkError, match="a has credits on a line faster than OC-12c"):
        network.add_vc([a, switch, b], 0, 100)


def test_credits_don_t_go_through_a_line_in_loop_back():
    network = Network()
    a, b = network.add_nic("a"), network.add_nic("b")
    switch = network.add_switch("switch", SwitchSettings(credits={"share": 9}), ports=switch_ports((OC3C, OC3C, OC3C)))
    loop = network.add_link("loop", LinkSettings(delay_ps=MS))
    for nic, port in ((a, 0), (b, 1)):
        network.connect(nic, (switch, port))
        network.connect((switch, port), nic)
    network.connect((switch, 2), loop)
    network.connect(loop, (switch, 2))
    with pytest.raises(NetworkError, match="credits cannot pass through a line in loop-back, as switch has"):
        network.add_vc([a, switch, loop, switch, b], 0, 100)


def test_what_a_vc_has_of_credits_doesn_t_change_in_a_run():
    network, _, _, switch, _ = one_switch(64)
    network.start()
    with pytest.raises(NetworkError, match=r"credits.share can.t be changed in a running network"):
        switch.change(credits={"share": 32})
    with pytest.raises(NetworkError, match="its credits do not change in a run"):
        network.change_vc(0, VcSettings(credits=5))
