"""The number of a board's RTL: of code, not of what is written about it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bentpipe_sim.board import gateware
from bentpipe_sim.board.gateware import outdated


def test_comments_and_docstrings_do_not_count_and_code_does(tmp_path: Path) -> None:
    file = tmp_path / "part.py"
    found = []
    for text in (
        'def two():\n    """Return 2."""\n    return 2\n',
        '"""A module."""\n\n\ndef two():\n    return 2  # so\n',
        "def two():\n    return 3\n",
    ):
        file.write_text(text)
        found.append(gateware._code(file))
    assert found[0] == found[1] != found[2]


def test_modules_that_do_not_count_are_in_no_board() -> None:
    code = "import bentpipe_boards.top, sys; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "bentpipe_boards.core" in loaded
    assert not {f"bentpipe_boards.{name}" for name in gateware.BESIDE} & set(loaded)
    assert all(find_spec(f"bentpipe_boards.{name}") for name in gateware.BESIDE)


def test_what_is_unknown_is_not_outdated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outdated("") == outdated(gateware.gateware()) == ""
    assert outdated("0123456789ab").startswith("has gateware 0123456789ab, this software's is ")
    monkeypatch.setattr(gateware, "_PACKAGES", ("bentpipe_hdl", "no_such_package"))
    gateware.gateware.cache_clear()
    assert outdated("0123456789ab") == ""
    gateware.gateware.cache_clear()
