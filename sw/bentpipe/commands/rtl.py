"""``bentpipe rtl``: a core as Verilog, for other tools, and its port guide."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bentpipe.commands.command import Command, plugin_option, write_file
from bentpipe.commands.shape import shape_of, shape_option
from bentpipe.errors import BentpipeError

__all__ = ["COMMAND"]

_WIDTHS = {"sonet": 416}
"""Default widths of the nodes that have no datapath of 32 bits."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    plugin_option(parser)
    parser.add_argument(
        "core", nargs="?", metavar="CORE", help="core to export: nic, switch, link, sonet, or another of --list"
    )
    shape_option(parser)
    parser.add_argument(
        "--width",
        type=int,
        metavar="BITS",
        help="width of the datapath: 32 for an FPGA (default), 416 as in simulation (sonet: 416 only)",
    )
    parser.add_argument(
        "--bus", choices=("wishbone", "axi-lite"), help="bus of the registers (default: the core's own)"
    )
    parser.add_argument("--axi-stream", action="store_true", help="cells of a node as packets of AXI4-Stream")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--list", action="store_true", help="list the cores and their parameters")
    output.add_argument("--guide", action="store_true", help="print the core's port guide")
    output.add_argument("--registers", action="store_true", help="print the core's register map")
    output.add_argument(
        "--fusesoc", action="store_true", help="also write a core file for FuseSoC (CAPI2), beside -o FILE.v"
    )
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="output file (default: standard output)")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def _parameters(given: Sequence[str]) -> dict[str, int]:
    """Return the parameters of a core that is no node."""
    parts = [part.partition("=") for part in ",".join(given).split(",") if part]
    if not all(value.isdecimal() for _, _, value in parts):
        raise BentpipeError(f"--shape: expected NAME=N,…, as vcs=256,cells=4, not {','.join(given)!r}")
    found = {name: int(value) for name, _, value in parts}
    if len(found) < len(parts):
        raise BentpipeError(f"--shape: given twice: {','.join(given)}")
    return found


def _component(given: argparse.Namespace, core: Any) -> tuple[Any, list[str]]:
    """Return the component, and its parameters for the guide."""
    from bentpipe_hdl.adapters import Adapted
    from bentpipe_sim.build import Shape

    try:
        if core.node:
            parameters = shape_of(core.node, given.shape)
            width = given.width or _WIDTHS.get(core.name, 32)
            component, shown = Shape.of(core.node, **parameters).component(width), {"width": width, **parameters}
        else:
            parameters = _parameters(given.shape) | ({"width": given.width} if given.width else {})
            component, shown = core.make(**parameters), core.parameters | parameters
        if given.axi_stream and not core.node:
            raise BentpipeError(f"--axi-stream: it is for nodes; see the ports of {core.name} with --guide")
        if given.bus and "csr" not in component.signature.members:
            raise BentpipeError(f"--bus: the core {core.name} has no registers")
        if given.bus or given.axi_stream:
            component = Adapted(component, bus=given.bus, axi_stream=given.axi_stream)
    except ValueError as error:
        raise BentpipeError(f"--{error}" if str(error).startswith("width") else str(error)) from None
    return component, [f"{name} = {value}" for name, value in shown.items()]


def _list() -> None:
    from bentpipe_hdl.cores import CORES

    for core in CORES.values():
        print(f"{core.name:18}{core.title}")
        parameters = ", ".join(f"{name}={int(value)}" for name, value in core.parameters.items())
        if core.node:
            parameters = f"{parameters}; shape as of bentpipe registers {core.node}"
        if parameters:
            print(f"{'':18}({parameters})")


def _core_file(module: str, file: Path, title: str) -> str:
    """Return a core file for FuseSoC that has the Verilog as its only source."""
    return f"""CAPI=2:

name: bentpipe:cores:{module.removeprefix("bentpipe_")}:{version("bentpipe")}
description: "{title}"

filesets:
  rtl:
    files: [{file.name}]
    file_type: verilogSource

targets:
  default: &default
    filesets: [rtl]
    toplevel: {module}
  lint:
    <<: *default
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2005]
"""


def _run(given: argparse.Namespace) -> int:
    from bentpipe_hdl.cores import CORES
    from bentpipe_sim.verilated import source

    if given.list:
        _list()
        return 0
    if given.core is None:
        raise BentpipeError("name a core, or --list")
    if given.core not in CORES:
        raise BentpipeError(f"no core is called {given.core!r}; there are {', '.join(CORES)}")
    core, out = CORES[given.core], given.out
    if given.fusesoc and (out is None or out.suffix != ".v"):
        raise BentpipeError("--fusesoc: the core file stands beside the Verilog; give it a name with -o FILE.v")
    files = [] if out is None else [out, *([out.with_suffix(".core")] if given.fusesoc else [])]
    for file in files:
        if file.exists() and not given.force:
            raise BentpipeError(f"{file}: already exists; give another name, or --force to replace it")
    component, parameters = _component(given, core)
    module = f"bentpipe_{core.name.replace('-', '_')}"
    if given.guide:
        from bentpipe_hdl.cores.guide import guide

        text = guide(core.name, component, parameters).to_text()
    elif given.registers:
        if not getattr(component, "registers", None):
            raise BentpipeError(f"--registers: the core {core.name} has no registers")
        text = component.registers.to_text()
    else:
        text = source(component, module)
    if out is None:
        sys.stdout.write(text)
        return 0
    write_file(out, text)
    if given.fusesoc:
        write_file(files[1], _core_file(module, out, core.title))
    print(f"{' and '.join(map(str, files))}: written; module {module}; its ports: bentpipe rtl {core.name} --guide")
    return 0


COMMAND = Command("rtl", "Export a core as Verilog, or print its port guide.", _run, _arguments)
