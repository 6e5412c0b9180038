"""Behaviour scripts, each at two initial sequence numbers: one of them wraps within the script."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.drill import DrillError, run_script

SCRIPTS = sorted((Path(__file__).parent / "scripts").rglob("*.tcp"))


@pytest.mark.parametrize("iss", [0, 2**32 - 1500], ids=["iss0", "wraps"])
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_script(path: Path, iss: int) -> None:
    run_script(path, iss)


def test_scripts_are_there() -> None:
    assert len(SCRIPTS) >= 40


@pytest.mark.parametrize(
    "text",
    [
        "connected\n0.1 write 1000\n0.1 > P. 1:1002(1001)\n",
        "connected\n0.1 write 1000\n0.2 > P. 1:1001(1000)\n",
        "connected\n0.1 write 1000\n0.2 is state=ESTABLISHED\n",
        "connected\n0.1 is cwnd=17\n",
        "connected\n0.1 > . 1:1(0)\n",
    ],
    ids=["length", "time", "unannounced", "attribute", "missing"],
)
def test_runner_notices(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.tcp"
    path.write_text(text)
    with pytest.raises(DrillError):
        run_script(path)
