"""The traffic of an experiment: ``[[flow]]`` tables, and a NetSpec script, to flows on virtual channels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bentpipe.apps.registry import APPLICATIONS, check
from bentpipe.apps.settings import FlowRequest
from bentpipe.errors import ConfigError
from bentpipe.experiment.document.source import ConfigProblem, Problems, Source
from bentpipe.experiment.document.tables import FlowTable, HostsTable, TrafficTable, hosts_of
from bentpipe.experiment.document.tcp_options import make_config
from bentpipe.experiment.resolve.layout import Channels, given_path
from bentpipe.experiment.resolve.specs import FlowSpec, GroupSpec, HostSpec
from bentpipe.netspec.plan import Connection, FlowGroup, read_script
from bentpipe.netspec.syntax import Script
from bentpipe_hdl.nic.control import PacingSettings
from bentpipe_hdl.oam.cells import location_of
from bentpipe_hdl.settings import key_of
from bentpipe_hdl.switch.control import VcSettings
from bentpipe_hdl.ticks import MOST_VCS
from bentpipe_hdl.words import nearest

__all__ = ["read_flows", "read_traffic"]


def read_flows(
    tables: tuple[FlowTable, ...], common: HostsTable, channels: Channels, problems: Problems
) -> list[FlowSpec]:
    """Return the flows of ``[[flow]]``; each without VCs of its own gets two.

    Raises
    ------
    ConfigError
        There is no such host, path or VC; another flow has the name or the VC; the application does not work so.
    """
    reader = _Reader(common, channels, problems.source.folder)
    with problems.gathered():
        reader.check_count(tables)
    problems.check()
    for index, table in enumerate(tables):
        with problems.gathered():
            name = f"flow{index + 1}" if table.name is None else table.name
            for copy in range(1, table.copies + 1):
                own = f"{name}-{copy}" if table.copies > 1 else name
                reader.read(f"flow.{index}", table, own, name if "copies" in table.model_fields_set else None)
    problems.check()
    return reader.flows


class _Reader:
    def __init__(self, common: HostsTable, channels: Channels, folder: Path | None) -> None:
        self.flows: list[FlowSpec] = []
        self._folder = folder
        self._common = common
        self._channels = channels
        self._hosts = {h.name: h for h in channels.network.hosts}
        self._users: dict[int, str] = {}
        self._names: set[str] = set()
        self._of_vc: dict[int, FlowSpec] = {}  # the first flow with a VC, either way
        self._test_ends: dict[tuple[str, str], str] = {}  # flows of test cells, by the end and its host

    def check_count(self, tables: Sequence[FlowTable]) -> None:
        """Refuse more VCs than a node has before any is made: of 100,000 copies that would take too long."""
        counts: Counter[str] = Counter()
        full: dict[str, str] = {}
        for index, table in enumerate(tables):
            with suppress(ConfigProblem):  # which is said when the table is read
                paths = self._paths(f"flow.{index}", table)
                each = (table.vc is None) + (table.return_vc is None and len(paths) == 1 and table.protocol != "atm")
                whole = len(paths) == 1 and not self._channels.network.vps
                ends = [paths[0][0], *(path[-1] for path in paths)]
                for node in dict.fromkeys(paths[0] if whole else ends):
                    counts[node] += each * table.copies
                    if counts[node] > MOST_VCS:
                        full.setdefault(node, f"flow.{index}.copies")
        for node, key in full.items():
            raise ConfigProblem(key, f"{node} has {counts[node]} VCs, a node has {MOST_VCS} at most")

    def read(self, place: str, table: FlowTable, name: str, group: str | None) -> None:
        paths = self._paths(place, table)
        several = len(paths) > 1
        names = [f"{name}.{path[-1]}" if several else name for path in paths]
        for own in names:
            if own in self._names:
                raise ConfigProblem(f"{place}.name", f"there is a flow {own!r} already")
        source, *sinks = (self._hosts[end] for end in (paths[0][0], *(path[-1] for path in paths)))
        settings = table.settings
        size = table.size if isinstance(table.size, int) else None
        mtu = min(host.config.mtu for host in (source, *sinks))
        given = FlowRequest(
            table.protocol,
            settings,
            size,
            table.duration_ps or 0,
            table.datagram,
            mtu,
            source.config.interface_queue,
            sinks=len(sinks),
            folder=self._folder,
        )
        if problem := check(table.app, given):
            key, what = problem
            raise ConfigProblem(f"{place}.{key}" if key in table.given_names else place, what)
        self._check_protocol(place, table, name, paths)
        vc = self._vc(f"{place}.vc", table.vc, paths, table, table, name)
        back = None
        if not several and table.protocol != "atm":
            way, own = [paths[0][::-1]], f"{name}.return"
            back = self._vc(f"{place}.return_vc", table.return_vc, way, PacingSettings(), table, own)
        other = self._of_vc.get(vc)
        if other is not None and back not in (other.vc, other.return_vc):
            raise ConfigProblem(f"{place}.return_vc", f"{other.name!r} has another value for the same VC")
        own = {} if table.tcp is None else table.tcp.given()
        tcp = None
        if table.protocol == "tcp":
            tcp = make_config(self._common.tcp.given() | own, mtu, f"{place}.tcp" if own else "hosts.tcp")
        first = len(self.flows)
        to = {self._channels.vcs[leaf].path[-1]: leaf for leaf in self._channels.leaves(vc)}
        for own, sink in zip(names, sinks, strict=True):
            flow = FlowSpec(
                name=own,
                source=source.name,
                sink=sink.name,
                protocol=table.protocol,
                app=table.app,
                settings=settings,
                size=size,
                duration_ps=table.duration_ps,
                datagram=table.datagram,
                start_ps=table.start_ps,
                vc=to[sink.name],
                return_vc=back,
                tcp=tcp,
                first=first if len(self.flows) > first else None,
                group=group,
            )
            self.flows.append(flow)
            self._names.add(own)
            for way in (flow.vc, flow.return_vc):
                if way is not None:
                    self._of_vc.setdefault(way, flow)

    def _check_protocol(self, place: str, table: FlowTable, name: str, paths: list[tuple[str, ...]]) -> None:
        """Check that the flow's protocol is possible with its hosts and VCs."""
        if len(paths) > 1 and table.return_vc is not None:
            raise ConfigProblem(f"{place}.return_vc", "several sinks send no answers")
        if table.protocol == "oam":
            ends = self._hosts[paths[0][0]], self._hosts[paths[0][-1]]
            self._check_loopback(place, table.settings["at"], paths[0], *ends)
        if table.protocol == "atm":
            self._check_test_cells(place, table, name, paths[0])

    @staticmethod
    def _check_loopback(place: str, at: str | None, path: tuple[str, ...], source: HostSpec, sink: HostSpec) -> None:
        """Check that the hosts are ends of OAM flows, and that a switch which sends cells back is on the path."""
        for host in (source,) if at else (source, sink):
            if not host.interface.oam:
                raise ConfigProblem(
                    place, f"host {host.name!r} has no OAM functions: set oam = true for it (or in [hosts])"
                )
        try:
            location = location_of(at) if at and at not in path[1:-1] else None
        except ValueError as error:
            raise ConfigProblem(f"{place}.at", str(error)) from None
        if location is not None and len(at or "") != 2 * len(location):
            raise ConfigProblem(f"{place}.at", f"the flow passes {', '.join(path[1:-1])}, and no switch {at!r}")

    def _check_test_cells(self, place: str, table: FlowTable, name: str, path: tuple[str, ...]) -> None:
        """Check that no other flow uses the interfaces' generator and analyser of test cells.

        The switches may not discard by frames, since test cells are not part of frames.
        """
        if table.return_vc is not None:
            raise ConfigProblem(f"{place}.return_vc", "no test cells come back")
        for key, what, host in (("source", "generator", path[0]), ("sink", "analyser", path[-1])):
            other = self._test_ends.setdefault((key, host), name)
            if other != name:
                raise ConfigProblem(f"{place}.{key}", f"{host!r} has one {what} of test cells, which {other!r} uses")
        if table.vc is None or table.vc not in self._channels.names:
            return
        settings = self._channels.vcs[self._channels.names[table.vc]].settings
        for switch in self._channels.network.switches:
            policy = settings.policy or switch.settings.policy
            if switch.name in path and policy != "tail" and settings.credits is None:
                what = (
                    f'{policy} in {switch.name} drops frames, and test cells are in none: give the VC policy = "tail"'
                )
                raise ConfigProblem(f"{place}.vc", what)

    def _paths(self, place: str, table: FlowTable) -> list[tuple[str, ...]]:
        """Return the paths of a flow's data: its ``path``, or else the shortest."""
        network = self._channels.network
        source, sinks = self._channels.host(f"{place}.source", table.source), hosts_of(table.sink)
        if table.path is None:
            return self._channels.paths(place, f"{place}.sink", source, sinks)
        if len(sinks) != 1:
            raise ConfigProblem(f"{place}.path", "leads to one sink; the paths to several sinks are the shortest ones")
        ends = (source, self._channels.host(f"{place}.sink", sinks[0]))
        path = given_path(f"{place}.path", table.path, network)
        if (path[0], path[-1]) != ends:
            what = f"leads from {path[0]!r} to {path[-1]!r}, the flow from {ends[0]!r} to {ends[1]!r}"
            raise ConfigProblem(f"{place}.path", what)
        return [path]

    def _vc(
        self,
        key: str,
        name: str | None,
        paths: list[tuple[str, ...]],
        pacing: PacingSettings,
        table: FlowTable,
        own: str,
    ) -> int:
        """Return the VC that is named, or a new one with the name ``own``; of one with several leaves the root. An OAM
        flow may share it with another flow."""
        place = key.rpartition(".")[0]
        if name is None:
            self._channels.check_pacing(place, pacing, paths[0])
            self._channels.check_continuity(place, table, paths)
            settings = VcSettings(policy="tail") if table.protocol == "atm" else VcSettings()
            return self._channels.add(f"{place}.name", own, paths, pacing, table, settings)
        names = self._channels.names
        if name not in names:
            raise ConfigProblem(key, f"there is no VC {name!r}{nearest(name, names)}")
        index = names[name]
        vc = self._channels.vcs[index]
        flow = own.removesuffix(".return")
        for given in PacingSettings.model_fields:
            if getattr(pacing, given) is not None:
                raise ConfigProblem(f"{place}.{key_of(given)}", f"the VC {name!r} has its own pacing")
        if table.continuity_check != "none":
            raise ConfigProblem(f"{place}.continuity_check", f"the VC {name!r} has its own")
        ends = [self._channels.vcs[leaf].path[-1] for leaf in self._channels.leaves(index)]
        if vc.path[0] != paths[0][0] or {*ends} != {path[-1] for path in paths}:
            raise ConfigProblem(key, f"the VC {name!r} leads from {vc.path[0]!r} to {', '.join(map(repr, ends))}")
        if table.protocol == "oam":
            return index
        if index in self._users:
            raise ConfigProblem(key, f"the VC {name!r} is used twice: by {self._users[index]!r} and {flow!r}")
        self._users[index] = flow
        return index


