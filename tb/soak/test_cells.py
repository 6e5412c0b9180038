"""Test cells: 10^7 of a generator through losses, errors, misinsertions, second cells and delays to an analyser.

The analyser has to be its model bit for bit, and to differ from the truth by nothing but the cancellations that have
names. Further: 20,000 cells at 32 bits and on both engines, equal to each other, and an interface with all options at
both widths. Exit code 1: something is different.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict

import numpy as np

from benches.testers import Tester, measure, sent_in_chunks
from bentpipe_hdl.cell import NARROW, WIDE
from models.impairments import Impairments, impair
from unit.widths.test_widths import test_nic_with_test_cells

MIXES = {
    "mixed": Impairments(),
    "rare": Impairments(1e-5, 1e-6, 1e-7, 1e-5, 1e-6, 1e-6, 1e-6, 1e-6),
    "bursts": Impairments(loss=0, burst=0.001, burst_cells=60, error=0.05, foreign=0.02),
}


def both_engines(cells: int) -> None:
    """The same cells on the native engine and in Verilator at both widths: the same counts."""
    found = []
    for width, engine in ((WIDE, "native"), (WIDE, "verilator"), (NARROW, "verilator")):
        rng, last, sender, receiver = np.random.default_rng(7), 0, Tester(width, engine), Tester(width, engine)
        receiver.analyse(width=4)
        for sent in sent_in_chunks(sender, cells, 5000):
            came, _ = impair(rng, sent, Impairments(), last)
            last = int(came["tick"][-1])
            receiver.receive(came)
        found.append(receiver.check())
    assert found[0] == found[1] == found[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak.test_cells", description="Test cells, 10^7 of them.")
    parser.add_argument("--cells", type=int, default=10**7, help="of the first mix (default: 10^7); a tenth of others")
    parser.add_argument("--native", action="store_true", help="leave out what needs Verilator")
    given = parser.parse_args()
    for name, what in MIXES.items():
        cells = given.cells if name == "mixed" else given.cells // 10
        begin = time.process_time()
        try:
            counts, truth, nodes = measure(cells, 11, what)
        except AssertionError as error:
            print(f"{name}: {cells} cells: different: {error}")
            return 1
        print(
            f"{name}: {cells} cells, {time.process_time() - begin:.0f} s CPU, of the analyser {nodes:.0f} s", flush=True
        )
        print(f"  truth    {asdict(truth)}\n  analyser {counts}", flush=True)
    if not given.native:
        both_engines(20_000)
        print("20000 cells: native, Verilator at 416 and 32 bits are equal", flush=True)
        test_nic_with_test_cells({"sustained": 1, "credits": 1, "oam": 1})
        print("with all options: 416 and 32 bits are equal", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
