"""AAL type 5, common part (I.363.5): CPCS-PDUs, segmentation to cells, reassembly with a verdict a PDU."""

from __future__ import annotations

from dataclasses import dataclass, field

from bentpipe_sim.interface import PduStatus
from models.cell import PAYLOAD, Cell, Header
from models.crc import crc32_aal5

__all__ = ["MAX_SDU", "Reassembler", "Reassembly", "Result", "cells_of", "cpcs_pdu", "segment"]

MAX_SDU = 65535
"""Octets of the largest SDU: the length field has 16 bits."""

TRAILER = 8


def cells_of(length: int) -> int:
    """Cells of a CPCS-PDU with an SDU of ``length`` octets."""
    return -(-(length + TRAILER) // PAYLOAD)


def cpcs_pdu(sdu: bytes, uu: int = 0, cpi: int = 0) -> bytes:
    """SDU, 0 to 47 octets of padding (zeros), UU, CPI, length, CRC-32: a multiple of 48 octets."""
    if not 0 <= len(sdu) <= MAX_SDU:
        raise ValueError(f"an SDU has at most {MAX_SDU} octets, not {len(sdu)}")
    padding = bytes(-(len(sdu) + TRAILER) % PAYLOAD)
    body = sdu + padding + bytes([uu, cpi]) + len(sdu).to_bytes(2, "big")
    return body + crc32_aal5(body).to_bytes(4, "big")


def segment(header: Header, sdu: bytes, uu: int = 0, cpi: int = 0) -> list[Cell]:
    """The cells of a PDU. The PTI's lowest bit marks the last; the other bits are the header's."""
    pdu = cpcs_pdu(sdu, uu, cpi)
    cells = []
    for start in range(0, len(pdu), PAYLOAD):
        last = start + PAYLOAD == len(pdu)
        one = Header(header.vpi, header.vci, (header.pti & 0b110) | last, header.clp, header.gfc, header.interface)
        cells.append(Cell(one, pdu[start : start + PAYLOAD]))
    return cells


@dataclass(frozen=True)
class Result:
    """A PDU's end. ``sdu`` is empty and ``uu``, ``cpi`` are 0 unless ``status`` is OK."""

    status: PduStatus
    sdu: bytes = b""
    uu: int = 0
    cpi: int = 0
    cells: int = 0


@dataclass
class Reassembly:
    """The reassembly of one VC.

    Parameters
    ----------
    max_sdu : int
        Largest SDU in octets. A PDU with more cells than that one has is given up: its octets are forgotten at once,
        its remaining cells are discarded, and the verdict comes with its last cell.

    A right CRC with length 0 is an abort. Where the CRC is wrong the length field, compared with the number of
    cells, tells what happened: cells lost inside the PDU (too few cells), a lost last cell that joined two PDUs (too
    many), or bit errors (they agree).

    The reassembly timer (an option of I.363.5) runs from a PDU's first cell on; when it runs out before the last cell,
    the PDU is given up, and what comes after that is taken for another.
    """

    max_sdu: int = MAX_SDU
    _octets: bytearray = field(default_factory=bytearray)
    _cells: int = 0
    _began: int = 0

    def receive(self, cell: Cell, now: int = 0) -> Result | None:
        """Take a cell; a :class:`Result` comes with the last one of a PDU. OAM and RM cells are none of AAL5's."""
        if not cell.header.user:
            return None
        if not self._cells:
            self._began = now
        self._cells += 1
        if self._cells > cells_of(self.max_sdu):
            self._octets.clear()
        else:
            self._octets += cell.payload
        if not cell.header.last:
            return None
        result = self._verdict(bytes(self._octets), self._cells)
        self._octets.clear()
        self._cells = 0
        return result

    @property
    def began(self) -> int | None:
        """Return when the PDU that is being assembled began; None if there is none."""
        return self._began if self._cells else None

    def give_up(self) -> Result:
        """The timer has run out."""
        result = Result(PduStatus.TIMEOUT, cells=self._cells)
        self.set_up(self.max_sdu)
        return result

    def set_up(self, max_sdu: int) -> None:
        """The VC is set up anew: nothing of before is left."""
        self.max_sdu = max_sdu
        self._octets.clear()
        self._cells = 0

    def _verdict(self, pdu: bytes, cells: int) -> Result:
        if cells > cells_of(self.max_sdu):
            return Result(PduStatus.OVERLENGTH, cells=cells)
        uu, cpi, length = pdu[-8], pdu[-7], int.from_bytes(pdu[-6:-4], "big")
        crc_right = crc32_aal5(pdu[:-4]) == int.from_bytes(pdu[-4:], "big")
        if crc_right and length == 0:
            status = PduStatus.ABORT
        elif cells_of(length) == cells:
            status = PduStatus.OK if crc_right else PduStatus.CRC
        elif crc_right or cells < cells_of(length):
            status = PduStatus.LENGTH
        else:
            status = PduStatus.LOST_LAST
        if status is PduStatus.OK:
            return Result(status, pdu[:length], uu, cpi, cells)
        return Result(status, cells=cells)


class Reassembler:
    """Reassembly of many VCs, each on its own: cells of different VCs come in any interleaving.

    Parameters
    ----------
    max_sdu : dict
        (VPI, VCI) -> largest SDU. Cells of other VCs are counted in ``unknown`` and dropped.
    """

    def __init__(self, max_sdu: dict[tuple[int, int], int]) -> None:
        self.vcs = {vc: Reassembly(limit) for vc, limit in max_sdu.items()}
        self.unknown = 0

    def receive(self, cell: Cell, now: int = 0) -> tuple[tuple[int, int], Result] | None:
        """Take a cell; the VC and result of the PDU that it ends, if it ends one."""
        vc = (cell.header.vpi, cell.header.vci)
        if vc not in self.vcs:
            self.unknown += 1
            return None
        result = self.vcs[vc].receive(cell, now)
        return None if result is None else (vc, result)
