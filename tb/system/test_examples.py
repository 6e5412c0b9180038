"""The scripts and files in ``examples`` run as they stand, and show what they say. ``test_cell_loss_study.py`` has the
study of cell loss, ``interop/test_attached.py`` the lab with real hosts."""

import importlib.util
import json
from pathlib import Path

import pytest

from bentpipe import run
from bentpipe.cli import main
from bentpipe.results.losses import bursts_by_vc

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """Import a script without running it."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested_and_listed():
    names = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".toml", ".ipynb")}
    assert names == {
        "buffer_study.py",
        "cell-loss.ipynb",
        "cell-loss.toml",
        "fade-lab.toml",
        "fade_lab.py",
        "litex_soc.py",
        "loss-bursts.toml",
        "own_core.py",
        "own_network.py",
        "test-cells.toml",
    }
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"`{name}`" in listed for name in names)


def test_a_study_of_buffers(capsys, default_cluster):
    example("buffer_study").main(["--duration", "300 ms", "--cells", "256", "8192", "--seeds", "1"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[0] for row in rows] == ["256", "8192"]
    assert 0 < float(rows[0][1]) < 149.76 * 48 / 53 and rows[0][1] != rows[1][1]


def test_a_network_without_tcp(capsys):
    example("own_network").main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [f"{name}: 10 sent, 2 delivered, lost: 8 at switch (EPD)" for name in "ab"]
    cells = 94  # of 4,470 octets and the trailer of 8
    first = float(lines[0].split()[1])
    assert first == pytest.approx(250 + (2 * cells - 1) * 53 * 8 / 1536 + 2 * 53 * 8 / 149760, abs=0.02)


def test_a_core_in_a_design_of_ones_own(capsys, tmp_path):
    own_core = example("own_core")
    own_core.main([])
    shown = [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        "accepted, header 00000200", "accepted, corrected, header 00000200", "discarded", "accepted, header 00000200",
    ]  # fmt: skip
    own_core.main(["--verilog", str(tmp_path / "made.v")])
    assert "module header_check(" in (tmp_path / "made.v").read_text()


def test_bursts_of_losses_by_policy():
    """The same packets come with each policy. EPD loses whole ones, of 31 cells; tail drop some cells of many."""
    found = {}
    for case in ("tail drop", "EPD"):
        done = run(EXAMPLES / "loss-bursts.toml", quick=True, case=case)
        lengths = [length for vc in bursts_by_vc(done._result.losses).values() for length in vc.lengths]
        assert sum(lengths) == len(done.losses) > 300
        found[case] = done.metrics, lengths
    (tail, short), (epd, whole) = found["tail drop"], found["EPD"]
    assert tail["cells_sent"] == pytest.approx(epd["cells_sent"], rel=0.002)
    assert all(length % 31 == 0 for length in whole) and epd["frame_loss_ratio"] == epd["cell_loss_ratio"]
    assert sum(length % 31 == 0 for length in short) < len(short) / 20 and tail["loss_burst_mean"] < 8
    assert tail["frame_loss_ratio"] > 2 * tail["cell_loss_ratio"]


def test_test_cells_beside_other_traffic(tmp_path):
    """The analyser's figures are the ledger's, and a capture has the cells that came."""
    out = tmp_path / "out"
    arguments = ["run", str(EXAMPLES / "test-cells.toml"), "--duration", "150 ms", "--no-plots"]
    assert main([*arguments, "--pcap", "cells:sink", "--out", str(out)]) == 0
    flows = json.loads((out / "result.json").read_text())["flows"]
    probe = next(flow for flow in flows if flow["protocol"] == "atm")
    assert probe["test_cells_received"] > 1000
    for what in ("lost", "misinserted"):
        assert probe[f"test_cells_{what}"] == probe[f"true_cells_{what}"]
    assert 0 < probe["test_cells_errored"] <= probe["true_cells_errored"]  # some are in flight at the end
    (capture,) = out.glob("*.pcap*")
    assert capture.stat().st_size > 60 * probe["test_cells_received"]
