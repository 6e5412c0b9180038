"""OAM flows of VCs and virtual paths through a network: which switch has what of them (I.610)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bentpipe_hdl.oam.cells import END_VCI
from bentpipe_hdl.switch.control import SwitchVc, VcSettings
from bentpipe_hdl.switch.options.oam.control import OamPoint, OamSettings, point_at

from .channels import Channel, Hop, VirtualPath
from .errors import NetworkError, Subject
from .nodes import Node, Switch, checked

__all__ = ["check_managed", "manage", "manage_path"]


def manage(channel: Channel) -> None:
    """Set a VC's OAM flows at its switches. The flows are also those of the VC in the opposite direction.

    Raises
    ------
    NetworkError
        The two VCs' flows differ, or a switch or segment is not part of the VC.
    """
    back = channel.back
    given = _alike(channel.what, channel.settings.oam, None if back is None else back.settings.oam)
    if given is None:
        return
    _set(channel, given)
    if back is not None:
        _set(back, given.other_way())


def _set(channel: Channel, given: OamSettings) -> None:
    own = [hop for hop in channel.hops if not hop.in_path]
    names = [hop.switch.name for hop in own]
    for k, hop in enumerate(own):
        point = checked(f"{channel.what}: oam", lambda k=k: point_at(given, names, k))
        if hop.parent is not None:
            point = replace(point, inside=True, parent=hop.parent)
        if channel.back is None:
            point = replace(point, loops=False)
        _change(hop, oam=point)


def manage_path(paths: Sequence[VirtualPath]) -> None:
    """Set the OAM flows of the last of these virtual paths at its switches, if the path in the opposite direction
    exists.

    Where the path ends, the switches have an entry for F4 cells of both directions.

    Raises
    ------
    NetworkError
        The two paths' flows differ, or a segment is not part of them.
    """
    path = paths[-1]
    back = next((other for other in paths[:-1] if _opposite(path, other)), None)
    if back is None:
        return
    for hop, other in zip(path.hops, reversed(back.hops), strict=True):
        _change(hop, back=other.number)
        _change(other, back=hop.number)
    given = _alike(path.what, path.settings.oam, back.settings.oam)
    if given is None:
        return
    for one, settings in ((path, given), (back, given.other_way())):
        names = _switches(one)
        for k, hop in enumerate(one.hops, 1):
            _change(hop, oam=replace(_point(one, settings, names, k), path=True))
        last = one.path[-1]
        assert isinstance(last, Switch)
        point = _point(one, settings, names, len(names) - 1).both(_point(one, settings.other_way(), names[::-1], 0))
        one.end = len(last.vcs)
        last.vcs.append(
            SwitchVc(
                one.comes, one.vpi, END_VCI, one.comes, one.vpi, END_VCI, VcSettings(), ends_path=True, back=one.end,
                oam=replace(point, path=True, segment_end=True, loops=False),
            )
        )  # fmt: skip


def check_managed(channels: Iterable[Channel], paths: Iterable[VirtualPath]) -> None:
    """Raise NetworkError if a flow ends at switches, and there is nothing the other way to bring answers."""
    for number, channel in enumerate(channels):
        given = channel.settings.oam
        if channel.back is None and given is not None and (given.ends or given.segment):
            what = f"{channel.what}: its OAM flows end at switches, and no VC the other way answers"
            raise NetworkError(what, Subject(channel=number, key="oam"))
    for number, path in enumerate(paths):
        if path.settings.oam is not None and path.end is None:
            what = f"{path.what}: it has OAM, and there is no virtual path the other way"
            raise NetworkError(what, Subject(path=number, key="oam"))


def _alike(what: str, mine: OamSettings | None, other: OamSettings | None) -> OamSettings | None:
    """Return the settings of both directions, as seen from this one."""
    if mine is None:
        return None if other is None else other.other_way()
    if other is not None and other != mine.other_way():
        raise NetworkError(f"{what}: the other way has another oam: give it to one of them", Subject(key="oam"))
    return mine


def _switches(path: VirtualPath) -> list[str]:
    """Return the names of the path's switches from end to end."""
    for end in (path.path[0], path.path[-1]):
        if not isinstance(end, Switch):
            raise NetworkError(f"{path.what}: it has OAM, and ends at {end.name}, which does not support F4 flows")
    return [node.name for node in path.path if isinstance(node, Switch)]


def _point(path: VirtualPath, given: OamSettings, names: list[str], place: int) -> OamPoint:
    return checked(f"{path.what}: oam", lambda: point_at(given.model_copy(update={"ends": True}), names, place))


def _change(hop: Hop, **members: object) -> None:
    hop.switch.vcs[hop.number] = replace(hop.switch.vcs[hop.number], **members)  # pyright: ignore[reportArgumentType]


def _opposite(one: VirtualPath, other: VirtualPath) -> bool:
    def turned(path: VirtualPath) -> list[tuple[Node, int, int]]:
        return [(hop.switch, hop.go, hop.come) for hop in reversed(path.hops)]

    return (
        one.vpi == other.vpi
        and (one.path[0], one.leaves) == (other.path[-1], other.comes)
        and (one.path[-1], one.comes) == (other.path[0], other.leaves)
        and [(hop.switch, hop.come, hop.go) for hop in one.hops] == turned(other)
    )
