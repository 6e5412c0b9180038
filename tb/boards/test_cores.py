"""Exported cores in other designs: plain Verilog and a LiteX SoC in Icarus with cocotb, FuseSoC's build of a core
file."""

from __future__ import annotations

import os
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
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=elsewhere)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(elsewhere.iterdir()) == []
    sources = [Path(line) for line in done.stdout.splitlines() if line.endswith(".v")]
    simulate(sources, "top", "boards.bench_litex", tmp_path, BENTPIPE_CSR=str(tmp_path / "csr.csv"))


def test_fusesoc_builds_a_design_of_core_files(tmp_path: Path) -> None:
    program = shutil.which("fusesoc", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert program, "fusesoc is missing: pip install 'bentpipe[fusesoc]'"

    def fusesoc(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [program, "--cores-root", str(tmp_path), *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    for name in ("aal5_over_sonet.v", "aal5_over_sonet.core"):
        shutil.copy(EXAMPLES / name, tmp_path)
    lint = ("run", "--target=lint", "local:designs:aal5_over_sonet")
    cores = {"aal5-segmenter": (), "aal5-reassembler": (), "sonet-terminal": ("--bus", "axi-lite")}
    for name, more in cores.items():
        assert fusesoc(*lint).returncode, f"{name} is not there yet"
        assert main(["rtl", name, *more, "--fusesoc", "-o", str(tmp_path / f"{name}.v")]) == 0
    done = fusesoc(*lint)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = fusesoc("list-cores").stdout
    assert all(f"bentpipe:cores:{name.replace('-', '_')}" in listed for name in cores)
