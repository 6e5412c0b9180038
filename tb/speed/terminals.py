"""Two SONET terminals back to back, on one core: ``python -m speed.terminals`` (a part of ``make bench``).

A line full of cells both ways, their payload made and checked in C++; no network around it.
"""

from __future__ import annotations

import argparse
import json
import time

from models.sonet.native import NativeLine

FRAMES_A_SECOND = 8000
WORDS_A_SECOND = 2_160_000
CASES = {3: (1.0, 0.25), 12: (2.5, 0.5)}  # STS-N: asked, goal


def measure(n: int, seconds: float) -> dict[str, float]:
    """CPU seconds a simulated second, of the whole and of its best tenth, and ns of a terminal's clock."""
    line = NativeLine(n, 3 * n)
    for end in (0, 1):
        line.load(end, 1.0)
    line.run(frames=80)
    frames = max(1, round(seconds * FRAMES_A_SECOND / 10))
    spent = []
    for _ in range(10):
        start = time.process_time()
        line.run(frames=frames)
        spent.append(time.process_time() - start)
    for end in (0, 1):
        counts = line.counts(end)
        if not counts["cells"] or counts["payload_bad"] or counts["header_bad"]:
            raise SystemExit(f"STS-{n}c: end {end} received {counts}")
    simulated = frames * 10 / FRAMES_A_SECOND
    ratio = sum(spent) / simulated
    best = min(spent) * 10 / simulated
    return {"ratio": ratio, "best_ratio": best, "clock_ns": ratio / 2 / WORDS_A_SECOND * 1e9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="simulated seconds a case (default 2)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    results = {f"oc-{n}c": measure(n, given.seconds) for n in CASES}
    if given.json:
        print(json.dumps(results, indent=2))
        return
    print("Two SONET terminals, a line full of cells both ways: CPU seconds per simulated second, one core")
    for (name, r), (asked, goal) in zip(results.items(), CASES.values(), strict=True):
        print(
            f" {name.upper():7} {r['ratio']:.3f}, best tenth {r['best_ratio']:.3f}, asked {asked}, goal {goal}; "
            f"{r['clock_ns']:.0f} ns a terminal's clock"
        )


if __name__ == "__main__":
    main()
