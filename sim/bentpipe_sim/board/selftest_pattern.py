"""The self-test of a board's generators and checkers of payload, at the full rate of a line.

The checkers are tested with octets from the host, then the generators by the checkers, then both on a way with bit
errors. Start with :class:`PatternTest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from bentpipe_sim.board.board import Ended
from bentpipe_sim.board.payload import CELL_OCTETS, crossing_cells
from bentpipe_sim.errors import SimulationError
from bentpipe_sim.interface import PduEvent, PduStatus
from bentpipe_sim.nodes import Nic
from bentpipe_sim.pattern import pattern

__all__ = ["PatternFaultError", "PatternTest", "TestedNetwork"]

_HEAD: Final = 48
_TRAILER: Final = 8
_PDUS: Final = 16
_LARGEST: Final = 4000
_STEP_PS: Final = 5 * 10**9
_STEPS: Final = 100
_ENDS: Final = range(PduStatus.OK, PduStatus.TIMEOUT + 1)
_FULL: Final = 0.99
"""Share of the line's rate that counts as full."""
_SHOWN: Final = 4
"""Cells that a line names."""


class PatternFaultError(SimulationError):
    """A generator or a checker of payload has a fault."""


class TestedNetwork(Protocol):
    """A network in lockstep that keeps what ended on the board."""

    ended: list[Ended]

    def send(self, nic: int, vc: int, head: bytes, key: int = 0, offset: int = 0, length: int = 0) -> None:
        """Queue an SDU, as for :class:`~bentpipe_sim.interface.PduNetwork`."""
        ...

    def run(self, until_ps: int) -> list[PduEvent]:
        """Run up to a time, or to the first event."""
        ...

    def verify(self) -> dict[str, int]:
        """Compare all counters and signatures."""
        ...


@dataclass(frozen=True)
class _Sdu:
    head: bytes
    key: int = 0
    offset: int = 0
    length: int = 0

    @property
    def octets(self) -> bytes:
        return self.head + pattern(self.key, self.offset, self.length)


class PatternTest:
    """Tests of one way from an interface back to it.

    Parameters
    ----------
    network : TestedNetwork
    nic : Nic
    vc : int
    tx_words : int
        Words of the host port's memory for PDUs to be sent.
    """

    def __init__(self, network: TestedNetwork, nic: Nic, vc: int, tx_words: int) -> None:
        self._network, self._nic, self._vc = network, nic, vc
        self._size = min(_LARGEST, tx_words // CELL_OCTETS * CELL_OCTETS - _TRAILER)

    def _sdus(self) -> list[_Sdu]:
        """Return SDUs whose offsets have each place in a word."""
        return [_Sdu(bytes([k]) * _HEAD, k, 1000 * k + k % 8, self._size - _HEAD) for k in range(1, _PDUS + 1)]

    def checker(self) -> str:
        """Test a checker with SDUs from the host; every fourth one has a wrong octet."""
        sdus, wrong = [], {}
        for k, sdu in enumerate(self._sdus()):
            octets = bytearray(sdu.octets)
            if k % 4 == 3:
                wrong[k] = 2 + k
                octets[CELL_OCTETS * wrong[k] + 5 * k % CELL_OCTETS] ^= 1 << k % 8
            sdus.append(_Sdu(bytes(octets)))
        found = self._play(sdus)
        for k, ended in enumerate(found):
            self._check_cells(k, ended, sdus[k].octets)
            if k in wrong and wrong[k] not in ended.crossed:
                raise PatternFaultError(f"PDU {k}: the checker has not found the wrong octet of cell {wrong[k]}")
        named = ", ".join(f"{cell} of PDU {k}" for k, cell in wrong.items())
        return f"{len(found)} PDUs; wrong octets were found in cells {named}"

    def generator(self) -> str:
        """Test a generator by the checker, which has been found good."""
        sdus = self._sdus()
        found = self._play(sdus)
        for k, ended in enumerate(found):
            self._check_cells(k, ended, sdus[k].octets)
        cells = sum(map(_cells, sdus))
        share = self._share(found, cells - _cells(sdus[0]))
        if share < _FULL:
            raise PatternFaultError(f"the generator has filled {share:.1%} of the line")
        return f"{len(found)} PDUs, {cells} cells, {share:.1%} of the line's rate"

    def errors(self) -> str:
        """Find the cells with bit errors of a way."""
        sdus = self._sdus()
        found = self._play(sdus)
        named, bad = [], 0
        for k, ended in enumerate(found):
            if ended.status == 0:
                self._check_cells(k, ended, sdus[k].octets)
                continue
            bad += 1
            clean = _crossed(sdus[k].octets)
            named += [f"{cell} of PDU {k}" for cell in ended.crossed if cell not in clean]
        if not bad:
            raise PatternFaultError("errors were asked for, and no PDU has one")
        if not named and any(ended.crossed for ended in found if ended.status):
            raise PatternFaultError(f"{bad} PDUs have errors, and the checker has named no cell of them")
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        cells = f"cells {', '.join(named[:_SHOWN])}{more}" if named else "a board in software keeps no cells of these"
        return f"{bad} of {len(found)} PDUs have errors: {cells}"

    def _play(self, sdus: Sequence[_Sdu]) -> list[Ended]:
        """Send SDUs, compare all with the native network, and return what ended on the board."""
        network = self._network
        for sdu in sdus:
            network.send(self._nic.index, self._vc, sdu.head, sdu.key, sdu.offset, sdu.length)
        seen = step = 0
        while seen < len(sdus) and step < _STEPS:
            step += 1
            seen += sum(event.status in _ENDS for event in network.run(step * _STEP_PS))
        network.verify()
        if len(network.ended) != len(sdus):
            raise PatternFaultError(f"{len(network.ended)} PDUs came of {len(sdus)}")
        return network.ended

    def _check_cells(self, k: int, ended: Ended, octets: bytes) -> None:
        """Check that those cells of a PDU crossed the line that have to, and no others."""
        wanted, found = _crossed(octets), set(ended.crossed)
        if found - wanted:
            raise PatternFaultError(f"PDU {k}: cell {min(found - wanted)} continues the pattern, and was kept")
        if wanted - found:
            raise PatternFaultError(f"PDU {k}: cell {min(wanted - found)} does not continue it, and was withheld")

    def _share(self, found: Sequence[Ended], cells: int) -> float:
        """Return the share of the line's rate at which cells came, from the end of the first PDU on."""
        ticks = found[-1].tick - found[0].tick
        return cells * self._nic.spacing(0) / 65536 / ticks if ticks else 0.0


def _cells(sdu: _Sdu) -> int:
    return -(-(len(sdu.head) + sdu.length + _TRAILER) // CELL_OCTETS)


def _crossed(octets: bytes) -> set[int]:
    """Return the indices of the cells of a PDU that a checker keeps."""
    cells = -(-(len(octets) + _TRAILER) // CELL_OCTETS)
    found, at = set(), 0
    for count, _, _ in crossing_cells(octets.ljust(cells * CELL_OCTETS, b"\0")):
        at += count
        found.add(at)
        at += 1
    return found
