"""Experiments as written: what is read out of them, and every way of writing them wrong."""

import copy
import io
import re
import tomllib

import pytest
from rich.console import Console

from bentpipe.errors import ConfigError
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.document.tables import Face
from bentpipe.experiment.document.tcp_options import options_text
from bentpipe.experiment.resolve.describe import describe
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.tcp.config import TcpConfig

TEXT = """
[experiment]
id = "two"
title = "Two hosts"
duration = "10 s"
quick = "1 s"

[network.switches.west]
ports = 4
epd_threshold = 7000

[network.switches.east]
ports = ["OC-3c", "DS-3"]

[network.lines.wan]
ends = ["west:3", "east:1"]
delay = "20 ms"
ber = [1e-9, 0]

[network.hosts.anna]
port = "west:0"

[network.hosts.bert]
port = "east:0"
cost = "1 ms"

[hosts]
send_cost = "62 us"
receive_cost = "70 us"

[hosts.tcp]
variant = "newreno"
window = "1 MiB"
rto_min = "2 s"

[[flow]]
source = "anna"
sink = "bert"
size = "1 MB"

[[flow]]
source = "bert"
sink = "anna"
start = "2 s"
tcp = { variant = "sack" }

[[published]]
quantity = "throughput"
measured = 30.0
metric = "flow2.goodput"
"""


def read(change=None, **options):
    document = copy.deepcopy(tomllib.loads(TEXT))
    if change is not None:
        change(document)
    return parse_experiment(document, Source("two.toml", TEXT), **options)


def test_show_has_what_is_asked_for_at_its_defaults_and_switches_on_and_off():
    def change(document):
        document["network"]["switches"]["west"]["histograms"] = {}
        police = {"pcr": "1 Mb/s", "cdvt": "1 ms", "packets": True}
        document["vc"] = [{"name": "forth", "from": "anna", "to": "bert", "vci": 100, "police": police}]

    console = Console(record=True, width=200, file=io.StringIO())
    describe(console, read(change))
    text = console.export_text()
    assert re.search(r"^west .* histograms *$", text, re.MULTILINE)
    assert "police (pcr 1 Mb/s, cdvt 1 ms, packets true)" in text


def test_vcs_have_names_of_their_own(tmp_path):
    """A flow's own VCs are called as the flow: so no other VC may be, as losses and the ledger go by the name."""
    hand = {"name": "flow1.return", "from": "anna", "to": "bert", "vci": 100}
    expected_text = r"flow\.0\.name: its own VC would have the name 'flow1.return', which another VC has"
    with pytest.raises(ConfigError, match=expected_text):
        read(lambda d: d.update(vc=[hand]))
    with pytest.raises(ConfigError, match=r"flow\.1\.name: its own VC would have the name 'flow1.return'"):
        read(lambda d: d["flow"][1].update(name="flow1.return"))
    with pytest.raises(ConfigError, match="traffic: its own VC would have the name 'bert-anna'"):
        script = "cluster { test bert { type = full; protocol = tcp; own = bert; peer = anna; } }"
        read(lambda d: d.update(vc=[hand | {"name": "bert-anna"}], traffic={"netspec": script}, flow=[], published=[]))
    named = read(lambda d: (d.update(vc=[hand | {"name": "flow1"}]), d["flow"][0].update(vc="flow1")))
    assert [vc.name for vc in named.vcs] == ["flow1", "flow1.return", "flow2", "flow2.return"]


def test_network_lines_and_ports():
    e = read()
    west, east = e.network.switches
    assert (west.settings.buffer_cells, west.settings.policy, west.settings.epd_cells) == (8192, "epd", 7000)
    assert [port.rate_bps for port in east.ports] == [149_760_000, 40_704_000]
    (line,) = e.network.lines
    assert line.ends == (Face("west", 3), Face("east", 1))
    assert (line.delay_ps, line.ber) == (20_000_000_000, (1e-9, 0.0))


