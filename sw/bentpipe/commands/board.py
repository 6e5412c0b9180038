"""``bentpipe board``: the emulator on an FPGA."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.commands.command import Command, CommandGroup, console, json_option, print_json, set_option, write_file
from bentpipe.errors import BentpipeError

if TYPE_CHECKING:
    from bentpipe_boards.fpga.board import Board
    from bentpipe_boards.fpga.ethernet import Ethernet
    from bentpipe_boards.fpga.manifest import Manifest
    from bentpipe_sim.board.windows import Plan

__all__ = ["COMMAND"]


def _list(given: argparse.Namespace) -> int:
    from rich.table import Table

    from bentpipe_boards.fpga import boards
    from bentpipe_boards.fpga.plans import PLANS

    if given.json:
        known = [
            {"name": each.name, "title": each.title, "device": each.device, "clock_mhz": each.clock_hz / 1e6}
            for each in boards()
        ]
        return print_json({"boards": known, "plans": {name: _nodes(plan) for name, plan in PLANS.items()}})
    shown = Table("board", "is", "clock of the core", title="Boards")
    for each in boards():
        shown.add_row(each.name, each.title, f"{each.clock_hz / 1e6:g} MHz")
    console().print(shown)
    shown = Table("plan", "nodes", title="Plans")
    for name, plan in PLANS.items():
        shown.add_row(name, _nodes(plan))
    console().print(shown)
    return 0


def _nodes(plan: Plan) -> str:
    """Return the nodes of a plan in one line."""
    counts: dict[str, int] = {}
    for shape in plan.nodes:
        counts[str(shape)] = counts.get(str(shape), 0) + 1
    return ", ".join(f"{count} x {shape}" for shape, count in counts.items())


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help="name of a catalogue experiment, or a TOML file")
    parser.add_argument("board", metavar="BOARD", help="name of a board; bentpipe board list shows them")
    set_option(parser)
    _generator_options(parser)
    json_option(parser)


def _generator_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--patterns",
        action="store_true",
        help="make and check payload on the board, so that only the first cells of PDUs cross its line",
    )
    parser.add_argument(
        "--sources", action="store_true", help="--patterns, and a source and a sink of SDUs at each interface"
    )


def _with_generators(plan: Plan, given: argparse.Namespace) -> Plan:
    return replace(plan, patterns=given.patterns or given.sources, sources=given.sources)


def _plan(given: argparse.Namespace) -> int:
    from rich.table import Table

    from bentpipe_boards.fpga import board_named
    from bentpipe_boards.fpga.sizes import ROUTED, fitting_buffer, is_within, rows_of

    board = board_named(given.board)
    name, plan, names = _experiment_plan(given.experiment, given.settings, board)
    plan = _with_generators(plan, given)
    rows = rows_of(plan, board, names)
    fits = not rows[-1].why
    buffer_cells = None if fits else fitting_buffer(plan, board)
    is_routed = is_within(rows[-1], board, ROUTED)
    routed_cells = None if is_routed else fitting_buffer(plan, board, ROUTED)
    if given.json:
        found = {"experiment": name, "board": board.name, "fits": fits, "fitting_buffer_cells": buffer_cells}
        found |= {"no_larger_than_routed": is_routed, "routed_buffer_cells": routed_cells}
        print_json(found | {"rows": [vars(row) for row in rows]})
        return 0 if fits else 1
    shown = Table("node", "shape", title=f"{name} on {board.name}")
    for head in ("LUT", "FF", "EBR", "DSP"):
        shown.add_column(head, justify="right")
    shown.add_column("fits")
    for row in rows:
        shown.add_row(row.name, row.shape, str(row.lut), str(row.ff), str(row.ebr), str(row.dsp), row.why or "yes")
    console().print(shown)
    if buffer_cells is not None:
        print(f"It fits with buffers of at most {buffer_cells} cells:")
        print(_buffers(plan, names, buffer_cells))
    elif not fits:
        print("It does not fit with smaller buffers either.")
    if not is_routed and (fits or buffer_cells is not None):
        print(_LARGER.format(lut=_percent(ROUTED["lut"]), ebr=_percent(ROUTED["ebr"])))
        if routed_cells is not None:
            print(f"It is no more with buffers of at most {routed_cells} cells:")
            print(_buffers(plan, names, routed_cells))
    return 0 if fits else 1


_LARGER: Final = (
    "That is more than any network takes that was routed ({lut} of the LUTs, {ebr} of the block memories). The router "
    "may find no way."
)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _buffers(plan: Plan, names: Sequence[str], cells: int) -> str:
    """Return the settings with which no buffer is larger."""
    larger = (name for name, shape in zip(names, plan.nodes, strict=True) if _buffer_of(shape.parameters) > cells)
    return " ".join(f"--set network.switches.{name}.buffer_cells={cells}" for name in larger)


def _buffer_of(parameters: tuple[tuple[str, int], ...]) -> int:
    return dict(parameters).get("cells", 0)


def _fits_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiments", metavar="EXPERIMENT", nargs="*", help="name of a catalogue experiment (default: all)"
    )
    parser.add_argument("--board", metavar="BOARD", action="append", help="board (may be repeated; default: all)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table to this Markdown file, too")
    json_option(parser)


def _fits(given: argparse.Namespace) -> int:
    from rich.table import Table

    from bentpipe.experiment.document.catalogue import catalogue
    from bentpipe.progress import waiting
    from bentpipe_boards.fpga import board_named, boards

    chosen = [board_named(name) for name in given.board] if given.board else list(boards())
    known = list(catalogue())
    if strange := [name for name in given.experiments if name not in known]:
        raise BentpipeError(f"no experiment is called {strange[0]!r}; bentpipe list shows them")
    rows = []
    wanted = given.experiments or known
    for count, name in enumerate(wanted, 1):
        with waiting(f"Mapping the nodes of {name} ({count} of {len(wanted)})", sys.stderr.isatty()):
            rows.append([name, *(_verdict(name, board) for board in chosen)])
    heads = ["experiment", *(board.name for board in chosen)]
    if given.page:
        write_file(given.page, _fits_page(heads, rows))
    if given.json:
        return print_json([dict(zip(heads, row, strict=True)) for row in rows])
    shown = Table(*heads, title="Experiments on boards")
    for row in rows:
        shown.add_row(*row)
    console().print(shown)
    return 0


def _verdict(name: str, board: Board) -> str:
    """Return whether an experiment's first case fits a board, in words."""
    from bentpipe_boards.fpga.sizes import FITTING, ROUTED, fitting_buffer, is_within, rows_of
    from bentpipe_sim.errors import SimulationError

    try:
        _, plan, names = _experiment_plan(name, [], board)
        whole = rows_of(plan, board, names)[-1]
        buffer_cells = fitting_buffer(plan, board) if whole.why else None
        if whole.why and buffer_cells is None:
            room = {key: int(share * getattr(board.has, key)) for key, share in FITTING.items()}
            over = [
                f"{takes} {key.upper()} of {room[key]}" for key in room if (takes := getattr(whole, key)) > room[key]
            ]
            return f"no: needs {', '.join(over)}"
        if is_within(whole, board, ROUTED):
            return "fits"
        routed_cells = fitting_buffer(plan, board, ROUTED)
    except SimulationError as error:
        return str(error)
    fits = "fits" if buffer_cells is None else f"fits with buffers of {buffer_cells} cells"
    return (
        f"{fits}; no larger than routed ones with {routed_cells}"
        if routed_cells
        else f"{fits}; larger than routed ones"
    )


