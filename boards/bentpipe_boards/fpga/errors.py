"""Errors of a board's bitstream."""

from bentpipe_sim.errors import SimulationError

__all__ = ["FpgaError"]


class FpgaError(SimulationError):
    """A bitstream cannot be built or flashed; a board or a plan is not known."""
