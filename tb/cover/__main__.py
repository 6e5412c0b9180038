"""The command line of :mod:`cover`."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from pathlib import Path

from cover import python, rtl
from cover.page import PAGE, keep, page

FOLDER = Path(__file__).parents[2] / "build" / "coverage"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cover", description="Measure coverage; write docs/coverage.md.")
    parser.add_argument("part", nargs="?", choices=("python", "rtl", "page"), help="only this (default: all)")
    parser.add_argument("--case", action="append", choices=rtl.CASES, metavar="NODE", help="of the RTL (default: all)")
    parser.add_argument("--workers", type=int, default=2, help="processes that test (default: 2)")
    given, tests = parser.parse_known_args()
    code = 0
    if given.part in (None, "python"):
        code = python.measure(FOLDER, given.workers, tests)
    if given.part in (None, "rtl"):
        for name in given.case or rtl.CASES:
            points = rtl.measure(name, FOLDER)
            keep(FOLDER, name, f"{datetime.date.today()}", f"python -m cover rtl --case '{name}'", points)
            print(f"{name}: {sum(share.reached for share in points.values())} points reached", flush=True)
    text, missing = page(FOLDER, rtl.CASES)
    PAGE.write_text(text)
    for name in missing:
        print(f"below, without a reason: {name}", file=sys.stderr)
    return code or int(bool(missing))


if __name__ == "__main__":
    os.environ.setdefault("BENTPIPE_CXXFLAGS", "-O1")
    sys.exit(main())
