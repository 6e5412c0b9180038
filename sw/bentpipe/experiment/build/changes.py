"""Changes of a running network by events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from bentpipe.experiment.build.faults import Places
from bentpipe.experiment.resolve.specs import EventSpec, Experiment, LineSpec, NetworkSpec, VcSpec
from bentpipe_hdl.settings import Settings

if TYPE_CHECKING:
    from bentpipe_sim.network import Network
    from bentpipe_sim.nodes import Switch

__all__ = ["Reconfigurator", "ways"]

_T = TypeVar("_T")


def ways(line: LineSpec) -> tuple[str, ...]:
    """Return the names of a line's directions."""
    return ("out",) if line.looped else ("out", "back")


class Reconfigurator:
    """Changes a network that runs: what an event's network has otherwise than that before it."""

    def __init__(self, experiment: Experiment, network: Network) -> None:
        self._network = network
        self._nodes = {node.name: node for node in network.nodes}
        self._before: tuple[NetworkSpec, Sequence[VcSpec]] = (experiment.network, experiment.vcs)

    def prepare(self, experiment: Experiment, places: Places) -> None:
        """Build the nodes of a network that is not started for all states that its events bring."""
        with places.at(""):
            for node in self._nodes.values():
                node.note()  # before an event could be blamed
        for number, event in enumerate(experiment.events):
            with places.event(number):
                self.to(event)
                for node in self._nodes.values():
                    node.note()
        for number, profile in enumerate(experiment.profiles):
            with places.at(f"profile.{number}"):
                for extreme in profile.extremes:
                    self.to(extreme)
                    for node in self._nodes.values():
                        node.note()
        self.to(EventSpec(0, (), experiment.network, experiment.vcs))

    def adopt(self, event: EventSpec) -> None:
        """Take a state for that of the network: the event loop has written the registers of lines and ports, and
        nothing else is another."""
        self.to(event, written=True)

    def to(self, event: EventSpec, *, written: bool = False) -> None:
        """Change the network to the state that an event names; ``written`` is as for :meth:`adopt`."""
        (before, vcs), self._before = self._before, (event.network, event.vcs)
        for old, new in _other(before.lines, event.network.lines):
            if old.framing and new.framing:
                self._change(f"{new.name}.line", old.framing, new.framing)
            for end, way in enumerate(ways(new)):
                self._change(f"{new.name}.{way}", old.ways[end], new.ways[end], written)
        for old, new in _other(before.switches, event.network.switches):
            self._change(new.name, old.settings, new.settings)
            for number, (was, port) in enumerate(zip(old.ports, new.ports, strict=True)):
                if port != was:
                    cast("Switch", self._nodes[new.name]).change_port(
                        number, port.rate_bps, port.settings, written=written
                    )
        for old, new in _other(before.hosts, event.network.hosts):
            self._change(new.name, old.interface, new.interface)
        for number, (old, new) in enumerate(zip(before.vps, event.network.vps, strict=True)):
            for way in (0, 1) if old != new else ():
                self._network.change_vp(2 * number + way, new.settings)
        if vcs is event.vcs:
            return
        roots = [(old, new) for old, new in zip(vcs, event.vcs, strict=True) if new.root is None]
        for number, (old, new) in enumerate(roots):
            if old != new:
                self._network.change_vc(number, new.settings, pacing=new.pacing)

    def _change(self, name: str, old: Settings, new: Settings, written: bool = False) -> None:
        if old is not new and old != new:
            self._nodes[name].change(new, written=written)


def _other(before: Sequence[_T], after: Sequence[_T]) -> Iterator[tuple[_T, _T]]:
    """Return the pairs that are not the same object before and after."""
    return ((old, new) for old, new in zip(before, after, strict=True) if old is not new)
