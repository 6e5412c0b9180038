"""ttcp: full blast from memory to memory."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Application, Socket
from bentpipe.apps.settings import OCTETS, ApplicationSpec, AppSetting, FlowRequest, Problem, Test
from bentpipe.ip.udp import UDP_OVERHEAD, datagram_octets
from bentpipe.tcp.connection import ENDLESS

__all__ = ["APPLICATION", "UDP_WRITE", "Ttcp"]

UDP_WRITE: Final = 8192
"""Default write over UDP (ttcp's own buffer)."""


@final
class Ttcp(Application):
    """``ttcp -t``: writes as fast as the socket takes it, so that the send buffer is always full; then closes.

    The sink is ``ttcp -r``: it reads what arrives at once, and closes when the stream ends.

    Parameters
    ----------
    size_octets : int or None
        How much to send; None: endless.
    write_octets : int
        Size of a write. Over TCP it does not show on the wire, as each write waits for room and the next follows
        at once; over UDP it is the size of a datagram. ``size_octets`` is what it says, not rounded to whole writes.
    duration_ps : int
        When to stop, counted from the connection; 0: never.
    """

    def __init__(self, size_octets: int | None = None, write_octets: int = 65536, duration_ps: int = 0) -> None:
        super().__init__("ttcp")
        if size_octets is not None and not 1 <= size_octets < ENDLESS:
            raise ValueError(f"size_octets must be 1..2**60 - 1 or None, not {size_octets!r}")
        if write_octets < 1:
            raise ValueError(f"write_octets must be at least 1, not {write_octets!r}")
        if duration_ps < 0:
            raise ValueError(f"duration_ps must not be negative, not {duration_ps!r}")
        self.size_octets = size_octets
        self.write_octets = write_octets
        self.duration_ps = duration_ps

    def connected(self, socket: Socket, now_ps: int) -> int:
        size = self.size_octets
        if size is None:
            socket.pour(ENDLESS, self.write_octets, now_ps)
        else:
            socket.pour(size, self.write_octets, now_ps)
            socket.close(now_ps)
        return now_ps + self.duration_ps if self.duration_ps else 0

    def wake(self, socket: Socket, now_ps: int) -> int:
        socket.cancel(now_ps)
        socket.close(now_ps)
        return 0

    def __repr__(self) -> str:
        return f"Ttcp(size_octets={self.size_octets}, write_octets={self.write_octets})"


def _check(given: FlowRequest) -> Problem:
    if given.protocol == "udp":
        try:
            datagram_octets(given.values["write"] or min(UDP_WRITE, given.mtu - UDP_OVERHEAD), given.mtu)
        except ValueError as error:
            return "write", str(error)
        if not given.interface_queue:
            return (
                "app",
                "full blast over UDP is limited by the interface queue only: set the host's interface_queue",
            )
    return None


def _make(given: FlowRequest) -> Ttcp:
    write = given.values["write"] or (UDP_WRITE if given.protocol == "udp" else 65536)
    return Ttcp(given.size, write, given.duration_ps)


APPLICATION: Final = ApplicationSpec(
    "ttcp",
    "full blast: writes as fast as the socket takes it",
    (
        AppSetting(
            "write",
            OCTETS,
            None,
            "octets a write: 65536 over TCP, 8192 (a datagram) over UDP",
            word="blocksize",
            also=("messagesize",),
        ),
    ),
    _make,
    _check,
    tests=(Test("full", "as fast as the socket takes it"),),
)