def _fits_page(heads: list[str], rows: list[list[str]]) -> str:
    from bentpipe_boards.fpga.sizes import FITTING, ROUTED

    luts, blocks = _percent(FITTING["lut"]), _percent(FITTING["ebr"])
    lines = [
        "# Which experiment fits which board",
        "",
        "Made by `bentpipe board fits --page docs/board-fits.md`: yosys maps each node of the network, and the sizes",
        "are added up. Of an experiment with several cases it is the network of the first one. What uses at most",
        f"{luts} of the LUTs and flip-flops and {blocks} of the block memories (EBR) counts as fitting. Long delays",
        "are in the memory of the board. Smaller buffers change the results; `bentpipe board plan EXPERIMENT",
        "BOARD` prints the settings for them.",
        "",
        f"The largest networks that were placed and routed take {_percent(ROUTED['lut'])} of the LUTs or",
        f"{_percent(ROUTED['ebr'])} of the block memories. For a larger one the router may find no way. So the table",
        "also has the buffers with which a network is no larger than these.",
        "",
        f"| {' | '.join(heads)} |",
        f"| {' | '.join(['---'] * len(heads))} |",
        *(f"| `{row[0]}` | {' | '.join(row[1:])} |" for row in rows),
        "",
        "Next: [Boards](boards.md).",
    ]
    return "\n".join(lines) + "\n"


