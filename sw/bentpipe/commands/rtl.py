"""``bentpipe rtl``: a node as Verilog, for other tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bentpipe.commands.command import Command, plugin_option, write_file
from bentpipe.commands.shape import shape_of, shape_option
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]

_WIDTHS = {"sonet": 416}
"""Default widths of the kinds that have no datapath of 32 bits."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    plugin_option(parser)
    parser.add_argument("kind", metavar="KIND", help="kind of node: nic, switch, link or sonet")
    shape_option(parser)
    parser.add_argument(
        "--width",
        type=int,
        metavar="BITS",
        help="width of the datapath: 32 for an FPGA (default), 416 as in simulation (sonet: 416 only)",
    )
    parser.add_argument(
        "--bus", choices=("wishbone", "axi-lite"), help="bus of the registers (default: the node's own)"
    )
    parser.add_argument("--axi-stream", action="store_true", help="cells as packets of AXI4-Stream")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="output file (default: standard output)")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def _run(given: argparse.Namespace) -> int:
    from bentpipe_sim.build import Shape
    from bentpipe_sim.verilated import source

    shape = shape_of(given.kind, given.shape)
    out: Path | None = given.out
    if out is not None and out.exists() and not given.force:
        raise BentpipeError(f"{out}: already exists; give another name, or --force to replace it")
    try:
        component = Shape.of(given.kind, **shape).component(given.width or _WIDTHS.get(given.kind, 32))
        if given.bus or given.axi_stream:
            from bentpipe_hdl.adapters import Adapted

            component = Adapted(component, bus=given.bus, axi_stream=given.axi_stream)
        text = source(component, f"bentpipe_{given.kind}")
    except ValueError as error:
        raise BentpipeError(f"--{error}" if str(error).startswith("width") else str(error)) from None
    if out is None:
        sys.stdout.write(text)
        return 0
    write_file(out, text)
    print(f"{out}: written, {len(text.splitlines())} lines; its registers: bentpipe registers {given.kind}")
    return 0


COMMAND = Command("rtl", "Export a node as Verilog.", _run, _arguments)