def test_a_lines_rate_is_its_ports_rate():
    def change(d):
        d["network"]["lines"]["wan"]["rate"] = "DS-3"

    e = read(change)
    assert tuple(port.rate_bps for port in e.network.switches[0].ports) == (149_760_000,) * 3 + (40_704_000,)


def test_a_hosts_own_cost_goes_before_the_common_one():
    anna, bert = (host.config for host in read().network.hosts)
    assert (anna.send_cost_ps, anna.receive_cost_ps) == (62_000_000, 70_000_000)
    assert (bert.send_cost_ps, bert.receive_cost_ps) == (1_000_000_000, 1_000_000_000)


def test_a_cost_of_one_way_goes_before_that_of_both():
    def change(d):
        d["network"]["hosts"]["bert"]["receive_cost"] = "3 ms"

    bert = read(change).network.hosts[1].config
    assert (bert.send_cost_ps, bert.receive_cost_ps) == (1_000_000_000, 3_000_000_000)


def test_a_hosts_own_profile_goes_before_the_common_cost():
    def change(d):
        d["network"]["hosts"]["anna"]["profile"] = "sparc-5"
        d["hosts"]["profile"] = "dec-alpha-3000-700"

    anna, bert = (host.config for host in read(change).network.hosts)
    assert (anna.profile, anna.send_cost_ps, anna.receive_cost_ps) == ("sparc-5", None, None)
    assert (bert.profile, bert.send_cost_ps) == ("dec-alpha-3000-700", 1_000_000_000)


def test_a_hosts_own_cost_spread_goes_before_the_common_one():
    def change(d):
        d["hosts"]["cost_spread"] = 0.05
        d["network"]["hosts"]["anna"]["cost_spread"] = 0

    assert [h.config.cost_spread for h in read().network.hosts] == [0, 0]
    assert [h.config.cost_spread for h in read(change).network.hosts] == [0, 0.05]


def test_a_hosts_clock_is_its_own_the_common_one_or_its_profiles():
    def change(d):
        d["hosts"] |= {"clock_hz": 1000, "clock_cost": "20 us", "clock_tolerance": 20}
        d["network"]["hosts"]["bert"]["clock_hz"] = 100

    def profiles(d):
        change(d)
        d["network"]["hosts"]["anna"] |= {"profile": "dec-3000-axp", "clock_tolerance": 0}
        d["hosts"]["profile"] = "sparc-5"

    def only_the_common_profile(d):
        d["hosts"]["profile"] = "sparc-5"
        d["network"]["hosts"]["bert"]["clock_cost"] = "1 us"

    def clocks(network):
        return [(h.clock_hz, h.clock_cost_ps, h.clock_tolerance_ppm) for h in (host.config for host in network.hosts)]

    assert clocks(read().network) == [(0, 0, 0), (0, 0, 0)]
    assert clocks(read(change).network) == [(1000, 20_000_000, 20), (100, 20_000_000, 20)]
    assert clocks(read(profiles).network) == [(1024, 15_000_000, 0), (100, 20_000_000, 20)]
    assert clocks(read(only_the_common_profile).network) == [(100, 15_000_000, 50), (100, 1_000_000, 50)]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"clock_hz": -1, "clock_cost": "1 us"}, "clock_hz: -1 is neither 0 nor in the range 1 to 100000"),
        ({"clock_hz": 1e-300, "clock_cost": "1 us"}, "clock_hz: 1e-300 is neither 0 nor"),
        ({"clock_hz": float("nan"), "clock_cost": "1 us"}, "clock_hz: expected a number"),
        ({"clock_hz": "1 kHz"}, "clock_hz: expected a number"),
        ({"clock_tolerance": 1001}, "clock_tolerance: 1001 ppm is out of range 0 to 1000"),
        ({"clock_hz": 1000, "clock_cost": "1 ms"}, "clock_cost: an interrupt of 1 ms each 1 ms leaves"),
        ({"profile": "dec-3000-axp", "clock_hz": 90000}, "clock_hz: an interrupt of 15 us each 11.1111 us leaves"),
        ({"clock_hz": 1000, "clock_cost": "999.9 us", "clock_tolerance": 500}, "leaves the processor of anna no time"),
        ({"clock_hz": 99999.99999, "clock_cost": "10 us"}, "leaves the processor of anna no time"),
        ({"clock_cost": "1 us"}, "clock_cost: needs clock_hz"),
        ({"clock_hz": 1000}, "clock_hz: needs clock_cost"),
    ],
)
def test_a_clock_out_of_range(settings, what):
    def change(d):
        d["hosts"] |= settings

    with pytest.raises(ConfigError, match=what):
        read(change)


