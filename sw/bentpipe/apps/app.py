"""What an application is to the host engine."""

from __future__ import annotations

from bentpipe.tcp.connection import Connection

__all__ = ["Application"]


class Application:
    """Drives the sending side of one connection. One instance may serve several flows: it keeps no state of its own."""

    def connected(self, connection: Connection, now_ps: int) -> int:
        """The connection is established. When to call :meth:`wake` (ps); 0 for never."""
        raise NotImplementedError

    def wake(self, connection: Connection, now_ps: int) -> int:
        """The time that was asked for has come. When to call again (ps); 0 for never."""
        return 0
