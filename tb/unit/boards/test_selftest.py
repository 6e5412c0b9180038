"""The self-test of a board: a good one passes, and of each fault the part is named."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bentpipe.cli import main
from bentpipe_boards.fpga.plans import PLANS
from bentpipe_sim.board import model
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.ddr3 import REGISTERS
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.model import ModelBoard, ModelPipe
from bentpipe_sim.board.payload import continuation, crossing_cells
from bentpipe_sim.board.selftest import Check, SelfTest
from bentpipe_sim.board.windows import BOARD_VCS, HOST_PORT, WINDOW_BITS, Plan
from bentpipe_sim.build import Shape

SWITCH = Shape.of("switch", cells=64, ports=2, vcs=BOARD_VCS)
NIC, LINK = Shape.of("nic", vcs=BOARD_VCS), Shape.of("link")
PLAN = Plan((LINK, SWITCH, NIC, NIC), (16,) * 5, tx_words=1024, rx_words=1024)


def _checks(pipe: Any, expected: Plan | None = PLAN) -> list[Check]:
    found = list(SelfTest(pipe, expected=expected).run())
    assert not [check for check in found if check.passed is None and "needs" not in check.detail]
    return found


def _wrong(spoil: Callable[[ModelPipe], Any]) -> list[tuple[str, str, str]]:
    pipe = ModelPipe(PLAN)
    spoil(pipe)
    return [(check.part, check.what, check.detail) for check in _checks(pipe) if check.passed is False]


def test_a_good_board_passes() -> None:
    checks = _checks(ModelPipe(PLAN))
    assert [check for check in checks if not check.passed] == []
    assert [check.part for check in checks if check.what == "bit errors"] == ["link in window 1"]
    assert sum(check.what.startswith("traffic") for check in checks) == 5
    assert any("with errors" in check.detail for check in checks)


@pytest.mark.parametrize("wires", [(0, 16, 0, 16), (16, 0, 0, 0), (0, 0, 0, 0)])
def test_ports_without_a_wire_are_left_alone(wires: tuple[int, ...]) -> None:
    """Cells come in through each port, and leave through one with a wire."""
    plan = replace(
        PLAN, nodes=(LINK, Shape.of("switch", cells=64, ports=4, vcs=BOARD_VCS), NIC), wires=(16, *wires, 16)
    )
    checks = list(SelfTest(ModelPipe(plan), expected=plan).run())
    assert [check for check in checks if check.passed is False] == []
    left_out = [check.what for check in checks if check.passed is None]
    assert left_out == ([] if any(wires) else [f"traffic, port {port}" for port in range(4)])


def test_an_interface_without_a_wire_is_left_out() -> None:
    plan = replace(PLAN, wires=(16, 16, 16, 16, 0))
    checks = list(SelfTest(ModelPipe(plan), expected=plan).run())
    assert [check for check in checks if check.passed is False] == []
    left_out = [(check.part, check.what, check.detail) for check in checks if check.passed is None]
    assert left_out == [("nic in window 4", "traffic", "no wire is behind it")]


# Faults


def _dead_line(pipe: ModelPipe) -> None:
    pipe.send = lambda octets: None  # type: ignore[method-assign]


def _noise(pipe: ModelPipe) -> None:
    receive, count = pipe.receive, iter(range(1 << 20))

    def received(until: float) -> bytes:
        came = receive(until)
        return came if next(count) % 3 else came[:-3]

    pipe.receive = received  # type: ignore[method-assign]


def _lost_clock(pipe: ModelPipe) -> None:
    pipe._board.run = lambda until: True  # type: ignore[method-assign]


def _slow_clock(pipe: ModelPipe) -> None:
    run = pipe._board.run
    pipe._board.run = lambda until: run(until - (until == 999))  # type: ignore[method-assign]


def _reads(pipe: ModelPipe, change: Callable[[int, int], int]) -> None:
    read = pipe._board.read
    pipe._board.read = lambda addr: change(addr, read(addr))  # type: ignore[method-assign]


def _writes(pipe: ModelPipe, change: Callable[[int, int], int | None]) -> None:
    write = pipe._board.write

    def written(addr: int, value: int) -> None:
        changed = change(addr, value)
        if changed is not None:
            write(addr, changed)

    pipe._board.write = written  # type: ignore[method-assign]


def _port(window: int) -> int:
    return HOST_PORT + window << WINDOW_BITS


def _node_order(pipe: ModelPipe) -> None:
    swapped = {1: 2, 2: 1}
    read = pipe._board.read

    def reads(addr: int) -> int:
        window = addr >> WINDOW_BITS
        return read(swapped.get(window, window) << WINDOW_BITS | addr & ((1 << WINDOW_BITS) - 1))

    pipe._board.read = reads  # type: ignore[method-assign]


def _other_build(pipe: ModelPipe) -> None:
    other = Plan((LINK, SWITCH, NIC), (16,) * 4, tx_words=1024, rx_words=1024)
    pipe._board = ModelBoard(other)
    pipe._bridge._board = pipe._board


def _dead_wire(pipe: ModelPipe) -> None:
    """Behind the link, face 0."""
    lay = pipe._board._lay

    def laid() -> None:
        words = pipe._board._table.words
        for face in range(PLAN.faces):
            if words[0x100 + face] == 1:
                words[0x100 + face] = 0
        lay()

    pipe._board._lay = laid  # type: ignore[method-assign]


def _stuck_record(pipe: ModelPipe) -> None:
    """A bit of the records' memory of the NIC in window 4."""
    record = pipe._board._record

    def recorded(event: Any) -> None:
        record(event)
        records = pipe._board._ports[event.nic].records
        if event.nic == 3 and len(records) > 5:
            records[5] |= 1 << 9

    pipe._board._record = recorded  # type: ignore[method-assign]


