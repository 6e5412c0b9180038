"""The traffic of an experiment: ``[[flow]]`` tables, or a NetSpec script, to flows on virtual channels."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import ConfigError
from bentpipe.experiment import tcp_options
from bentpipe.experiment.applications import APPLICATIONS, check_values, read_values
from bentpipe.experiment.layout import free_vci, shortest_path
from bentpipe.experiment.schema import FlowSpec, GroupSpec, NetworkSpec, VcSpec
from bentpipe.experiment.table import Source, Table
from bentpipe_hdl.words import nearest

__all__ = [
    "FLOW_KEYS",
    "HOST_COMMON",
    "TRAFFIC_KEYS",
    "given_path",
    "host_name",
    "path_between",
    "read_flows",
    "read_traffic",
]

_COMMON: Final = (
    "name",
    "source",
    "sink",
    "path",
    "protocol",
    "app",
    "size",
    "duration",
    "datagram",
    "start",
    "cell_rate",
    "vc",
    "return_vc",
    "tcp",
)
FLOW_KEYS: Final = tuple(dict.fromkeys((*_COMMON, *(s.name for kind in APPLICATIONS.values() for s in kind.settings))))
TRAFFIC_KEYS: Final = ("netspec", "cell_rate")
PROTOCOLS: Final = ("tcp", "udp")
HOST_COMMON: Final = (
    "profile",
    "cost",
    "send_cost",
    "receive_cost",
    "cost_spread",
    "clock_hz",
    "clock_cost",
    "clock_tolerance",
    "mtu",
    "interface_queue",
    "timer_phase",
)


def host_name(table: Table, key: str, network: NetworkSpec) -> str:
    """The host that a key names."""
    name = table.text(key)
    names = [h.name for h in network.hosts]
    if name not in names:
        raise table.error(key, f"there is no host {name!r}{nearest(name, names)}")
    return name


def path_between(table: Table, network: NetworkSpec, source: str, sink: str) -> tuple[str, ...]:
    """The shortest path between two hosts."""
    if source == sink:
        raise table.error("", f"source and sink are the same host, {source!r}")
    path = shortest_path(network, source, sink)
    if path is None:
        raise table.error("", f"no lines lead from {source!r} to {sink!r}")
    return path


def given_path(table: Table, network: NetworkSpec) -> tuple[str, ...]:
    """The nodes that ``path`` lists, from a host over switches to another host.

    Raises
    ------
    ConfigError
        No such node, no line from one to the next, or a node is passed twice: only a line in loop-back leads from a
        switch to itself.
    """
    path = table.items("path")
    hosts = {h.name: h.port.switch for h in network.hosts}
    joined = {frozenset(end.switch for end in line.ends) for line in network.lines}
    nodes = [*hosts, *(s.name for s in network.switches)]
    for node in path:
        if not isinstance(node, str) or node not in nodes:
            raise table.error("path", f"there is no node {node!r}{nearest(str(node), nodes)}")
    if len(path) < 3 or path[0] not in hosts or path[-1] not in hosts or path[0] == path[-1]:
        raise table.error("path", "a path leads from a host over switches to another host")
    for a, b in itertools.pairwise(path):
        if hosts.get(a) != b and hosts.get(b) != a and frozenset((a, b)) not in joined:
            loop = "; no line of it is in loop-back" if a == b else ""
            raise table.error("path", f"no line joins {a!r} and {b!r}{loop}")
    # A switch stands twice in a row where the path passes its looped line.
    passed = [(node, len(list(times))) for node, times in itertools.groupby(path)]
    if len({node for node, _ in passed}) != len(passed) or any(times > 2 for _, times in passed):
        raise table.error("path", "a path passes a node once, and a line in loop-back once")
    return tuple(path)


def _flow_path(table: Table, network: NetworkSpec, source: str, sink: str) -> tuple[str, ...]:
    """The way of a flow's data: its ``path``, or else the shortest."""
    if "path" not in table:
        return path_between(table, network, source, sink)
    path = given_path(table, network)
    if (path[0], path[-1]) != (source, sink):
        raise table.error("path", f"leads from {path[0]!r} to {path[-1]!r}, the flow from {source!r} to {sink!r}")
    for key in ("vc", "return_vc"):
        if key in table:
            raise table.error(key, "the VC has its own path; give either 'path' or 'vc' and 'return_vc'")
    return path


def _hosts_tcp(top: Table) -> tuple[Table, dict[str, Any]]:
    common = top.sub("hosts", (*HOST_COMMON, "tcp"))
    tcp = common.sub("tcp", tcp_options.known_keys())
    tcp_options.note_defaults(tcp)
    return common, tcp_options.read_options(tcp)