def _experiment_plan(name: str, settings: list[str], board: Board) -> tuple[str, Plan, list[str]]:
    """Return an experiment's name, the plan of a board made for it, and the names of its nodes."""
    from bentpipe.experiment.build.network import build_network
    from bentpipe.experiment.load import load_cases
    from bentpipe_boards.fpga.sizes import with_sdram
    from bentpipe_sim.board.placement import plan_of
    from bentpipe_sim.board.target import TARGET

    before = os.environ.get(TARGET)
    os.environ[TARGET] = "board:model"  # nodes as boards have them
    try:
        network = build_network(load_cases(name, settings=settings)[0])[0]
    finally:
        os.environ.pop(TARGET)
        if before:
            os.environ[TARGET] = before
    return name, with_sdram(plan_of(network), board), [node.name for node in network.nodes]


def _build_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("board", metavar="BOARD", help="name of a board; bentpipe board list shows them")
    parser.add_argument(
        "plan", metavar="PLAN|EXPERIMENT", nargs="?", help="nodes to build: a plan, or those that an experiment needs"
    )
    set_option(parser)
    parser.add_argument("--clock", type=float, metavar="MHZ", help="clock of the core (default: the board's)")
    parser.add_argument(
        "--seed",
        dest="seeds",
        type=int,
        metavar="N",
        action="append",
        help="seed of the placement (may be repeated; default: 1 to 5, up to the first that meets the clock)",
    )
    parser.add_argument(
        "--ip",
        metavar="ADDRESS",
        help="IPv4 address of a board with Ethernet; none: build without Ethernet (default: 192.168.1.50)",
    )
    parser.add_argument("--mac", metavar="ADDRESS", help="its MAC address (default: 10:e2:d5:00:00:00)")
    parser.add_argument(
        "--vlans",
        type=int,
        default=0,
        metavar="N",
        help="VLANs of Ethernet for each interface, for real traffic in free-running time (default: 0, none)",
    )
    _generator_options(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="output folder (default: build/BOARD-PLAN)")


def _build(given: argparse.Namespace) -> int:
    from bentpipe_boards.fpga import board_named
    from bentpipe_boards.fpga.build import Builder
    from bentpipe_boards.fpga.manifest import Manifest, manifest_of
    from bentpipe_boards.fpga.plans import PLANS
    from bentpipe_boards.tools import GivenUpError

    board = board_named(given.board)
    wanted = given.plan or board.plan
    if wanted in PLANS:
        name, plan = wanted, PLANS[wanted]
    else:
        name, plan, _ = _experiment_plan(wanted, given.settings, board)
    clock_hz = board.clock_hz if given.clock is None else round(given.clock * 1e6)
    ethernet = _ethernet(given, board)
    plan = _with_vlans(plan, given.vlans, board, ethernet)
    plan = _with_generators(plan, given)
    carrier = f"-{plan.vlans}vlans" if plan.vlans else ""
    carrier += "-sources" if plan.sources else "-patterns" if plan.patterns else ""
    folder = given.out or Path("build") / f"{board.name}-{Path(name).stem}{carrier}"
    builder = Builder(board, plan, clock_hz, folder, lambda line: print(line, flush=True), ethernet)
    met = []
    for seed in given.seeds or _SEEDS:
        try:
            bitstream = builder.build(seed)
        except GivenUpError as error:
            print(f"seed {seed}: {error}", file=sys.stderr)
            met.append(False)
            continue
        manifest = Manifest.read(manifest_of(bitstream))
        met.append(manifest.is_met)
        print(f"{bitstream}: {_clock(manifest)}", flush=True)
        if manifest.is_met and not given.seeds:
            return 0
    return 0 if all(met) else 1


