"""The PDUs of a network that runs, out and in: a record each, as ``csrc/network.h`` has them."""

from __future__ import annotations

from typing import Any, Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import mypyc_attr

from bentpipe_hdl.ticks import RATIO

from .errors import SimulationError
from .interface import PduEvent

__all__ = ["Pdus"]

_PS: Final[int] = RATIO[0]
_TICKS: Final[int] = RATIO[1]
"""So many picoseconds are so many ticks. What is converted is divided first: compiled code multiplies what has 31 bits
in place."""
_LAST: Final = (1 << 48) - 1
"""The event loop's ticks do not wrap; a node takes the last one for never."""

_EVENT: Final = 168
"""Octets of a ``bp_event``. Eight by eight they are: tick | NIC, VC | status, congested, length | handle, octets of the
head | these, 128 | sum."""
_HEAD: Final = 32
_SUM: Final = 160
_MASK16: Final = 0xFFFF
_MASK32: Final = 0xFFFFFFFF


@mypyc_attr(allow_interpreted_subclasses=True)
class Pdus:
    """The work of a :class:`~.interface.PduNetwork` per PDU and per turn of its hosts, by the event loop's functions.

    It is compiled with the hosts (``bentpipe.compiled``).

    Parameters
    ----------
    loop : Loop
    defects : Defects
        Advances time while it waits for a tick.

    Members
    -------
    begun : bool
        Simulated time has begun.
    threads : int
        Threads that the network and its hosts may use.
    events_move : bool
        The event loop may have events between two times that it returns some: those of hosts that are attached. Then
        the place of the events may have changed.
    ran_ahead : bool
        The network has run in a thread of its own beside the hosts.
    """

    def __init__(self, loop: Any, defects: Any) -> None:
        self.begun: bool = False
        self.threads: int = 1
        self.ran_ahead: bool = False
        self._now_ps: int = 0
        self._defects: Any = defects
        self._due: list[Any] = defects.due
        self._reporting: set[int] = set()
        self._loop: Any = loop
        self._functions(None, None, None)

    def _functions(self, network: Any, library: Any, calls: Any) -> None:
        """Keep direct references to functions that are called for each PDU; those of ``loop`` are looked up by name.

        ``calls`` are the same functions without cffi's detour, if they could be compiled.
        """
        self._fast_run: Any = calls.run if calls else None
        self._fast_send: Any = calls.send if calls else None
        self._fast_check: Any = calls.check if calls else None
        self._address: Any = self._loop.address if calls else 0
        self._event: Any = PduEvent
        self._network: Any = network
        self._send: Any = library.bp_send if library else _closed
        self._run: Any = library.bp_run if library else _closed
        self._run_ahead: Any = library.bp_run_ahead if library else _closed
        self._send_at: Any = library.bp_send_at if library else _closed
        self._later: int = -1
        self._check: Any = library.bp_check if library else _closed
        self._checksum: Any = library.bp_checksum if library else _closed
        self._block: Any = b""  # where the event loop has its events
        self.events_move: bool = False

    def opened(self) -> None:
        """Take the functions of the event loop that was opened."""
        self._functions(self._loop.network, self._loop.library, self._loop.calls)

    def closed(self) -> None:
        """Drop the functions of the event loop, which is closed."""
        self._functions(None, None, None)

    @property
    def now_ps(self) -> int:
        return self._now_ps

    def start(self) -> None:
        """Open the event loop, unless it is open."""
        raise NotImplementedError

    def members(self) -> dict[str, Any]:
        """Return the members while the event loop is not open: a compiled object has no ``__dict__``."""
        return {
            "begun": False,
            "threads": 1,
            "ran_ahead": False,
            "_now_ps": self._now_ps,
            "_loop": self._loop,
            "_defects": self._defects,
            "_due": self._due,
            "_reporting": self._reporting,
            "_network": None,
            "_address": 0,
            "_event": PduEvent,
            **dict.fromkeys(("_fast_run", "_fast_send", "_fast_check")),
            **dict.fromkeys(("_send", "_send_at", "_run", "_run_ahead", "_check", "_checksum"), _closed),
            "_later": -1,
            "_block": b"",
            "events_move": False,
        }

    def report_sent(self, nic: int) -> None:
        """Let ``run`` return an event ``SENT`` for every PDU of this NIC whose last cell leaves, from now on."""
        self._reporting.add(nic)

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
        if not self.begun:
            self.start()
        octets = len(head)
        if not 1 <= octets + length <= 65535:
            raise SimulationError(f"an SDU has 1 to 65535 octets, not {octets + length}")
        if not (0 <= key <= _MASK32 and 0 <= uu <= 255 and length >= 0 and 0 <= offset < 1 << 63):
            raise SimulationError(
                f"SDU pattern: key {key} must be 0 to {_MASK32}, UU {uu} 0 to 255; offset {offset} and length {length} "
                "must not be negative"
            )
        if checksum_at >= 0 and not 0 <= checksum_start <= checksum_at <= octets - 2:
            raise SimulationError(
                f"SDU checksum: start {checksum_start} and place {checksum_at} must be in its head of {octets} "
                "octets, the "
                "place at the start or behind it"
            )
        reported = 1 if nic in self._reporting else 0
        writer = BytesWriter()
        write_i64_le(writer, vc << 32 | nic)
        write_i64_le(writer, length << 32 | key)
        write_i64_le(writer, offset)
        write_i64_le(writer, checksum_at << 32 | (checksum_start & _MASK32))
        write_i64_le(writer, reported << 48 | uu << 32 | octets)
        writer.write(head)
        if self._later >= 0:
            self._send_at(self._network, self._later, writer.getvalue())
        elif self._fast_send is not None:
            self._fast_send(self._address, writer.getvalue())
        else:
            self._send(self._network, writer.getvalue())

    def delay(self, until_ps: int) -> None:
        whole = until_ps // _PS
        self._later = -1 if until_ps < 0 else whole * _TICKS + (until_ps - whole * _PS) * _TICKS // _PS

    def run(self, until_ps: int) -> list[PduEvent]:
        if not self.begun:
            self.start()
            self.begun = True
            self._defects.began = True
        whole = until_ps // _PS
        until = whole * _TICKS + (until_ps - whole * _PS) * _TICKS // _PS
        if until >= _LAST:
            raise SimulationError(f"simulated time ends after 1.5 years: {until_ps} ps are more")
        if self._fast_run is not None and not self._due:
            events: list[PduEvent] = self._fast_run(self._address, until, self._event)
            if events:
                self._now_ps = events[-1].time_ps
            elif until_ps > self._now_ps:
                self._now_ps = until_ps
            return events
        count: int = self._defects.run(until) if self._due else self._run(self._network, until)
        return self._reported(count, until_ps)

    def may_run_ahead(self) -> bool:
        return self.threads > 1

    def begin_ahead(self) -> bool:
        if self.threads < 2 or not self.begun or self._due or not self._loop.may_run_ahead():
            return False
        self.ran_ahead = True
        self._block = b""
        self._loop.begin_ahead()
        return True

    def run_ahead(self, until_ps: int, limit_ps: int, reaction_ps: int) -> list[PduEvent]:
        whole = until_ps // _PS
        until = whole * _TICKS + (until_ps - whole * _PS) * _TICKS // _PS
        whole = limit_ps // _PS
        limit = whole * _TICKS + (limit_ps - whole * _PS) * _TICKS // _PS
        if limit >= _LAST:
            raise SimulationError(f"simulated time ends after 1.5 years: {limit_ps} ps are more")
        count: int = self._run_ahead(self._network, until, limit, reaction_ps * _TICKS // _PS)
        return self._reported(count, until_ps)

    def end_ahead(self, is_whole: bool) -> None:
        self._loop.end_ahead(1 if is_whole else 0)
        self._block = b""

    def _reported(self, count: int, until_ps: int) -> list[PduEvent]:
        """Return the events of a run to this time, and let that time be over."""
        events: list[PduEvent] = []
        if not count:
            if until_ps > self._now_ps:
                self._now_ps = until_ps
            return events
        size = count * _EVENT
        if size > len(self._block) or self.events_move:
            self._block = self._loop.ffi.buffer(self._loop.events(), size)
        for at in range(0, size, _EVENT):
            octets: bytes = self._block[at : at + _EVENT]
            where = read_i64_le(octets, 8)
            what = read_i64_le(octets, 16)
            which = read_i64_le(octets, 24)
            tick = int(read_i64_le(octets, 0))
            whole = tick // _TICKS
            time = whole * _PS + ((tick - whole * _TICKS) * _PS + _TICKS - 1) // _TICKS
            self._now_ps = time
            events.append(
                PduEvent(
                    time,
                    int(where & _MASK32),
                    int(where >> 32),
                    int(what & _MASK16),
                    int(what >> 32 & _MASK32),
                    octets[_HEAD : _HEAD + int(which >> 32)],
                    int(which & _MASK32),
                    what >> 16 & _MASK16 != 0,
                    int(read_i64_le(octets, _SUM) & _MASK32),
                )
            )
        return events

    def check(self, handle: int, start: int, key: int, offset: int, length: int) -> bool:
        if self._fast_check is not None:
            is_equal: bool = self._fast_check(self._address, handle, start, key, offset, length)
            return is_equal
        found: int = self._check(self._network, handle, start, key, offset, length)
        return found != 0

    def checksum(self, handle: int, start: int, length: int) -> int:
        found: int = self._checksum(self._network, handle, start, length)
        return found


def _closed(*arguments: Any) -> int:
    raise SimulationError("the network is closed, or not open yet")
