"""The command line of :mod:`digests`."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterable

from bentpipe.compiled import prepare
from bentpipe.experiment.document.catalogue import catalogue
from digests import SETS, differences, digests
from digests.parts import compared, compared_with_hosts


def _in_parts(entries: Iterable[str]) -> int:
    failed = False
    prepare(sys.stderr.isatty())
    for entry in entries:
        begin = time.process_time()
        for name, outcome, same in itertools.chain(compared(entry), compared_with_hosts(entry)):
            failed |= not same
            print(f"{name} ({time.process_time() - begin:.1f} s): {outcome}", flush=True)
            begin = time.process_time()
    return int(failed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m digests", description="The same cells at the same ticks?")
    parser.add_argument("entry", nargs="*", help="of the catalogue (default: all of the set)")
    parser.add_argument("--set", choices=SETS, default="quick", help="quick durations (default), or shorter ones")
    parser.add_argument("--threads", action="store_true", help="in parts and on two threads")
    parser.add_argument("--keep", action="store_true", help="keep the digests of these entries: cells were to change")
    given = parser.parse_args()
    unknown = set(given.entry) - set(catalogue())
    if unknown:
        parser.error(f"no entry {', '.join(sorted(unknown))} in the catalogue")
    if given.threads:
        return _in_parts(given.entry or catalogue())
    prepare(sys.stderr.isatty())
    of = SETS[given.set]
    kept = of.kept()
    expected = {run for run in kept if not given.entry or run.partition(",")[0] in given.entry}
    failed = False
    for entry in given.entry or of.entries or catalogue():
        for name, experiment in of.runs(entry):
            begin = time.process_time()
            found = digests(experiment)
            if given.keep:
                of.keep({name: found})
                outcome = ["kept"]
            elif name not in kept:
                outcome = ["no digests are kept of this run; keep them: --keep"]
            else:
                outcome = differences(kept[name], found, experiment.duration_ps) or ["the same"]
            failed |= outcome not in (["the same"], ["kept"])
            expected.discard(name)
            print(f"{name} ({time.process_time() - begin:.1f} s):", "\n    ".join(outcome), flush=True)
    for name in sorted(expected):
        failed = True
        print(f"{name}: there is no such run now")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
