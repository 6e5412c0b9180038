"""The network that an experiment becomes; nothing is compiled or run here."""

from collections import Counter

import pytest

from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.document.catalogue import catalogue
from bentpipe.experiment.load import load
from bentpipe_sim.network import Network


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_the_catalogue_builds(name):
    e = load(name)
    network, nics, vcs = build_network(e)
    assert sorted(nics) == sorted(h.name for h in e.network.hosts)
    assert len(vcs) == len(e.vcs)
    kinds = Counter(shape.kind for shape in network.shapes())
    assert (
        kinds.total() <= 5 and kinds["link"] <= 2
    )  # models to compile: one of most kinds; of links one with faults, too
    switches = [node for node in network.nodes if node.kind == "switch"]
    assert kinds["switch"] == len(
        {(node.settings.buffer_cells, node.size, node.ports, node.shape()) for node in switches}
    )
    assert kinds["nic"] == len({node.size for node in nics.values()})


def test_nodes_and_wires_are_as_the_experiment_says():
    network, nics, _ = build_network(load("acts-1flow", ["network.hosts.alpha1.delay=3 us"], seed=11))
    assert network.seed == 11
    names = {node.name: node for node in network.nodes}
    assert set(names) == {"west", "east", "satellite.out", "satellite.back", "alpha1", "ultra"}
    assert (names["satellite.out"].settings.ber, names["satellite.back"].settings.ber) == (1e-13, 1e-11)
    assert names["west"].outputs[3] == (names["satellite.out"], 0)
    assert names["satellite.out"].outputs[0] == (names["east"], 3)
    assert names["east"].outputs[3] == (names["satellite.back"], 0)
    assert names["satellite.back"].outputs[0] == (names["west"], 3)
    assert names["alpha1"].outputs[0] == (names["west"], 0) and names["west"].outputs[0] == (names["alpha1"], 0)
    delays = {(a.name, b.name): ticks for a, _, b, _, ticks in network._wires}
    assert delays["alpha1", "west"] == delays["west", "alpha1"] == 17  # 3 us of 0.17695 us
    assert delays["ultra", "east"] == 0
    assert names["west"].settings.epd_cells == 7372
    assert names["west"].settings.clp_threshold == 0
    assert nics["alpha1"].sends[0].vci == 32


def test_vcs_carry_policy_limit_and_pace():
    settings = [
        "network.switches.*.policy=ppd",
        "network.switches.*.vc_limit=256",
        "flow.0.cell_rate=70 Mb/s",
        "network.clock_tolerance=0",
        "mtu=1524",  # 32 cells for IP alone, 33 with LLC/SNAP
    ]
    network, nics, _ = build_network(load("acts-1flow", settings))
    west = next(node for node in network.nodes if node.name == "west")
    assert [(vc.in_port, vc.out_port) for vc in west.vcs] == [(0, 3), (3, 0)]
    assert {(vc.settings.policy, vc.settings.limit) for vc in west.vcs} == {(None, 0)}  # the switch's
    assert (west.settings.policy, west.settings.vc_limit) == ("ppd", 256)
    assert {vc.settings.epd_threshold for vc in west.vcs} == {None}
    (paced,), (free,) = ([send.period for send in nics[name].sends.values()] for name in ("alpha1", "ultra"))
    assert paced / free == pytest.approx(599.04 / 70, rel=1e-5)  # the sink has OC-12c
    assert nics["ultra"].receives[0].cells == (1524 + 8 + 8 + 47) // 48


def test_a_vc_laid_out_by_hand_has_its_own_policy_limit_and_threshold():
    own = '[{name="v", from="alpha1", to="ultra", vci=50, policy="tail", limit=9, epd_threshold=7}]'
    network, _, _ = build_network(load("acts-1flow", [f"vc={own}"]))
    west = next(node for node in network.nodes if node.name == "west")
    (settings,) = [vc.settings for vc in west.vcs if vc.in_vci == 50]
    assert (settings.policy, settings.limit, settings.epd_threshold) == ("tail", 9, 7)


def test_hosts_are_as_the_experiment_says():
    settings = ["hosts.cost_spread=0.05", "network.hosts.ultra.timer_phase=50 ms", "network.hosts.ultra.mtu=1500"]
    e = load("acts-1flow", settings, seed=11)
    one, two = (host.config for host in e.network.hosts)
    assert (one.name, one.cost_spread, one.seed, one.timer_phase_ps, one.mtu) == ("alpha1", 0.05, 11, None, 9180)
    assert (two.name, two.cost_spread, two.seed, two.timer_phase_ps, two.mtu) == ("ultra", 0.05, 11, 50 * 10**9, 1500)
    assert [one.profile, two.profile] == ["dec-alpha-3000-700", "ultrasparc"]
    clock = [
        "hosts.clock_hz=100",
        "hosts.clock_cost=20 us",
        "hosts.clock_tolerance=20",
        "network.hosts.alpha2.clock_tolerance=50",
    ]
    one, two = (host.config for host in load("lan-1flow", clock).network.hosts)
    assert (one.clock_hz, one.clock_cost_ps, one.clock_tolerance_ppm) == (100, 20_000_000, 20)
    assert (two.clock_hz, two.clock_cost_ps, two.clock_tolerance_ppm) == (100, 20_000_000, 50)


def test_two_lines_between_the_same_switches_take_turns_by_the_file():
    settings = ['network.lines={a={ends=["west:1", "east:1"]}, b={ends=["west:2", "east:2"]}}']
    network, _, _ = build_network(load("acts-1flow", settings))
    west = next(node for node in network.nodes if node.name == "west")
    assert west.vcs[0].out_port == 1


@pytest.mark.parametrize("line", ["cell", "sonet"])
def test_a_line_in_loop_back_leads_a_port_to_itself(line):
    network, nics, _ = build_network(load("acts-3flows", [f"network.lines.satellite.line={line}"]))
    names = {node.name: node for node in network.nodes}
    sonet = {"satellite.line"} if line == "sonet" else set()
    assert set(names) == {"ku", "satellite.out", "source1", "source2", "source3", "sink"} | sonet
    first = (names["satellite.line"], 0) if sonet else (names["satellite.out"], 0)
    assert names["ku"].outputs[3] == first and names["satellite.out"].outputs[0] == (names["ku"], 3)
    for data, ack, port in ((32, 33, 0), (34, 35, 1), (36, 37, 2)):
        ways = {(vc.in_vci, vc.in_port, vc.out_port) for vc in names["ku"].vcs if vc.in_vci in (data, ack)}
        assert ways == {(data, port, 3), (data, 3, 4), (ack, 4, 3), (ack, 3, port)}
    assert len(nics["sink"].receives) == len(nics["sink"].sends) == 3


def test_small_switches_share_the_shape_of_four_ports():
    e = load("acts-1flow", ["network.lines.satellite.ends=['west:1', 'east:1']", "network.switches.*.ports=2"])
    network, _, _ = build_network(e)
    assert {node.ports for node in network.nodes if node.kind == "switch"} == {4}
    assert isinstance(network, Network)
