"""The manifest of a bitstream: a JSON file beside it, which is checked before the bitstream is flashed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from bentpipe_boards.fpga.errors import FpgaError

__all__ = ["FORMAT", "LINE_MHZ", "Manifest", "manifest_of", "whole"]

FORMAT: Final = 1
LINE_MHZ: Final = 125.0
"""Clock of the Ethernet line at 1 Gb/s."""


def whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text)
    part.replace(path)


@dataclass(frozen=True)
class Manifest:
    """The manifest of a bitstream.

    Members
    -------
    board : str
        Name of the board that it is for.
    build : str
        Digest of the RTLIL, the constraints, the tools and the seed.
    sha256 : str
        Digest of the bitstream.
    plan : dict
        The plan, in the form of :meth:`~bentpipe_sim.board.windows.Plan.to_json`.
    clock_mhz, achieved_mhz : float
        The core's clock; the highest clock by nextpnr's timing analysis.
    seed : int
    used : dict
        By resource: the number used by the bitstream, and the number on the device.
    limit : list of str
        The slowest path: its delay, then a line for each step.
    tools : dict
        Versions by package.
    steps : dict
        By step: its cost.
    ethernet : str
        Addresses of the board; "" without Ethernet.
    line_mhz : float or None
        The highest clock of the Ethernet line by the same analysis; it has to be 125.
    ethernet_clock_mhz, ethernet_mhz : float or None
        The clock of LiteEth's core; the highest one by the same analysis.
    memory_clock_mhz, memory_mhz : float or None
        The clock of LiteDRAM's core; the highest one by the same analysis. None: the board has no DDR3 memory in use.
    start_clock_mhz, start_mhz : float or None
        The same for the clock that starts its PHY.
    crossing_ns : list of float
        Delay of the slowest path between two clocks, and its limit, the period of the faster clock. Empty: there is no
        such path.
    kept_free : int
        LUTs in rows that the placement has kept free, so that there are wires enough. They are not in ``used``.
    format : int
    """

    board: str
    build: str
    sha256: str
    plan: dict[str, Any]
    clock_mhz: float
    achieved_mhz: float
    seed: int
    used: dict[str, list[int]]
    limit: list[str]
    tools: dict[str, str]
    steps: dict[str, dict[str, float]] = field(default_factory=dict)
    ethernet: str = ""
    line_mhz: float | None = None
    ethernet_clock_mhz: float | None = None
    ethernet_mhz: float | None = None
    memory_clock_mhz: float | None = None
    memory_mhz: float | None = None
    start_clock_mhz: float | None = None
    start_mhz: float | None = None
    crossing_ns: list[float] = field(default_factory=list)
    kept_free: int = 0
    format: int = FORMAT

    @property
    def is_met(self) -> bool:
        """Return whether the bitstream is as fast as each of its clocks, and between them."""
        wanted = [
            (self.achieved_mhz, self.clock_mhz),
            (self.ethernet_mhz, self.ethernet_clock_mhz),
            (self.line_mhz, LINE_MHZ),
            (self.memory_mhz, self.memory_clock_mhz),
            (self.start_mhz, self.start_clock_mhz),
        ]
        fast = all(achieved >= clock for achieved, clock in wanted if achieved is not None and clock is not None)
        return fast and (not self.crossing_ns or self.crossing_ns[0] < self.crossing_ns[1])

    def write(self, path: Path) -> None:
        """Write the manifest."""
        whole(path, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a manifest.

        Raises
        ------
        FpgaError
            It is not there, or is none, or of another version.
        """
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            raise FpgaError(f"{path}: is missing; bentpipe board build makes it, and the bitstream") from None
        except (OSError, ValueError) as error:
            raise FpgaError(f"{path}: is no manifest: {error}") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise FpgaError(f"{path}: is no manifest of format {FORMAT}; build the bitstream again")
        try:
            return cls(**found)
        except TypeError as error:
            raise FpgaError(f"{path}: is no manifest: {error}") from None

    def check(self, bitstream: Path) -> None:
        """Raise FpgaError unless this is the bitstream that the manifest is of."""
        try:
            digest = hashlib.sha256(bitstream.read_bytes()).hexdigest()
        except OSError as error:
            raise FpgaError(f"{bitstream}: cannot be read: {error.strerror}") from None
        if digest != self.sha256:
            raise FpgaError(f"{bitstream}: is not the bitstream that its manifest is of; build it again")


def manifest_of(bitstream: Path) -> Path:
    """Return the path of a bitstream's manifest: beside it."""
    return bitstream.with_suffix(".json")
