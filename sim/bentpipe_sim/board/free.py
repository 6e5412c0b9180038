"""Free-running time of a board: its pace, the VLANs of its interfaces, and the figures that show whether it keeps up.

It needs a board whose nodes are set up and joined, as :class:`~bentpipe_sim.board.lockstep.LockstepNetwork` does when
it starts. Real hosts then send through the board; no native network runs beside it. Start with :class:`FreeRunning`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from bentpipe_hdl.registers import Registers
from bentpipe_sim.board.board import Board
from bentpipe_sim.board.errors import BoardError
from bentpipe_sim.board.payload import CELL_OCTETS
from bentpipe_sim.board.windows import FRAME_COUNTERS, HOST_PORT, VLAN_COUNTERS, WINDOW_BITS, host_port_registers
from bentpipe_sim.pattern import pattern

__all__ = ["FreeRunning", "Lag", "pace_of"]

_TICKS_A_SECOND: Final = (299_520_000, 53)
_FRACTION: Final = 32
_MOST_VID: Final = 4094
_CROSS: Final = 1
"""First cells of these that a checker keeps: the pattern begins with the SDU."""
_GIVEN: Final = 2
"""Cells of each SDU of a source that are given in the host port's memory."""


def pace_of(clock_hz: int) -> int:
    """Return the pace of real time for a board with this clock, in ``2**-32`` ticks a clock.

    It is rounded down, by less than 4e-9 at 75 MHz.

    Raises
    ------
    ValueError
        A clock is a tick or longer.
    """
    ticks, of = _TICKS_A_SECOND
    if of * clock_hz <= ticks:
        raise ValueError(f"clock_hz must be above {ticks / of:.0f}, not {clock_hz!r}")
    return (ticks << _FRACTION) // (of * clock_hz)


@dataclass(frozen=True)
class Lag:
    """A lag is the time by which a board is behind real time.

    Members
    -------
    now, greatest : int
        Ticks, at present and at most. 2**32 - 1 means that or more.
    late : int
        Ticks that began a tick or more after their time.
    """

    now: int
    greatest: int
    late: int