def test_a_clock_without_interrupts():
    for settings in ({"clock_hz": 0, "clock_cost": "1 us"}, {"clock_hz": 0}, {"clock_hz": 100, "clock_cost": 0}):
        assert (
            read(lambda d, settings=settings: d["hosts"].update(settings)).network.hosts[0].config.clock_tolerance_ppm
            == 0
        )


def test_a_hosts_timers_have_a_phase():
    def change(d):
        d["network"]["hosts"]["anna"]["timer_phase"] = "50 ms"

    assert [h.config.timer_phase_ps for h in read().network.hosts] == [None, None]
    assert [h.config.timer_phase_ps for h in read(change).network.hosts] == [50 * 10**9, None]


def test_options_that_differ_from_the_defaults_are_named():
    def change(d):
        d["hosts"]["tcp"] |= {"nagle": False, "habit_quench": True, "timestamps": True, "ack_policy": "immediate"}

    assert options_text(read(change).flows[0].tcp) == "newreno, timestamps, no nagle, ack_policy immediate, rto_min 2 s"
    assert options_text(TcpConfig()) == "reno"


@pytest.mark.parametrize(
    ("value", "what"), [(5, "is a share"), (-0.1, "is a share"), (10**400, "is a share"), ("5 %", "expected a number")]
)
def test_cost_spread_is_a_share(value, what):
    def change(d):
        d["hosts"]["cost_spread"] = value

    with pytest.raises(ConfigError, match=what):
        read(change)


def test_a_flows_own_tcp_goes_before_the_common_one():
    first, second = read().flows
    assert (first.tcp.variant, first.tcp.send_buffer, first.tcp.receive_buffer) == ("newreno", 2**20, 2**20)
    assert (second.tcp.variant, second.tcp.send_buffer) == ("sack", 2**20)
    assert first.tcp.rto_min_ps == 2 * 10**12
    assert (first.size, second.size, second.start_ps) == (10**6, None, 2 * 10**12)


def test_vcs_are_laid_along_the_path_with_numbers_of_their_own():
    e = read()
    assert [vc.path for vc in e.vcs] == [
        ("anna", "west", "east", "bert"),
        ("bert", "east", "west", "anna"),
        ("bert", "east", "west", "anna"),
        ("anna", "west", "east", "bert"),
    ]
    assert [(vc.vpi, vc.vci) for vc in e.vcs] == [(0, 32), (0, 33), (0, 34), (0, 35)]
    assert [(f.vc, f.return_vc) for f in e.flows] == [(0, 1), (2, 3)]


def ring(d):
    """A third and a fourth switch: west - south - north - east beside the direct line."""
    d["network"]["switches"] |= {"south": {}, "north": {}}
    d["network"]["lines"] = {
        "a": {"ends": ["west:1", "south:0"]},
        "b": {"ends": ["south:1", "north:0"]},
        "c": {"ends": ["north:1", "east:1"]},
        **d["network"]["lines"],
    }
    d["network"]["lines"]["wan"]["ends"] = ["west:3", "north:2"]


def test_the_shortest_path_is_taken():
    assert read(ring).vcs[0].path == ("anna", "west", "north", "east", "bert")


