"""Virtual paths as files have them: which VCs go through them, with which numbers; what is refused."""

import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.build.changes import Reconfigurator
from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.load import load
from bentpipe.experiment.resolve.describe import describe

TEXT = """
[experiment]
id = "paths"
title = "Three switches"
duration = "1 s"

[network.switches.west]
[network.switches.sat]
buffer_cells = 512
[network.switches.east]

[network.lines.up]
ends = ["west:3", "sat:0"]
[network.lines.down]
ends = ["sat:1", "east:3"]

[network.hosts.a]
port = "west:0"
[network.hosts.b]
port = "west:1"
[network.hosts.c]
port = "east:0"
[network.hosts.d]
port = "east:1"
[network.hosts.e]
port = "sat:2"

[network.vps.beam]
path = ["west", "sat", "east"]
vpi = 7
limit = 100

[[flow]]
source = "a"
sink = "c"

[[flow]]
source = "d"
sink = "b"

[[flow]]
source = "a"
sink = "e"
"""


@pytest.fixture
def read(tmp_path):
    def read(more="", settings=(), text=TEXT):
        file = tmp_path / "paths.toml"
        file.write_text(text + more)
        return load(str(file), settings)

    return read


def test_vcs_along_a_path_go_through_it_either_way(read):
    e = read()
    assert [(vc.path, vc.vps) for vc in e.vcs] == [
        (("a", "west", "sat", "east", "c"), ("beam",)),
        (("c", "east", "sat", "west", "a"), ("beam",)),
        (("d", "east", "sat", "west", "b"), ("beam",)),
        (("b", "west", "sat", "east", "d"), ("beam",)),
        (("a", "west", "sat", "e"), ()),
        (("e", "sat", "west", "a"), ()),
    ]
    assert len({vc.vci for vc in e.vcs}) == 6


def test_the_switch_inside_has_one_entry_each_way_and_the_ends_change_the_vpi(read):
    network, nics, _ = build_network(read())
    nodes = {node.name: node for node in network.nodes}
    beam = [vc for vc in nodes["sat"].vcs if vc.vpc]
    assert [(vc.in_port, vc.in_vpi, vc.out_port, vc.settings.limit) for vc in beam] == [(0, 7, 1, 100), (1, 7, 0, 100)]
    assert [(vc.in_vpi, vc.out_vpi) for vc in nodes["sat"].vcs if not vc.vpc] == [(0, 0)] * 2
    assert [(vc.in_vpi, vc.out_vpi) for vc in nodes["west"].vcs] == [(0, 7), (7, 0), (7, 0), (0, 7), (0, 0), (0, 0)]
    assert {send.vpi for nic in nics.values() for send in nic.sends.values()} == {0}


def test_a_path_from_host_to_host(read):
    e = read(settings=['network.vps.beam.path=["a", "west", "sat", "east", "c"]'])
    assert [vc.vps for vc in e.vcs] == [("beam",)] * 2 + [()] * 4
    network, nics, _ = build_network(e)
    assert nics["a"].sends[0].vpi == nics["c"].receives[0].vpi == 7
    assert [sum(vc.vpc for vc in node.vcs) for node in network.nodes if node.kind == "switch"] == [2, 2, 2]


def test_a_listed_loss_in_a_path_is_of_its_vpi(read):
    more = '\n[[loss]]\nline = "{line}"\nvc = "flow{flow}"\ncells = [3]\n'
    network, *_ = build_network(read(more.format(line="up", flow=1) + more.format(line="up", flow=3)))
    (up,) = (node for node in network.nodes if node.name == "up.out")
    assert {vpi for vpi, _ in up.losses} == {7, 0}


def test_what_a_path_has_changes_in_a_run(read):
    e = read('\n[[event]]\nat = "1 ms"\nset = { "network.vps.beam.limit" = 5 }\n')
    assert (e.network.vps[0].settings.limit, e.events[0].network.vps[0].settings.limit) == (100, 5)
    network, *_ = build_network(e)
    (sat,) = (node for node in network.nodes if node.name == "sat")
    assert [vc.settings.limit for vc in sat.vcs if vc.vpc] == [100] * 2
    Reconfigurator(e, network).to(e.events[0])
    assert [vc.settings.limit for vc in sat.vcs if vc.vpc] == [5] * 2
    with pytest.raises(ConfigError, match=r"network\.vps\.beam\.vpi can't be changed in a run"):
        read('\n[[event]]\nat = "1 ms"\nset = { "network.vps.beam.vpi" = 5 }\n')


