"""Reports of boards seen on hardware, and the check that refuses others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bentpipe.cli import main
from bentpipe_boards import seen

ROOT = Path(__file__).parents[3]
REPORTS = sorted((ROOT / "boards/seen").glob("*.json"))
ADDED = {
    "board": "ulx3s-85f", "revision": "3.1.8", "by": "A. Nyone", "date": "2026-12-01", "loader": "openFPGALoader 1.0",
    "sha256": "0" * 64,
}  # fmt: skip


def test_each_report_is_one_of_a_board_and_has_a_row() -> None:
    page = (ROOT / "docs/boards.md").read_text()
    table = page[page.index("## Seen on hardware") : page.index("If you have a board")]
    assert len(REPORTS) == table.count("\n|") - 2 - ("none yet" in table)
    for path in REPORTS:
        report = json.loads(path.read_text())
        assert seen.problems(report) == [], path.name
        assert f"| `{report['board']}` |" in table and report["date"] in table


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A report as the page asks for it, but of a board in software."""
    from contextlib import redirect_stdout

    written = tmp_path_factory.mktemp("seen") / "report.json"
    with written.open("w") as file, redirect_stdout(file):
        assert main(["board", "selftest", "--target", "board:model", "--json"]) == 0
    found = json.loads(written.read_text())
    return {**found, **ADDED, "plan": {**found["plan"], "gateware": "0123456789abcdef"}}


def test_only_a_report_of_a_board_is_good(report: dict[str, Any]) -> None:
    assert seen.problems(report) == ["its target is board:model: a simulated board is not seen on hardware"]
    assert seen.problems({**report, "target": "board:sim"}) != []
    assert seen.problems({**report, "target": "board:/dev/ttyUSB0"}) == []
    assert seen.problems({**report, "target": "board:udp:10.0.0.7"}) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"by": ""}, "has no by: who has seen it"),
        ({"revision": None}, "has no revision: what is printed on the board"),
        ({"date": "1.12.2026"}, "its date is not YYYY-MM-DD"),
        ({"sha256": "12"}, "its sha256 is not one"),
        ({"passed": False}, "passed is not what its checks say"),
        ({"checks": []}, "lacks the checks frames, identification, registers, ticks, traffic"),
        ({"checks": [1]}, "lacks the checks frames, identification, registers, ticks, traffic"),
        ({"plan": {}}, "has no plan with the gateware of the board"),
    ],
)
def test_what_a_report_lacks_is_named(report: dict[str, Any], changes: dict[str, Any], problem: str) -> None:
    assert seen.problems({**report, "target": "board:/dev/ttyUSB0", **changes}) == [problem]


def test_the_command_names_file_and_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text("[]")
    assert seen.main([str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{tmp_path / 'a.json'}: is no object"
    assert lines[1].startswith(f"{tmp_path / 'b.json'}: cannot be read: ")
    assert seen.main([]) == 0
