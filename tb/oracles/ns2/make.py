"""Runs ns-2 on Fall and Floyd's losses and writes tb/vectors/ns2_fall_floyd.json: ``python tb/oracles/ns2/make.py``.

Needs ``ns`` (Debian, Ubuntu: apt install ns2).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
VECTORS = HERE.parents[1] / "vectors" / "ns2_fall_floyd.json"
VARIANTS = {"tahoe": "Tahoe", "reno": "Reno", "newreno": "Newreno", "sack": "Sack1"}
DROPS = [[14], [14, 28], [14, 26, 28], [14, 24, 26, 28]]
AGAIN = [[14, 29], [14, 28, 29]]  # the 29th packet sent is 14 again: a time-out, and duplicate ACKs after it
SIX = [14, 16, 18, 20, 22, 24]  # so many that what Tahoe sends twice makes duplicate ACKs
SECONDS = 30
PACKETS = 100


def case(ns: str, variant: str, drops: list[int], avoid: bool = False) -> dict[str, object]:
    """The events of one run: times in seconds from the first packet on, packets by number."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        arguments = [VARIANTS[variant], " ".join(map(str, drops)), str(trace), str(SECONDS), str(avoid).lower()]
        done = subprocess.run(
            [ns, str(HERE / "fall_floyd.tcl"), *arguments], capture_output=True, text=True, check=True
        )
        events = [line.split() for line in trace.read_text().splitlines()]
    changes = [re.split(r"\s+", line.strip()) for line in done.stdout.splitlines()]
    timeouts = [float(c[0]) for c in changes if c[5] == "nrexmit_" and float(c[6]) > 0]
    acks = [(float(c[0]), int(float(c[6]))) for c in changes if c[5] == "ack_"]
    seen: set[int] = set()
    again = []
    for event, time, _, _, kind, *_, number, _ in events:
        if event == "+" and kind == "tcp":
            if int(number) in seen:
                again.append([float(time), int(number)])
            seen.add(int(number))
    assert [int(e[-2]) for e in events if e[0] == "d"] == [14 if n == 29 else n for n in drops] and len(seen) == PACKETS
    assert acks[-1][1] == PACKETS - 1
    return {
        "variant": variant,
        "avoid_multiple": avoid,
        "drops": drops,
        "retransmissions": again,
        "timeouts": timeouts,
        "recovered": next(time for time, number in acks if number >= 28),
        "finished": acks[-1][0],
    }


def main() -> None:
    ns = shutil.which("ns")
    if ns is None:
        sys.exit("ns isn't there: apt install ns2")
    package = subprocess.run(["dpkg-query", "-W", "ns2"], capture_output=True, text=True).stdout.split()
    cases = [case(ns, variant, drops) for variant in VARIANTS for drops in DROPS]
    cases += [case(ns, variant, drops, True) for variant in ("tahoe", "reno") for drops in (*DROPS, *AGAIN)]
    cases.append(case(ns, "tahoe", SIX, True))
    document = {
        "source": "ns-2, one-way agents of its TCP; python tb/oracles/ns2/make.py, settings in fall_floyd.tcl",
        "version": " ".join(package) or "unknown",
        "line": {"rate_bps": 800_000, "delay_s": 0.1, "octets": 1000, "ack_octets": 48, "packets": PACKETS},
        "units": "seconds from the first packet; data packets by number, from 0",
        "avoid_multiple": "Tahoe's and Reno's bugFix_",
        "recovered": "when packet 28, the last that any of the cases loses, is acknowledged",
        "cases": cases,
    }
    text = json.dumps(document, indent=1)
    VECTORS.write_text(re.sub(r"\[\s+([-\d.]+)(?:,\s+([-\d.]+))?\s+\]", _line, text) + "\n")


def _line(match: re.Match[str]) -> str:
    return "[" + ", ".join(filter(None, match.groups())) + "]"


if __name__ == "__main__":
    main()
