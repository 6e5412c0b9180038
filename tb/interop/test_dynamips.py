"""A router emulator's ATM talks to ours: cells in UDP datagrams, on one VC both ways."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("dynamips.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
MISSING = [name for name in ("dynamips", "ping", "unshare") if not shutil.which(name)]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.skipif(os.geteuid() != 0, reason="dynamips' TAP device takes root")
def test_its_atm_bridge_carries_a_ping_both_ways(tmp_path: Path) -> None:
    """Over 30 ms each way; every PDU of its bridge is whole for us, and ours for it."""
    command = ["unshare", "-n", "-m", sys.executable, str(PROGRAM), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    assert all(way["received"] == 5 and way["least_ms"] >= 60 for way in found.values())
    ends = json.loads((tmp_path / "run" / "result.json").read_text())["attached"]["ends"]
    wrong = ("malformed", "hec_errors", "no_vc", "pdu_wrong", "not_ours")
    assert not any(end["counts"][name] for end in ends for name in wrong)
