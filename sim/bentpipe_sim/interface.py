"""The network as the host software uses it, independent of what carries the cells.

A native or Verilated network (:class:`bentpipe_sim.network.Network`), a cocotb test and a board all offer
:class:`PduNetwork`: send a PDU on a VC; run until a time or an event; receive PDUs with their status and their time
stamp.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple, Protocol

__all__ = ["PS_PER_S", "AheadNetwork", "CellNetwork", "CellStream", "PduEvent", "PduNetwork", "PduStatus"]

PS_PER_S: Final = 1_000_000_000_000
"""Picoseconds a second: all times in the interface are integers of picoseconds."""


class PduStatus(enum.IntEnum):
    """The result of the reassembly of an AAL5 CPCS-PDU (I.363.5)."""

    OK = 0
    CRC = 1
    """CRC-32 wrong, length and number of cells agree: payload bits were hit."""
    LENGTH = 2
    """Fewer cells than the length field says: cells were lost inside the PDU (or CRC right, length wrong)."""
    LOST_LAST = 3
    """More cells than the length field says: the last cell of an earlier PDU was lost, two PDUs ran together."""
    OVERLENGTH = 4
    """More cells than the VC's largest SDU has: reassembly was given up."""
    ABORT = 5
    """Length field 0: the sender aborted the PDU."""
    TIMEOUT = 6
    """The last cell had not come when the NIC's reassembly timer ran out: reassembly was given up."""
    OAM_SEGMENT = 12
    """Not a PDU: a cell of the VC's F5 flow of a segment (8 + PTI; I.361)."""
    OAM_END_TO_END = 13
    """Nor this: one of its end-to-end F5 flow."""
    SENT = 15
    """Not a reception: the last cell of a PDU of this NIC has left it."""
    QUEUE_LEVEL = 64
    """Not of a NIC: a queue monitor (``bentpipe_sim.queue_monitor``) has come to the level that it is armed for."""
    QUEUE_EMPTY = 65
    """Likewise: it has no more cells."""


class PduEvent(NamedTuple):
    """Something that happened at a host's interface.

    Members
    -------
    time_ps : int
        When the cell, of a PDU the last one, was received (for ``SENT`` put on the line, for ``TIMEOUT`` given up).
    nic, vc : int
        Which interface, which VC (indices as given when they were opened).
    status : PduStatus
    length : int
        Length of the SDU in octets; 0 where it is not known (errors). Of an OAM cell 48.
    head : bytes
        The first octets of the SDU, at most 128; empty unless ``status`` is ``OK``. The 48 octets of an OAM cell.
    handle : int
        Names the received SDU for :meth:`PduNetwork.check` and :meth:`PduNetwork.sdu` until the next ``run``.
    congested : bool
        The PDU's last cell had EFCI: it met congestion.
    sum : int
        Ones'-complement sum (RFC 1071, not complemented, 0..65535) of all octets of the SDU, as some interfaces find
        it while they receive; -1: :meth:`PduNetwork.checksum` has to be asked.
    """

    time_ps: int
    nic: int
    vc: int
    status: int
    length: int
    head: bytes
    handle: int
    congested: bool = False
    sum: int = -1


