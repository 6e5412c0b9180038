"""Errors of the harness, each with one line that says what is wrong and what to do."""

__all__ = ["CacheError", "NetworkError", "SimulationError", "ToolError"]


class SimulationError(Exception):
    """Base of the harness's errors: the message is one line for the user."""


class ToolError(SimulationError):
    """A tool is missing or failed."""


class CacheError(SimulationError):
    """The cache of built models is damaged or cannot be written."""


class NetworkError(SimulationError):
    """A network that cannot be built, or cells that got lost in it."""