_SEEDS: Final = (1, 2, 3, 4, 5)
"""Seeds of the placement when none is asked for."""


def _ethernet(given: argparse.Namespace, board: Board) -> Ethernet | None:
    """Return the addresses of the board, or None without Ethernet."""
    from bentpipe_boards.fpga.ethernet import DEFAULT_IP, Ethernet

    if board.rgmii is None or given.ip == "none":
        if given.mac is not None or given.ip not in (None, "none"):
            why = "has no Ethernet" if board.rgmii is None else "is built without Ethernet: --ip none"
            raise BentpipeError(f"{board.name}: {why}, so it has no address")
        return None
    return Ethernet.of(given.ip or DEFAULT_IP, given.mac)


def _with_vlans(plan: Plan, vlans: int, board: Board, ethernet: Ethernet | None) -> Plan:
    """Return the plan with so many VLANs for each interface."""
    if vlans and ethernet is None:
        raise BentpipeError(f"{board.name}: --vlans needs a board with Ethernet, built with an address: --ip ADDRESS")
    try:
        return replace(plan, vlans=vlans)
    except ValueError as error:
        raise BentpipeError(f"--vlans: {error}") from None


def _clock(manifest: Manifest) -> str:
    verdict = "met" if manifest.is_met else "NOT met, so this bitstream is not flashed"
    achieved = f"{manifest.achieved_mhz:g} MHz"
    if manifest.ethernet_mhz is not None:
        achieved += f"; LiteEth: {manifest.ethernet_mhz:g} of {manifest.ethernet_clock_mhz:g} MHz"
    if manifest.line_mhz is not None:
        achieved += f"; Ethernet line: {manifest.line_mhz:g} of 125 MHz"
    if manifest.memory_mhz is not None:
        achieved += f"; LiteDRAM: {manifest.memory_mhz:g} of {manifest.memory_clock_mhz:g} MHz"
        achieved += f"; start of the DDR3 memory: {manifest.start_mhz:g} of {manifest.start_clock_mhz:g} MHz"
    if manifest.crossing_ns:
        slowest, limit = manifest.crossing_ns
        achieved += f"; between clocks: {slowest:g} of {limit:g} ns"
    return f"{manifest.clock_mhz:g} MHz {verdict} ({achieved})"


def _info_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place",
        metavar="PORT|FILE",
        help="serial port or board:udp:ADDRESS of a board (its nodes are reset), or a bitstream or manifest",
    )
    json_option(parser)


def _info(given: argparse.Namespace) -> int:
    if given.place.startswith("/dev/"):
        return _port_info(given, f"board:{given.place}")
    if given.place.startswith("board:"):
        return _port_info(given, given.place)
    from bentpipe_boards.fpga.manifest import Manifest, manifest_of

    path = Path(given.place)
    manifest = Manifest.read(path if path.suffix == ".json" else manifest_of(path))
    if path.suffix != ".json":
        manifest.check(path)
    if given.json:
        return print_json(vars(manifest))
    used = ", ".join(f"{name} {some} of {of} ({some / of:.0%})" for name, (some, of) in manifest.used.items())
    rows = {
        "board": manifest.board,
        "build": manifest.build,
        "nodes": _nodes(_read_plan(manifest.plan)),
        "clock": f"{_clock(manifest)}, seed {manifest.seed}",
        **({"ethernet": manifest.ethernet} if manifest.ethernet else {}),
        "used": used,
        "tools": ", ".join(f"{name} {version}" for name, version in manifest.tools.items()),
        "slowest path": manifest.limit[0] if manifest.limit else "unknown",
    }
    for name, value in rows.items():
        print(f"{name:12}  {value}")
    for line in manifest.limit[1:]:
        print(f"{'':12}  {line}")
    return 0


