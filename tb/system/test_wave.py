"""``bentpipe wave``: from an experiment and from its run folder; what can't be is a line."""

import re
import struct

import pytest

from bentpipe.cli import main
from bentpipe_hdl.ticks import TICKS_A_SECOND
from unit.sim.test_captures import records


def test_a_wave_of_a_run_has_its_cells(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "lan-1flow", "--duration", "2 ms", "--no-plots", "--pcap", "cells:lan", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["wave", "run", "--node", "lan.out", "--at", "0 s", "--for", "0.6 ms", "-o", "of-run.vcd"]) == 0
    message = capsys.readouterr().out
    one = (tmp_path / "of-run.vcd").read_bytes()
    first, last = (int(tick) for tick in re.search(rb"ticks (\d+) to (\d+)", one).groups())
    came = 0
    for file in (tmp_path / "run").glob("*.pcap"):
        for record in records(file, 197):
            (time,) = struct.unpack("<Q", record.octets[:8])
            came += first <= round(time / 2**32 * TICKS_A_SECOND) <= last and not record.octets[9] & 1
    assert came > 15
    assert f"; {came} cells came, " in message
    assert main(["wave", "lan-1flow", "--node", "lan.out", "--at", "0 s", "--for", "0.6 ms", "-o", "of-name.vcd"]) == 0
    assert (tmp_path / "of-name.vcd").read_bytes() == one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--id", "lan-1flow", "--node", "lan.ou", "--at", "1s"],
            "lan-1flow has no such node; did you mean 'lan.out'?",
        ),
        (["lan-1flow", "--node", "lan.out", "--at", "1000s"], "--at 1000 s --for 20 us: lan-1flow ends at"),
        (
            ["lan-1flow", "--node", "lan.out", "--at", "1s", "--for", "1 s"],
            "the length must be more than 0 s and at most 10 ms",
        ),
        (["lan-1flow", "--node", "lan.out", "--at", "1s", "--for", "10 ns"], "no tick begins in it"),
        (["lan-1flow", "--node", "lan.out", "--at", "soon"], "--at: "),
        (["magic-window", "--node", "lan", "--at", "1s"], "has several cases; give --case, one of"),
        (["lan-1flow", "--node", "lan.out", "--at", "1s", "-o", "there.vcd"], "already exists"),
        (
            ["lan-1flow", "--node", "lan.out", "--at", "1us", "-o", "no/such/folder.vcd"],
            "cannot be written: No such file",
        ),
        (["empty", "--node", "lan.out", "--at", "1s"], "empty: not a run folder"),
        (["empty", "--node", "lan.out", "--at", "1s", "--seed", "2"], "a run has its settings"),
        (["lan-1flow", "--node", "lan.out", "--at", "59s", "--set", "flow.0.size=1000"], "its flows end at"),
    ],
)
def test_a_wave_that_cant_be_is_a_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.vcd").write_text("mine")
    (tmp_path / "empty").mkdir()
    assert main(["wave", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "there.vcd"]
    assert (tmp_path / "there.vcd").read_text() == "mine"


def test_a_run_whose_file_was_changed_is_refused(tmp_path, capsys):
    file, folder = tmp_path / "own.toml", tmp_path / "run"
    assert main(["new", str(file), "--from", "lan-1flow", "--whole"]) == 0
    assert main(["run", str(file), "--duration", "2 ms", "--no-plots", "--out", str(folder)]) == 0
    file.write_text(file.read_text().replace("[experiment]", "[experiment]\nseed = 77", 1))
    assert main(["wave", str(folder), "--node", "lan.out", "--at", "1 ms"]) == 2
    assert "has changed since: run it again" in capsys.readouterr().err