def test_an_explicit_vc_takes_the_path_and_the_numbers_it_is_given():
    def change(d):
        ring(d)
        path = ["anna", "west", "south", "north", "east", "bert"]
        d["vc"] = [{"name": "long", "path": path, "vpi": 3, "vci": 99, "cell_rate": "40 Mb/s"}]
        d["flow"][0]["vc"] = "long"

    e = read(change)
    vc = e.vcs[e.flows[0].vc]
    assert (vc.path[2], vc.vpi, vc.vci, vc.pacing.cell_rate_bps) == ("south", 3, 99, 40_000_000)


def test_automatic_numbers_leave_out_those_in_use():
    def change(d):
        d["vc"] = [{"name": "x", "from": "anna", "to": "bert", "vci": 33}]

    assert [vc.vci for vc in read(change).vcs] == [33, 32, 34, 35, 36]


def test_quick_and_duration_shorten_a_run():
    assert (read().duration_ps, read().shortened) == (10 * 10**12, False)
    assert (read(quick=True).duration_ps, read(quick=True).shortened) == (10**12, True)
    assert read(duration_ps=5).duration_ps == 5
    assert read(seed=7).seed == 7


def put(path, value):
    """A change of a document: the value at a dotted key; ``...`` takes the key away."""

    def change(d):
        *above, last = [int(p) if p.isdigit() else p for p in path.split(".")]
        for part in above:
            d = d[part]
        if value is ...:
            del d[last]
        else:
            d[last] = value

    return change


