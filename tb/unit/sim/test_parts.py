"""Runs in parts carry the same cells at the same ticks as one event loop, with the same counters and accounts."""

import os

import pytest

from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.link.options.variation.control import ReorderSettings
from bentpipe_hdl.nic.control import NicLine
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import SwitchPort, SwitchSettings
from bentpipe_hdl.ticks import ps_to_ticks
from bentpipe_sim import parts
from bentpipe_sim.errors import NetworkError
from bentpipe_sim.network import Network
from models.parted import Way, outcome, play

MS, US = 10**9, 10**6
OC3 = 149_760_000


def chain(count=3, delay_ps=50 * US, ber=1e-6, ports=4, **how):
    """Switches in a row, each with two interfaces; overloaded from the first switch to the last, with answers back."""
    network = Network(seed=3, **how)
    settings, lines = SwitchSettings(buffer_cells=512), (SwitchPort(OC3),) * ports
    switches = [network.add_switch(f"s{k}", settings, ports=lines) for k in range(count)]
    ways = []
    for k in range(count - 1):
        there, back = (
            network.add_link(f"{way}{k}", LinkSettings(delay_ps=delay_ps, ber=ber)) for way in ("out", "back")
        )
        network.connect((switches[k], 3), there)
        network.connect(there, (switches[k + 1], 2))
        network.connect((switches[k + 1], 2), back)
        network.connect(back, (switches[k], 3))
        ways.append((there, back))
    hosts = []
    for end, switch in (("a", switches[0]), ("b", switches[-1])):
        for k in range(2):
            nic = network.add_nic(f"{end}{k}", line=NicLine(OC3, -k))
            network.connect(nic, (switch, k))
            network.connect((switch, k), nic)
            hosts.append(nic)
    out = [each for k in range(count - 1) for each in (ways[k][0], switches[k + 1])]
    back = [each for k in reversed(range(count - 1)) for each in (ways[k][1], switches[k])]
    vcs = []
    ways[0][0].lose(0, 32, pdus=[2])  # the link takes each cell, then, and gives it in the same tick
    for k in range(2):
        a, b = hosts[k], hosts[2 + k]
        there = network.add_vc([a, switches[0], *out, b], 0, 32 + k)
        vcs.append((a, b, there, network.add_vc([b, switches[-1], *back, a], 0, 64 + k)))
    return network, vcs


def path(network, *names):
    by_name = {node.name: node for node in network.nodes}
    return [by_name[name] for name in names]


def with_virtual_path(network, vcs):
    """A VC in a virtual path, whose cells a switch between its ends counts; its losses are cells without a VC there."""
    between = path(network, "s0", "out0", "s1", "out1", "s2")
    network.add_vp(between, 9)
    vcs.append((vcs[0][0], vcs[0][1], network.add_vc([vcs[0][0], *between, vcs[0][1]], 9, 99), vcs[0][3]))


def with_two_links(network, vcs):
    """A second way from the first switch to the second, over two links in a row."""
    one, other = (network.add_link(name, LinkSettings(delay_ps=20 * US, ber=3e-6)) for name in ("x", "y"))
    s0, s1 = path(network, "s0", "s1")
    nics = [network.add_nic(name) for name in ("c", "d")]
    for nic, switch in zip(nics, (s0, s1), strict=True):
        network.connect(nic, (switch, 4))
        network.connect((switch, 4), nic)
    network.connect((s0, 5), one)
    network.connect(one, other)
    network.connect(other, (s1, 5))
    back = path(network, "s1", "back0", "s0")
    there = network.add_vc([nics[0], s0, one, other, s1, nics[1]], 0, 200)
    vcs.append((nics[0], nics[1], there, network.add_vc([nics[1], *back, nics[0]], 0, 201)))


def with_disorder(network, vcs):
    """Cells overtake others on a link, which therefore is in a part with the switch behind it."""
    link = path(network, "out0")[0]
    reorder = ReorderSettings(share=0.01, by_ps=30 * US)
    link.settings = LinkSettings(delay_ps=50 * US, ber=1e-6, order="merged", reorder=reorder)


def begin(network, vcs):
    network.start()
    network.trace()
    for key, (a, b, there, back) in enumerate(vcs):
        network.loop.sink(b.index, there, key, back, 40, 2)
        network.loop.sink(a.index, back, 0, 0, 0, 0)
        network.loop.source(a.index, there, 9188, key)


def run(stops=(2 * MS, 2 * MS + 7 * US, 6 * MS, 9 * MS), change=None, **how):
    network, vcs = chain(**how)
    if change:
        change(network, vcs)
    begin(network, vcs)
    found = []
    for stop in stops:
        network.run(stop)
        found.append(outcome(network))
    why, windows = network.why_whole, network.loop.windows()
    network.close()
    return found, why, windows


