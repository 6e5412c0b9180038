"""The DDR3 memory of a board with LiteDRAM itself: its start, as the chip sees it, and lines of 267 ms at OC-3c."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benches.record_lines import OC3C_TICKS, TICK_PS
from bentpipe_boards.fpga.plans import PLANS
from bentpipe_sim.board.ddr3 import Ddr3, Levelled, mode_registers
from bentpipe_sim.board.selftest import SelfTest
from bentpipe_sim.board.target import open_target
from boards.ddr3 import CLOCK_HZ, Bench, built
from boards.sessions import play_two_sessions
from models.ddr3_chip import CLOCK_NS, COMMANDS, Chip, decode
from unit.boards.test_ddr3_start import MEANT

RECORDS = 1 << 17
LEVELLED = [Levelled(1, 4, 4), Levelled(2, 5, 4)]
"""The middle of the windows of the model's PHY."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(RECORDS, tmp_path_factory.mktemp("ddr3"))


@pytest.mark.parametrize("ratio", [0.83, 1.0002])
def test_the_chip_is_started_as_jedec_has_it(library: Path, ratio: float) -> None:
    bench, chip = Bench(library, ratio), Chip()
    bench.run(4000)
    assert bench.ports["ready"].get()
    assert not any(seen.control & 1 for seen in bench.seen()), "no clock enable before the start"
    assert Ddr3(bench).start() == LEVELLED
    started = len(bench.seen())
    assert Ddr3(bench).start() == LEVELLED
    levelling = hardware = False
    for k, seen in enumerate(bench.seen()):
        now, bits = seen.clock * CLOCK_NS, [bool(seen.control >> bit & 1) for bit in range(3)]
        cke, odt, reset_n = bits
        if not seen.command:
            levelling = odt
            if not hardware or k == started:
                chip.control(now, reset_n, cke, odt)
        lines = (seen.command >> 2, seen.command >> 1 & 1, seen.command & 1)
        if seen.command and not levelling:
            chip.command(now, COMMANDS[lines], seen.bank, seen.address)
    assert [number for number, _ in chip.modes] == [2, 3, 1, 0] * 2
    assert decode(dict(chip.modes)) == MEANT


def test_the_mode_registers_are_those_of_litedram() -> None:
    from litedram.init import get_ddr3_phy_init_sequence
    from litedram.modules import MT41K256M16

    from bentpipe_boards.fpga import litedram_core

    module = MT41K256M16(CLOCK_HZ, "1:2")
    phy = litedram_core._ModelPhy(module, litedram_core.Settings(CLOCK_HZ, rows=2)).settings
    sequence, _ = get_ddr3_phy_init_sequence(phy, module.timing_settings)
    wanted = {bank: address for text, address, bank, *_ in sequence if text.startswith("Load Mode Register")}
    assert mode_registers() == wanted


@pytest.mark.parametrize("ratio", [0.97])
def test_267_ms_at_oc_3c_both_ways(library: Path, ratio: float) -> None:
    bench = Bench(library, ratio)
    delay = round(0.267e12 / TICK_PS)
    tick = TICK_PS * 1e-12 * CLOCK_HZ
    bench.ports["delay"].set(delay)
    bench.ports["spacing"].set(OC3C_TICKS)  # it counts from the reset on, whether cells go in or not
    bench.run(4000)
    Ddr3(bench).start()
    bench.watches = False
    bench.ports["runs"].set(1)
    bench.run((delay + 200_000) * tick)
    bench.ports["runs"].set(0)
    bench.run((delay + 100) * tick)
    for line in range(2):
        counts = bench.counts(line)
        assert counts["sent"] == counts["received"] > delay // OC3C_TICKS + 200_000 // OC3C_TICKS - 2
        assert (counts["lost"], counts["wrong"], counts["late"]) == (0, 0, 0)


def test_wires_in_a_ddr3_memory() -> None:
    assert play_two_sessions(ddr3=True) == [LEVELLED, []], "once for both sessions"


def test_the_self_test_passes_with_litedram() -> None:
    plan = replace(PLANS["far-ddr3"], wires=(4096, 4096))
    pipe, patience = open_target("board:sim", plan)
    try:
        checks = list(SelfTest(pipe, patience, plan).run())
    finally:
        pipe.close()
    assert [check for check in checks if not check.passed] == []
    assert [check.what for check in checks].count("long wire") == 2