WRONG = [
    ("experiment.durration", "1 s", "two.toml:2: experiment.durration: unknown key; did you mean 'duration'?"),
    ("experiment.duration", ..., "two.toml:2: experiment: the key 'duration' is missing"),
    ("experiment.duration", "soon", "two.toml:5: experiment.duration: 'soon' is not a number with a unit"),
    ("experiment.duration", 0, "experiment.duration: 0 is out of range"),
    ("experiment.id", "a/b", "experiment.id: 'a/b' is not a name"),
    ("experiment.title", 3, "experiment.title: expected a text, not 3"),
    ("experiment.seed", -1, "experiment.seed: -1 is out of range 0..4294967295"),
    ("experiment.seed", True, "experiment.seed: expected a whole number, not true"),
    ("experiment", ..., "the key 'experiment' is missing"),
    ("experiment", 3, "experiment: expected a table, not 3"),
    ("netwerk", {}, "netwerk: unknown key; did you mean 'network'?"),
    ("network.switches.west.polcy", "epd", "network.switches.west.polcy: unknown key; did you mean 'policy'?"),
    ("network.switches.west.policy", "red", "network.switches.west.policy: unknown value 'red'"),
    ("network.switches.west.buffer_cells", 0, "buffer_cells: 0 is out of range 1..65535"),
    ("network.switches.west.epd_threshold", 9000, "epd_threshold: 9000 cells are more than the buffer's 8192"),
    ("network.switches.west.ports", 0, "ports: 0 is out of range 1..16"),
    ("network.switches.west.ports", [], "ports: a switch has 1 to 16 ports, not 0"),
    ("network.switches.west.ports", ["OC-9c"], "ports: 'OC-9c' is not a number with a unit"),
    ("network.switches.west.ports", [0, 1, 1, 1], "ports: impossible rate 0: it must be more than 0"),
    ("network.switches", {}, "network: there is no switch"),
    ("network.lines.wan.rate", 0, "two.toml:15: network.lines.wan.rate: impossible rate 0: it must be more than 0"),
    ("network.lines.wan.rate", "-1 Mb/s", "network.lines.wan.rate: impossible rate '-1 Mb/s'"),
    ("network.lines.wan.rate", "2.5 Gb/s", "a line carries at most one cell a tick, 2396.16 Mb/s"),
    ("network.lines.wan.rate", "1 Mb/s", "port east:1 sends at 40.704 Mb/s, more than the line's 1 Mb/s"),
    ("network.lines.wan.delay", "2 s", "delay: '2 s' is out of range 0 s to 1 s"),
    ("network.lines.wan.delay", "-1 ms", "delay: '-1 ms' is out of range"),
    ("network.lines.wan.ber", 0.5, "ber: 0.5 is out of range: 0, or 1e-15 to 0.001"),
    ("network.lines.wan.ber", "low", "ber: expected a number, not 'low'"),
    ("network.lines.wan.ber", [0, 0, 0], "ber: give one error ratio, or two"),
    ("network.lines.wan.line", "sonett", "unknown value 'sonett'; did you mean 'sonet'"),
    ("network.lines.wan.line", "sel", "unknown value 'sel'; did you mean 'cell'?"),
    ("network.lines.wan.ends", ["west:3"], "ends: a line has two ends, not 1"),
    ("network.lines.wan.ends", ["west:3", "easst:1"], "ends: there is no switch 'easst'; did you mean 'east'?"),
    ("network.lines.wan.ends", ["west:4", "east:1"], "ends: switch 'west' has no port 4; its ports are 0..3"),
    ("network.lines.wan.ends", ["west:0", "east:1"], "network.hosts.anna.port: port west:0 is taken by"),
    ("network.lines.wan.ends", ["west", "east:1"], "ends: 'west' is not a port"),
    ("network.hosts.anna.port", "wst:0", "network.hosts.anna.port: there is no switch 'wst'; did you mean 'west'?"),
    ("network.hosts.anna.port", ..., "network.hosts.anna: the key 'port' is missing"),
    ("network.hosts.anna.mtu", 10, "mtu: 10 is out of range 104..65527"),
    ("network.hosts.anna", ..., "hosts: an experiment has two hosts and more"),
    ("network.hosts.a b", {}, "a name has letters, digits, - and _ only"),
    ("hosts.profile", "sparc-9", "hosts.profile: unknown value 'sparc-9'; did you mean 'sparc-"),
    ("hosts.tcp.windw", 1, "hosts.tcp.windw: unknown key; did you mean 'window'?"),
    ("hosts.tcp.variant", "vegas", "hosts.tcp.variant: unknown value 'vegas'"),
    ("hosts.tcp.window", 0, "hosts.tcp.window: 0 is out of range 1 B to"),
    ("hosts.tcp.mss", 70000, "hosts.tcp.mss: 70000 is out of range"),
    ("hosts.tcp.initial_cwnd", "2 kB", "initial_cwnd: expected a whole number of segments, not '2 kB'"),
    ("hosts.tcp.initial_cwnd", 0, "hosts.tcp.initial_cwnd: 0 is out of range 1..1048576"),
    ("hosts.tcp.rto_min_ticks", "1 s", "rto_min_ticks: expected a whole number of ticks, not '1 s'"),
    ("hosts.tcp.nagle", 1, "hosts.tcp.nagle: expected true or false, not 1"),
    ("flow.0.source", "ana", "two.toml:37: flow.0.source: there is no host 'ana'; did you mean 'anna'?"),
    ("flow.1.sink", "bert", "flow.1: source and sink are the same host, 'bert'"),
    ("flow.1.app", "ftpp", "flow.1.app: unknown value 'ftpp'"),
    ("flow.1.name", "flow1", "flow.1.name: there is a flow 'flow1' already"),
    ("flow.0.size", "-3 MB", "flow.0.size: '-3 MB' is out of range"),
    ("flow.0.vc", "x", "flow.0.vc: there is no VC 'x'"),
    ("flow", [], "there is no flow"),
    ("flow", {}, "flow: expected a list, not a table"),
    ("record", {"interval": 0}, "record.interval: 0 is out of range"),
    ("record", {"interval": "1 us"}, "more than a million intervals"),
    ("record", {"what": ["qeue"]}, "record.what: unknown series 'qeue'; did you mean 'queue'?"),
    ("published.0.measured", "30", "published.0.measured: expected a number, not '30'"),
    ("published.0.metric", "flow3.goodput", "unknown value 'flow3.goodput'; did you mean"),
]


@pytest.mark.parametrize(("path", "value", "message"), WRONG, ids=[f"{w[0]}={w[1]}" for w in WRONG])
def test_what_is_wrong_is_one_line_with_file_and_key(path, value, message):
    with pytest.raises(ConfigError) as caught:
        read(put(path, value))
    text = str(caught.value)
    assert message in text
    assert text.startswith("two.toml")
    assert "\n" not in text
    assert caught.value.exit_code == 2


