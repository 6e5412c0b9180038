"""Remarks on frames that cannot pass a switch whole, whatever else it has to do.

Only frames by themselves are looked at: other traffic makes queues longer. A frame that comes faster than it leaves is
queued meanwhile; if that takes more places than there are for it, cells of every such frame are dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bentpipe.apps.settings import BARE
from bentpipe.experiment.resolve.specs import Experiment, FlowSpec, SwitchSpec, VcSpec
from bentpipe.results.metrics import cells_of, hop_rates

__all__ = ["frame_remarks"]

_UDP_IP = 28
"""Octets of headers."""


def frame_remarks(
    experiment: Experiment, resolved: Mapping[str, Any], rates: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a remark for each flow whose largest frames find too few places in a switch on their way.

    Parameters
    ----------
    experiment : Experiment
    resolved, rates
        As in ``result.json``. Of rates that events change those count with which frames pass best.
    """
    switches = {switch.name: switch for switch in experiment.network.switches}
    ports = {
        name: [max(phase["ports"][name][port] for phase in rates) for port in range(len(first))]
        for name, first in rates[0]["ports"].items()
    }
    rate = hop_rates(resolved, ports)
    for flow in experiment.flows:
        vc = experiment.vcs[flow.vc]
        if flow.protocol in BARE or vc.settings.credits is not None:
            continue
        cells = cells_of(_packet(experiment, flow))
        hops = [*itertools.pairwise(vc.path)]
        paced = [phase["vcs"][flow.vc] for phase in rates]
        comes = min([rate(*hops[0]), *(bps for bps in paced if bps)])
        for before, after in hops[1:]:
            leaves = min(comes, rate(before, after), vc.settings.service_rate_bps or comes)
            queued = round((cells - 1) * (1 - leaves / comes))
            places, what = _places(experiment, switches[before], after, vc)
            if queued > places + 1:
                yield (
                    f"Flow {flow.name}: no frame of {cells} cells passes {before} whole. It arrives at "
                    f"{comes / 1e6:.4g} Mb/s "
                    f"and leaves at {leaves / 1e6:.4g}, so it needs {queued} places; {before} has {places} ({what})."
                )
                break
            comes = leaves


def _packet(experiment: Experiment, flow: FlowSpec) -> int:
    """Return the octets of the largest packet of a flow."""
    mtu = min(host.config.mtu for host in experiment.network.hosts if host.name in (flow.source, flow.sink))
    if flow.protocol == "tcp":
        return mtu
    written = flow.settings.get("block") or flow.settings.get("octets") or mtu
    largest = max(written) if isinstance(written, (tuple, list)) else written
    return min(mtu, _UDP_IP + min(flow.datagram or mtu, largest))


def _places(experiment: Experiment, switch: SwitchSpec, after: str, vc: VcSpec) -> tuple[int, str]:
    """Return the most cells of a VC that a switch queues for the next node, and the setting that decides it."""
    network = experiment.network
    faces = [host.port for host in network.hosts if host.name == after]
    for line in network.lines:
        faces += [
            near for near, far in (line.ends, line.ends[::-1]) if near.switch == switch.name and far.switch == after
        ]
    found = [(switch.settings.buffer_cells, "buffer_cells")]
    limit = vc.settings.limit or switch.settings.vc_limit
    if limit:
        found.append((limit, "limit" if vc.settings.limit else "vc_limit"))
    limits = [switch.ports[face.port].settings.queue_limit for face in faces]
    if limits and all(limits):
        found.append((max(filter(None, limits)), "queue_limit"))
    return min(found)