def test_parts_and_threads_change_nothing():
    """An overloaded switch, bit errors on three hops, answers; with runs that are too short for parts in between."""
    expected, why, _ = run(threads=1, parts=1)
    assert why == "the network has one part"
    digests, counters, ledger, *_ = expected[-1]
    assert sum(value != 0 for value in digests.values()) >= 10
    assert sum(counters["s0"]["drop_epd"]) > 0
    assert {why for account in ledger for _, why in account.lost} >= {"EPD", "bit error", "listed loss"}
    for threads, count in ((1, 2), (2, 2), (1, 3), (2, 3), (1, 99), (2, 99), (5, 99)):
        found, why, windows = run(threads=threads, parts=count)
        assert (found, why) == (expected, "") and windows > 100


@pytest.mark.parametrize(
    ("change", "why", "ports"),
    [(with_virtual_path, "EPD", 4), (with_two_links, "bit error", 6), (with_disorder, "cells out of order", 4)],
)
def test_losses_are_explained_as_by_one_event_loop(change, why, ports):
    """Find the lost cell where the ledger needs earlier entries for it."""
    expected, *_ = run((5 * MS, 9 * MS), change, threads=1, parts=1, ports=ports)
    assert why in {why for account in expected[-1][2] for _, why in account.lost}
    for threads, count in ((1, 2), (2, 99)):
        found, whole, windows = run((5 * MS, 9 * MS), change, threads=threads, parts=count, ports=ports)
        assert (found, whole) == (expected, "") and windows > 100


def test_scheduled_register_writes_come_in_their_ticks():
    """The event loop makes them in the middle of a run, between two ticks of all parts."""
    outcomes = []
    for how in ({"threads": 1, "parts": 1}, {"threads": 2, "parts": 99}):
        network, vcs = chain(**how)
        begin(network, vcs)
        link = path(network, "out1")[0]
        (name, addr, _), *_ = link.registers_of("ber")
        (value, *_) = link.driver.values_of("ber", 1e-4).values()
        rows = [(ps_to_ticks(3 * MS + 1), value), (ps_to_ticks(3 * MS + 200 * US), 0), (ps_to_ticks(6 * MS), value)]
        writes = network.loop.ffi.new(
            "bp_scheduled_write[]", [(tick, link.index, addr, what, 0) for tick, what in rows]
        )
        network.loop.schedule(writes, len(rows))
        network.run(8 * MS)
        outcomes.append((outcome(network), getattr(link.csr, name)))
        assert network.why_whole == ("" if how["parts"] > 1 else "the network has one part")
        network.close()
    assert outcomes[0] == outcomes[1] and outcomes[0][0][1]["out1"]["errored"] > 20


@pytest.mark.parametrize("seed", range(3))
def test_random_networks(seed):
    """Also saved and resumed with other parts and threads. ``make soak SOAKS=parts`` has more of them."""
    expected, _ = play("plain", seed, [Way()])
    for ways in ([Way(2, 2)], [Way(1, 99)], [Way(2, 3), Way(), Way(1, 2), Way(2, 99)]):
        assert play("plain", seed, ways)[0] == expected


def whole(change=None, threads=2, parts=2, until=2 * MS, **how):
    """Why a run is of one event loop, after a change before and after the start."""
    network, vcs = chain(threads=threads, parts=parts, **how)
    after = change(network, vcs) if change else None
    begin(network, vcs)
    if after:
        after()
    network.run(until)
    why = network.why_whole
    network.check_conservation()
    network.close()
    return why


def test_rules_say_why_a_run_is_of_one_event_loop(tmp_path):
    """Each rule of ``Parts::rule`` and ``Parts::rule_of_run``; what they keep out gives the same cells, of course."""
    assert whole() == ""
    assert whole(until=50 * US) == "the run is too short"
    assert whole(delay_ps=1 * US) == "the network has one part"
    assert whole(lambda n, vcs: lambda: n.record_losses(10)) == "a record is kept of each lost cell"
    assert (
        whole(lambda n, vcs: n.monitor_queue(n.nodes[0], 3) and None) == "a queue monitor can end the run at any tick"
    )
    assert whole(lambda n, vcs: lambda: n.loop.record(0)) == "the clocks of a node are recorded"
    assert whole(lambda n, vcs: lambda: n.loop.act_after_runs()) == "hosts act as on a board, after each run"

    def between(network):
        by_name = {node.name: node for node in network.nodes}
        return [by_name[name] for name in ("s0", "out0", "s1", "out1", "s2")]

    def with_host(network, vcs):
        network.add_vc([vcs[0][0], *between(network), vcs[0][1]], 0, 99)

    assert whole(with_host) == "an interface has a host, whose events end a run"

    def with_sonet(network, vcs):
        line, nics = network.add_sonet_line("line", SonetSettings()), [network.add_nic(name) for name in "xy"]
        for end, nic in enumerate(nics):
            network.connect(nic, (line, end))
            network.connect((line, end), nic)
        network.add_vc([nics[0], line, nics[1]], 0, 100)

    assert whole(with_sonet) == "there is a SONET line"


