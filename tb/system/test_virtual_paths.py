"""An experiment with a virtual path, from its file to its result."""

from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment

MS = 10**9
TEXT = """
[experiment]
id = "path"
title = "Two flows through one path"
duration = "400 ms"

[network.switches.west]
[network.switches.satellite]
buffer_cells = 2000
[network.switches.east]

[network.lines.up]
ends = ["west:3", "satellite:0"]
[network.lines.down]
ends = ["satellite:1", "east:3"]
rate = "60 Mb/s"
delay = "1 ms"

[network.hosts.a]
port = "west:0"
[network.hosts.b]
port = "west:1"
[network.hosts.c]
port = "east:0"

[network.vps.beam]
path = ["west", "satellite", "east"]
vpi = 7
limit = 600

[hosts]
mtu = 1500

[hosts.tcp]
window = "24 KiB"

[[flow]]
source = "a"
sink = "c"

[[flow]]
source = "b"
sink = "c"

[[event]]
at = "200 ms"
set = { "network.vps.beam.limit" = 300 }

[record]
interval = "10 ms"
"""


def test_tcp_through_a_path_that_gets_shorter(tmp_path):
    """Two flows fill the queue of their path, and from 200 ms on one that is too short for them; the ledger tells whose
    packets were lost there, and nowhere else."""
    file = tmp_path / "path.toml"
    file.write_text(TEXT)
    result = run_experiment(load(str(file)))
    assert result.summary["status"] == "done"
    queue = result.trace.series["satellite.queue"]
    samples = list(zip(*queue, strict=True))
    before = [cells for at, cells in samples if at < 200 * MS]
    after = [cells for at, cells in samples if at > 230 * MS]
    assert 300 < max(before) <= 600 and max(after) <= 300
    dropped = {name: sum(reasons.values()) for name, reasons in result.summary["drops"].items()}
    assert dropped["satellite"] > 10 and dropped["west"] == dropped["east"] == 0
    lost = {row["vc"]: {(loss["where"], loss["why"]) for loss in row["lost"]} for row in result.summary["ledger"]}
    assert ("satellite", "full") in lost["flow1"] and ("satellite", "full") in lost["flow2"]
