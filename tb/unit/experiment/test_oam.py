"""OAM as files have it: what VCs and switches get of it, and what is refused."""

import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.load import load

TEXT = """
[experiment]
id = "oam"
title = "Three switches"
duration = "60 s"

[network.switches.a]
[network.switches.b]
oam = { location = "Cleveland" }
[network.switches.c]

[network.lines.one]
ends = ["a:1", "b:0"]
[network.lines.two]
ends = ["b:1", "c:0"]

[network.hosts.x]
port = "a:0"
[network.hosts.y]
port = "c:1"

[[vc]]
name = "there"
from = "x"
to = "y"
vci = 50
oam = { ends = true, segment = ["a", "c"], check = "idle" }

[[vc]]
name = "back"
from = "y"
to = "x"
vci = 50

[[flow]]
source = "x"
sink = "y"
vc = "there"
return_vc = "back"

[[event]]
at = "10 s"
set = { "network.lines.one.outage" = [true, false] }
"""


@pytest.fixture
def read(tmp_path):
    def read(*settings, text=TEXT):
        file = tmp_path / "oam.toml"
        file.write_text(text)
        return load(file, settings=settings)

    return read


PATHS = TEXT.replace('oam = { ends = true, segment = ["a", "c"], check = "idle" }', "").replace(
    "[[vc]]", '[network.vps.beam]\npath = ["a", "b", "c"]\nvpi = 7\noam = { segment = ["b", "c"] }\n\n[[vc]]', 1
)


def test_a_path_gets_points_and_ends(read):
    network, *_ = build_network(read(text=PATHS))
    a, b, c = (next(n for n in network.nodes if n.name == name) for name in "abc")
    assert [vc.oam.segment_end for vc in b.vcs] == [False, True]
    for switch in (a, c):
        [end] = [vc for vc in switch.vcs if vc.ends_path]
        assert (end.oam.end, end.oam.segment_end, end.oam.path) == (True, True, True)
        assert switch.vcs[end.back] is end


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["network.vps.beam.path=['x','a','b']"], "network.vps.beam.oam: the virtual path ends at 'x'"),
        (["network.vps.beam.oam.segment=['b','d']"], "segment: it passes a, b, c, and no switch 'd'"),
    ],
)
def test_what_is_refused_of_paths(read, settings, message):
    with pytest.raises(ConfigError) as error:
        read(*settings, text=PATHS)
    assert message in str(error.value)


def test_both_ways_get_their_points(read):
    network, *_ = build_network(read())
    a, b, c = (next(n for n in network.nodes if n.name == name) for name in "abc")
    there = [switch.vcs[0].oam for switch in (a, b, c)]
    back = [switch.vcs[1].oam for switch in (a, b, c)]
    assert [(p.end, p.segment_end, p.end_sink, p.segment_sink) for p in there] == [(False,) * 4] * 2 + [(True,) * 4]
    assert [(p.end_source, p.segment_source) for p in there] == [(True, True), (False, False), (False, False)]
    assert [p.loops for p in there] == [p.loops for p in back] == [False, True, False]
    assert [(p.end, p.segment_end, p.end_sink, p.segment_sink) for p in back] == [(True,) * 4] + [(False,) * 4] * 2


def test_half_a_second_may_change_in_a_run(read):
    more = '\n[[event]]\nat = "20 s"\nset = { "network.switches.b.oam.scan" = "10 ms" }\n'
    scans = [event.network.switches[1].settings.oam.scan_ps for event in read(text=TEXT + more).events]
    assert scans == [500 * 10**9, 10 * 10**9]
    with pytest.raises(ConfigError, match="can't be changed in a run"):
        read(text=TEXT + more.replace("scan", "location"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["vc.0.oam.segment=['a','d']"], "vc.0.oam.segment: it passes a, b, c, and no switch 'd'"),
        (["vc.0.oam.segment=['c','a']"], "vc.0.oam.segment: it passes 'a' before 'c'"),
        (["vc.0.oam.segment=['a','a']"], "segment: a segment that begins and ends at 'a' has no line"),
        (["vc.0.oam={check='idle'}"], "check: no flow ends at switches: give `ends` or `segment`, too"),
        (["network.switches.b.oam.location='more than sixteen octets'"], "a location ID has 16 octets"),
        ([f"network.switches.b.oam.location='{'ff' * 16}'"], "is no location ID of a node"),
        (["network.switches.b.oam.scan='11 s'"], "scan: '11 s' is out of range 1 us to 10 s"),
    ],
)
def test_what_is_refused(read, settings, message):
    with pytest.raises(ConfigError) as error:
        read(*settings)
    assert message in str(error.value)
