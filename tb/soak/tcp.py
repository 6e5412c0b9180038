"""Thousands of random lives of two TCP connections on a bad line: ``python -m soak.tcp`` (``make soak``)."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from models.tcp_story import tell


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.tcp", description="Random lives of TCP connections.")
    parser.add_argument("--lives", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed (default: 0)")
    given = parser.parse_args()
    kinds: Counter[str] = Counter()
    failed = 0
    for seed in range(given.first, given.first + given.lives):
        try:
            story = tell(seed)
        except AssertionError as error:
            print(f"seed {seed}: {error}")
            failed += 1
            continue
        kinds["crashed" if story.crashed else "aborted" if story.aborted else "whole"] += 1
    print(f"{given.lives} lives: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
