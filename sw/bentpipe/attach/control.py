"""Changing a session while it goes on: ``bentpipe set`` asks, by a socket in the run folder."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import BentpipeError, one_line
from bentpipe.experiment.document.assign import SHORTHANDS, value_of
from bentpipe.experiment.document.tables import Document
from bentpipe_hdl.settings import key_of
from bentpipe_hdl.words import nearest
from bentpipe_sim.errors import SimulationError

if TYPE_CHECKING:
    from bentpipe.experiment.build.overrides import Overrides, Resolved
    from bentpipe.experiment.resolve.specs import Experiment

__all__ = ["SOCKET", "Control", "ask", "read_settings", "whole_key"]

SOCKET: Final = "control"
"""In the folder of what is not whole yet."""


def whole_key(setting: str, experiment: Experiment) -> str:
    """``NAME.KEY=VALUE`` of a line, switch or host with its whole key.

    Raises
    ------
    BentpipeError
        The key begins with none of these, and with no table of an experiment.
    """
    name = setting.partition(".")[0]
    network = experiment.network
    for kind, found in (("lines", network.lines), ("switches", network.switches), ("hosts", network.hosts)):
        if name in [each.name for each in found]:
            return f"network.{kind}.{setting}"
    if "." in setting.partition("=")[0] and name not in [*SHORTHANDS, *map(key_of, Document.model_fields)]:
        names = [each.name for found in (network.lines, network.switches, network.hosts) for each in found]
        raise BentpipeError(f"{setting}: there is no line, switch or host {name!r}{nearest(name, names)}")
    return setting


def read_settings(settings: Sequence[str], experiment: Experiment) -> dict[str, Any]:
    """Return the values of ``KEY=VALUE`` settings by whole keys.

    Raises
    ------
    BentpipeError
        One is none, or begins with no line, switch, host or table.
    """
    found = {}
    for setting in settings:
        key, equals, text = whole_key(setting, experiment).partition("=")
        if not equals:
            raise BentpipeError(f"{setting}: expected KEY=VALUE")
        found[key] = value_of(text.strip())
    return found


@dataclasses.dataclass
class _Asked:
    settings: list[str]
    resolved: Resolved
    answer: queue.Queue[str]


class Control:
    """Takes questions from others by a thread of its own, which reads and checks them; what they change is done
    between two turns of the simulation (:meth:`take`).

    Parameters
    ----------
    path : Path
        Of the socket.
    experiment : Experiment
    overrides : Overrides
    """

    def __init__(self, path: Path, experiment: Experiment, overrides: Overrides) -> None:
        self._path, self._experiment, self._overrides = path, experiment, overrides
        self._asked: queue.Queue[_Asked] = queue.Queue()
        self._socket = socket.socket(socket.AF_UNIX)
        with _short(path) as name:
            self._socket.bind(name)
        self._socket.listen()
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        """Nobody can ask any more."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def take(self) -> tuple[list[str], Resolved, queue.Queue[str]] | None:
        """What is to be changed now, and where the answer goes: ``""``, or what was wrong; None: nothing."""
        try:
            asked = self._asked.get_nowait()
        except queue.Empty:
            return None
        return asked.settings, asked.resolved, asked.answer

    def _listen(self) -> None:
        while True:
            try:
                other, _ = self._socket.accept()
            except OSError:
                return
            with other, suppress(OSError, ValueError):
                other.settimeout(5)
                settings = json.loads(other.recv(65536))
                other.sendall(json.dumps(self._answer(settings)).encode())

    def _answer(self, settings: list[str]) -> str:
        try:
            resolved = self._overrides.resolve(read_settings(settings, self._experiment))
        except (BentpipeError, SimulationError) as error:
            return one_line(error)
        answer: queue.Queue[str] = queue.Queue()
        self._asked.put(_Asked(settings, resolved, answer))
        try:
            return answer.get(timeout=5)
        except queue.Empty:
            return "the session has ended"


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield a name of a file that a socket takes, however long its path is: the kernel's limit is 107 octets."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def ask(folder: Path, settings: Sequence[str]) -> None:
    """Change these settings of the session in a run folder.

    Raises
    ------
    BentpipeError
        It doesn't go on, or doesn't take them.
    """
    path = folder / ".running" / SOCKET
    with socket.socket(socket.AF_UNIX) as other:
        try:
            with _short(path) as name:
                other.connect(name)
        except OSError:
            raise BentpipeError(f"{folder}: no session with attached hosts goes on there") from None
        other.sendall(json.dumps([*settings]).encode())
        said = other.recv(65536)
    wrong = json.loads(said) if said else "the session has ended"
    if wrong:
        raise BentpipeError(wrong)
