"""The simulator of unit tests that look into a design: the native one, or Amaranth's own.

A file changes from one to the other by its import. Tests that are too short to pay for a compiler stay in Amaranth's.
The witness of the others is ``unit/simulator/test_our_parts.py``; ``BENTPIPE_TEST_SIMULATOR=amaranth`` runs all there.
"""

from __future__ import annotations

import os
from typing import Any

import amaranth.sim

from bentpipe_sim.native import Simulator as NativeSimulator

__all__ = ["Simulator"]


def Simulator(toplevel: Any) -> amaranth.sim.Simulator:
    """A simulator of a design, for some thousand clocks."""
    if os.environ.get("BENTPIPE_TEST_SIMULATOR") == "amaranth":
        return amaranth.sim.Simulator(toplevel)
    return NativeSimulator(toplevel, is_short=True)