class FreeRunning:
    """Real hosts on a board.

    Parameters
    ----------
    board : Board
        Its nodes are set up, and no tick has passed.

    Raises
    ------
    BoardError
        The board has neither VLANs nor sources.
    """

    def __init__(self, board: Board) -> None:
        if not board.plan.is_paced:
            raise BoardError("the board has no pace of real time: build it with --vlans or --sources")
        self.board = board
        registers = host_port_registers(board.plan)
        self._ports = {
            window: Registers(board.window(HOST_PORT + window), registers)
            for window, shape in enumerate(board.plan.nodes, 1)
            if shape.kind == "nic"
        }
        self._vlans: dict[tuple[int, int], tuple[int, int, int]] = {}  # VID, VCs by window and number

    def vlan(self, window: int, number: int, vid: int, *, tx: int, rx: int) -> None:
        """Give an interface a VLAN.

        Parameters
        ----------
        window : int
            Of the interface.
        number : int
            Of the VLAN at this interface, from 0 on.
        vid : int
            VLAN identifier, 1 to 4094; no other VLAN of the board may have it. 0 takes the VLAN away.
        tx, rx : int
            Numbers of the VCs that take its frames, and whose PDUs are its frames.

        Raises
        ------
        BoardError
            There is no such interface, VLAN or VC, or another VLAN has the VID or the VC.
        """
        if window not in self._ports or not 0 <= number < self.board.plan.vlans:
            raise BoardError(f"the board has no VLAN {number} at window {window}")
        if not 0 <= vid <= _MOST_VID:
            raise BoardError(f"a VLAN identifier is 1 to {_MOST_VID}, or 0 for none, not {vid}")
        vcs = dict(self.board.plan.nodes[window - 1].parameters)["vcs"]
        if not (0 <= tx < vcs and 0 <= rx < vcs):
            raise BoardError(f"the interface at window {window} has VCs 0 to {vcs - 1}, not {tx} and {rx}")
        for place, (other, tx_of, rx_of) in self._vlans.items():
            if vid == 0 or other == 0 or place == (window, number):
                continue
            if vid == other:
                raise BoardError(f"VLAN {vid} is at window {place[0]} already")
            if place[0] == window and (tx == tx_of or rx == rx_of):
                raise BoardError(f"VLAN {other} has VC {tx if tx == tx_of else rx} of window {window} already")
        self._vlans[window, number] = vid, tx, rx
        self._ports[window].vlan[number] = {"vid": vid, "tx": tx, "rx": rx}

    def source(self, window: int, vc: int, length: int, *, key: int = 0) -> None:
        """Let an interface send SDUs on a VC, each as soon as the one before has been sent.

        The VC's rate is that of its settings. It works in stepped time, too.

        Parameters
        ----------
        window : int
            Of the interface.
        vc : int
            Nothing else may be sent on it.
        length : int
            Octets of each SDU, 97 to 65535; 0: the source stops after the present one.
        key : int
            Of the payload pattern that each SDU has from its first octet on.

        Raises
        ------
        BoardError
            The board has no sources, or the interface or the length is none.
        """
        port = self._port(window)
        if length and not _GIVEN * CELL_OCTETS < length < 1 << 16:
            raise BoardError(f"SDUs of a source have {_GIVEN * CELL_OCTETS + 1} to 65535 octets, not {length}")
        if length:
            octets = pattern(key, 0, _GIVEN * CELL_OCTETS)
            first = (HOST_PORT + window << WINDOW_BITS) | port.map["tx"].addr
            self.board.write(first, struct.unpack(f"<{len(octets) // 4}I", octets))
            port.place, port.uu, port.rest = 0, 0, {"cells": _GIVEN, "place": 0}
        port.source = {"length": length, "vc": vc, "on": int(length > 0)}

    def sink(self, window: int, vc: int, *, on: bool = True) -> None:
        """Let an interface check the SDUs of a source at the other end of a VC, and count them.

        Raises
        ------
        BoardError
            The board has no sinks, or the interface is none.
        """
        self._port(window).sink = {"vc": vc, "cells": _CROSS, "on": int(on)}

    def sdus(self, window: int) -> dict[str, int]:
        """Return the counters of an interface's source and sink: SDUs ``sent``, ``verified`` and ``unverified``."""
        port = self._port(window)
        return {name: int(getattr(port, name)) for name in ("sent", "verified", "unverified")}

    def _port(self, window: int) -> Registers:
        if not self.board.plan.sources or window not in self._ports:
            raise BoardError(f"the board has no source at window {window}: build it with --sources")
        return self._ports[window]

    def start(self, pace: int) -> None:
        """Start time at a pace (:func:`pace_of`)."""
        if not 0 < pace < 1 << _FRACTION:
            raise BoardError(f"a pace is 1 to {(1 << _FRACTION) - 1}, not {pace}")
        self.board.csr.pace = pace
        self.board.csr.free = 1
        if not self.board.csr.state.free:
            raise BoardError("the board's time does not run freely")

    def stop(self) -> None:
        """Stop time. Real time goes on, so that the lag grows until time starts again."""
        self.board.csr.free = 0
        if self.board.csr.state.free:
            raise BoardError("the board's time does not stop")

    def lag(self) -> Lag:
        """Return how far the board is behind real time."""
        csr = self.board.csr
        now, greatest, late = self.board.read([csr.map[name].addr for name in ("lag", "greatest_lag", "late_ticks")])
        return Lag(now, greatest, late)

    def frames(self) -> dict[str, int]:
        """Return the counters of the Ethernet line, and those of all VLANs together."""
        if not self.board.plan.vlans:
            return {}
        found = {name: int(getattr(self.board.csr, name)) for name in FRAME_COUNTERS}
        for name in VLAN_COUNTERS:
            found[name] = sum(sum(getattr(port, name)[:]) for port in self._ports.values())
        found["no_vlan_out"] = sum(int(port.no_vlan) for port in self._ports.values())
        return found