def test_captures_keep_a_line_within_a_part(tmp_path):
    """Both taps of a capture write one file, in the order of time; also one that begins while the network runs."""
    files = []
    for how in ({"threads": 1, "parts": 1}, {"threads": 2, "parts": 99}):
        network, vcs = chain(**how)
        folder = tmp_path / str(how["parts"])
        folder.mkdir()
        by_name = {node.name: node for node in network.nodes}
        network.capture(folder / "first", "cells", (by_name["s0"], 3))
        begin(network, vcs)
        network.run(MS)
        network.capture(folder / "second", "pdus", (by_name["s1"], 3))
        network.run(4 * MS)
        assert network.why_whole == ("" if how["parts"] > 1 else "the network has one part")
        network.end_captures()
        network.close()
        files.append([(folder / name).read_bytes() for name in ("first", "second")])
    assert files[0] == files[1] and all(len(octets) > 2_000 for octets in files[0])


def test_a_network_is_cut_at_its_longest_wires():
    network, _ = chain(count=4, threads=1, parts=1)
    links = {node.name: node for node in network.nodes}
    links["out1"].settings = LinkSettings(delay_ps=5 * MS)
    links["back1"].settings = LinkSettings(delay_ps=5 * MS)
    wires = [(a, b, 1 + network._held(a, delay)) for a, _, b, _, delay in network._wires]
    found = parts.part_of(network.nodes, wires, [], 2)
    by_name = {node.name: found[node.index] for node in network.nodes}
    assert [by_name[f"s{k}"] for k in range(4)] == [0, 0, 1, 1]
    assert by_name["out1"] == 0 and by_name["back1"] == 1 and set(found) == {0, 1}
    assert len(set(parts.part_of(network.nodes, wires, [], 4))) == 4
    found = parts.part_of(network.nodes, wires, [[network.nodes[1], network.nodes[2]]], 4)
    assert found[1] == found[2] and len(set(found)) == 3


def test_as_many_parts_as_pay(monkeypatch):
    """Few nodes: one for each thread, at wires of 1 ms and more. Many: of 8 nodes at most, on one thread, too."""

    def found(threads, **how):
        network, _ = chain(threads=1, parts=1, **how)
        wires = [(a, b, 1 + network._held(a, delay)) for a, _, b, _, delay in network._wires]
        return parts.plan(network.nodes, wires, [], threads, None)

    assert found(2)[1] == [0] * 11 and set(found(2, delay_ps=MS)[1]) == {0, 1} and set(found(1, delay_ps=MS)[1]) == {0}
    threads, many = found(1, count=8)
    assert threads == 1 and max(many.count(k) for k in many) <= 8 and len(set(many)) > 3
    monkeypatch.setenv("BENTPIPE_THREADS", "3")
    assert found(None)[0] == 3 and found(2)[0] == 2
    monkeypatch.setenv("BENTPIPE_THREADS", "")
    assert found(None)[0] == parts._cores()


@pytest.mark.parametrize("threads", [2, 3, 4])
@pytest.mark.parametrize("count", [9, 12, 15, 21])
def test_threads_have_about_as_many_nodes(count, threads):
    """A part that would give one thread more is divided where nodes can be cut."""
    network, _ = chain(count=count, threads=threads)
    wires = [(a, b, 1 + network._held(a, delay)) for a, _, b, _, delay in network._wires]
    of = parts.plan(network.nodes, wires, [], threads, None)[1]
    network.start()
    sizes = [of.count(part) for part in range(max(of) + 1)]
    first, turn = network.loop.ffi.new("uint32_t[]", threads + 1), network.loop.ffi.new("uint64_t[]", len(sizes))
    network.loop.share(threads, first, turn)
    shares = [sum(sizes[first[k] : first[k + 1]]) for k in range(threads)]
    assert sum(shares) == len(network.nodes)
    assert max(shares) - min(shares) <= 4
    assert all(0 < turn[k] < 2**62 for k in range(len(sizes)))
    network.close()


def test_whole_networks_are_not_divided():
    """Two threads share five parts without wires between them turn by turn."""
    pieces = [(piece, 3) for piece in range(10)]
    five = [pieces[k : k + 2] for k in range(0, 10, 2)]
    assert parts._divided([(False, each) for each in five], 2) == five
    divided = parts._divided([(True, each) for each in five], 2)
    assert [len(each) for each in divided] == [2, 2, 1, 1, 2, 2]
    assert [piece for part in divided for piece in part] == pieces
    whole = [(True, [(0, 8)]), (True, [(1, 9)])]
    assert len(parts._divided(whole, 3)) == 2
    one = [(True, pieces)]
    assert [len(each) for each in parts._divided(one, 5)] == [2] * 5


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2", 10**6])
def test_numbers_of_threads_and_parts_are_checked(value, monkeypatch):
    for what in ("threads", "parts"):
        with pytest.raises(NetworkError, match=f"^{what} must be a number from 1 to 1024, not {value!r}$"):
            Network(**{what: value})
    monkeypatch.setitem(os.environ, "BENTPIPE_THREADS", f"{value}x")
    with pytest.raises(NetworkError, match=r"^BENTPIPE_THREADS must be a number from 1 to 1024, not "):
        parts.chosen_threads()