FAULTS: dict[str, tuple[Callable[[ModelPipe], Any], str, str, str]] = {
    "dead line": (_dead_line, "line", "frames", "has not answered"),
    "noise": (_noise, "line", "frames", "had to be sent again"),
    "no bentpipe": (
        lambda pipe: _reads(pipe, lambda addr, word: 0x12345678 if addr == 0xF0 else word),
        "board", "identification", "its magic is 0x12345678",
    ),
    "wrong build": (_other_build, "board", "build", "flash or rebuild"),
    "wrong node order": (_node_order, "link in window 1", "identification", "magic in window 1 is"),
    "stuck register bit": (
        lambda pipe: _writes(pipe, lambda addr, value: value & ~4 if addr == 3 << WINDOW_BITS | 0x16 else value),
        "nic in window 3", "registers", "rx_timeout: bit 2 of 0x55555555 read as 0x55555551",
    ),
    "address line": (
        lambda pipe: _writes(pipe, lambda addr, value: None if addr == 0x201 else value),
        "board", "registers", "wire[1]:",
    ),
    "stuck memory bit": (
        lambda pipe: _reads(pipe, lambda addr, word: word | 1 << 17 if addr == _port(4) | 0x10025 else word),
        "host port of nic in window 4", "memory tx", "word 37: bit 17 of 0x00000000 read as 0x00020000",
    ),
    "memory's address line": (
        lambda pipe: _writes(
            pipe, lambda addr, value: None if addr >> WINDOW_BITS == HOST_PORT + 3 and addr & 0x10040 == 0x10040
            else value,
        ),
        "host port of nic in window 3", "memory tx", "word 64: ",
    ),
    "lost clock": (_lost_clock, "clock", "ticks", "1000 ticks were asked for, and 0 passed"),
    "slow clock": (_slow_clock, "clock", "ticks", "and 999 passed"),
    "dead wire": (_dead_wire, "link in window 1", "traffic", "nothing on the board"),
    "stuck bit of records": (_stuck_record, "nic in window 4", "traffic", "on the board, and"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    spoil, part, what, detail = FAULTS[name]
    found = _wrong(spoil)
    assert found, "it passed"
    assert found[0][:2] == (part, what)
    assert detail in found[0][2]


def test_a_link_that_makes_no_errors_is_named() -> None:
    """Without the seed a link makes other bit errors than natively."""
    seed = 1 << WINDOW_BITS | 0x12
    found = _wrong(lambda pipe: _writes(pipe, lambda addr, value: None if addr & ~1 == seed else value))
    assert [each[:2] for each in found] == [("link in window 1", "bit errors")]


# Generators and checkers of payload


def _pattern_faults(
    monkeypatch: pytest.MonkeyPatch, name: str, spoilt: Callable[..., Any]
) -> list[tuple[str, str, str]]:
    monkeypatch.setattr(model, name, spoilt)
    checks = _checks(ModelPipe(replace(PLAN, patterns=True)))
    return [(check.part, check.what, check.detail) for check in checks if check.passed is False]


def test_a_good_board_with_patterns_passes() -> None:
    checks = _checks(ModelPipe(replace(PLAN, patterns=True)))
    assert [check for check in checks if not check.passed] == []
    by_name = {(check.part, check.what): check.detail for check in checks if check.what.startswith("pattern")}
    wrong = "16 PDUs; wrong octets were found in cells 5 of PDU 3, 9 of PDU 7, 13 of PDU 11, 17 of PDU 15"
    rate = "16 PDUs, 336 cells, 100.0% of the line's rate"
    for nic in ("nic in window 3", "nic in window 4"):
        assert by_name.pop((nic, "pattern checker")) == wrong
        assert by_name.pop((nic, "pattern generator")) == rate
    assert by_name.pop(("link in window 1", "pattern")) == rate
    assert "PDUs have errors" in by_name.pop(("link in window 1", "pattern with bit errors"))
    assert not by_name


def _generates_wrongly(octets: bytes, place: int, count: int) -> bytes:
    """The generator's carry is missing behind the first octet."""
    made = bytearray(continuation(octets, place, count))
    made[1] = (made[1] - 1) & 0xFF
    return bytes(made)


def _keeps_all(octets: bytes) -> list[tuple[int, int, bytes]]:
    return [(0, 0, octets[at : at + 48]) for at in range(0, len(octets), 48)]


def _misses_a_cell(octets: bytes) -> list[tuple[int, int, bytes]]:
    """The checker withholds the first wrong cell of those that stand alone."""
    found = crossing_cells(octets)
    if len(found) < 4 or not found[2][0]:
        return found
    (count, place, _), (more, last_place, last) = found[2:4]
    return [*found[:2], (count + 1 + more, place or last_place, last), *found[4:]]


def test_a_generator_with_a_fault_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _pattern_faults(monkeypatch, "continuation", _generates_wrongly)
    assert found[0][:2] == ("nic in window 3", "pattern generator")
    assert "on the board, and" in found[0][2]


def test_a_checker_that_withholds_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _pattern_faults(monkeypatch, "crossing_cells", _keeps_all)
    assert found[0] == (
        "nic in window 3", "pattern checker", "PDU 0: cell 2 continues the pattern, and was kept"
    )  # fmt: skip


def test_a_checker_that_misses_a_wrong_octet_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _pattern_faults(monkeypatch, "crossing_cells", _misses_a_cell)
    assert found[0][:2] == ("nic in window 3", "pattern checker")
    assert "on the board, and" in found[0][2]


# Memories of long wires

DDR3 = Plan((LINK, NIC), (1024, 1024), tx_words=1024, rx_words=1024, sdram=(0, 1), ddr3=True)


@pytest.mark.parametrize("plan", [DDR3, replace(DDR3, ddr3=False)], ids=["DDR3", "SDRAM"])
def test_wires_in_a_good_memory_pass(plan: Plan) -> None:
    checks = _checks(ModelPipe(plan), plan)
    assert [check for check in checks if not check.passed] == []
    assert [check.part for check in checks if check.what == "long wire"] == ["link in window 1", "nic in window 2"]
    assert [check.what for check in checks if check.part == "DDR3 memory"] == (["start", "lines"] if plan.ddr3 else [])


def _place(pipe: ModelPipe, change: Callable[[int, int, int], tuple[int, int, int]]) -> None:
    pipe._board.memory.place = change  # type: ignore[method-assign]


def _data(pipe: ModelPipe, change: Callable[[str, int], int]) -> None:
    """Change what is read from the memory."""
    memory = pipe._board.memory
    read = memory.read

    def reads(addr: int) -> None:
        read(addr)
        memory.values[-1] = change(NAMES[addr], memory.values[-1])

    memory.read = reads  # type: ignore[method-assign]


NAMES = {addr: name for name, addr in REGISTERS.items()}
MEMORY_FAULTS: dict[str, tuple[Callable[[ModelPipe], Any], str, str]] = {
    "no clock": (
        lambda pipe: _reads(pipe, lambda addr, word: 0 if addr == 0x26 else word), "start", "clock is not there",
    ),
    "silent": (lambda pipe: _reads(pipe, lambda addr, word: 0 if addr == 0x20 else word), "start", "does not answer"),
    "lost access": (
        lambda pipe: _reads(pipe, lambda addr, word: 3 if addr == 0x26 else word), "start", "has lost accesses",
    ),
    "dead byte": (
        lambda pipe: _data(pipe, lambda name, word: word | 0xFF00FF00 if "rddata" in name else word),
        "start", "data lines 8 to 15 of the DDR3 memory are read wrongly with each setting",
    ),
    "no strobe": (
        lambda pipe: _data(pipe, lambda name, word: word & 2 if name == "burstdet_seen" else word),
        "start", "data lines 0 to 7 of the DDR3 memory",
    ),
    "stuck bank line": (
        lambda pipe: _place(pipe, lambda bank, row, column: (bank | 4, row, column)), "lines", "bank 2 of the DDR3",
    ),
    "stuck row line": (
        lambda pipe: _place(pipe, lambda bank, row, column: (bank, row & ~4, column)), "lines", "row 2 of the DDR3",
    ),
    "stuck column line": (
        lambda pipe: _place(pipe, lambda bank, row, column: (bank, row, column & ~(1 << 9))),
        "lines", "column 9 of the DDR3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEMORY_FAULTS)
def test_a_fault_of_a_ddr3_memory_is_named(name: str) -> None:
    spoil, what, detail = MEMORY_FAULTS[name]
    pipe = ModelPipe(DDR3)
    spoil(pipe)
    found = [check for check in SelfTest(pipe, expected=DDR3).run() if check.passed is False]
    assert [(check.part, check.what) for check in found] == [("DDR3 memory", what)]
    assert detail in found[0].detail


def test_a_stuck_data_line_of_a_started_ddr3_memory_is_named() -> None:
    pipe = ModelPipe(DDR3)
    board = Board(Client(pipe))
    _data(pipe, lambda name, word: word & ~(1 << 21) if "rddata" in name else word)
    with pytest.raises(BoardError, match="data lines 5 of the DDR3 memory are read wrongly"):
        board.open_memory().check(2)
    assert board.memory, "this session has started it"
    again = Board(Client(pipe))
    assert not again.memory, "the one before has started it"


# The command


def test_the_command_passes_on_a_board_in_software(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", "selftest", "--target", "board:model", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["passed"]
    assert {check["part"] for check in found["checks"]} >= {"line", "clock", "link in window 1", "nic in window 2"}


def test_the_command_fails_with_the_board(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(ModelBoard, "run", lambda self, until: True)
    assert main(["board", "selftest", "--target", "board:model"]) == 1
    found = capsys.readouterr()
    assert "FAILED    clock: ticks" in found.err
    assert "traffic" not in found.err, "it needs a clock"
    assert "FAILED" in found.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "board:usb"], "a target is"),
        (["--target", "board:model", "--plan", "moon"], "no plan is called 'moon'"),
        (["--target", "board:/dev/no-such-port"], "cannot be opened"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["board", "selftest", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_registers_are_printed_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "csr.csv"
    assert main(["board", "regs", "--target", "board:model", "--json", "--litex", str(written)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["board_magic"] == int.from_bytes(b"BPBD", "big")
    assert found["link1_shape_0"] == 0 and found["board_scratch"] == 0
    assert "host2_level" in found and "host2_record" not in found, "a read of that takes a word"
    assert main(["board", "regs", "--target", "board:model"]) == 0
    assert "0x00000f0  0x42504244  board_magic" in capsys.readouterr().out.splitlines()
    rows = list(csv.reader(written.open()))
    assert {len(row) for row in rows} == {5}
    registers = {row[1]: row for row in rows if row[0] == "csr_register"}
    assert list(registers) == list(found)
    assert registers["board_scratch"][4] == "rw"
    assert sum(row[4] == "rw" for row in registers.values()) == 1
    assert int(registers["link1_cells"][2], 0) == 4 * (1 << WINDOW_BITS | 0x80)


def test_all_plans_have_a_test() -> None:
    for plan in PLANS.values():
        assert {shape.kind for shape in plan.nodes} <= {"nic", "link", "switch"}