def read_traffic(
    table: TrafficTable, common: HostsTable, channels: Channels, source: Source, numbered: int
) -> tuple[list[FlowSpec], GroupSpec, str]:
    """Return the flows of ``[traffic]``, their order, and the script.

    Between two hosts there is one VC each way, which all connections share, as IP over ATM has it (RFC 1577
    section 5). One that was laid out by hand is taken.

    Parameters
    ----------
    numbered : int
        Flows there are already.

    Raises
    ------
    ConfigError
        With line and column of the script.
    """
    script = _script(table, source)
    hosts = {h.name: h for h in channels.network.hosts}
    single = {root for root in range(len(channels.vcs)) if len(channels.leaves(root)) == 1}
    pairs = {(vc.path[0], vc.path[-1]): index for index, vc in reversed([*enumerate(channels.vcs)]) if index in single}
    flows: list[FlowSpec] = []

    def channel(connection: Connection, a: str, b: str) -> int:
        if (a, b) not in pairs:
            path = channels.routes.shortest(a, b)
            if path is None:
                raise script.error(connection.place, f"no lines lead from {a!r} to {b!r}")
            pairs[a, b] = channels.add("traffic", f"{a}-{b}", [path], table)
        return pairs[a, b]

    def flow(connection: Connection) -> int:
        a, b = (_host(script, connection, end, hosts) for end in ("transmit", "receive"))
        if a == b:
            raise script.error(connection.where("receive"), f"sends to itself, {a!r}")
        mtu = min(hosts[a].config.mtu, hosts[b].config.mtu)
        settings = APPLICATIONS[connection.app].defaults(connection.settings)
        given = FlowRequest(
            connection.protocol,
            settings,
            connection.size,
            connection.duration_ps or 0,
            connection.datagram,
            mtu,
            hosts[a].config.interface_queue,
            folder=source.folder,
        )
        if problem := check(connection.app, given):
            raise script.error(connection.where("test"), problem[1])
        own = {key: getattr(connection, key) for key in ("variant", "send_buffer", "receive_buffer")}
        options = common.tcp.given() | {key: value for key, value in own.items() if value is not None}
        flows.append(
            FlowSpec(
                name=connection.name,
                source=a,
                sink=b,
                protocol=connection.protocol,
                app=connection.app,
                settings=settings,
                size=connection.size,
                duration_ps=connection.duration_ps,
                datagram=connection.datagram,
                start_ps=connection.delay_ps,
                vc=channel(connection, a, b),
                return_vc=channel(connection, b, a),
                tcp=make_config(options, mtu, "hosts.tcp") if connection.protocol == "tcp" else None,
            )
        )
        return numbered + len(flows) - 1

    def stage(group: FlowGroup) -> GroupSpec:
        members = [flow(m) if isinstance(m, Connection) else stage(m) for m in group.members]
        return GroupSpec(group.serial, group.delay_ps, tuple(members))

    plan = stage(read_script(script))
    return flows, plan, script.text


