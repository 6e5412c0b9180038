"""cocotb in Icarus Verilog, by cocotb's own runner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cocotb_tools.runner import get_results, get_runner

__all__ = ["simulate"]

TB = Path(__file__).parents[1]


def simulate(sources: Sequence[Path], top: str, module: str, folder: Path, **environment: str) -> None:
    """Run the tests of a module of cocotb.

    Raises
    ------
    AssertionError
        One failed, or none ran.
    """
    path = os.pathsep.join([str(TB), *filter(None, [os.environ.get("PYTHONPATH")])])
    runner = get_runner("icarus")
    log = folder / "cocotb.log"
    runner.build(
        sources=[*sources], hdl_toplevel=top, build_dir=folder, timescale=("1ns", "1ps"), log_file=folder / "build.log"
    )
    results = runner.test(
        test_module=module, hdl_toplevel=top, build_dir=folder, test_dir=folder, log_file=log,
        extra_env={"PYTHONPATH": path, **environment},
    )  # fmt: skip
    ran, failed = get_results(results)
    assert ran and not failed, log.read_text()[-4000:]
