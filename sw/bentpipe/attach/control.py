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
from typing import Any, Final

from bentpipe.attach.slack import Slack, shortened
from bentpipe.errors import BentpipeError, ConfigError, one_line
from bentpipe.experiment.load import apply_settings, value_of
from bentpipe.experiment.parse import parse_experiment
from bentpipe.experiment.schema import EventSpec, Experiment
from bentpipe.experiment.source import Source
from bentpipe_sim.errors import SimulationError

__all__ = ["SOCKET", "Changes", "Control", "ask", "whole_key"]

SOCKET: Final = "control"
"""In the folder of what is not whole yet."""

_ASKED: Final = "bentpipe set"


def whole_key(setting: str, experiment: Experiment) -> str:
    """``NAME.KEY=VALUE`` of a line, switch or host with its whole key."""
    name = setting.partition(".")[0]
    network = experiment.network
    for kind, found in (("lines", network.lines), ("switches", network.switches), ("hosts", network.hosts)):
        if name in [each.name for each in found]:
            return f"network.{kind}.{setting}"
    return setting


class Changes:
    """The experiment as it is now, and what a change of settings makes of it, as an event of the file would.

    Parameters
    ----------
    experiment : Experiment
        As it was read.
    slack : Slack
        By which its paths are shorter.

    Members
    -------
    now : EventSpec
        The network as it is.
    """

    def __init__(self, experiment: Experiment, slack: Slack) -> None:
        self._experiment, self._slack = experiment, slack
        first = shortened(experiment, slack)
        self.now = EventSpec(0, (), first.network, first.vcs)
        self._document: dict[str, Any] = {key: v for key, v in experiment.document.items() if key != "event"}

    def event(self, settings: Sequence[str]) -> EventSpec:
        """The network with these settings (``KEY=VALUE``) from now on.

        Raises
        ------
        BentpipeError
            One is none, or can't be changed in a run.
        """
        whole = [whole_key(setting, self._experiment) for setting in settings]
        pairs = {}
        for setting in whole:
            key, equals, text = setting.partition("=")
            if not equals:
                raise BentpipeError(f"{setting}: expected KEY=VALUE")
            pairs[key] = value_of(text.strip())
        document = {**self._document, "event": [{"at": "0 s", "set": pairs}]}
        try:
            made = parse_experiment(document, Source(_ASKED), seed=self._experiment.seed)
        except ConfigError as error:  # it knows the settings as those of an event
            raise BentpipeError(str(error).removeprefix(f"{_ASKED}: event.0.set: ")) from None
        (event,) = shortened(made, self._slack).events
        return event

    def done(self, settings: Sequence[str], event: EventSpec) -> None:
        """So it is from now on."""
        whole = [whole_key(setting, self._experiment) for setting in settings]
        self._document, _ = apply_settings(self._document, whole, _ASKED)
        self.now = event


@dataclasses.dataclass
class _Asked:
    settings: list[str]
    event: EventSpec
    answer: queue.Queue[str]


class Control:
    """Takes questions from others by a thread of its own, which reads and checks them; what they change is done
    between two turns of the simulation (:meth:`take`).

    Parameters
    ----------
    path : Path
        Of the socket.
    changes : Changes
    """

    def __init__(self, path: Path, changes: Changes) -> None:
        self._path, self._changes = path, changes
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

    def take(self) -> tuple[list[str], EventSpec, queue.Queue[str]] | None:
        """What is to be changed now, and where the answer goes: ``""``, or what was wrong; None: nothing."""
        try:
            asked = self._asked.get_nowait()
        except queue.Empty:
            return None
        return asked.settings, asked.event, asked.answer

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
            event = self._changes.event(settings)
        except (BentpipeError, SimulationError) as error:
            return one_line(error)
        answer: queue.Queue[str] = queue.Queue()
        self._asked.put(_Asked(settings, event, answer))
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
