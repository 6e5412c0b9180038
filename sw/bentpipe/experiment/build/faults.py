"""The place in the document of a fault that is found only when an experiment's network and hosts are made.

The network knows nothing of documents: its errors name a node, a port or a VC of it. :class:`Places` knows which table
each of these was made from.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from bentpipe.errors import ConfigError
from bentpipe.experiment.document.tables import Face
from bentpipe.experiment.resolve.specs import Experiment
from bentpipe_sim.errors import NetworkError, Subject

if TYPE_CHECKING:
    from bentpipe_sim.network import Network

__all__ = ["BuildError", "Places"]


class BuildError(ConfigError):
    """An experiment's network or hosts that cannot be made.

    Members
    -------
    key, what : str
        The dotted key of the document that is at fault, "" where that is not known; what is wrong with it.
    """

    def __init__(self, key: str, what: str) -> None:
        super().__init__(": ".join(filter(None, (key, what))))
        self.key = key
        self.what = what


class Places:
    """A map from faults of an experiment's network to their places in its document."""

    def __init__(self, experiment: Experiment, network: Network) -> None:
        self._experiment, self._network = experiment, network
        self._roots = [number for number, vc in enumerate(experiment.vcs) if vc.root is None]

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Give errors of the block the place of this table, unless an error names another place.

        Raises
        ------
        BuildError
            Something is wrong.
        """
        try:
            yield
        except NetworkError as error:
            subject = error.subject
            found = key if subject is None else self._key(subject) or ".".join(filter(None, (key, subject.key)))
            raise BuildError(found, str(error)) from error
        except ValueError as error:
            raise BuildError(key, str(error)) from error

    @contextmanager
    def event(self, number: int) -> Iterator[None]:
        """Give errors of the block the place of an event's settings."""
        try:
            with self.at(""):
                yield
        except BuildError as error:
            tables = self._experiment.tables.events
            key = tables[number] if number < len(tables) else "event"
            raise BuildError(key, ": ".join(filter(None, (error.key, error.what)))) from error

    def flow(self, number: int) -> AbstractContextManager[None]:
        """Return the context of :meth:`at` for the table of a flow of the experiment."""
        tables = self._experiment.tables.flows
        return self.at(tables[number] if number < len(tables) else "flow")

    def vc(self, number: int) -> str:
        """Return the key of the table of a VC of the experiment."""
        tables = self._experiment.tables.vcs
        return tables[number] if number < len(tables) else "vc"

    def _key(self, subject: Subject) -> str:
        """Return the key that an error is about; "" if the error names no subject."""
        if subject.vc is not None:
            owner = self._network.owner_of(subject.node, subject.vc)
            return self._key(replace(owner, key=subject.key))
        if subject.channel is not None:
            table = self.vc(self._roots[subject.channel])
        elif subject.path is not None:
            table = f"network.vps.{self._experiment.network.vps[subject.path // 2].name}"
        elif subject.port is not None:
            table = self._port(subject.node, subject.port, subject.key)
        elif subject.node:
            table = self._node(subject.node)
        else:
            return ""
        return ".".join(filter(None, (table, subject.key)))

    def _node(self, name: str) -> str:
        network = self._experiment.network
        for kind, known in (("switches", network.switches), ("hosts", network.hosts), ("lines", network.lines)):
            for each in known:
                if name == each.name or (kind != "switches" and name.rpartition(".")[0] == each.name):
                    return f"network.{kind}.{each.name}"
        return "network"

    def _port(self, switch: str, port: int, key: str) -> str:
        """Return the table with the settings of a port: that of its line or host."""
        face, network = Face(switch, port), self._experiment.network
        for line in network.lines:
            if face in line.ends:
                own = f"network.lines.{line.name}"
                given = self._experiment.document.get("network", {}).get("lines", {}).get(line.name, {})
                back = face == line.ends[1] and key.partition(".")[0] in given.get("back", {})
                return f"{own}.back" if back else own
        for host in network.hosts:
            if host.port == face:
                return f"network.hosts.{host.name}"
        return f"network.switches.{switch}"