def test_a_vcs_policy_and_limit_are_not_those_of_a_switch_that_passes_its_path(read):
    assert read(settings=["network.switches.sat.policy=tail", "network.vps.beam.vpi=9"], text=TEXT[: TEXT.rindex("[[")])


def test_a_path_is_one_entry_each_way_of_those_that_a_switch_has(read, monkeypatch):
    monkeypatch.setattr("bentpipe.experiment.resolve.layout.MOST_VCS", 5)
    with pytest.raises(ConfigError) as caught:
        read()
    assert "west has 6 VCs, a node has 5 at most" in str(caught.value) and not caught.value.more
    monkeypatch.setattr("bentpipe.experiment.resolve.layout.MOST_VCS", 3)
    with pytest.raises(ConfigError) as caught:
        read()
    assert [line for line in (str(caught.value), *caught.value.more) if "sat has 4 VCs" in line]


def test_show_names_paths_and_their_vcs(read):
    from rich.console import Console

    console = Console(record=True, width=200)
    describe(console, read())
    (line,) = (line for line in console.export_text().splitlines() if line.startswith("beam"))
    assert line.split("  ")[0::1][0].strip() == "beam"
    for text in ("7", "west - sat - east", "flow1, flow1.return, flow2, flow2.return", "limit 100"):
        assert text in line


VC = '\n[[vc]]\nname = "{name}"\nfrom = "{a}"\nto = "{b}"\nvci = {vci}\nvpi = {vpi}\n'


@pytest.mark.parametrize(
    ("more", "settings", "message"),
    [
        (
            "",
            ['network.vps.beam.path=["west", "sat"]'],
            "path: a virtual path leads from a switch or host over switches",
        ),
        ("", ['network.vps.beam.path=["west", "sat", "a"]'], "path: no line joins 'sat' and 'a'"),
        ("", ['network.vps.beam.path=["west", "sta", "east"]'], "path: there is no node 'sta'; did you mean 'sat'?"),
        ("", ['network.vps.beam.path=["a", "west", "a"]'], "path: a virtual path passes a node once"),
        ("", ['network.vps.beam.path=["east", "west", "sat"]'], "path: no line joins 'east' and 'west'"),
        ("", ["network.vps.beam.vpi=256"], "vpi: 256 is out of range 0..255"),
        ("", ["network.vps.beam.vpi=0"], "vpi: VC 'flow3' has VPI 0 from west to sat, too"),
        ("", ["network.vps.beam.policy=epd"], "policy: goes by frames, and those of a virtual path's VCs interleave"),
        (
            "",
            ["network.vps.beam.limit=0", "network.vps.beam.credits=5"],
            "credits: credits cannot pass through a virtual path",
        ),
        ("", ["network.vps.beam.weight=5"], "weight: no switch on its way goes by it"),
        ("", ["network.vps.beam.shape.pcr=1 Mb/s", "network.vps.beam.shape.at=west"], "switched at sat, and not at"),
        ("", ["network.switches.sat.credits.share=5"], "path: 'sat' has credits, which cannot pass through a virtual"),
        ("", ["network.lines.down.queue_limit=9"], "path: queue_limit of line 'down' refuses frames"),
        ('[network.vps.two]\npath = ["sat", "east", "d"]\nvpi = 7\n', [], "VPI 7 is used twice between east and sat"),
        (
            '[network.vps.two]\npath = ["sat", "east", "c"]\nvpi = 8\n',
            [],
            "the virtual paths 'beam' and 'two' at once, from sat to east",
        ),
        (
            VC.format(name="x", a="e", b="c", vci=40, vpi=7),
            [],
            "vpi: VPI 7 is that of the virtual path 'beam' from sat",
        ),
        (
            VC.format(name="x", a="a", b="c", vci=40, vpi=1) + VC.format(name="y", a="a", b="d", vci=40, vpi=2),
            [],
            "VPI/VCI 7/40 is used twice from west to sat: by 'x' and 'y'",
        ),
        (
            VC.format(name="x", a="a", b="c", vci=40, vpi=1) + '[vc.police]\npcr = "1 Mb/s"\ncdvt = 0\nat = "sat"\n',
            [],
            "the VC passes west, east, and no switch 'sat'",
        ),
    ],
)
def test_what_is_refused(read, more, settings, message):
    with pytest.raises(ConfigError) as caught:
        read("\n" + more, settings)
    assert message in str(caught.value)


def test_a_vci_that_another_vc_of_the_path_has_is_not_given_again(read):
    e = read(VC.format(name="x", a="a", b="c", vci=32, vpi=1))
    assert [vc.vci for vc in e.vcs if "beam" in vc.vps] == [32, 33, 34, 35, 36]