def read_flows(top: Table, network: NetworkSpec, vcs: list[VcSpec], names: dict[str, int]) -> list[FlowSpec]:
    """The flows of ``[[flow]]``; each without VCs of its own in ``vcs`` gets two, which are added there.

    Parameters
    ----------
    names : dict
        Index of each VC in ``vcs`` that was laid out by hand, by its name.
    """
    common, common_tcp = _hosts_tcp(top)
    hosts = {h.name: h for h in network.hosts}
    flows: list[FlowSpec] = []
    users: dict[int, str] = {}
    for index, table in enumerate(top.array("flow", FLOW_KEYS), 1):
        name = table.text("name", f"flow{index}")
        if name in [f.name for f in flows]:
            raise table.error("name", f"there is a flow {name!r} already")
        source, sink = (host_name(table, key, network) for key in ("source", "sink"))
        path = _flow_path(table, network, source, sink)
        ends = []
        for key, way, rate in (
            ("vc", path, table.rate("cell_rate", None)),
            ("return_vc", tuple(reversed(path)), None),
        ):
            ends.append(_flow_vc(table, key, way, rate, name, vcs, names, users))
        kind = APPLICATIONS[table.text("app", "ttcp", choices=tuple(APPLICATIONS))]
        protocol = table.text("protocol", "tcp", choices=PROTOCOLS)
        _check_keys(table, kind.name, protocol)
        settings = read_values(table, kind)
        datagram = table.size("datagram", None, high=65507)
        size = None if table.data.get("size") == "endless" else table.size("size", None)
        _check(table, kind.name, protocol, settings, size)
        own_tcp = tcp_options.read_options(table.sub("tcp", tcp_options.known_keys()))
        mtu = min(hosts[source].mtu, hosts[sink].mtu)
        if protocol == "udp":
            problem = udp_problem(kind.name, settings, size, datagram, mtu, hosts[source].interface_queue)
            if problem:
                raise table.error(problem[0] if problem[0] in table else "", problem[1])
        flows.append(
            FlowSpec(
                name=name,
                source=source,
                sink=sink,
                protocol=protocol,
                app=kind.name,
                settings=settings,
                size=size,
                duration_ps=table.time("duration", None, low=1),
                datagram=datagram,
                start_ps=table.time("start", 0),
                vc=ends[0],
                return_vc=ends[1],
                tcp=None
                if protocol == "udp"
                else tcp_options.make_config(common_tcp | own_tcp, mtu, table if own_tcp else common),
            )
        )
    return flows


def _check_keys(table: Table, app: str, protocol: str) -> None:
    """Keys that are known, but of another application or protocol."""
    own = {s.name for s in APPLICATIONS[app].settings}
    for key in table.data:
        if key not in _COMMON and key not in own:
            raise table.error(key, f"{app} has no such setting{nearest(key, own)}")
    if protocol == "tcp" and "datagram" in table:
        raise table.error("datagram", 'goes with protocol = "udp"')
    if protocol == "udp" and "tcp" in table:
        raise table.error("tcp", 'goes with protocol = "tcp"')


def _check(table: Table, app: str, protocol: str, settings: Mapping[str, Any], size: int | None) -> None:
    problem = check_values(app, protocol, settings, size)
    if problem:
        raise table.error(problem[0] if problem[0] in table else "", problem[1])


def udp_problem(
    app: str, settings: Mapping[str, Any], size: int | None, datagram: int | None, mtu: int, interface_queue: int
) -> tuple[str, str] | None:
    """Why a flow can't run over UDP: the setting and the reason; None if it can."""
    from bentpipe.experiment.applications import UDP_WRITE
    from bentpipe.hosts.udp import STAMP_OCTETS, datagram_octets

    try:
        datagram_octets(datagram or 0, mtu)
        if app == "ttcp":
            datagram_octets(settings["write"] or min(UDP_WRITE, mtu - 28), mtu)
    except ValueError as error:
        return ("write" if app == "ttcp" else "datagram"), str(error)
    if app == "ttcp" and not interface_queue:
        return (
            "app",
            "full blast over UDP is held back by the interface's queue alone: give the host an interface_queue",
        )
    blocks = settings.get("block", STAMP_OCTETS)
    if min(blocks if isinstance(blocks, tuple) else (blocks,)) < STAMP_OCTETS:
        return "block", f"over UDP a block has {STAMP_OCTETS} octets and more: it carries a stamp"
    return None


