"""The control socket of a session: a Unix socket on which programs speak JSON-RPC with it, a line a message.

The socket is ``.running/control`` in the run folder, with mode 0600. A socket's address has 107 octets at most, so
there is a short link to it besides, in the runtime directory: :func:`short_link`. Each client has a thread. A client
that goes away, or does not read, leaves the session as it is.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from bentpipe.attach.rpc import MOST_OCTETS, Service, message
from bentpipe.errors import BentpipeError

__all__ = ["SOCKET", "Control", "reachable", "short_link"]

SOCKET: Final = "control"
"""In the folder of what is not whole yet."""

_SEND_S: Final = 1.0
"""A client that takes nothing for so long is let go."""
_LEAST_S: Final = 0.05
"""Between two notifications of what passes."""
_SUBSCRIBED: Final = ("now", "events")


class _Client:
    """A connection: lines come in by a thread of its own, answers and notifications go out one at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()
        self.subscribed: dict[str, float] = {}
        self.due_s: float = 0.0

    def lines(self) -> Iterator[bytes]:
        with self._socket.makefile("rb") as file:
            while line := file.readline(MOST_OCTETS + 1):
                if len(line) > MOST_OCTETS:
                    self.send(message({"id": None, "error": {"code": -32600, "message": "the line is too long"}}))
                    return
                if line.strip():
                    yield line

    def send(self, text: str) -> bool:
        """Send a message; return False if the client is gone, or does not read."""
        try:
            with self._lock:
                view = memoryview(text.encode())
                while view:
                    view = view[self._socket.send(view) :]
        except OSError:
            self.close()
            return False
        return True

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


class Control:
    """The server of a session's control socket.

    Parameters
    ----------
    path : Path
        Of the socket.
    service : Service
    enter : Callable, optional
        Called by each thread before a request or a notification.
    """

    def __init__(self, path: Path, service: Service, enter: Callable[[], None] | None = None) -> None:
        self._path, self._service, self._enter = path, service, enter or _nothing
        self._clients: set[_Client] = set()
        self._news: queue.SimpleQueue[tuple[str, dict[str, Any]] | None] = queue.SimpleQueue()
        self._socket = socket.socket(socket.AF_UNIX)
        os.fchmod(self._socket.fileno(), 0o600)  # the file that bind makes has it from its beginning
        with reachable(path) as name:
            self._socket.bind(name)
        path.chmod(0o600)
        self.link = _linked(path)
        self._socket.listen()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._send_notifications, daemon=True).start()

    def close(self) -> None:
        """Close the control socket, after which nobody can make requests."""
        self._service.close()
        self._news.put(None)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for client in list(self._clients):
            client.close()
        self._path.unlink(missing_ok=True)
        if self.link is not None:
            self.link.unlink(missing_ok=True)

    def wanted(self, what: str, now_s: float) -> bool:
        """Return whether a client has subscribed to this kind of notification, and one is due."""
        return any(what in each.subscribed and now_s >= each.due_s for each in tuple(self._clients))

    def notify(self, what: str, content: dict[str, Any]) -> None:
        """Notify whoever has subscribed to this; another thread sends."""
        self._news.put((what, content))

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(_SEND_S))
            threading.Thread(target=self._serve, args=(_Client(connection), connection), daemon=True).start()

    def _serve(self, client: _Client, connection: socket.socket) -> None:
        self._clients.add(client)
        try:
            with connection, suppress(OSError):
                for line in client.lines():
                    self._enter()
                    answer = self._subscription(client, line) or self._service.answer(line)
                    if answer and not client.send(answer):
                        return
        finally:
            self._clients.discard(client)

    def _subscription(self, client: _Client, line: bytes) -> str:
        """Return the answer to ``subscribe`` and ``unsubscribe``; "" to others."""
        try:
            given = json.loads(line)
        except ValueError:
            return ""
        if not isinstance(given, dict) or given.get("method") not in ("subscribe", "unsubscribe"):
            return ""
        params: Any = given.get("params") or {}
        params = params if isinstance(params, dict) else {"what": None}
        what: Any = params.get("what", [*_SUBSCRIBED])
        every_s: Any = params.get("every_s", 1.0)
        number = {"id": given.get("id")}
        known = isinstance(what, list) and all(each in _SUBSCRIBED for each in what)
        if not known or not isinstance(every_s, (int, float)) or not _LEAST_S <= every_s <= 3600:
            problem = f"what: some of {', '.join(_SUBSCRIBED)}; every_s: {_LEAST_S} to 3600"
            return message({**number, "error": {"code": -32602, "message": problem}})
        if given["method"] == "subscribe":
            client.subscribed |= dict.fromkeys(what, float(every_s))
        else:
            client.subscribed = {key: value for key, value in client.subscribed.items() if key not in what}
        return message({**number, "result": sorted(client.subscribed)})

    def _send_notifications(self) -> None:
        while (news := self._news.get()) is not None:
            self._enter()
            what, content = news
            text = message({"method": what, "params": content})
            now_s = content.get("time_s", 0.0)
            for client in tuple(self._clients):
                every_s = client.subscribed.get(what)
                if every_s is None or (what == "now" and now_s < client.due_s):
                    continue
                if what == "now":
                    client.due_s = now_s + every_s
                client.send(text)


def _nothing() -> None:
    pass


def _timeval(seconds: float) -> bytes:
    import struct

    return struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))


def short_link(pid: int) -> Path:
    """Return the path of the short link to the socket of the session in a process.

    It is in ``XDG_RUNTIME_DIR``, or else in a folder of the user's own among the temporary files.
    """
    own = os.environ.get("XDG_RUNTIME_DIR")
    above = Path(own) / "bentpipe" if own else Path(tempfile.gettempdir()) / f"bentpipe-{os.geteuid()}"
    return above / f"{pid}.control"


def _linked(path: Path) -> Path | None:
    """Make the short link; None: there is no place for it that is the user's own."""
    link = short_link(os.getpid())
    try:
        link.parent.mkdir(mode=0o700, exist_ok=True)
        there = link.parent.lstat()
        if there.st_uid != os.geteuid() or there.st_mode & 0o077 or link.parent.is_symlink():
            return None
        link.unlink(missing_ok=True)
        link.symlink_to(path.absolute())
    except OSError:
        return None
    return link


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """Yield a name of a socket's file that the kernel takes, however long its path is."""
    try:
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    except OSError:
        raise BentpipeError(f"{path.parent}: no such folder") from None
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
