"""LiteX's own programs on a simulated board: ``litex_server`` on its terminal, ``litex_cli`` through that, beside
frames."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bentpipe_boards.fpga.plans import PLANS
from bentpipe_sim.board.regs import litex_csv, named

PLAN = PLANS["line"]


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert found, f"{name} is missing: pip install 'bentpipe[litex]'"
    return found


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Callable[..., str]]:
    csv = tmp_path / "csr.csv"
    csv.write_text(litex_csv(PLAN))
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "bentpipe_boards.simulated", PLAN.to_json()]
    board = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert board.stdin is not None and board.stdout is not None
    device = board.stdout.readline().strip()
    server = subprocess.Popen(
        [_program("litex_server"), "--uart", "--uart-port", device, "--bind-port", port],
        stdout=subprocess.DEVNULL,
    )

    def run(*arguments: str) -> str:
        command = [_program("litex_cli"), "--csr-csv", str(csv), "--port", port, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    try:
        for _ in range(100):
            with socket.socket() as there:
                if there.connect_ex(("localhost", int(port))) == 0:
                    break
            time.sleep(0.1)
        yield run
    finally:
        server.kill()
        server.wait()
        board.stdin.close()
        board.wait()


def test_litex_cli_reads_identification_and_counters(cli: Callable[..., str]) -> None:
    found = {line.split()[3]: int(line.split()[2], 0) for line in cli("--regs").splitlines()}
    assert list(found) == [name for name, _ in named(PLAN)]
    for name, magic in (("board", b"BPBD"), ("link1", b"BPLK"), ("nic2", b"BPNC")):
        assert found[f"{name}_magic"] == int.from_bytes(magic, "big")
    assert found["board_clocks"] == 40
    assert found["link1_cells"] == found["nic2_tx_cells_0"] == 0


def test_only_the_scratch_register_takes_a_write(cli: Callable[..., str]) -> None:
    places = dict(named(PLAN))
    for name, taken in (("board_scratch", True), ("board_clocks", False)):
        at = hex(4 * places[name])
        before = cli("--read", at).split()[2]
        cli("--write", at, "0x77")
        assert cli("--read", at).split()[2] == ("0x00000077" if taken else before)
