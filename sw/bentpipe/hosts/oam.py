"""OAM of a host: its ends of VCs' F5 flows, end to end (I.610)."""

from __future__ import annotations

from typing import Any, Final, final

from bentpipe.hosts.scheduler import Scheduler, Timer
from bentpipe_hdl.crc10_octets import crc10_is_right
from bentpipe_hdl.oam.cells import (
    AIS,
    ALL_POINTS,
    END_POINT,
    END_PTI,
    FAULT_MANAGEMENT,
    SEGMENT_PTI,
    Ais,
    ContinuityCheck,
    Loopback,
    OamError,
    Rdi,
    pack,
    unpack,
)

__all__ = ["COUNTS", "LOOPBACK_PS", "EndPoint", "Looper", "OamEnd"]

_S: Final = 1_000_000_000_000
PERIOD_PS: Final = _S
"""From one RDI cell, or cell of a continuity check, to the next (clauses 9.2.1.1.2 and 9.2.1.2)."""
ABSENT_PS: Final = 5 * _S // 2
"""After which AIS and RDI states end without another such cell: 2.5 s, give or take 0.5 s (clause 9.2.1.1.2)."""
SILENT_PS: Final = 7 * _S // 2
"""After which continuity is lost without user cells and cells of the check: 3.5 s, give or take 0.5 s (clause 9.2.1.2).
"""
LOOK_PS: Final = _S // 2
"""How often the interface is asked whether user cells arrived."""
LOOPBACK_PS: Final = 5 * _S
"""After which a loopback cell has not come back (clause 9.2.1.3)."""

_AIS_OCTET: Final = FAULT_MANAGEMENT << 4 | AIS

COUNTS: Final = (
    "ais_received",
    "rdi_received",
    "cc_received",
    "looped",
    "returned",
    "bad",
    "other",
    "rdi_sent",
    "cc_sent",
    "loopback_sent",
)
"""Cells: AIS, RDI and of continuity checks that came; loopback cells sent back; own ones that came back in time; with a
wrong CRC-10; of other kinds, flows or places, or late; RDI, of checks, loopback cells sent."""


class Looper:
    """The sender of loopback cells: it is told of returned cells, and counts its lost ones."""

    def __init__(self) -> None:
        self.lost: int = 0

    def returned(self, sent_ps: int, now_ps: int) -> None:
        raise NotImplementedError


