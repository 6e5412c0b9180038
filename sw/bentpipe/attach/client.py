"""A client of a session's control socket: one method for each of the session's, blocking."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bentpipe.attach.control import SOCKET, reachable
from bentpipe.errors import BentpipeError

__all__ = ["SessionClient", "ask"]

_WAIT_S: Final = 10.0


class SessionClient:
    """A connection to a session.

    Parameters
    ----------
    folder : Path
        The session's run folder.

    Raises
    ------
    BentpipeError
        No session goes on there.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._number = 0
        self._news: list[dict[str, Any]] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_WAIT_S)
        try:
            with reachable(self.folder / ".running" / SOCKET) as name:
                self._socket.connect(name)
        except (BentpipeError, OSError):
            self._socket.close()
            raise BentpipeError(f"{folder}: no session with attached hosts is running in this folder") from None
        self._file = self._socket.makefile("rb")

    def call(self, method: str, **params: Any) -> Any:
        """Return the result of a method.

        Raises
        ------
        BentpipeError
            The session refuses it, or has ended.
        """
        self._number += 1
        request = {"jsonrpc": "2.0", "version": 1, "id": self._number, "method": method, "params": params}
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            while True:
                answer = self._read()
                if "method" in answer:
                    self._news.append(answer)
                elif answer.get("id") == self._number:
                    break
        except OSError as error:
            raise BentpipeError(f"{self.folder}: the session has ended ({error})") from None
        if "error" in answer:
            raise BentpipeError(answer["error"]["message"])
        return answer["result"]

    def _read(self) -> dict[str, Any]:
        line = self._file.readline()
        if not line:
            raise ConnectionResetError("no answer")
        return json.loads(line)

    def close(self) -> None:
        """End the connection; the session goes on."""
        self._file.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, *keys: str) -> Any:
        """Return the present value of a key; of several, or of all (none named), a mapping."""
        found = self.call("get", **({"keys": [*keys]} if keys else {}))
        return found[keys[0]] if len(keys) == 1 else found

    def set(self, values: Mapping[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
        """Write values by key, ``set({"satellite.ber": 1e-6})``; return when, and what changed."""
        return self.call("set", values={**(values or {}), **settings})

    def reset(self) -> dict[str, Any]:
        """Reset all settings to the file's state; return the change."""
        return self.call("reset")

    def keys(self) -> list[dict[str, Any]]:
        """Return the keys that can be set, with kinds, ranges and values."""
        return self.call("keys")

    def counters(self) -> dict[str, Any]:
        """Return the counters of every node."""
        return self.call("counters")

    def losses(self) -> list[dict[str, Any]]:
        """Return the loss ledger, a row for each VC."""
        return self.call("losses")

    def queue(self) -> dict[str, int]:
        """Return the cells queued, by switch."""
        return self.call("queue")

    def lateness(self) -> dict[str, Any]:
        """Return how far the simulation is behind, and the packets that were late."""
        return self.call("lateness")

    def now(self) -> dict[str, Any]:
        """Return the present traffic at the ends."""
        return self.call("now")

    def events(self, since: int = 0) -> list[dict[str, Any]]:
        """Return the changes so far, from a number on."""
        return self.call("events", since=since)["events"]

    def session(self) -> dict[str, Any]:
        """Return the session's description."""
        return self.call("session")

    def stop(self) -> None:
        """End the session."""
        self.call("stop")

    def subscribe(self, *what: str, every_s: float = 1.0) -> Iterator[dict[str, Any]]:
        """Yield notifications of ``now`` (each ``every_s`` seconds) and ``events``, until the session ends."""
        self.call("subscribe", what=[*what] or ["now", "events"], every_s=every_s)
        while True:
            try:
                yield self._news.pop(0) if self._news else self._read()
            except ConnectionResetError:
                return


def ask(folder: Path, settings: Sequence[str]) -> dict[str, Any]:
    """Change these settings (``KEY=VALUE``) of the session in a run folder; return what changed.

    Raises
    ------
    BentpipeError
        It does not go on, or does not take them.
    """
    with SessionClient(folder) as client:
        return client.call("set", settings=[*settings])