def vcs(*rows):
    return put("vc", [{"name": f"v{i}", **row} for i, row in enumerate(rows)])


def paced(**pacing):
    return [{"from": "anna", "to": "bert", "vci": 50} | pacing]


def shaped(**shape):
    return [{"from": "anna", "to": "bert", "vci": 50, "shape": shape}]


def policed(**police):
    return [{"from": "anna", "to": "bert", "vci": 50, "police": {"pcr": "1 Mb/s", "cdvt": "1 ms"} | police}]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"from": "anna", "to": "bert", "vci": 50}] * 2,
            "vc.1.vci: VPI/VCI 0/50 is used twice from anna to west: by 'v0' and 'v1'",
        ),
        ([{"from": "anna", "to": "bert", "vci": 5}], "vc.0.vci: 5 is out of range 32..65535"),
        ([{"from": "anna", "to": "bert", "vci": 50, "vpi": 256}], "vc.0.vpi: 256 is out of range 0..255"),
        ([{"from": "anna", "to": "bert", "vci": 50, "cell_rate": 0}], "cell_rate: impossible rate 0"),
        ([{"from": "anna", "to": "berta", "vci": 50}], "there is no host 'berta'; did you mean 'bert'?"),
        ([{"path": ["anna", "east", "bert"], "vci": 50}], "no line joins 'anna' and 'east'"),
        ([{"path": ["anna", "west"], "vci": 50}], "a path leads from a host over switches to another host"),
        ([{"path": ["anna", "wst", "bert"], "vci": 50}], "there is no node 'wst'; did you mean 'west'?"),
        (paced(burst=5), "vc.0.burst: a burst goes with a sustained rate: give 'sustained_rate', too"),
        (paced(sustained_rate="1 Mb/s"), "vc.0.sustained_rate: a sustained rate goes with a burst: give 'burst', too"),
        (paced(sustained_rate="1 Mb/s", burst=0), "vc.0.burst: 0 is out of range 1..2147483647"),
        (paced(sustained_rate="-1 b/s", burst=2), "vc.0.sustained_rate: impossible rate '-1 b/s'"),
        (
            paced(sustained_rate="1 Mb/s", burst=2, cell_rate="0.9 Mb/s"),
            "vc.0.sustained_rate: 1 Mb/s is above the peak rate of 900 kb/s",
        ),
        (
            paced(sustained_rate="OC-12c", burst=2),
            "vc.0.sustained_rate: 599.04 Mb/s is more than the 149.76 Mb/s of anna's line",
        ),
        (shaped(pcr="1 Gb/s"), "vc.0.shape.pcr: 1000 Mb/s is more than the 149.76 Mb/s of anna's line"),
        (shaped(pcr=0), "vc.0.shape.pcr: impossible rate 0: it must be more than 0"),
        (shaped(pcr="1 Mb/s", scr="2 Mb/s", mbs=2), "vc.0.shape.scr: 2 Mb/s is above the peak rate of 1 Mb/s"),
        (shaped(pcr="1 Mb/s", scr="1 kb/s"), "vc.0.shape.scr: a sustained rate goes with a burst: give 'mbs', too"),
        (policed(pcr="-1 Mb/s"), "vc.0.police.pcr: impossible rate '-1 Mb/s': it must be more than 0"),
        (policed(pcr="1 Gb/s"), "vc.0.police.pcr: 1000 Mb/s is more than the 149.76 Mb/s of anna's line"),
        (policed(scr=0, mbs=5), "vc.0.police.scr: impossible rate 0: it must be more than 0"),
        (policed(scr="1 Mb/s", mbs=0), "vc.0.police.mbs: 0 is out of range 1..2147483647"),
        (policed(scr="2 Mb/s", mbs=5), "vc.0.police.scr: 2 Mb/s is above the peak rate of 1 Mb/s"),
        (policed(mbs=5), "vc.0.police.mbs: a burst goes with a sustained rate: give 'scr', too"),
        (policed(at="south"), "vc.0.police.at: the VC passes west, east, and no switch 'south'"),
    ],
)
def test_wrong_vcs(rows, message):
    with pytest.raises(ConfigError) as caught:
        read(vcs(*rows))
    assert message in str(caught.value)