class PduNetwork(Protocol):
    """The one interface between hosts and whatever carries the cells. Times are picoseconds."""

    @property
    def now_ps(self) -> int:
        """The simulated (or the board's) time."""
        ...

    def send(
        self,
        nic: int,
        vc: int,
        head: bytes,
        key: int = 0,
        offset: int = 0,
        length: int = 0,
        checksum_start: int = -1,
        checksum_at: int = -1,
        uu: int = 0,
    ) -> None:
        """Queue one SDU on a VC at the present time: ``head`` followed by ``length`` octets of the payload
        pattern of stream ``key`` from ``offset`` on (:mod:`bentpipe_sim.pattern`).

        With ``checksum_at >= 0`` the 16-bit Internet checksum (RFC 1071) of the SDU's octets from
        ``checksum_start`` to its end is written at octet ``checksum_at``; the field's content in ``head``
        (the sum of the pseudo header, not complemented) enters the sum, as with any NIC's checksum offload.
        Both places are in ``head``, and ``checksum_at`` is not before ``checksum_start``.
        """
        ...

    def run(self, until_ps: int) -> list[PduEvent]:
        """Run up to ``until_ps``, or to the first instant at which events occur; return the events.

        ``now_ps`` is then the time of the events, or ``until_ps`` if there are none.
        """
        ...

    def check(self, handle: int, start: int, key: int, offset: int, length: int) -> bool:
        """Return whether a part of a received SDU has the payload pattern, octet by octet.

        The part is ``length`` octets from octet ``start`` on; the pattern is that of stream ``key`` from ``offset`` on.
        """
        ...

    def checksum(self, handle: int, start: int, length: int) -> int:
        """Return the ones'-complement sum (RFC 1071, not complemented, 0..65535) of a part of a received SDU.

        The part is ``length`` octets from octet ``start`` on.
        """
        ...

    def sdu(self, handle: int) -> bytes:
        """Return all octets of a received SDU."""
        ...

    def under_way(self, nic: int, vc: int, sink: int, key: int) -> int:
        """Return the number of PDUs of stream ``key`` that are under way on a VC.

        Interface ``nic`` was given them, and interface ``sink`` has neither received nor lost them so far. -1: the
        network has no ledger of its PDUs.
        """
        ...


class AheadNetwork(PduNetwork, Protocol):
    """A network that may run in a thread of its own, ahead of the hosts that are on it."""

    def may_run_ahead(self) -> bool:
        """Return whether there is a thread for :meth:`begin_ahead`."""
        ...

    def begin_ahead(self) -> bool:
        """Let :meth:`run_ahead` take the place of :meth:`run`, until :meth:`end_ahead`. False: it cannot."""
        ...

    def run_ahead(self, until_ps: int, limit_ps: int, reaction_ps: int) -> list[PduEvent]:
        """Run as :meth:`run` does. Meanwhile, and until the next call, the network may run on to ``limit_ps``.

        It may also run past events that are not returned yet, by less than ``reaction_ps``. The caller sends nothing
        before these times.
        """
        ...

    def delay(self, until_ps: int) -> None:
        """Let :meth:`send` queue SDUs at this later time; -1: at the present time again."""
        ...

    def end_ahead(self, is_whole: bool) -> None:
        """Let :meth:`run` take its place again. Unless ``is_whole``, as after an error, the network may be ahead."""
        ...


class CellStream(Protocol):
    """Test cells of a VC, which interfaces make and analyse."""

    def start(self, count: int) -> None:
        """Send so many cells from now on, 0: until :meth:`stop`."""
        ...

    def stop(self) -> None:
        """Send one more cell, and no more."""
        ...

    def time_of(self, count: int) -> int:
        """Return the time of so many cells at the VC's rate (ps)."""
        ...

    def is_over(self) -> bool:
        """Return whether no cell is to be sent, and none is under way."""
        ...

    def figures(self, span_ps: int) -> dict[str, float]:
        """Return the figures measured so far, by name; ``span_ps`` is the duration of the flow."""
        ...


class CellNetwork(PduNetwork, Protocol):
    """One whose interfaces send single cells, too, and report OAM cells."""

    def send_cell(self, nic: int, vc: int, pti: int, payload: bytes) -> None:
        """Queue a single cell of 48 octets with a PTI of its own on a VC at the present time. It is sent as the VC's
        next cell, between two cells of a PDU as well, and paced as they are."""
        ...

    def user_cells(self, nic: int, vc: int) -> tuple[int, int]:
        """Return the cells of PDUs that the interface has sent on a VC so far, and those it has reassembled (modulo
        2**32)."""
        ...