@final
class EndPoint:
    """An end of a VC. It does no I/O: what comes and the time go in, cells to be sent are added to ``out``.

    **Loopback.** A cell that is to be sent back goes back once, with the indication 0, if its location ID is that of
    the end point (all ones), this host's, or in a segment that of all points. One with the indication 0 never does.
    **AIS state** begins with an AIS cell, and ends with a user cell, one of a continuity check, or 2.5 s after the last
    AIS cell; so does **RDI state** with RDI cells, except for user cells. With a **continuity check** its source sends
    a cell each second, or each in which no user cell went (``idle``), and its sink finds continuity lost when no such
    and no user cell has arrived for 3.5 s. As long as there is AIS or loss of continuity, an RDI cell goes the other
    way at once and each second. Only cells of the end-to-end flow count for states.

    Members
    -------
    location : bytes
        Its location ID, and the source ID of its loopback cells.
    check : str
        Of the VC that it sends on: ``none``, ``idle``, ``always``.
    watches : bool
        Continuity of the VC that it receives on is supervised.
    out : list of (int, bytes)
        PTI and payload of each.
    ais, rdi, loc : bool
        States.
    counts : dict of str to int
        ``COUNTS``.
    changes : list of (int, str, bool)
        When which state began and ended.
    """

    def __init__(self, location: bytes, check: str = "none", watches: bool = False) -> None:
        self.location = location
        self.check = check
        self.watches = watches
        self.out: list[tuple[int, bytes]] = []
        self.ais: bool = False
        self.rdi: bool = False
        self.loc: bool = False
        self.counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        self.changes: list[tuple[int, str, bool]] = []
        self._ais_ends: int = 0
        self._rdi_ends: int = 0
        self._alarm_due: int = 0  # 0: none is
        self._check_due: int = 0
        self._look_due: int = 0
        self._heard: int = 0  # when a user cell or a check was last known of
        self._sent: int = -1
        self._received: int = 0
        self._tag: int = 0
        self._waiting: dict[int, tuple[int, Looper]] = {}

    def start(self, now: int) -> None:
        """Start the end's timers, when its VC exists."""
        self._heard = now
        if self.check != "none":
            self._check_due = now + PERIOD_PS
        if self.watches:
            self._look_due = now + LOOK_PS

    def loopback(self, location: bytes, pti: int, looper: Looper, now: int) -> None:
        """Send a loopback cell to this location."""
        self.give_up(now)
        self._tag = (self._tag + 1) & 0xFFFFFFFF
        self._waiting[self._tag] = (now, looper)
        self._send(pti, Loopback(True, self._tag, location, self.location), "loopback_sent")

    def give_up(self, now: int) -> None:
        """Count loopback cells as lost that should have returned by now."""
        for tag, (sent_ps, looper) in list(self._waiting.items()):
            if now - sent_ps <= LOOPBACK_PS:
                break
            del self._waiting[tag]
            looper.lost += 1

    def waits_for(self, looper: Looper) -> bool:
        """Return whether loopback cells of a sender are under way."""
        return any(each is looper for _, each in self._waiting.values())

    def cell(self, pti: int, payload: bytes, now: int) -> None:
        """Handle an OAM cell that arrived."""
        if not crc10_is_right(payload):
            self.counts["bad"] += 1
            return
        try:
            message = unpack(payload)
        except OamError:
            self.counts["other"] += 1
            return
        if isinstance(message, Loopback):
            if message.to_be_looped:
                self._loop(pti, message)
            else:
                self._back(message, now)
        elif pti != END_PTI:
            self.counts["other"] += 1
        elif isinstance(message, Ais):
            self.counts["ais_received"] += 1
            self._ais_ends = now + ABSENT_PS
            self._change("ais", True, now)
        elif isinstance(message, Rdi):
            self.counts["rdi_received"] += 1
            self._rdi_ends = now + ABSENT_PS
            self._change("rdi", True, now)
        elif isinstance(message, ContinuityCheck):
            self.counts["cc_received"] += 1
            self.user(now)
        else:
            self.counts["other"] += 1

    def user(self, now: int) -> None:
        """Handle a user cell, or an OAM cell that proves continuity as well."""
        self._heard = now
        self._change("ais", False, now)
        self._change("loc", False, now)

    def seen(self, received: int, now: int) -> None:
        """Take the number of user cells received up to now.

        It must be called before an AIS cell is handled, as cells before it end no state.
        """
        if received != self._received:
            self._received = received
            self.user(now)

    def next_ps(self) -> int:
        """Return the time at which :meth:`tick` is to be called; 0: not before a cell arrives."""
        found = 0
        for due in (
            self._ais_ends if self.ais else 0,
            self._rdi_ends if self.rdi else 0,
            self._alarm_due,
            self._check_due,
            self._look_due,
        ):
            if due and (not found or due < found):
                found = due
        return found

    def tick(self, now: int, sent: int, received: int) -> None:
        """Serve the timers that are due; ``sent`` and ``received`` are the user cells of the VC up to now."""
        self.seen(received, now)
        if self.ais and now >= self._ais_ends:
            self._change("ais", False, now)
        if self.rdi and now >= self._rdi_ends:
            self._change("rdi", False, now)
        if self._look_due and now >= self._look_due:
            self._look_due = now + LOOK_PS if self.watches or self.ais or self.loc else 0
            if self.watches and now - self._heard >= SILENT_PS:
                self._change("loc", True, now)
        if self._alarm_due and now >= self._alarm_due:
            self._alarm_due = now + PERIOD_PS
            self._send(END_PTI, Rdi(), "rdi_sent")
        if self._check_due and now >= self._check_due:
            self._check_due += PERIOD_PS
            if self.check == "always" or sent == self._sent:
                self._send(END_PTI, ContinuityCheck(), "cc_sent")
            self._sent = sent

    def _change(self, state: str, begins: bool, now: int) -> None:
        """Begin or end a state, if it changes; AIS and loss of continuity begin and end the RDI cells."""
        before = self.ais if state == "ais" else self.rdi if state == "rdi" else self.loc
        if before == begins:
            return
        if state == "ais":
            self.ais = begins
        elif state == "rdi":
            self.rdi = begins
        else:
            self.loc = begins
        self.changes.append((now, state, begins))
        alarmed = self.ais or self.loc
        if alarmed and not self._alarm_due:
            self._alarm_due = now + PERIOD_PS
            self._send(END_PTI, Rdi(), "rdi_sent")
            if not self._look_due:
                self._look_due = now + LOOK_PS
        elif not alarmed:
            self._alarm_due = 0

    def _loop(self, pti: int, message: Loopback) -> None:
        here = message.location in (END_POINT, self.location) or (pti == SEGMENT_PTI and message.location == ALL_POINTS)
        if here:
            self._send(pti, message.looped(), "looped")
        else:
            self.counts["other"] += 1

    def _back(self, message: Loopback, now: int) -> None:
        self.give_up(now)
        found = self._waiting.pop(message.tag, None) if message.source == self.location else None
        if found is None:
            self.counts["other"] += 1
            return
        self.counts["returned"] += 1
        found[1].returned(found[0], now)

    def _send(self, pti: int, message: Any, count: str) -> None:
        self.counts[count] += 1
        self.out.append((pti, pack(message)))


