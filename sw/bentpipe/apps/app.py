"""What an application is to the host engine, and what it has of its transport."""

from __future__ import annotations

__all__ = ["Application", "Fact", "Socket"]

Fact = int | float | str
"""A figure that an application reports."""


class Socket:
    """One end of a connection, as its application sees it. Calls of an application that has to wait return at once:
    the application is told when the wait is over."""

    def write(self, octets: int, now_ps: int) -> bool:
        """Write ``octets``. False: the socket couldn't take all of it at once; :meth:`Application.written` is called
        when it has, and until then the application doesn't write."""
        raise NotImplementedError

    def pour(self, octets: int, unit: int, now_ps: int) -> None:
        """Write ``octets`` in writes of ``unit``, each as soon as the one before is through. The application isn't
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
        """Octets that :meth:`read` would give."""
        raise NotImplementedError

    def ended(self) -> bool:
        """The other end has closed: what is unread is all there is."""
        raise NotImplementedError

    def dead(self) -> bool:
        """Nothing can be written or read any more."""
        raise NotImplementedError

    def flush(self, now_ps: int) -> None:
        """The application has done its calls: send what came of them."""
        raise NotImplementedError


class Application:
    """Drives one end of one flow; every flow needs an instance of its own.

    Each method returns when to call :meth:`wake` (ps), or 0 to leave that as it is; there is one such time.

    Members
    -------
    kind : str
        Name of the application in experiments and results.
    reads : bool
        It reads for itself, and is told of what arrives. Otherwise what arrives is read at once, and the end is
        closed when the other end closes.
    """

    def __init__(self, kind: str, reads: bool = False) -> None:
        self.kind: str = kind
        self.reads: bool = reads

    def connected(self, socket: Socket, now_ps: int) -> int:
        """The connection is established."""
        return 0

    def wake(self, socket: Socket, now_ps: int) -> int:
        """The time that was asked for has come."""
        return 0

    def written(self, socket: Socket, now_ps: int) -> int:
        """The write that had to wait is complete."""
        return 0

    def arrived(self, socket: Socket, now_ps: int) -> int:
        """There is something to read, or the other end has closed."""
        return 0

    def facts(self, now_ps: int) -> dict[str, Fact]:
        """What the application has to report, up to now."""
        return {}
