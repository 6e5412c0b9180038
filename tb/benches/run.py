"""Runs a cocotb test on a compiled node."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from benches.build import TOP, program

__all__ = ["run"]


def run(make: partial[Any], module: str, folder: Path, case: str | None = None, **environment: str) -> None:
    """Run the cocotb tests of ``module``, or only ``case``, on the node that ``make`` makes: a
    class or a function of ours with its parameters. A failure shows the end of their log."""
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    log, results = folder / "cocotb.log", folder / "results.xml"
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    (folder / TOP).symlink_to(program(make))
    try:
        get_runner("verilator").test(
            test_module=module,
            testcase=case,
            hdl_toplevel=TOP,
            hdl_toplevel_lang="verilog",
            build_dir=folder,
            test_dir=folder,
            results_xml=str(results),
            extra_env={"PYTHONPATH": os.pathsep.join(paths), "COCOTB_LOG_LEVEL": "INFO", **environment},
            seed=1,
            log_file=log,
        )
        tests, failures = get_results(results)
    except (SystemExit, RuntimeError):
        tests, failures = 0, 1
    assert tests and not failures, log.read_text()[-6000:] if log.exists() else "the simulation did not start"
