"""Tests of ends at which a frame's VLAN selects its VC: the text, the VCs that it means, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bentpipe.attach.ends import End, parse_end
from bentpipe.attach.hosts import attached_hosts, parse_ends
from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe.experiment.resolve.specs import Experiment

TRUNK = """
[experiment]
id = "trunk"
title = "A trunk to two hosts, with two VCs to one of them"
duration = "10 s"
[network.switches]
west = {}
east = {}
[network.lines]
satellite = { ends = ["west:1", "east:2"], delay = "30 ms" }
[network.hosts]
hub = { port = "west:0" }
rome = { port = "east:0" }
oslo = { port = "east:1" }
[[flow]]
name = "voice"
source = "hub"
sink = "rome"
[[flow]]
name = "data"
source = "hub"
sink = "rome"
[[flow]]
name = "far"
source = "hub"
sink = "oslo"
"""


@pytest.fixture(name="trunk")
def _trunk(tmp_path: Path) -> Experiment:
    (tmp_path / "trunk.toml").write_text(TRUNK)
    return load(tmp_path / "trunk.toml")


def vlans(experiment: Experiment, **ends: str) -> dict[str, tuple[int, int]]:
    """Return the VLANs of each used VC by its name, at its source and its sink."""
    left, attached = attached_hosts(experiment, {host: parse_end(text, "--a") for host, text in ends.items()})
    return {left.vcs[vc].name: attached.vlans_of(left, vc) for vc in attached.vcs}


def test_the_text_of_an_end_has_its_vlans_and_is_written_so() -> None:
    end = parse_end("if:eth1,10=voice,0=far", "--a")
    assert end == End("if", "eth1", ((10, "voice"), (0, "far"))) and parse_end(str(end), "--a") == end


def test_a_vlan_is_the_two_vcs_of_a_flow_or_of_another_host(trunk: Experiment) -> None:
    """A VLAN is a flow's VCs both ways; the other end of a host alone passes frames without tags."""
    assert vlans(trunk, hub="if:e,10=voice,30=oslo", rome="ns:r", oslo="ns:o") == {
        "voice": (10, -1),
        "voice.return": (-1, 10),
        "far": (30, -1),
        "far.return": (-1, 30),
    }


def test_with_vlans_at_both_ends_two_vcs_lead_from_one_host_to_another(trunk: Experiment) -> None:
    assert vlans(trunk, hub="if:e,10=voice,20=data", rome="tap:r,5=data,10=voice") == {
        "voice": (10, 10),
        "voice.return": (10, 10),
        "data": (20, 5),
        "data.return": (5, 20),
    }


def test_without_vlans_the_first_of_two_is_used(trunk: Experiment) -> None:
    assert vlans(trunk, hub="if:e", rome="ns:r") == {"voice": (-1, -1), "voice.return": (-1, -1)}


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ({"hub": "if:e,10=voise", "rome": "ns:r"}, "'voise' is no VC of it, and .*; did you mean 'voice'"),
        ({"hub": "if:e,10=rome", "rome": "ns:r"}, "several VCs lead to or from rome; name one of voice"),
        ({"hub": "if:e,10=voice,20=data", "rome": "ns:r"}, "host rome: several VCs lead from hub to rome; give it VL"),
        ({"hub": "if:e,10=voice,11=voice", "rome": "ns:r"}, "VC voice has two VLANs, 10 and 11"),
        ({"hub": "if:e,10=voice,10=oslo", "rome": "ns:r", "oslo": "ns:o"}, "VLAN 10 leads into two VCs, voice and far"),
        ({"hub": "if:e,10=voice", "rome": "ns:r", "oslo": "ns:o"}, "host hub: VC far has no VLAN; add one, as 10=far"),
        (
            {"hub": "if:e", "rome": "tap:r,10=voice,20=oslo", "oslo": "ns:o"},
            "host rome: 'oslo' is no VC of it, and no att",
        ),
        ({"hub": "if:e,10=voice.return", "rome": "ns:r"}, "VC voice has no VLAN"),
    ],
)
def test_vlans_that_are_not_clear_are_a_line(trunk: Experiment, ends: dict[str, str], message: str) -> None:
    with pytest.raises(BentpipeError, match=message):
        vlans(trunk, **ends)


def test_a_name_of_a_vc_and_of_a_host_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "trunk.toml").write_text(TRUNK.replace('"voice"', '"oslo"'))
    with pytest.raises(BentpipeError, match="oslo is a VC and another host; name one of far"):
        vlans(load(tmp_path / "trunk.toml"), hub="if:e,10=oslo,20=data", rome="ns:r,20=data", oslo="ns:o")


def test_an_interface_is_attached_once(trunk: Experiment) -> None:
    with pytest.raises(BentpipeError, match="another host already has this end"):
        parse_ends("if:e,10=voice", "rome=if:e,20=hub", (), trunk)


@pytest.mark.parametrize(
    "text", ["if:e,10", "if:e," + 5000 * "1" + "=x", "if:e,4095=x", "if:e,ten=x", "if:e,10=", "if:e,-1=x", "if:e,²=x"]
)
def test_a_text_that_is_no_vlan_is_a_line(text: str) -> None:
    with pytest.raises(BentpipeError, match="expected VLAN=NAME: a VID of 1 to 4094"):
        parse_end(text, "--a")


def test_an_end_without_frames_has_no_vlans() -> None:
    with pytest.raises(BentpipeError, match="carries no Ethernet frames"):
        parse_end("tun:t,10=x", "--a")
