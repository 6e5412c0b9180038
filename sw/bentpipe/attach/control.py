"""Changing a session while it goes on: ``bentpipe set`` asks, by a socket in the run folder."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from bentpipe.attach.slack import Slack, shortened
from bentpipe.errors import BentpipeError, ConfigError, one_line
from bentpipe.experiment.document.assign import SHORTHANDS, Assignment, assigned
from bentpipe.experiment.document.catalogue import find
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.document.tables import Document
from bentpipe.experiment.load import apply_settings, value_of
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.experiment.resolve.specs import EventSpec, Experiment
from bentpipe_hdl.settings import key_of
from bentpipe_hdl.words import nearest
from bentpipe_sim.errors import SimulationError

__all__ = ["SOCKET", "Control", "SessionChanges", "ask", "whole_key"]

SOCKET: Final = "control"
"""In the folder of what is not whole yet."""

_ASKED: Final = "bentpipe set"


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


class SessionChanges:
    """The experiment as it is now, and what a change of settings makes of it, as an event of the file would: only what
    it names is another then.

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
    count : int
        Changes so far, those by events of the file among them.
    """

    def __init__(self, experiment: Experiment, slack: Slack) -> None:
        self._experiment, self._slack = experiment, slack
        first = shortened(experiment, slack)
        self.now = EventSpec(0, (), first.network, first.vcs)
        self._document: dict[str, Any] = {key: v for key, v in experiment.document.items() if key != "event"}
        self._source = Source(_ASKED, folder=find(experiment.file).parent)
        self._any_asked = False
        self.count = 0

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
        return self._with(pairs)

    def _with(self, pairs: Mapping[str, Any]) -> EventSpec:
        document = {**self._document, "event": [{"at": "0 s", "set": pairs}]}
        try:
            made = parse_experiment(document, self._source, seed=self._experiment.seed)
        except ConfigError as error:  # it knows the settings as those of an event
            raise BentpipeError(str(error).removeprefix(f"{_ASKED}: event.0.set: ")) from None
        (event,) = shortened(made, self._slack).events
        return event

    def on_top(self, event: EventSpec) -> EventSpec:
        """An event of the file as it is with its own settings on top of what is now.

        Raises
        ------
        BentpipeError
            With what was asked for before, its settings make no experiment.
        """
        if not self._any_asked:
            return event
        return dataclasses.replace(
            self._with(dict(event.settings)), at_ps=event.at_ps, changes=event.changes, settings=event.settings
        )

    def came(self, event: EventSpec) -> None:
        """An event of the file has changed the network."""
        given = (Assignment(_ASKED, key, value) for key, value in event.settings)
        self._document, _ = assigned(self._document, given, _ASKED)
        self._become(event)

    def done(self, settings: Sequence[str], event: EventSpec) -> None:
        """So it is from now on."""
        whole = [whole_key(setting, self._experiment) for setting in settings]
        self._document, _ = apply_settings(self._document, whole, _ASKED)
        self._any_asked = True
        self._become(event)

    def _become(self, event: EventSpec) -> None:
        self.now = event
        self.count += 1


@dataclasses.dataclass
class _Asked:
    settings: list[str]
    event: EventSpec
    count: int
    answer: queue.Queue[str]


class Control:
    """Takes questions from others by a thread of its own, which reads and checks them; what they change is done
    between two turns of the simulation (:meth:`take`).

    Parameters
    ----------
    path : Path
        Of the socket.
    changes : SessionChanges
    """

    def __init__(self, path: Path, changes: SessionChanges) -> None:
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
        while True:
            try:
                asked = self._asked.get_nowait()
            except queue.Empty:
                return None
            try:
                stale = asked.count != self._changes.count  # something changed after it was read
                event = self._changes.event(asked.settings) if stale else asked.event
            except BentpipeError as error:
                asked.answer.put(one_line(error))
                continue
            return asked.settings, event, asked.answer

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
        count = self._changes.count
        try:
            event = self._changes.event(settings)
        except (BentpipeError, SimulationError) as error:
            return one_line(error)
        answer: queue.Queue[str] = queue.Queue()
        self._asked.put(_Asked(settings, event, count, answer))
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
