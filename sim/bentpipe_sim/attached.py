"""Hosts outside: some NICs of a network send and receive what comes from interfaces of the machine, in real time."""

from __future__ import annotations

import enum
import errno
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from .errors import NetworkError, SimulationError
from .network import Network
from .nodes import Nic

__all__ = ["ANY", "TIMES", "Attachment", "Carries", "Distribution", "EndPort", "Late", "Released", "Transport"]

_BINS: Final = 1216

ANY: Final = -1
"""The VLAN of a VC at an end that looks at no tags."""

TIMES: Final = ("late", "computed_late", "jitter", "beyond")
"""Distributions of an end: by how much what came was injected late, by how much what the network delivered was computed
after its time, how long after its time it left, and how much longer than its VC's delay it took from its arrival there
to when it left here."""


class Carries(enum.IntEnum):
    """The kind of data that an attached end carries."""

    FRAMES = 0
    """Ethernet frames without FCS, bridged by RFC 2684 (LLC)."""
    PACKETS = 1
    """IP packets, routed by RFC 2684 (LLC)."""
    CELLS = 2
    """Cells of 53 octets, of whole PDUs."""
    DYNAMIPS = 3
    """The same as dynamips has them: the CRC-32 of its PDUs is Ethernet's, with the bits the other way round."""

    @property
    def cells(self) -> bool:
        return self >= Carries.CELLS


class Transport(enum.IntEnum):
    """The means by which an end's octets are read and written."""

    PACKET_SOCKET = 0
    """AF_PACKET; the kernel stamps what comes."""
    DEVICE = 1
    """A TUN or TAP device: what comes is stamped when it is read."""
    DATAGRAMS = 2
    """A connected UDP socket; the kernel stamps what comes."""


class Late(enum.IntEnum):
    """The action on a late packet."""

    REPORT = 0
    DROP = 1
    ABORT = 2


@dataclass(frozen=True)
class EndPort:
    """The port at which the host of a NIC is attached.

    Members
    -------
    carries : Carries
    transport : Transport
    fd : int
        Non-blocking file descriptor of the device or socket; -1 where nothing is read or written.
    longest : int
        Longest frame, packet or SDU, in octets.
    queue : int
        Most PDUs that wait for the NIC; more are refused.
    """

    carries: Carries
    transport: Transport
    fd: int
    longest: int
    queue: int


@dataclass(frozen=True)
class Distribution:
    """A distribution of times in ns. A bin is 1/32 of its value wide: a quantile is too great by at most that.

    Members
    -------
    count, least, most : int
    mean : float
    bins : dict of int to int
        Number of times up to a bound, above the previous bound.
    """

    count: int
    least: int
    most: int
    mean: float
    bins: Mapping[int, int] = field(repr=False)

    def share(self, share: float) -> int:
        """Return a quantile (ns): the least bound such that this share of all times is not above it; 0 if there are
        none."""
        left = math.ceil(self.count * share)
        for upto, count in self.bins.items():
            left -= count
            if left <= 0:
                return min(upto, self.most)
        return self.most


@dataclass(frozen=True)
class Released:
    """A packet that left at an end with ``ScriptedIo``: the time at which it was due, and the time at which it left
    (ns)."""

    end: int
    due_ns: int
    at_ns: int
    octets: bytes


