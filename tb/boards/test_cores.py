"""Exported cores in other designs: plain Verilog and a LiteX SoC in Icarus with cocotb, FuseSoC's build of a core
file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bentpipe.cli import main
from boards.icarus import simulate

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _icarus() -> None:
    assert shutil.which("iverilog"), "Icarus Verilog is missing: apt-get install iverilog"


def test_plain_verilog_with_axi4_stream(tmp_path: Path) -> None:
    made = []
    for name, *more in (("aal5-segmenter",), ("aal5-reassembler",), ("sonet-terminal", "--bus", "axi-lite")):
        made.append(tmp_path / f"{name}.v")
        assert main(["rtl", name, *more, "-o", str(made[-1])]) == 0
    simulate([EXAMPLES / "aal5_over_sonet.v", *made], "aal5_over_sonet", "boards.bench_verilog", tmp_path)


def test_litex_soc(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "litex_soc.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    sources = [Path(line) for line in done.stdout.splitlines() if line.endswith(".v")]
    simulate(sources, "top", "boards.bench_litex", tmp_path, BENTPIPE_CSR=str(tmp_path / "csr.csv"))