@final
class OamEnd(Timer):
    """An end point at an interface of a network whose interfaces send single cells
    (:class:`bentpipe_sim.interface.CellNetwork`).

    Members
    -------
    receives, sends : int
        The VCs that it has, by their indices; -1: none.
    """

    def __init__(
        self, scheduler: Scheduler, network: Any, nic: int, point: EndPoint, receives: int, sends: int
    ) -> None:
        self.point = point
        self.receives = receives
        self.sends = sends
        self._scheduler = scheduler
        self._network = network
        self._nic = nic
        self._armed: int = 0
        point.start(scheduler.now)
        self._go_on(scheduler.now)

    def cell(self, pti: int, payload: bytes, now: int) -> None:
        """Handle an OAM cell that arrived."""
        if payload[0] == _AIS_OCTET:
            self.point.seen(self._user_cells(self.receives)[1], now)
        self.point.cell(pti, payload, now)
        self._go_on(now)

    def user(self, now: int) -> None:
        """Handle the user cells of a PDU that has ended."""
        self.point.user(now)

    def loopback(self, location: bytes, pti: int, looper: Looper, now: int) -> None:
        """Send a loopback cell."""
        self.point.loopback(location, pti, looper, now)
        self._go_on(now)

    def fire(self, now: int) -> None:
        if now != self._armed:  # there was an earlier one
            return
        self._armed = 0
        self.point.tick(now, self._user_cells(self.sends)[0], self._user_cells(self.receives)[1])
        self._go_on(now)

    def _user_cells(self, vc: int) -> tuple[int, int]:
        return (0, 0) if vc < 0 else self._network.user_cells(self._nic, vc)

    def _go_on(self, now: int) -> None:
        """Send what is to be sent, and see to it that time is told."""
        point = self.point
        if point.out:
            if self.sends >= 0:
                for pti, payload in point.out:
                    self._network.send_cell(self._nic, self.sends, pti, payload)
            point.out.clear()
        due = point.next_ps()
        if due and (not self._armed or due < self._armed):
            self._armed = due if due > now else now + 1
            self._scheduler.at(self._armed, self)