class Attachment:
    """The hosts of some NICs are outside, and a network's ``run`` takes as long as the time that it lets pass.

    What comes at an end at a time is injected in the first tick that begins then or later. For that simulated time is
    ``computing_ps`` behind the clock: what came before has been read by then. What the network delivers leaves
    ``lag_ps`` after its simulated time, and never before; the delay of the path is to be shorter by as much.

    Parameters
    ----------
    network : Network
        It is started here, if it is not.
    computing_ps, lag_ps : int
        The lag is not less.
    late : Late
        What was read so late that simulated time has gone on is injected in the present tick (``REPORT``) or not at
        all; what was computed so late that it cannot leave in time leaves at once, or not at all.
    """

    def __init__(self, network: Network, computing_ps: int, lag_ps: int, late: Late = Late.REPORT) -> None:
        if not 0 <= computing_ps <= lag_ps:
            raise NetworkError(f"simulated time is {computing_ps} ps behind, packets leave {lag_ps} ps after it")
        network.start()
        network.events_move = True
        self._network, self._loop = network, network.loop
        self._nics: list[Nic] = []
        self._ports: list[EndPort] = []
        self._replays = False
        self._loop.attach(computing_ps // 1000, lag_ps // 1000, int(late))

    def add(self, nic: Nic, port: EndPort) -> int:
        """Attach the host of a NIC, and return its number among the ends."""
        given = (nic.index, int(port.carries), int(port.transport), port.fd, port.longest, port.queue)
        self._nics.append(nic)
        self._ports.append(port)
        return self._loop.attach_end(self._loop.ffi.new("bp_end *", given))

    def join(self, source: int, sink: int, vc: int, delay_ps: int, vlans: tuple[int, int] = (ANY, ANY)) -> None:
        """Join two ends by a VC, given by its index at its NICs.

        A packet takes ``delay_ps`` from one end to the other, or more. ``vlans`` has the VLAN of its frames at the
        source and at the sink: a VID (1 to 4094), 0 for frames without a tag, or :data:`ANY`, the same for all VCs of
        an end, which passes frames as they come.
        """
        sends, receives = self._nics[source].sends[vc], self._nics[sink].receives[vc]
        row = (source, sink, vc, sends.vpi, receives.vpi, sends.vci, delay_ps // 1000, *vlans)
        self._loop.attach_vc(self._loop.ffi.new("bp_attached_vc *", row))

    def record(self, path: Path) -> None:
        """Record the packets injected from now on into this file, with their ticks."""
        if self._loop.attach_record(os.fsencode(path)):
            raise SimulationError(f"{path}: {self._error()}")

    def replay(self, path: Path) -> None:
        """Replay a record: inject its packets in their ticks, without a clock and without attached hosts."""
        self._replays = True
        if self._loop.attach_replay(os.fsencode(path)):
            raise SimulationError(f"{path}: {self._error()}")

    def begin(self, at_ns: int = 0) -> tuple[int, int]:
        """Start the clock; return the ids of the threads that read and release.

        ``at_ns`` is the time of day of simulated time 0, in ns since 1970; 0: now. Packets that arrive before that time
        are dropped and counted as ``early``. The network must not run before :attr:`clock_ns` is 0.
        """
        threads = self._loop.ffi.new("int32_t[2]")
        if self._loop.attach_begin(at_ns, threads):
            raise SimulationError(self._error())
        return threads[0], threads[1]

    @property
    def clock_ns(self) -> int:
        """The time since simulated time 0 by the clock (ns), negative before; until then it follows the time of day."""
        return self._loop.attach_now()

    @property
    def record_error(self) -> str:
        """Why the record has no more packets since some time; "": it has all so far."""
        error = self._loop.attach_failed()
        return os.strerror(error) if error else ""

    def close(self) -> None:
        """Stop the threads, after which nothing arrives or leaves, and complete the record."""
        error = self._loop.attach_close()
        if error == errno.EIO and self._replays:
            raise SimulationError("the record of arrivals is cut off, or damaged: it ends in a packet")
        if error:
            raise SimulationError(f"the record of arrivals: {os.strerror(error)}")

    def _error(self) -> str:
        return self._loop.ffi.string(self._loop.error()).decode()

    # For tests

    def by_hand(self) -> None:
        """Use ``ScriptedIo``: a clock that advances when it is waited for, from 0, and packets given by calls."""
        self._loop.attach_by_hand()

    def stall(self, at_ns: int, length_ns: int) -> None:
        """Stop the event loop for ``length_ns``, once, at its first wait at ``at_ns`` or later."""
        self._loop.attach_stall(at_ns, length_ns)

    def arrive(self, end: int, at_ns: int, octets: bytes, read_ns: int = 0) -> None:
        """Let a packet arrive at an end at a time; it is read later where that is given."""
        self._loop.attach_arrive(end, at_ns, max(at_ns, read_ns), octets, len(octets))

    def released(self) -> list[Released]:
        """Return all packets that have left, in order."""
        given, found = self._loop.ffi.new("bp_release *"), []
        while self._loop.attach_released(len(found), given):
            octets = bytes(self._loop.ffi.buffer(given.octets, given.length))
            found.append(Released(given.end, given.due, given.at, octets))
        return found

    # What was counted

    def counts(self, end: int) -> dict[str, int | list[int]]:
        """Return the counters of one end, with the names of ``bp_end_counts`` in ``csrc/attach.h``."""
        made = self._loop.ffi.new("bp_end_counts *")
        self._loop.attach_counts(end, made)
        found: dict[str, int | list[int]] = {}
        for name, _ in self._loop.ffi.typeof(made[0]).fields:
            value = getattr(made, name)
            found[name] = [*value] if name == "wrong" else int(value)
        return found

    def times(self, what: str, end: int) -> Distribution:
        """Return one of an end's distributions, named in :data:`TIMES`."""
        made: Any = self._loop.ffi.new("bp_histogram *")
        self._loop.attach_histogram(TIMES.index(what), end, made)
        bins = {_upto(k): count for k, count in enumerate(made.bins) if count}
        return Distribution(made.count, made.least, made.most, made.sum / made.count if made.count else 0.0, bins)

    def refused(self, end: int) -> Callable[[int], int]:
        """Return a function that returns, for a VC, the PDUs refused because the queue of its NIC was full."""
        return lambda vc: self._loop.attach_refused(end, vc)

    def congested(self, end: int) -> Callable[[int], int]:
        """Return a function that returns, for a VC, the PDUs whose last cell arrived with EFCI."""
        return lambda vc: self._loop.attach_congested(end, vc)

    def behind_ns(self, *, most: bool = False) -> int:
        """Return how far simulated time was from its target when it was last looked at (ns), or at most."""
        return self._loop.attach_behind(most)

    @property
    def over(self) -> str:
        """Why it cannot go on: ``late`` (a packet was, which ends it), ``gone`` (an interface is); or ``""``."""
        return ("", "late", "gone")[self._loop.attach_over()]


def _upto(number: int) -> int:
    """Return the greatest time (ns) of a bin."""
    if number < 32:
        return number
    octave, part = divmod(number, 32)
    return (32 + part + 1 << octave - 1) - 1