def _read_plan(plan: dict[str, Any]) -> Plan:
    import json

    from bentpipe_sim.board.windows import Plan

    return Plan.from_json(json.dumps(plan))


def _port_info(given: argparse.Namespace, target: str) -> int:
    import json

    from bentpipe_boards.fpga.plans import PLANS
    from bentpipe_sim.board.board import Board
    from bentpipe_sim.board.client import Client
    from bentpipe_sim.board.gateware import outdated
    from bentpipe_sim.board.target import is_hardware, open_target

    if not is_hardware(target):
        raise BentpipeError(f"{target} is made for a run, and no board that is connected; see bentpipe board plan")
    pipe, patience = open_target(target, PLANS["line"])
    board = Board(Client(pipe, patience=patience))
    try:
        if given.json:
            return print_json(json.loads(board.plan.to_json()))
        print(f"{given.place}: a bentpipe board with {_nodes(board.plan)}")
        if old := outdated(board.plan.gateware):
            print(f"{given.place}: {old}: flash or rebuild", file=sys.stderr)
        return 0
    finally:
        board.close()


def _flash_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("board", metavar="BOARD", help="name of the board that is connected")
    parser.add_argument("bitstream", type=Path, metavar="FILE", help="bitstream, with its manifest beside it")
    parser.add_argument(
        "--keep", action="store_true", help="write the flash memory, so that the bitstream stays without power"
    )
    parser.add_argument(
        "--loader-board",
        metavar="NAME",
        help="openFPGALoader's name of the board, if a revision has a name of its own, such as ecpix5_r03",
    )


def _flash(given: argparse.Namespace) -> int:
    from bentpipe_boards.fpga import board_named
    from bentpipe_boards.fpga.flash import flash
    from bentpipe_boards.fpga.manifest import Manifest, manifest_of
    from bentpipe_sim.board.gateware import outdated

    board, manifest = board_named(given.board), Manifest.read(manifest_of(given.bitstream))
    if not manifest.is_met:
        raise BentpipeError(f"{given.bitstream}: {_clock(manifest)}; build it with another --seed or a lower --clock")
    plan = _read_plan(manifest.plan)
    if old := outdated(plan.gateware):
        print(f"{given.bitstream}: {old}: rebuild if runs differ", file=sys.stderr)
    flash(board, given.bitstream, manifest, keep=given.keep, loader_board=given.loader_board)
    print(f"{board.name}: has build {manifest.build[:12]}, {_nodes(plan)}")
    return 0


def _target_arguments(parser: argparse.ArgumentParser, note: str) -> None:
    parser.add_argument(
        "--target",
        metavar="BOARD",
        required=True,
        help=f"board:/dev/ttyUSB0{note} or board:udp:ADDRESS (the same over Ethernet), board:sim (its RTL, simulated),"
        " board:model (in software). The last two can end with :patterns",
    )
    parser.add_argument(
        "--plan", metavar="PLAN", help="nodes of a simulated board, or those that a board should have (default: line)"
    )


def _target(given: argparse.Namespace) -> tuple[str, Plan, bool]:
    """Return the target, a plan, and whether an existing board must have that plan."""
    from bentpipe_boards.fpga.plans import PLANS
    from bentpipe_sim.board.target import check_target, is_hardware

    target = check_target(given.target)
    if given.plan is not None and given.plan not in PLANS:
        raise BentpipeError(f"no plan is called {given.plan!r}; there are {', '.join(PLANS)}")
    return target, PLANS[given.plan or "line"], given.plan is not None or not is_hardware(target)


def _regs_arguments(parser: argparse.ArgumentParser) -> None:
    _target_arguments(parser, "")
    json_option(parser)
    parser.add_argument(
        "--litex", type=Path, metavar="FILE", help="write them as LiteX's csr.csv, for litex_server and litex_cli"
    )


