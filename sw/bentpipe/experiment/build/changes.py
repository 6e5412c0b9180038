"""What an event changes in a network that runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from bentpipe.experiment.build.faults import Places
from bentpipe.experiment.resolve.specs import EventSpec, Experiment, LineSpec, NetworkSpec, VcSpec
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import PacingSettings
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from bentpipe_hdl.units import SONET_RATES

if TYPE_CHECKING:
    from bentpipe_sim.network import Network
    from bentpipe_sim.nodes import Switch

__all__ = ["Reconfigurator", "link_settings", "sonet_settings", "ways"]


def ways(line: LineSpec) -> tuple[str, ...]:
    return ("out",) if line.looped else ("out", "back")


def link_settings(line: LineSpec, end: int) -> dict[str, Any]:
    """Of the way from an end, by name."""
    here = {"ber": 0.0, "outage": False} if line.sonet else {"ber": line.ber[end], "outage": line.outage[end]}
    return LinkSettings.part_of(line) | here


def sonet_settings(line: LineSpec) -> dict[str, Any]:
    return {"sts": SONET_RATES[line.rate_bps], "ber": line.ber, "outage": line.outage, "ppm": line.ppm}


class Reconfigurator:
    """Changes a network that runs: what an event's network has otherwise than that before it."""

    def __init__(self, experiment: Experiment, network: Network) -> None:
        self._network = network
        self._nodes = {node.name: node for node in network.nodes}
        self._before: tuple[NetworkSpec, Sequence[VcSpec]] = (experiment.network, experiment.vcs)

    def prepare(self, experiment: Experiment, places: Places) -> None:
        """Have the nodes of a network that isn't started built for all that they will be."""
        with places.at(""):
            for node in self._nodes.values():
                node.note()  # before an event could be blamed
        for number, event in enumerate(experiment.events):
            with places.event(number):
                self.to(event)
                for node in self._nodes.values():
                    node.note()
        self.to(EventSpec(0, (), experiment.network, experiment.vcs))

    def to(self, event: EventSpec) -> None:
        (before, vcs), self._before = self._before, (event.network, event.vcs)
        for old, new in zip(before.lines, event.network.lines, strict=True):
            if new.sonet:
                self._change(f"{new.name}.line", sonet_settings(old), sonet_settings(new))
            for end, way in enumerate(ways(new)):
                self._change(f"{new.name}.{way}", link_settings(old, end), link_settings(new, end))
        for old, new in zip(before.switches, event.network.switches, strict=True):
            self._change(new.name, SwitchSettings.part_of(old), SwitchSettings.part_of(new))
            was, ports = (list(zip(s.port_rates_bps, s.port_settings, strict=True)) for s in (old, new))
            for port, (rate, settings) in enumerate(ports):
                if (rate, settings) != was[port]:
                    cast("Switch", self._nodes[new.name]).change_port(port, rate, settings)
        for number, (old, new) in enumerate(zip(before.vps, event.network.vps, strict=True)):
            for way in (0, 1) if old != new else ():
                self._network.change_vp(2 * number + way, **VcSettings.part_of(new))
        roots = [(old, new) for old, new in zip(vcs, event.vcs, strict=True) if new.root is None]
        for number, (old, new) in enumerate(roots):
            if old != new:
                self._network.change_vc(number, **PacingSettings.part_of(new), **VcSettings.part_of(new))

    def _change(self, name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        if old != new:
            self._nodes[name].change(**new)
