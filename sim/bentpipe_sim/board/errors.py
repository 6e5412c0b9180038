"""Errors of boards."""

from __future__ import annotations

from bentpipe_sim.errors import SimulationError

__all__ = ["BoardError", "MismatchError"]


class BoardError(SimulationError):
    """A board is not there, not the one that is needed, or does not do what it is told."""


class MismatchError(BoardError):
    """A board did something else than the native network."""
