"""Flows and VCs to several hosts as files have them: what becomes of them, what is refused, a run of one."""

import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.build.hosts import build
from bentpipe.experiment.load import load
from bentpipe.experiment.resolve.specs import plain
from bentpipe.results.metrics import most_deliverable

TEXT = """
[experiment]
id = "several"
title = "One to three"
duration = "200 ms"

[network.switches.west]
[network.switches.east]

[network.lines.far]
ends = ["west:3", "east:3"]
delay = "10 ms"

[network.hosts.a]
port = "west:0"
[network.hosts.b]
port = "west:1"
[network.hosts.c]
port = "east:0"
[network.hosts.d]
port = "east:1"

[[flow]]
name = "video"
source = "a"
sink = ["b", "c", "d"]
protocol = "udp"
app = "cbr"
block = 1000
period = "1 ms"
duration = "100 ms"
"""
BY_HAND = """
vc = "tree"
[[vc]]
name = "tree"
from = "a"
to = ["b", "c", "d"]
vpi = 3
vci = 77
"""


def parse(tmp_path, text):
    (tmp_path / "it.toml").write_text(text)
    return load(str(tmp_path / "it.toml"))


def test_a_flow_and_a_vc_for_each_sink(tmp_path):
    e = parse(tmp_path, TEXT)
    assert [(f.name, f.sink, f.vc, f.return_vc, f.first) for f in e.flows] == [
        ("video.b", "b", 0, None, None), ("video.c", "c", 1, None, 0), ("video.d", "d", 2, None, 0),
    ]  # fmt: skip
    assert [(vc.name, vc.path, vc.vci, vc.root) for vc in e.vcs] == [
        ("video.b", ("a", "west", "b"), 32, None),
        ("video.c", ("a", "west", "east", "c"), 32, 0),
        ("video.d", ("a", "west", "east", "d"), 32, 0),
    ]


def test_a_vc_to_several_hosts_laid_out_by_hand(tmp_path):
    e = parse(tmp_path, TEXT + BY_HAND)
    assert [(f.name, e.vcs[f.vc].name) for f in e.flows] == [(f"video.{k}", f"tree.{k}") for k in "bcd"]
    assert {(vc.vpi, vc.vci) for vc in e.vcs} == {(3, 77)}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            'protocol = "udp"\napp = "cbr"', 'app = "cbr"',
            'TCP is between two hosts; to several go applications with protocol = "udp" and no answers',
        ),
        (
            'app = "cbr"\nblock = 1000\nperiod = "1 ms"', 'app = "ping"',
            'ping is between two hosts; to several go applications with protocol = "udp" and no answers',
        ),
        ('"c", "d"]', '"c", "c"]', "flow.0.sink: a host is named twice"),
        ('"c", "d"]', '"a"]', "source and sink are the same host, 'a'"),
        ('"c", "d"]', '"x"]', "flow.0.sink: there is no host 'x'"),
        ('"c", "d"]', '"d"]\npath = ["a", "west", "b"]', "flow.0.path: leads to one sink; the paths to several"),
        ('["b", "c", "d"]', "[]", "flow.0.sink: give 1 to 255 hosts, not 0"),
        ("duration = \"100 ms\"", 'duration = "100 ms"\nreturn_vc = "x"', "several sinks send no answers"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path, old, new, line):
    assert old in TEXT
    with pytest.raises(ConfigError) as refused:
        parse(tmp_path, TEXT.replace(old, new))
    assert line in str(refused.value)


def test_a_vc_to_other_hosts_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"flow\.0\.vc: the VC 'tree' leads from 'a' to 'b', 'c', 'd'"):
        parse(tmp_path, TEXT.replace('"c", "d"]', '"c"]') + BY_HAND)


def test_what_the_lines_can_deliver_counts_a_shared_one_once(tmp_path):
    """Each of three sinks on OC-3c lines can have all of the source's."""
    resolved = plain(parse(tmp_path, TEXT))
    one = most_deliverable(resolved, ["video.c"])
    assert most_deliverable(resolved, ["video.b", "video.c", "video.d"]) == pytest.approx(3 * one)


def test_a_run_tells_of_each_sink(tmp_path):
    """Two listed losses before the paths part to c and d: their reports and accounts have them, b's don't."""
    text = TEXT + '[[loss]]\nline = "far"\nvc = "video.c"\npdus = [4, 9]\n'
    built = build(parse(tmp_path, text), None)
    try:
        built.engine.run(200_000_000_000)
        reports = {name: flow.report(built.now_ps()) for name, flow in built.flows.items()}
        built.check()
        ledger = {row["vc"]: row for row in built.ledger()}
    finally:
        built.close()
    found = {name: (r.sink, r.datagrams_sent, r.datagrams_received, r.datagrams_lost) for name, r in reports.items()}
    assert found == {
        "video.b": ("b", 100, 100, 0), "video.c": ("c", 100, 98, 2), "video.d": ("d", 100, 98, 2),
    }  # fmt: skip
    assert reports["video.c"].delay_mean_ps - reports["video.b"].delay_mean_ps > 10**10
    assert {name: (row["delivered"], row["lost"], row["flows"]) for name, row in ledger.items()} == {
        "video.b": (100, [], ["video.b"]),
        **{
            f"video.{sink}": (98, [{"where": "far.out", "why": "listed loss", "pdus": 2}], [f"video.{sink}"])
            for sink in "cd"
        },
    }


def test_datagrams_of_one_cell_have_their_times_at_each_sink(tmp_path):
    cbr = 'app = "cbr"\nblock = 1000\nperiod = "1 ms"'
    assert cbr in TEXT
    built = build(parse(tmp_path, TEXT.replace(cbr, 'app = "slots"\nrate = "1 Mb/s"\nperiod = 3\ndatagram = 4')), None)
    try:
        built.engine.run(200_000_000_000)
        reports = [flow.report(built.now_ps()) for flow in built.flows.values()]
    finally:
        built.close()
    assert len({r.datagrams_received for r in reports}) == 1 and reports[0].datagrams_received > 50
    assert 10**10 > reports[0].delay_min_ps > 0 and min(r.delay_min_ps for r in reports[1:]) > 10**10
