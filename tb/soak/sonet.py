"""A minute of an STS-3c line with random bit errors: ``python -m soak.sonet`` (``make soak``).

Both ends are full of cells. No defect may be raised that the criteria don't imply: what a defect needs is so unlikely
at 1e-6 that none is expected. Errors found and headers corrected have to be as many as the rate says.
"""

from __future__ import annotations

import argparse
import sys
import time

from bentpipe_hdl.sonet.tables import ALARMS
from models.sonet.native import NativeLine

FRAMES_A_SECOND = 8000


def expected_events(ber: float, seconds: float, cells: float) -> dict[str, float]:
    """Return how often each defect's criterion is met by chance, at both ends together."""
    frames = 2 * FRAMES_A_SECOND * seconds
    pattern = 1 - (1 - ber) ** 48  # A1 and A2 of three STS-1
    header = 1 - (1 - ber) ** 40
    return {
        "sef": frames * pattern**4,
        "ocd": cells * header**7,
        "ais_l, rdi_l (3 bits of K2 alike in 5 frames)": frames * (2 * ber) ** 5,
        "lop_p (8 invalid pointers)": frames * (1 - (1 - ber) ** 16) ** 8,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="simulated (60)")
    parser.add_argument("--ber", type=float, default=1e-6, help="bit error ratio (1e-6)")
    given = parser.parse_args()
    line = NativeLine(3, 9, seed=7)
    for end in (0, 1):
        line.load(end, 1.0)
    line.run(frames=100)
    for end in (0, 1):
        line.write(end, "changed", 0x3FFF)
        line.latched(end)
        line.clear(end)
        line.channel(end, ber=given.ber)
    raised: dict[str, int] = {}
    begin, total = time.monotonic(), round(given.seconds * FRAMES_A_SECOND)
    step = 800
    for done in range(0, total, step):
        line.run(frames=min(step, total - done))
        for end in (0, 1):
            changed = line.read(end, "changed")
            line.write(end, "changed", changed)
            for k, alarm in enumerate(ALARMS):
                if changed >> k & 1:
                    raised[alarm.name] = raised.get(alarm.name, 0) + 1
        if sys.stderr.isatty():
            print(f"\r{(done + step) / FRAMES_A_SECOND:.1f} s of {given.seconds:g} s", end="", file=sys.stderr)
    wall = time.monotonic() - begin
    counters = [line.latched(end) for end in (0, 1)]
    counts = [line.counts(end) for end in (0, 1)]
    errors = sum(c["errors"] for c in counts)
    cells = sum(c["cells"] for c in counts)
    expected = expected_events(given.ber, given.seconds, cells)
    print(f"{given.seconds:g} s at {given.ber:g} both ways in {wall:.0f} s: {cells:,} cells, {errors:,} bit errors")
    bits = 2 * 155.52e6 * given.seconds * given.ber
    for name, found, wanted in (
        ("bit errors", errors, bits),
        ("B2", sum(c["b2"] for c in counters), bits * (1 - 9 / 810)),
        ("B3", sum(c["b3"] for c in counters), bits * 87 / 90),
        ("REI-L", sum(c["rei_l"] for c in counters), bits * (1 - 9 / 810)),
        ("headers with errors", sum(c["corrected"] + c["discarded"] for c in counters), cells * 40 * given.ber),
    ):
        spread = abs(found - wanted) / wanted**0.5
        print(f"  {name:32} {found:10,}  expected {wanted:12,.0f}  {spread:4.1f} standard deviations")
        if spread > 6:
            raised[f"count of {name}"] = found
    for name, chance in expected.items():
        print(f"  {name:48} expected {chance:.1e} times")
    wrong = sum(c["alien"] + c["repeated"] for c in counts)
    print(f"  wrong or repeated cells: {wrong}")
    print(f"  defects raised or cleared: {raised or 'none'}")
    return 1 if raised or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
