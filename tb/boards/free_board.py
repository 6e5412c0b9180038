"""A board in free-running time, in Verilator: one interface, whose two VCs go to it through a link."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from bentpipe_boards.fpga.plans import PLANS
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.client import Client
from bentpipe_sim.board.free import FreeRunning
from bentpipe_sim.board.lockstep import LockstepNetwork
from boards.rgmii import SHOWN_HZ, FastLine, UdpPipe, on_wire

__all__ = ["BOARD_HZ", "DELAY_PS", "PLAN", "VIDS", "FreeBoard"]

PLAN: Final = replace(PLANS["line"], vlans=2)
VIDS: Final = (10, 20)
DELAY_PS: Final = 100_000_000
BOARD_HZ: Final = 75_000_000
"""The clock of the board for its pace. Its time-outs have another one."""


class FreeBoard:
    """The board, set up. Frames of each VLAN leave with the tag of the other one.

    Parameters
    ----------
    library : Path
        Of :func:`boards.rgmii.built`.
    line : NicLine, optional
        Of the interface; OC-3c without it.
    delay_ps : int
        Of the link.
    ethernet_hz : int
        As for :class:`boards.rgmii.FastLine`.
    """

    def __init__(
        self, library: Path, line: NicLine | None = None, delay_ps: int = DELAY_PS, ethernet_hz: int = SHOWN_HZ
    ) -> None:
        self.line = FastLine(library, ethernet_hz)
        self.network = network = LockstepNetwork(lambda _plan: Board(Client(UdpPipe(self.line))))
        nic, link = network.add_nic("nic", line=line), network.add_link("link", LinkSettings(delay_ps=delay_ps))
        network.connect(nic, link)
        network.connect(link, nic)
        vcs = [network.add_vc([nic, link, nic], 0, 100 + k) for k in range(2)]
        network.start()
        self.free = FreeRunning(network.board)
        window = 1 + [shape.kind for shape in PLAN.nodes].index("nic")
        for number, vid in enumerate(VIDS):
            self.free.vlan(window, number, vid, tx=vcs[number], rx=vcs[1 - number])

    def put(self, frame: bytes, vid: int) -> None:
        """Send a frame to the board, in a VLAN."""
        self.line.put_wire(on_wire(frame[:12] + b"\x81\x00" + vid.to_bytes(2, "big") + frame[12:]))
