"""Remarks on frames that find too few places on their way, whatever else a switch has to do."""

import pytest

from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from unit.experiment.fake import fake_build

TEXT = """
[experiment]
id = "slow"
title = "From OC-3c to a slower line"
duration = "1 s"
[network.switches.a]
ports = ["OC-3c", "14.976 Mb/s"]
buffer_cells = 100
policy = "tail"
[network.hosts.s]
port = "a:0"
[network.hosts.t]
port = "a:1"
rate = "14.976 Mb/s"
[[flow]]
name = "f"
source = "s"
sink = "t"
"""
UDP = {"protocol": "udp", "app": "cbr", "rate": "1 Mb/s"}


def remarks(tmp_path, settings=(), event=""):
    path = tmp_path / "slow.toml"
    path.write_text(TEXT + event)
    return [
        text for text in run_experiment(load(path, settings), build=fake_build).summary["remarks"] if "places" in text
    ]


@pytest.mark.parametrize(
    ("settings", "places"),
    [
        ([], "100 (buffer_cells)"),
        (["network.switches.a.policy=epd", "network.switches.a.epd_threshold=90"], "100 (buffer_cells)"),
        (["network.switches.a.buffer_cells=4000", "network.switches.a.vc_limit=170"], "170 (vc_limit)"),
        (
            ["network.switches.a.buffer_cells=4000", "network.switches.a.policy=ppd", "network.hosts.t.queue_limit=60"],
            "60 (queue_limit)",
        ),
        (["network.switches.a.buffer_cells=173"], None),
        (["network.hosts.s.mtu=4000", "network.hosts.t.mtu=4000"], None),
        (["flow.0.cell_rate=29.952 Mb/s"], None),
        (["network.hosts.t.rate=149.76 Mb/s", "network.switches.a.ports=2"], None),
        ([f"flow.0.{key}={value}" for key, value in {**UDP, "block": "4000 B"}.items()], None),
        ([f"flow.0.{key}={value}" for key, value in {**UDP, "block": "9000 B"}.items()], "100 (buffer_cells)"),
    ],
)
def test_a_frame_that_never_fits_is_told(tmp_path, settings, places):
    """192 cells come ten times as fast as they leave: 172 of them are queued."""
    found = remarks(tmp_path, settings)
    assert len(found) == (places is not None)
    if places:
        assert found[0].startswith("Flow f: no frame of 1") and f"has {places}." in found[0]


def test_a_line_that_is_faster_for_a_time_passes_frames(tmp_path):
    event = '[[event]]\nat = "500 ms"\nset = { "flow.0.cell_rate" = "20 Mb/s" }\n'
    assert remarks(tmp_path, event=event) == []
