"""Speed of a SONET line both ways on one core: ``PYTHONPATH=tb python -m models.sonet.bench`` (CPU time)."""

import argparse
import time

from bentpipe_hdl.sonet.tables import ALARMS
from models.sonet.native import NativeLine


def measure(n, width, frames):
    """Seconds of CPU time a simulated second, and ns a clock of one terminal."""
    line = NativeLine(n, width)
    for end in (0, 1):
        line.load(end, 1.0)
    line.run(frames=10)
    start = time.process_time()
    line.run(frames=frames)
    spent = time.process_time() - start
    clocks = 2 * frames * line.geometry.frame_words
    return spent * 8000 / frames, spent / clocks * 1e9


def soak(n, width, ber, seconds):
    """Random errors for some simulated seconds: defects that were ever raised, and what was counted."""
    line = NativeLine(n, width)
    for end in (0, 1):
        line.load(end, 0.9)
    line.run(frames=45)
    line.clear(1)
    line.latched(1)
    line.channel(1, ber=ber)
    seen = set()
    line.write(1, "changed", 0xFFFFFFFF)
    for _ in range(round(seconds * 10)):
        line.run(frames=800)
        bits = line.read(1, "changed")
        line.write(1, "changed", bits)
        seen |= {alarm.name for k, alarm in enumerate(ALARMS) if bits >> k & 1}
    return seen, line.counts(1), line.latched(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="random errors at 1e-6 for so long")
    args = parser.parse_args()
    if args.soak:
        seen, counts, latched = soak(3, 9, 1e-6, args.soak)
        print(f"OC-3c, BER 1e-6, {args.soak:g} s: defects {sorted(seen) or 'none'}; {counts}; {latched}")
        return
    for n, width in ((3, 9), (12, 36)):
        seconds, clock = measure(n, width, args.frames)
        print(f"OC-{n}c both ways, {width} bytes a clock: {seconds:.2f} s a simulated second, {clock:.0f} ns a clock")


if __name__ == "__main__":
    main()
