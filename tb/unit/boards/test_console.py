"""The console of a board: names, reads, writes, time, and what is refused."""

from __future__ import annotations

import io

import pytest

from bentpipe.cli import main
from bentpipe_boards.fpga.plans import PLANS
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.console import Console, places_of
from bentpipe_sim.board.model import ModelPipe
from bentpipe_sim.board.regs import named


def _answers(text: str, pipe: ModelPipe | None = None) -> list[str]:
    out, line = io.StringIO(), pipe or ModelPipe(PLANS["line"])
    console = Console(lambda resets: Board(Client(line), resets=resets), io.StringIO(text), out, "")
    console.cmdloop()
    return out.getvalue().splitlines()


def test_registers_are_read_and_written_by_name_and_by_address() -> None:
    assert _answers("read board.magic 0xf0\nwrite board.scratch 0x12\nread board.scratch\nwrite 6 7\nread 6\n") == [
        "board.magic = 0x42504244 (1112556100)",
        "0xf0 = 0x42504244 (1112556100)",
        "board.scratch = 0x00000012 (18)",
        "6 = 0x00000007 (7)",
    ]


def test_a_word_of_a_table_is_named_by_its_index() -> None:
    found = _answers("write board.patch[1] 2\nread board.patch\nread board.patch[1]\n")
    assert found == ["board.patch[0] = 0x00000000 (0)", "board.patch[1] = 0x00000002 (2)", found[1]]


def test_time_passes_as_it_is_told() -> None:
    found = _answers("run 10\nrun\nreset\nrun 5\nrun 1\n")
    assert found == [f"the next tick is {tick}" for tick in (10, 11, 5, 6)]
    assert _answers("run 5\nwrite board.reset 1\nrun 1\n") == ["the next tick is 5", "the next tick is 1"]
    pipe = ModelPipe(PLANS["line"])
    _answers("run 20\n", pipe)
    assert _answers("run 3\n", pipe) == ["the next tick is 23"], "a second session finds the board as it is"


def test_names_and_nodes_are_listed() -> None:
    assert _answers("nodes\n") == ["link1  ", "nic2  vcs=16"]
    found = _answers("names scratch\n")
    assert len(found) == 1 and found[0].startswith("0x0000006  rw  board.scratch  ")
    plan = PLANS["lan"]
    addresses = {place.addr for place in places_of(plan).values()}
    shown = {addr for name, addr in named(plan) if not name[-1].isdigit()}
    assert shown <= addresses, "each register that `board regs` shows"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("foo", "there is no command 'foo'; `help` lists them"),
        ("read", "read needs the name of a register"),
        ("read host2.nothing", "there is no register host2.nothing; `names` lists them"),
        ("read board.reset", "board.reset can only be written"),
        ("read board.patch[2]", "board.patch has 2 words"),
        ("read board.patch[x]", "'x' is no number"),
        ("write board.magic 1", "board.magic can only be read"),
        ("write board.scratch", "write needs a register and a value"),
        ("write board.scratch 0x100000000", "0x100000000 is no number of 32 bits"),
        ("write board.patch 1", "board.patch has 2 words: name one, such as board.patch[0]"),
        ("run 0", "a run has one tick at least"),
        ("run -1", "-1 is no number of 32 bits"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_the_console_goes_on(line: str, message: str) -> None:
    assert _answers(f"{line}\nread board.magic\n") == [f"error: {message}", "board.magic = 0x42504244 (1112556100)"]


def test_the_command_reads_a_script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for text, code in (("read board.magic\nquit\nfoo\n", 0), ("foo\nread board.magic\n", 1)):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(["board", "console", "--target", "board:model"]) == code
        assert "board.magic = 0x42504244" in capsys.readouterr().out
