"""The interface between applications and hosts."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

__all__ = ["Alarm", "Application", "Fact", "FlowEndpoints", "Program", "Site", "Socket", "SocketPair"]

Fact = int | float | str
"""A figure that an application reports."""


class Socket:
    """One end of a connection, or one of two ports that exchange datagrams, as its program sees it. Calls of a program
    that has to wait return at once: the program is told when the wait is over."""

    def write(self, octets: int, now_ps: int) -> bool:
        """Write ``octets``. False: the socket could not take all of it at once; :meth:`Program.written` is called
        when it has, and until then the program does not write."""
        raise NotImplementedError

    def pour(self, octets: int, unit: int, now_ps: int) -> None:
        """Write ``octets`` in writes of ``unit``, each as soon as the one before is through. The program is not
        told when."""
        raise NotImplementedError

    def cancel(self, now_ps: int) -> None:
        """Write no more than the write that waits; what is poured ends with the present unit."""
        raise NotImplementedError

    def close(self, now_ps: int) -> None:
        """Write no more once what waits is written, and read no more."""
        raise NotImplementedError

    def read(self, octets: int, now_ps: int) -> int:
        """Read at most ``octets``; how many there were."""
        raise NotImplementedError

    def unread(self) -> int:
        """Return the number of octets that :meth:`read` would give."""
        raise NotImplementedError

    def ended(self) -> bool:
        """Return whether the other end has closed: no data will follow the unread data."""
        raise NotImplementedError

    def dead(self) -> bool:
        """Return whether nothing can be written or read any more."""
        raise NotImplementedError

    def flush(self, now_ps: int) -> None:
        """Send what the program's calls have produced; the program has made all its calls."""
        raise NotImplementedError

    def echo(self, now_ps: int) -> None:
        """Send the datagram back that :meth:`Program.received` tells of, as it came."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Program:
    """A program that drives one socket.

    Each method that is told the time returns when to call :meth:`wake` (ps), or 0 to leave that as it is; there is one
    such time.

    Members
    -------
    reads : bool
        It reads for itself, and is told of what arrives. Otherwise what arrives is read at once, and the end is
        closed when the other end closes.
    """

    def __init__(self, reads: bool = False) -> None:
        self.reads: bool = reads

    def connected(self, socket: Socket, now_ps: int) -> int:
        """Handle the establishment of the connection; return the time to be woken at, or 0."""
        return 0

    def wake(self, socket: Socket, now_ps: int) -> int:
        """Handle the time that was asked for; return the next such time, or 0."""
        return 0

    def again(self, now_ps: int) -> int:
        """Draw again what is drawn already for later times, given all that has happened; return the time to be woken
        at, or 0.

        Without this method it stays as it is.
        """
        return 0

    def written(self, socket: Socket, now_ps: int) -> int:
        """Handle the completion of a write that had to wait; return the time to be woken at, or 0."""
        return 0

    def arrived(self, socket: Socket, now_ps: int) -> int:
        """Handle new data, or the other end's close; return the time to be woken at, or 0."""
        return 0

    def received(self, socket: Socket, octets: int, sent_ps: int, now_ps: int) -> int:
        """Handle the first arrival of a datagram of ``octets``; return the time to be woken at, or 0.

        The program that first sent it wrote it at ``sent_ps``.
        """
        return 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Alarm:
    """Something that rings at a time, whatever becomes of sockets."""

    def ring(self, now_ps: int) -> None:
        raise NotImplementedError


class Site:
    """One of the two hosts of a flow."""

    def ports(self, count: int) -> int:
        """Return the first of ``count`` consecutive ports that are unused and will not be given again."""
        raise NotImplementedError


class SocketPair:
    """Two sockets, one at each host of a flow, that are joined once one of them connects.

    Members
    -------
    error : str
        Why the connection broke; empty if it did not.
    """

    error: str = ""

    def open(self, now_ps: int) -> None:
        """Connect."""
        raise NotImplementedError

    def lost(self) -> int:
        """Return the number of datagrams, both ways, that were sent and will never be received; 0 over TCP."""
        return 0


class FlowEndpoints:
    """The hosts of a flow, as its application sees them.

    Members
    -------
    source, sink : Site
        Data go from the one to the other.
    """

    def __init__(self, source: Site, sink: Site) -> None:
        self.source = source
        self.sink = sink

    def pair(
        self,
        near: Site,
        program: Program | None,
        far: Site,
        far_program: Program | None,
        opener: Site | None = None,
        ports: tuple[int, int] | None = None,
        name: str = "",
    ) -> SocketPair:
        """Make two sockets. A socket without a program reads all data, and closes when the other end does.

        Parameters
        ----------
        near, far : Site
        program, far_program : Program or None
        opener : Site or None
            The one that connects; ``near`` if None. The other one listens from now on.
        ports : tuple of int or None
            Ports at ``near`` and at ``far``; None or 0: any.
        name : str
            Name of a connection whose octets and segments are not in the flow's report: it carries a dialogue about
            them. Its series are recorded as ``FLOW.NAME``. Series of the first connection without a name are recorded
            if it is made before the flow begins.
        """
        raise NotImplementedError

    def sample(self, series: str, now_ps: int, value: int) -> None:
        """Record a value of the flow's series of this name."""
        raise NotImplementedError

    def at(self, time_ps: int, alarm: Alarm) -> None:
        """Wake an alarm at this time."""
        raise NotImplementedError

    def look(self, now_ps: int) -> None:
        """Check whether the flow has ended, as the application may be done before a connection ends."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Application(Program):
    """The program that runs between the two hosts of a flow; every flow needs an instance of its own.

    If the source writes to a sink that only reads, the application is the program of the source's socket: it overrides
    only what :class:`Program` calls. Others create their sockets in :meth:`listen` and :meth:`connect`.

    Members
    -------
    kind : str
        Name of the application in experiments and results.
    endpoints : FlowEndpoints
        Set before :meth:`listen` is called.
    """

    endpoints: FlowEndpoints

    def __init__(self, kind: str = "", reads: bool = False) -> None:
        super().__init__(reads)
        self.kind: str = kind
        self.first: SocketPair | None = None

    def listen(self) -> None:
        """Make the sockets that exist before the flow begins, above all those that listen."""
        endpoints = self.endpoints
        self.first = endpoints.pair(endpoints.source, self, endpoints.sink, None)

    def connect(self, now_ps: int) -> None:
        """Open a connection, as the flow begins."""
        if self.first is not None:
            self.first.open(now_ps)

    def ended(self, pair: SocketPair, now_ps: int) -> None:
        """Handle the end of a connection: both ends are closed, or it broke."""

    def done(self) -> bool:
        """Return whether no further connection will be opened: the flow ends when all opened connections have ended."""
        return True

    def facts(self, now_ps: int) -> dict[str, Fact]:
        """Return the application's report up to now."""
        return {}
