"""Virtual channels laid along the network: their paths, VPI/VCI numbers, clashes."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final

from bentpipe.experiment.document.source import ConfigProblem, Problems
from bentpipe.experiment.document.tables import CdvSettings, VcTable, hosts_of
from bentpipe.experiment.resolve.paths import Piece, check_nodes, check_schedulers, passed_on, pieces, vpi_on, vps_of
from bentpipe.experiment.resolve.specs import NetworkSpec, VcSpec
from bentpipe.hosts.config import ContinuitySettings
from bentpipe_hdl.nic.control import PacingSettings
from bentpipe_hdl.switch.control import VcSettings
from bentpipe_hdl.switch.options.oam.control import point_at
from bentpipe_hdl.ticks import MOST_VCS
from bentpipe_hdl.units import format_rate
from bentpipe_hdl.words import nearest

__all__ = ["FIRST_VCI", "Channels", "Routes", "given_path"]

FIRST_VCI: Final = 32
"""VCIs below are reserved (I.361)."""


def _neighbours(network: NetworkSpec) -> dict[str, list[str]]:
    graph: dict[str, list[str]] = {s.name: [] for s in network.switches}
    for line in network.lines:
        a, b = (end.switch for end in line.ends)
        graph[a].append(b)
        graph[b].append(a)
    for host in network.hosts:
        graph[host.name] = [host.port.switch]
        graph[host.port.switch].append(host.name)
    return graph


class Routes:
    """The shortest paths of a network. Each is searched once, since many flows may be between the same hosts."""

    def __init__(self, network: NetworkSpec) -> None:
        self._hosts = {h.name for h in network.hosts}
        self._graph = _neighbours(network)
        self._found: dict[tuple[str, str], tuple[str, ...] | None] = {}

    def shortest(self, source: str, sink: str) -> tuple[str, ...] | None:
        """Return the path with the fewest nodes; of equals the one whose lines come first in the file. Hosts do not
        switch: only the ends of a path are hosts. None if there is no path."""
        ends = source, sink
        if ends not in self._found:
            self._found[ends] = self._search(source, sink)
        return self._found[ends]

    def _search(self, source: str, sink: str) -> tuple[str, ...] | None:
        before: dict[str, str] = {source: source}
        queue = deque([source])
        while queue:
            node = queue.popleft()
            if node == sink:
                path = [sink]
                while path[-1] != source:
                    path.append(before[path[-1]])
                return tuple(reversed(path))
            if node != source and node in self._hosts:
                continue
            for other in self._graph[node]:
                if other not in before:
                    before[other] = node
                    queue.append(other)
        return None

    def between(self, key: str, source: str, sink: str) -> tuple[str, ...]:
        """Return the shortest path between two hosts."""
        if source == sink:
            raise ConfigProblem(key, f"source and sink are the same host, {source!r}")
        path = self.shortest(source, sink)
        if path is None:
            raise ConfigProblem(key, f"no lines lead from {source!r} to {sink!r}")
        return path


def given_path(key: str, path: tuple[str, ...], network: NetworkSpec) -> tuple[str, ...]:
    """Return the nodes that a document lists, from a host over switches to another host.

    Raises
    ------
    ConfigProblem
        No such node, no line from one to the next, or a node is passed twice: only a line in loop-back leads from a
        switch to itself.
    """
    hosts = {h.name for h in network.hosts}
    check_nodes(key, path, network)
    if len(path) < 3 or path[0] not in hosts or path[-1] not in hosts or path[0] == path[-1]:
        raise ConfigProblem(key, "a path leads from a host over switches to another host")
    # A switch stands twice in a row where the path passes its looped line.
    passed = [(node, len(list(times))) for node, times in itertools.groupby(path)]
    if len({node for node, _ in passed}) != len(passed) or any(times > 2 for _, times in passed):
        raise ConfigProblem(key, "a path passes a node once, and a line in loop-back once")
    return path


class Channels:
    """The virtual channels of an experiment: those laid out by hand, then one after the other what flows need.

    Members
    -------
    vcs : list[VcSpec]
        One with several leaves is one for each, the first of them the root of the others.
    names : dict[str, int]
        Indices of those laid out by hand; of one with several leaves that of the root.
    keys : list[str]
        Of the table from which each VC was made.
    """

    def __init__(self, tables: Iterable[VcTable], network: NetworkSpec, problems: Problems) -> None:
        self.network = network
        self.routes = Routes(network)
        self._lines = {host.name: host.rate_bps for host in network.hosts}
        self.vcs: list[VcSpec] = []
        self.names: dict[str, int] = {}
        self.keys: list[str] = []
        self._known: set[str] = set()  # names of VCs
        self._leaves: dict[int, list[int]] = {}
        self._numbers: dict[tuple[Piece, int, int], str] = {}  # the VC that has a VPI/VCI on a piece of its path
        self._vcis: defaultdict[str, set[int]] = defaultdict(set)  # of VCs with VPI 0 (""), and of each virtual path
        self._lowest: dict[frozenset[str], int] = {}  # where to look for a VCI that none of some has
        for index, table in enumerate(tables):
            with problems.gathered():
                self._lay(f"vc.{index}", table)
        problems.check()

    def _lay(self, key: str, table: VcTable) -> None:
        if table.path is not None:
            paths = [given_path(f"{key}.path", table.path, self.network)]
        else:
            source = self.host(f"{key}.from", table.from_ or "")
            paths = self.paths(key, f"{key}.to", source, hosts_of(table.to or ""))
        cdv = self._cdv(key, table, paths)
        legs = [
            VcSpec(
                name=table.name if len(paths) == 1 else f"{table.name}.{path[-1]}",
                path=path,
                vpi=table.vpi,
                vci=table.vci,
                vps=vps_of(f"{key}.path", path, self.network),
                root=len(self.vcs) if path is not paths[0] else None,
                settings=VcSettings.part_of(table),
                pacing=PacingSettings.part_of(table),
                continuity=ContinuitySettings.part_of(table),
                cdv=cdv,
            )
            for path in paths
        ]
        if any(name in self.names or name in self._known for name in (table.name, *(leg.name for leg in legs))):
            raise ConfigProblem(f"{key}.name", f"there is a VC {table.name!r} already")
        self.check_pacing(key, table, paths[0])
        self.check_continuity(key, table, paths)
        looking = {node for leg in legs for node in leg.path if node not in passed_on(leg, self.network)}
        own = [switch for switch in self.network.switches if switch.name in looking]
        check_schedulers(key, legs[0].settings, own)
        self._check_contract(key, table, paths[0], [switch.name for switch in own])
        if table.oam is not None:
            if len(legs) > 1:
                raise ConfigProblem(f"{key}.oam", "the VC leads to several hosts; OAM works with one sink only")
            inside = passed_on(legs[0], self.network)
            try:
                point_at(table.oam, [node for node in paths[0][1:-1] if node not in inside], 0)
            except ValueError as error:
                raise ConfigProblem(f"{key}.oam.segment", str(error)) from None
        for leg in legs:
            self._check_free(key, leg)
        self.names[table.name] = len(self.vcs)
        for leg in legs:
            self._add(key, leg)

    def _cdv(self, key: str, table: VcTable, paths: Sequence[tuple[str, ...]]) -> CdvSettings | None:
        """Return the CDV measurement of the VC, with the node."""
        if table.cdv is None:
            return None
        if len(paths) > 1:
            raise ConfigProblem(f"{key}.cdv", "the VC leads to several hosts; measure VCs with one sink only")
        at, nodes = table.cdv.at or paths[0][-1], paths[0][1:]
        if at not in nodes:
            what = f"the cells of the VC arrive at {', '.join(dict.fromkeys(nodes))}, and not at {at!r}"
            raise ConfigProblem(f"{key}.cdv.at", what)
        return CdvSettings.part_of(table.cdv, at=at)

    def _add(self, key: str, vc: VcSpec) -> None:
        """Add a VC that was checked."""
        number = len(self.vcs)
        self.vcs.append(vc)
        self.keys.append(key)
        self._known.add(vc.name)
        self._leaves.setdefault(number if vc.root is None else vc.root, []).append(number)
        for piece in pieces(vc.path):
            self._numbers.setdefault((piece, vpi_on(vc, piece, self.network), vc.vci), vc.name)
        for group in (*([""] if vc.vpi == 0 else []), *vc.vps):
            self._vcis[group].add(vc.vci)

    def _check_free(self, key: str, vc: VcSpec) -> None:
        """Check that no other VC, and no virtual path, has the VC's numbers on a line of its path."""
        for piece in pieces(vc.path):
            vpi = vpi_on(vc, piece, self.network)
            where = f"from {piece[0]} to {piece[1]}"
            for vp in self.network.vps:
                if vp.name not in vc.vps and vp.vpi == vpi and {piece, piece[::-1]} & set(pieces(vp.path)):
                    raise ConfigProblem(f"{key}.vpi", f"VPI {vpi} is that of the virtual path {vp.name!r} {where}")
            other = self._numbers.get((piece, vpi, vc.vci))
            if other is not None:
                what = f"VPI/VCI {vpi}/{vc.vci} is used twice {where}: by {other!r} and {vc.name!r}"
                raise ConfigProblem(f"{key}.vci", what)

    def paths(self, key: str, place: str, source: str, sinks: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the shortest paths from one host to some: a tree."""
        if len(set(sinks)) < len(sinks):
            raise ConfigProblem(place, "a host is named twice")
        return [self.routes.between(key, source, self.host(place, sink)) for sink in sinks]

    def host(self, key: str, name: str) -> str:
        """Return the name of a host that a document names."""
        if name not in self._lines:
            raise ConfigProblem(key, f"there is no host {name!r}{nearest(name, list(self._lines))}")
        return name

    def _line(self, path: tuple[str, ...]) -> int:
        """Return the rate of the line that a VC begins on."""
        return self._lines[path[0]]

    def check_pacing(self, key: str, pacing: PacingSettings, path: tuple[str, ...]) -> None:
        """Check that a sustained rate is not above the rate of the line."""
        line, rate = self._line(path), pacing.sustained_rate_bps
        if rate is not None and rate > line:
            what = f"{format_rate(rate)} is more than the {format_rate(line)} of {path[0]}'s line"
            raise ConfigProblem(f"{key}.sustained_rate", what)

    def check_continuity(self, key: str, given: ContinuitySettings, paths: Sequence[tuple[str, ...]]) -> None:
        """Check that a VC with a continuity check has two ends, and that both have OAM flows."""
        path = paths[0]
        if given.continuity_check != "none" and len(paths) > 1:
            raise ConfigProblem(
                f"{key}.continuity_check", "the VC leads to several hosts; OAM works with one sink only"
            )
        for host in self.network.hosts if given.continuity_check != "none" else ():
            if host.name in path and not host.interface.oam:
                what = f"host {host.name!r} has no OAM functions: set oam = true for it (or in [hosts])"
                raise ConfigProblem(f"{key}.continuity_check", what)

    def _check_contract(self, key: str, table: VcTable, path: tuple[str, ...], switches: Sequence[str]) -> None:
        """Check that a contract's switch is on the path, and that its rates are not above that of the VC's first
        line."""
        line = self._line(path)
        for name, contract in (("police", table.police), ("shape", table.shape)):
            if contract is None:
                continue
            if contract.at is not None and contract.at not in switches:
                raise ConfigProblem(
                    f"{key}.{name}.at", f"the VC passes {', '.join(switches)}, and no switch {contract.at!r}"
                )
            if contract.pcr_bps > line:
                what = f"{format_rate(contract.pcr_bps)} is more than the {format_rate(line)} of {path[0]}'s line"
                raise ConfigProblem(f"{key}.{name}.pcr", what)

    def add(
        self,
        key: str,
        name: str,
        paths: Sequence[tuple[str, ...]],
        pacing: PacingSettings,
        continuity: ContinuitySettings = ContinuitySettings(),  # noqa: B008
        settings: VcSettings = VcSettings(),  # noqa: B008
    ) -> int:
        """Add a channel, with the lowest VCI that is free with VPI 0, everywhere, and in its virtual paths.

        So a number names one VC in a trace. With several paths the VC to each host is ``NAME.HOST``, and the first is
        the root of the others. Return the number of the first.
        """
        through = [vps_of("network.vps", path, self.network) for path in paths]
        vps = {vp for each in through for vp in each}
        groups = frozenset(("", *vps))
        vci = self._lowest.get(groups, FIRST_VCI)
        while any(vci in self._vcis[group] for group in groups):
            vci += 1
        self._lowest[groups] = vci
        first = len(self.vcs)
        for own in (name, *(f"{name}.{path[-1]}" for path in paths if len(paths) > 1)):
            if own in self.names or own in self._known:
                raise ConfigProblem(key, f"its own VC would have the name {own!r}, which another VC has")
        paced, checks = PacingSettings.part_of(pacing), ContinuitySettings.part_of(continuity)
        for path, crossed in zip(paths, through, strict=True):
            own = name if len(paths) == 1 else f"{name}.{path[-1]}"
            root = first if len(self.vcs) > first else None
            vc = VcSpec(own, path, 0, vci, settings, paced, checks, crossed, root)
            for piece in pieces(path):
                for vp in self.network.vps:
                    if vp.vpi == 0 and vp.name not in crossed and {piece, piece[::-1]} & set(pieces(vp.path)):
                        what = f"VC {own!r} has VPI 0 from {piece[0]} to {piece[1]}, too; give the virtual path another"
                        raise ConfigProblem(f"network.vps.{vp.name}.vpi", what)
            self._add(key.removesuffix(".name"), vc)
        return first

    def leaves(self, root: int) -> list[int]:
        """Return the VC with this index, and those of which it is the root."""
        return self._leaves[root]

    def check(self, problems: Problems) -> None:
        """Check the VCs' policies and limits, and their number at each node.

        A VC has one policy and one limit along its path: its own, or those on which its switches agree. No host and no
        switch has more VCs than its node can have.
        """
        switches = {s.name: s for s in self.network.switches}
        order = {name: place for place, name in enumerate(switches)}
        for vc in self.vcs:
            inside = passed_on(vc, self.network)
            looking = {name for name in vc.path if name in switches and name not in inside}
            path = [switches[name] for name in sorted(looking, key=order.__getitem__)]
            given = vc.settings
            for key, own, instead in (("policy", given.policy, "policy"), ("vc_limit", given.limit, "limit")):
                if not own and len({getattr(s.settings, key) for s in path}) > 1:
                    what = f"{' and '.join(s.name for s in path)} differ in {key}, but VC {vc.name!r} passes both"
                    problems.found.append(
                        ConfigProblem("network.switches", f"{what}; give it its own {instead} in [[vc]]")
                    )
        passing: Counter[str] = Counter()
        full: dict[str, str] = {}  # the table that gives a node one VC too many
        known: set[tuple[int, tuple[str, str]]] = set()
        for index, vc in enumerate(self.vcs):
            tree = index if vc.root is None else vc.root
            new = [piece for piece in pieces(vc.path) if (tree, piece) not in known]
            known.update((tree, piece) for piece in new)
            inside = passed_on(vc, self.network)  # where paths part, the switch has a VC for each
            for node in (vc.path[-1], *(node for node, _ in new if node not in inside)):
                passing[node] += 1
                if passing[node] > MOST_VCS:
                    full.setdefault(node, self.keys[index])
        passing.update(node for vp in self.network.vps for node in (*vp.path[1:-1], *vp.path[1:-1]))
        for node in (*self.network.hosts, *self.network.switches):
            if passing[node.name] > MOST_VCS:
                what = f"{node.name} has {passing[node.name]} VCs, a node has {MOST_VCS} at most"
                problems.found.append(ConfigProblem(full.get(node.name, "network.vps"), what))
        problems.check()
