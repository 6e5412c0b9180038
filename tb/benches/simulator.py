"""The simulator of unit tests that look into a design: the native one, or Amaranth's own.

A file changes from one to the other by its import. In Amaranth's are the tests of a component that are the witness for it, and
tests that are too short to pay for a compiler.
"""

import os

import amaranth.sim

from bentpipe_sim.native import Simulator as NativeSimulator

__all__ = ["Simulator"]

Simulator = amaranth.sim.Simulator if os.environ.get("BENTPIPE_TEST_SIMULATOR") == "amaranth" else NativeSimulator
