"""The attached hosts of an experiment, and the VCs between them; the rest of the experiment is simulated."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bentpipe.attach.ends import End, parse_end
from bentpipe.attach.vlans import Vlans, with_vlans
from bentpipe.errors import BentpipeError
from bentpipe.experiment.resolve.specs import Experiment
from bentpipe_hdl.words import nearest
from bentpipe_sim.attached import ANY, Carries

__all__ = ["Attached", "attached_hosts", "parse_ends"]


@dataclass(frozen=True)
class Attached:
    """Hosts that are attached.

    Members
    -------
    ends : dict of str to End
        By host, in the order in which they were given.
    vcs : tuple of int
        The VCs between them, indices into the experiment's.
    left_out : tuple of str
        Flows between one of them and a host inside, which nobody carries now.
    vlans : Vlans
    """

    ends: Mapping[str, End]
    vcs: tuple[int, ...]
    left_out: tuple[str, ...] = ()
    vlans: Vlans = field(default_factory=dict)

    def vlans_of(self, experiment: Experiment, vc: int) -> tuple[int, int]:
        """Return the VLAN of a VC's frames at its source and at its sink; ``ANY``: the end looks at no tags."""
        path = experiment.vcs[vc].path
        return self.vlans.get((path[0], vc), ANY), self.vlans.get((path[-1], vc), ANY)


def parse_ends(a: str, b: str, more: Sequence[str], experiment: Experiment) -> dict[str, End]:
    """Return the ends by host.

    ``a`` and ``b`` are the ends of the first flow's source and sink, or ``HOST=END``; all of ``more`` are ``HOST=END``.
    """
    hosts = [host.name for host in experiment.network.hosts]
    first = experiment.flows[0]
    found: dict[str, End] = {}
    for option, text, usual in [("--a", a, first.source), ("--b", b, first.sink), *(("--end", t, "") for t in more)]:
        host, equals, end = text.partition("=")
        if not equals or ":" in host:  # an end's VLANs have such a sign, too
            host, end = usual, text
        if not host:
            raise BentpipeError(f"{option} {text}: expected HOST=END; the hosts are {', '.join(hosts)}")
        if host not in hosts:
            raise BentpipeError(f"{option} {text}: there is no host {host!r}{nearest(host, hosts)}")
        if host in found:
            raise BentpipeError(f"{option} {text}: host {host} has an end already")
        made = parse_end(end, option)
        if (made.kind, made.text) in [(other.kind, other.text) for other in found.values()]:
            raise BentpipeError(f"{option} {text}: another host already has this end")
        found[host] = made
    return found


def attached_hosts(experiment: Experiment, ends: Mapping[str, End]) -> tuple[Experiment, Attached]:
    """Return the experiment with its remaining traffic, and the VCs of the attached hosts.

    Flows from or to an attached host are removed, as that host sends what it likes; their VCs stay.

    Raises
    ------
    BentpipeError
        Two hosts cannot exchange packets, or one cannot be attached.
    """
    kinds = {end.carries is Carries.PACKETS for end in ends.values() if not end.carries.cells}
    if len(kinds) > 1:
        raise BentpipeError("one end carries Ethernet frames, another one IP packets: use the same kind at all ends")
    for host in ends:
        if experiment.host(host).interface.oam:
            raise BentpipeError(f"host {host} has OAM functions, which an attached host cannot have: set oam = false")
    vcs = []
    for index, vc in enumerate(experiment.vcs):
        several = vc.root is not None or any(other.root == index for other in experiment.vcs)
        if vc.path[0] in ends and vc.path[-1] in ends and not several:
            vcs.append(index)
    vcs, vlans = with_vlans(experiment, ends, vcs)
    pairs = [(experiment.vcs[vc].path[0], experiment.vcs[vc].path[-1]) for vc in vcs]
    for host, end in ends.items():
        out, back = ([pair for pair in pairs if pair[side] == host] for side in (0, 1))
        if not out or not back:
            raise BentpipeError(f"host {host}: no VC leads from it to another attached host and back")
        if len(out) > 1 and end.carries is Carries.PACKETS:
            raise BentpipeError(f"host {host}: IP packets of a TUN device use one VC, and the host has {len(out)} VCs")
    left = tuple(flow for flow in experiment.flows if flow.source not in ends and flow.sink not in ends)
    if len(left) < len(experiment.flows):
        if experiment.schedule is not None:
            raise BentpipeError("flows of a NetSpec script ([traffic]) use an attached host; attach other hosts")
        firsts = {index: flow.name for index, flow in enumerate(experiment.flows)}
        numbers = {flow.name: index for index, flow in enumerate(left)}
        for flow in left:
            if flow.first is not None and firsts[flow.first] not in numbers:
                raise BentpipeError(f"flow {flow.name}: another of its sinks is attached; attach all or none")
        left = tuple(
            dataclasses.replace(flow, first=None if flow.first is None else numbers[firsts[flow.first]])
            for flow in left
        )
    left_of = dataclasses.replace(experiment, flows=left, published=(), expect=(), theory=())
    torn = tuple(flow.name for flow in experiment.flows if (flow.source in ends) != (flow.sink in ends))
    return left_of, Attached(ends, tuple(vcs), torn, vlans)
