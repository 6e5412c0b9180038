"""Amaranth's own Verilog in Verilator under cocotb: several nodes on one clock, none joined to another."""

import fcntl
import hashlib
import os
import re
from pathlib import Path

from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, flipped
from cocotb_tools.runner import get_runner

BUILD = Path(__file__).parents[2] / "build" / "cocotb"


class Rig(wiring.Component):
    """Nodes side by side; the ports of node ``a`` are called ``a__...``."""

    def __init__(self, nodes):
        self._nodes = nodes
        super().__init__({name: Out(node.signature) for name, node in nodes.items()})

    def elaborate(self, platform):
        m = Module()
        for name, node in self._nodes.items():
            m.submodules[name] = node
            wiring.connect(m, flipped(getattr(self, name)), node)
        return m


def _without_zeros(text):
    """Verilog without initial memory words that are zero anyway: a line each otherwise."""

    def shorter(block):
        return re.sub(r"^\s*\\?\S+\s*\[\d+\] = \d+'[hd]0+;\n", "", block[0], flags=re.MULTILINE)

    return re.sub(r"^  initial begin\n.*?^  end\n", shorter, text, flags=re.MULTILINE | re.DOTALL)


def run(nodes, module, case, **environment):
    """Build the rig of ``nodes`` (kept between runs) and run one cocotb test of ``module`` on it."""
    text = _without_zeros(verilog.convert(Rig(nodes), name="rig", strip_internal_attrs=True))
    folder = BUILD / hashlib.sha256(text.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    runner = get_runner("verilator")
    lock = (folder / "lock").open("w")  # tests run in several processes, and share a build
    fcntl.flock(lock, fcntl.LOCK_EX)
    source = folder / "rig.v"
    if not source.exists():
        source.write_text(text)
    # The wheel's rule for precompiled headers fails: name the flag that it lacks.
    os.environ["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include"
    try:
        runner.build(
            sources=[source],
            hdl_toplevel="rig",
            build_dir=folder,
            build_args=["-Wno-fatal", "-Wno-lint", "--x-assign", "fast", "--x-initial", "fast"],
            timescale=("1ns", "1ps"),
            log_file=folder / "build.log",
        )
    finally:
        del os.environ["MAKEFLAGS"]
        lock.close()
    root = str(Path(__file__).parents[1])
    results = runner.test(
        test_module=module,
        hdl_toplevel="rig",
        testcase=case,
        build_dir=folder,
        test_dir=folder,
        results_xml=str(folder / f"{case}-{os.getpid()}.xml"),
        extra_env={
            "PYTHONPATH": os.pathsep.join([root, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
            **environment,
        },
        log_file=folder / f"{case}.log",
    )
    from cocotb_tools.check_results import get_results

    tests, failures = get_results(results)
    assert tests == 1 and failures == 0, (folder / f"{case}.log").read_text()[-3000:]
