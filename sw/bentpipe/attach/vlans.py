"""The VLANs of ends at which a frame's 802.1Q tag selects its VC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bentpipe.attach.ends import End
from bentpipe.errors import BentpipeError
from bentpipe.experiment.resolve.specs import Experiment
from bentpipe_hdl.words import nearest

__all__ = ["Vlans", "with_vlans"]

Vlans = Mapping[tuple[str, int], int]
"""The VLAN of a VC's frames, by host and index of the VC, at ends that look at tags."""


def with_vlans(experiment: Experiment, ends: Mapping[str, End], vcs: Sequence[int]) -> tuple[list[int], Vlans]:
    """Return the VCs that attached hosts use, and their VLANs.

    Of several VCs from one host to another, those that VLANs name are used; without VLANs the first one.

    Parameters
    ----------
    vcs : Sequence of int
        The VCs between attached hosts, indices into ``Experiment.vcs``.

    Raises
    ------
    BentpipeError
        A name is unknown or not clear, a VC has two VLANs or none, or a VLAN has two VCs.
    """
    vlans: dict[tuple[str, int], int] = {}
    for host, end in ends.items():
        for vid, name in end.vlans:
            for vc in _named(experiment, ends, host, name, vcs):
                if (host, vc) in vlans:
                    both = f"{vlans[host, vc]} and {vid}"
                    raise BentpipeError(f"host {host}: VC {experiment.vcs[vc].name} has two VLANs, {both}")
                vlans[host, vc] = vid
    parallel: dict[tuple[str, str], list[int]] = {}
    for vc in vcs:
        parallel.setdefault(_pair(experiment, vc), []).append(vc)
    used = sorted(vc for pair, group in parallel.items() for vc in _chosen(ends, pair, group, vlans))
    for host, end in ends.items():
        if end.vlans:
            _check(experiment, host, [vc for vc in used if host in _pair(experiment, vc)], vlans)
    return used, {key: vid for key, vid in vlans.items() if key[1] in used}


def _pair(experiment: Experiment, vc: int) -> tuple[str, str]:
    path = experiment.vcs[vc].path
    return path[0], path[-1]


def _named(experiment: Experiment, ends: Mapping[str, End], host: str, name: str, vcs: Sequence[int]) -> Iterator[int]:
    """Yield the VCs of a host that a name means: those from and to another host, or a VC and a flow's way back."""
    own = {experiment.vcs[vc].name: vc for vc in vcs if host in _pair(experiment, vc)}
    between = [vc for vc in own.values() if name in _pair(experiment, vc)] if name in ends and name != host else []
    if between and name in own:
        raise BentpipeError(f"host {host}: {name} is a VC and another host; name one of {_names(experiment, between)}")
    if between:
        if len({_pair(experiment, vc) for vc in between}) < len(between):
            raise BentpipeError(
                f"host {host}: several VCs lead to or from {name}; name one of {_names(experiment, between)}"
            )
        yield from between
    elif name in own:
        yield from (own[each] for each in (name, f"{name}.return") if each in own)
    else:
        others = sorted({end for vc in own.values() for end in _pair(experiment, vc)} - {host})
        raise BentpipeError(
            f"host {host}: {name!r} is no VC of it, and no attached host to which it has one"
            f"{nearest(name, [*own, *others])}"
        )


def _names(experiment: Experiment, vcs: Sequence[int]) -> str:
    return ", ".join(experiment.vcs[vc].name for vc in vcs)


def _chosen(ends: Mapping[str, End], pair: tuple[str, str], group: Sequence[int], vlans: Vlans) -> Sequence[int]:
    """Return the VCs in use of those from one host to another."""
    named = [vc for vc in group if any((host, vc) in vlans for host in pair)]
    if len(named) > 1 and not all(ends[host].vlans for host in pair):
        plain = next(host for host in pair if not ends[host].vlans)
        raise BentpipeError(f"host {plain}: several VCs lead from {pair[0]} to {pair[1]}; give it VLANs, too")
    return named or group[:1]


def _check(experiment: Experiment, host: str, vcs: Sequence[int], vlans: Vlans) -> None:
    """Check that each VC of a host has a VLAN, and that a VLAN leads into one VC and has VCs both ways."""
    sends: dict[int, str] = {}
    receives: dict[int, str] = {}
    for vc in vcs:
        name = experiment.vcs[vc].name
        if (host, vc) not in vlans:
            raise BentpipeError(f"host {host}: VC {name} has no VLAN; add one, as 10={name}")
        vid = vlans[host, vc]
        if _pair(experiment, vc)[0] != host:
            receives[vid] = name
            continue
        if vid in sends:
            raise BentpipeError(f"host {host}: VLAN {vid} leads into two VCs, {sends[vid]} and {name}")
        sends[vid] = name
    for vid in sorted(sends.keys() ^ receives.keys()):
        missing, there = ("to", sends[vid]) if vid in sends else ("from", receives[vid])
        raise BentpipeError(
            f"host {host}: VLAN {vid} has the VC {there}, and none {missing} this host; add one, as {vid}=NAME"
        )