def loop(path, value):
    """Both hosts at west, whose port 3 is in loop-back; and one change more."""

    def change(d):
        d["network"]["lines"]["wan"] = {"ends": ["west:3", "west:3"], "delay": "20 ms"}
        d["network"]["hosts"]["bert"]["port"] = "west:1"
        put(path, value)(d)

    return change


def test_a_flow_takes_the_path_it_names_there_and_back():
    e = read(loop("flow.0.path", ["anna", "west", "west", "bert"]))
    assert e.network.lines[0].looped
    there, back = (e.vcs[k] for k in (e.flows[0].vc, e.flows[0].return_vc))
    assert there.path == ("anna", "west", "west", "bert") and back.path == ("bert", "west", "west", "anna")
    assert e.vcs[e.flows[1].vc].path == ("bert", "west", "anna")  # the shortest leaves the loop out


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("network.lines.wan.ber", [1e-9, 0], "wan.ber: a line in loop-back has one direction, so one error ratio"),
        ("flow.0.path", ["anna", "west", "west", "west", "bert"], "a path passes a node once, and a line in loop-back"),
        ("flow.0.path", ["anna", "west", "bert", "west", "bert"], "a path passes a node once, and a line in loop-back"),
        ("flow.0.path", ["bert", "west", "anna"], "leads from 'bert' to 'anna', the flow from 'anna' to 'bert'"),
        ("network.lines.wan.ends", ["west:3", "east:1"], "no line joins 'west' and 'west'; no line of it is in loop"),
        ("flow.0.vc", "x", "flow.0.vc: the VC has its own path; give either 'path' or 'vc' and 'return_vc'"),
    ],
)
def test_wrong_paths_and_loops(path, value, message):
    def change(d):
        put("flow.0.path", ["anna", "west", "west", "bert"])(d)
        loop(path, value)(d)

    with pytest.raises(ConfigError) as caught:
        read(change)
    assert message in str(caught.value)


def test_the_same_numbers_the_other_way_are_no_clash():
    e = read(vcs({"from": "anna", "to": "bert", "vci": 50}, {"from": "bert", "to": "anna", "vci": 50}))
    assert [vc.vci for vc in e.vcs[:2]] == [50, 50]


def test_hundreds_of_flows_have_vcs_of_their_own():
    e = read(put("flow", [{"source": "anna", "sink": "bert"}] * 300))
    assert [vc.vci for vc in e.vcs] == list(range(32, 632))


def test_more_vcs_than_a_node_has_are_an_error():
    with pytest.raises(ConfigError, match="anna has 4098 VCs, a node has 4096 at most"):
        read(put("flow", [{"source": "anna", "sink": "bert"}] * 2049))


def test_listed_losses():
    e = read(
        put("loss", [{"line": "wan", "vc": "flow1", "pdus": [9, 3]}, {"line": "wan", "vc": "flow2", "cells": [1]}])
    )
    first, second = e.losses
    assert (first.vc, first.way, first.pdus, first.cells) == (e.flows[0].vc, ("west", "east"), (3, 9), ())
    assert (second.vc, second.way, second.cells) == (e.flows[1].vc, ("east", "west"), (1,))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"line": "wann", "vc": "flow1", "pdus": [1]}, "there is no line 'wann'; did you mean 'wan'?"),
        ({"line": "wan", "vc": "flw1", "pdus": [1]}, "there is no VC 'flw1'; did you mean 'flow1'?"),
        ({"line": "wan", "vc": "flow1"}, "give either 'pdus' or 'cells'"),
        ({"line": "wan", "vc": "flow1", "pdus": [1], "cells": [2]}, "give either 'pdus' or 'cells'"),
        ({"line": "wan", "vc": "flow1", "pdus": [0]}, "0 is not a number from 1 on"),
        ({"line": "wan", "vc": "flow1", "pdu": [1]}, "unknown key"),
    ],
)
def test_wrong_losses(row, message):
    with pytest.raises(ConfigError) as caught:
        read(put("loss", [row]))
    assert message in str(caught.value)