def _host(script: Script, connection: Connection, end: str, hosts: Mapping[str, HostSpec]) -> str:
    """Return the host at an end of a connection, which names it by its name or by its address."""
    name = getattr(connection, end)
    names = {host.address: host.name for host in hosts.values() if host.address} | {each: each for each in hosts}
    if name not in names:
        raise script.error(connection.where(end), f"there is no host {name!r}{nearest(name, names)}")
    return names[name]


def _script(table: TrafficTable, source: Source) -> Script:
    """Return the script of ``netspec``: in the file itself, or beside it."""
    text, file = table.netspec, source.owner("traffic.netspec")
    if "\n" in text or "{" in text:
        return Script(text, file.name, _first_line(file))
    given_here = "traffic.netspec" in source.overrides
    path = Path(text) if given_here or file.folder is None else file.folder / text
    try:
        return Script(path.read_bytes().decode("utf-8-sig"), path.name)
    except OSError as error:
        raise source.error(ConfigProblem("traffic.netspec", f"{path}: {error.strerror or error}")) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None


def _first_line(source: Source) -> int:
    """Return the line of the file at which a script in it begins; 1 if it came from the command line."""
    line = source.line("traffic.netspec")
    if line is None:
        return 1
    opening = source.text.splitlines()[line - 1].rstrip()
    return line + 1 if opening.endswith(('"""', "'''")) else line