def _flow_vc(
    table: Table,
    key: str,
    path: tuple[str, ...],
    rate: int | None,
    flow: str,
    vcs: list[VcSpec],
    names: dict[str, int],
    users: dict[int, str],
) -> int:
    if key not in table:
        suffix = "" if key == "vc" else ".return"
        vcs.append(VcSpec(f"{flow}{suffix}", path, 0, free_vci(vcs), rate, None, 0, None))
        return len(vcs) - 1
    name = table.text(key)
    if name not in names:
        raise table.error(key, f"there is no VC {name!r}{nearest(name, names)}")
    index = names[name]
    if rate is not None:
        raise table.error("cell_rate", f"the VC {name!r} has its own cell rate")
    if (vcs[index].path[0], vcs[index].path[-1]) != (path[0], path[-1]):
        raise table.error(key, f"the VC {name!r} leads from {vcs[index].path[0]!r} to {vcs[index].path[-1]!r}")
    if index in users:
        raise table.error(key, f"the VC {name!r} is used twice: by {users[index]!r} and {flow!r}")
    users[index] = flow
    return index


def read_traffic(
    top: Table, network: NetworkSpec, vcs: list[VcSpec], folder: Path | None, numbered: int
) -> tuple[list[FlowSpec], GroupSpec | None, str]:
    """The flows of ``[traffic]``, their order, and the script.

    Between two hosts there is one VC each way, which all connections share, as IP over ATM has it (RFC 1577
    section 5). One that was laid out by hand is taken.

    Parameters
    ----------
    folder : Path or None
        Where a script's file is looked for.
    numbered : int
        Flows there are already.
    """
    if "traffic" not in top:
        return [], None, ""
    table = top.sub("traffic", TRAFFIC_KEYS)
    from bentpipe.netspec.plan import Connection, Group, read_script

    script = _script(table, folder)
    plan = read_script(script)
    rate = table.rate("cell_rate", None)
    common, common_tcp = _hosts_tcp(top)
    hosts = {h.name: h for h in network.hosts}
    pairs: dict[tuple[str, str], int] = {}
    for index, vc in reversed([*enumerate(vcs)]):
        pairs[vc.path[0], vc.path[-1]] = index
    flows: list[FlowSpec] = []

    def host(connection: Connection, end: str) -> str:
        name = getattr(connection, end)
        if name in hosts:
            return name
        raise script.error(connection.where(end), f"there is no host {name!r}{nearest(name, hosts)}")

    def channel(connection: Connection, a: str, b: str) -> int:
        if (a, b) not in pairs:
            path = shortest_path(network, a, b)
            if path is None:
                raise script.error(connection.place, f"no lines lead from {a!r} to {b!r}")
            pairs[a, b] = len(vcs)
            vcs.append(VcSpec(f"{a}-{b}", path, 0, free_vci(vcs), rate, None, 0, None))
        return pairs[a, b]

    def flow(connection: Connection) -> int:
        a, b = host(connection, "transmit"), host(connection, "receive")
        if a == b:
            raise script.error(connection.where("receive"), f"transmits to itself, {a!r}")
        mtu = min(hosts[a].mtu, hosts[b].mtu)
        udp = connection.protocol == "udp"
        settings = _defaults(connection.app, connection.settings)
        problem = check_values(connection.app, connection.protocol, settings, connection.size)
        if udp and problem is None:
            problem = udp_problem(
                connection.app, settings, connection.size, connection.datagram, mtu, hosts[a].interface_queue
            )
        if problem:
            raise script.error(connection.where("test"), problem[1])
        options = dict(common_tcp)
        if connection.variant is not None:
            options["variant"] = connection.variant
        if connection.send_buffer is not None:
            options["send_buffer"] = connection.send_buffer
        if connection.receive_buffer is not None:
            options["receive_buffer"] = connection.receive_buffer
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
                tcp=None if udp else tcp_options.make_config(options, mtu, common),
            )
        )
        return numbered + len(flows) - 1

    def stage(group: Group) -> GroupSpec:
        members = [flow(m) if isinstance(m, Connection) else stage(m) for m in group.members]
        return GroupSpec(group.serial, group.delay_ps, tuple(members))

    return flows, stage(plan), script.text


def _script(table: Table, folder: Path | None) -> Any:
    """The script of ``netspec``: in the file itself, or beside it."""
    from bentpipe.netspec.syntax import Script

    text = table.text("netspec")
    if "\n" in text or "{" in text:
        return Script(text, table.source.name, _first_line(table.source))
    given_here = "traffic.netspec" in table.source.overrides
    path = Path(text) if given_here or folder is None else folder / text
    try:
        return Script(path.read_bytes().decode("utf-8-sig"), path.name)
    except OSError as error:
        raise table.error("netspec", f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None


def _first_line(source: Source) -> int:
    """Line of the file at which a script that stands in it begins; 1 if it came from the command line."""
    line = source.line("traffic.netspec")
    if line is None:
        return 1
    opening = source.text.splitlines()[line - 1].rstrip()
    return line + 1 if opening.endswith(('"""', "'''")) else line


def _defaults(app: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the defaults of the application for what is not given."""
    values = {}
    for setting in APPLICATIONS[app].settings:
        given = settings.get(setting.name)
        values[setting.name] = setting.default if given is None else given
    return values