def test_a_vc_that_two_flows_use_is_an_error():
    def change(d):
        d["vc"] = [{"name": "x", "from": "anna", "to": "bert", "vci": 50}]
        d["flow"][1] = {"source": "anna", "sink": "bert", "vc": "x"}
        d["flow"][0]["vc"] = "x"

    with pytest.raises(ConfigError, match="the VC 'x' is used twice: by 'flow1' and 'flow2'"):
        read(change)


def test_switches_of_a_vc_that_differ_are_an_error():
    with pytest.raises(ConfigError, match=r"network\.switches: west and east differ in policy, but VC 'flow1'"):
        read(put("network.switches.east.policy", "tail"))
    with pytest.raises(ConfigError, match="differ in vc_limit"):
        read(put("network.switches.east.vc_limit", 256))


def test_hosts_that_no_line_joins_are_an_error():
    with pytest.raises(ConfigError, match="no lines lead from 'anna' to 'bert'"):
        read(put("network.lines", {}))


def test_quick_needs_to_be_declared():
    with pytest.raises(ConfigError, match="declares no 'quick'"):
        read(put("experiment.quick", ...), quick=True)


def test_all_that_is_wrong_is_said_at_once_in_the_order_of_the_lines():
    def change(d):
        d["flow"][0]["sise"] = 1
        d["network"]["lines"]["wan"] |= {"delay": "2 s", "ber": [0, "low"], "ends": "west:3"}
        d["experiment"]["seed"] = -1
        del d["experiment"]["duration"]

    with pytest.raises(ConfigError) as caught:
        read(change)
    assert [str(caught.value), *caught.value.more] == [
        "two.toml:2: experiment: the key 'duration' is missing",
        "two.toml:2: experiment.seed: -1 is out of range 0..4294967295",
        "two.toml:16: network.lines.wan.ends: expected a list, not 'west:3'",
        "two.toml:17: network.lines.wan.delay: '2 s' is out of range 0 s to 1 s",
        "two.toml:18: network.lines.wan.ber: expected a number, not 'low'",
        "two.toml:36: flow.0.sise: unknown key; did you mean 'size'?",
    ]


def test_all_cross_references_that_lead_nowhere_are_said_at_once():
    def change(d):
        d["network"]["lines"]["wan"]["ends"] = ["west:9", "east:1"]
        d["network"]["hosts"]["anna"]["port"] = "wst:0"
        d["network"]["hosts"]["bert"]["clock_hz"] = 100

    with pytest.raises(ConfigError) as caught:
        read(change)
    assert [text.partition(": ")[2] for text in (str(caught.value), *caught.value.more)] == [
        "network.lines.wan.ends: switch 'west' has no port 9; its ports are 0..3",
        "network.hosts.anna.port: there is no switch 'wst'; did you mean 'west'? known: east, west",
        "network.hosts.bert.clock_hz: needs clock_cost: how long each of the interrupts takes",
    ]
    both = [{"source": "anna", "sink": "bret"}, {"source": "bert", "sink": "anna", "vc": "x"}]
    with pytest.raises(ConfigError) as caught:
        read(put("flow", both))
    assert "there is no host 'bret'" in str(caught.value) and "there is no VC 'x'" in caught.value.more[0]


def test_a_misspelt_key_is_not_said_to_be_missing_too():
    def change(d):
        d["experiment"]["durration"] = d["experiment"].pop("duration")

    with pytest.raises(ConfigError) as caught:
        read(change)
    assert "unknown key; did you mean 'duration'?" in str(caught.value) and caught.value.more == ()
