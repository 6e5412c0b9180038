"""Errors of the harness, each with one line that says what is wrong and what to do."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CacheError", "NetworkError", "SimulationError", "Subject", "ToolError"]


@dataclass(frozen=True)
class Subject:
    """The part of a network that an error is about, and the setting of it.

    Members
    -------
    node : str
        The name of a node.
    port, vc : int, optional
        One of its ports, or of its VCs, by their index there; None for both: the node itself.
    channel, path : int, optional
        Instead of a node: a VC or a virtual path of the network, in the order in which they were added.
    key : str
        The setting, as a document has it; "" if there is no single one.
    """

    node: str = ""
    port: int | None = None
    vc: int | None = None
    channel: int | None = None
    path: int | None = None
    key: str = ""


class SimulationError(Exception):
    """Base of the harness's errors: the message is one line for the user."""


class ToolError(SimulationError):
    """A tool is missing or failed."""


class CacheError(SimulationError):
    """The cache of built models is damaged or cannot be written."""


class NetworkError(SimulationError):
    """A network that cannot be built, or cells that got lost in it.

    Members
    -------
    subject : Subject or None
        What of the network is at fault, where that is known.
    """

    def __init__(self, what: str, subject: Subject | None = None) -> None:
        super().__init__(what)
        self.subject = subject