def _regs(given: argparse.Namespace) -> int:
    from bentpipe_sim.board.board import Board
    from bentpipe_sim.board.client import Client
    from bentpipe_sim.board.regs import litex_csv, named
    from bentpipe_sim.board.target import open_target

    target, plan, _ = _target(given)
    pipe, patience = open_target(target, plan)
    board = Board(Client(pipe, patience=patience), resets=False)
    try:
        if given.litex is not None:
            write_file(given.litex, litex_csv(board.plan))
        places = dict(named(board.plan))
        words = board.read(list(places.values()))
    finally:
        board.close()
    if given.json:
        return print_json(dict(zip(places, words, strict=True)))
    for (name, addr), word in zip(places.items(), words, strict=True):
        print(f"{addr:#09x}  {word:#010x}  {name}")
    return 0


def _console_arguments(parser: argparse.ArgumentParser) -> None:
    _target_arguments(parser, "")


def _console(given: argparse.Namespace) -> int:
    from bentpipe_sim.board.board import Board
    from bentpipe_sim.board.client import Client
    from bentpipe_sim.board.console import Console
    from bentpipe_sim.board.target import open_target

    target, plan, _ = _target(given)
    pipe, patience = open_target(target, plan)
    with closing(pipe):
        typed = sys.stdin.isatty()
        opened = Console(
            lambda resets: Board(Client(pipe, patience=patience), resets=resets),
            sys.stdin, sys.stdout, f"{target}> " if typed else "",
        )  # fmt: skip
        if typed:
            print("`help` lists the commands, `quit` ends", file=sys.stderr)
        opened.cmdloop()
    return 1 if opened.failed and not typed else 0


def _selftest_arguments(parser: argparse.ArgumentParser) -> None:
    _target_arguments(parser, " (its nodes are reset)")
    json_option(parser)


def _selftest(given: argparse.Namespace) -> int:
    from rich.table import Table

    from bentpipe_sim.board.selftest import Check, SelfTest
    from bentpipe_sim.board.target import open_target

    target, plan, is_expected = _target(given)
    pipe, patience = open_target(target, plan)
    checks: list[Check] = []
    test = SelfTest(pipe, patience, plan if is_expected else None)
    try:
        for check in test.run():
            checks.append(check)
            if not given.json:
                print(f"{_VERDICTS[check.passed]:8}  {check.part}: {check.what}", file=sys.stderr, flush=True)
    finally:
        pipe.close()
    failed = [check for check in checks if check.passed is False]
    if given.json:
        print_json(
            {
                "bentpipe": version("bentpipe"),
                "target": target,
                "passed": not failed,
                "plan": json.loads(test.plan.to_json()) if test.plan else None,
                "checks": [vars(check) for check in checks],
            }
        )
        return 1 if failed else 0
    shown = Table("part", "check", "result", "", title=f"Self-test of {target}")
    for check in checks:
        shown.add_row(check.part, check.what, _VERDICTS[check.passed], check.detail)
    console().print(shown)
    return 1 if failed else 0


_VERDICTS = {True: "passed", False: "FAILED", None: "left out"}


COMMAND = CommandGroup(
    "board",
    "Build bitstreams of the emulator for FPGA boards, and flash them.",
    (
        Command("list", "List the boards, and the plans of nodes for them.", _list, json_option),
        Command("plan", "Show which nodes of an experiment fit a board.", _plan, _plan_arguments),
        Command("fits", "Show which experiments of the catalogue fit which board.", _fits, _fits_arguments),
        Command("build", "Build a bitstream with yosys, nextpnr and ecppack.", _build, _build_arguments),
        Command("info", "Show the contents of a bitstream or of a connected board.", _info, _info_arguments),
        Command("regs", "Print the present values of a board's registers.", _regs, _regs_arguments),
        Command("console", "Read and write a board's registers, and let its time pass.", _console, _console_arguments),
        Command(
            "selftest",
            "Test a board: its line, registers, memories, clock, and the traffic of each node.",
            _selftest,
            _selftest_arguments,
        ),
        Command("flash", "Load a bitstream into a board with openFPGALoader.", _flash, _flash_arguments),
    ),
)
