"""From a document to an experiment: what its tables say of each other.

The second of three steps from a file to an experiment; the first is :mod:`bentpipe.experiment.document.tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from bentpipe.experiment.document.source import ConfigProblem, Problems, Source
from bentpipe.experiment.document.tables import (
    Document,
    ExpectTable,
    LossTable,
    PublishedTable,
    RareTimeoutTable,
    RecordTable,
    SplittingTable,
    TheoryTable,
    defaults,
    hosts_of,
)
from bentpipe.experiment.resolve.captures import parse_capture
from bentpipe.experiment.resolve.events import read_events
from bentpipe.experiment.resolve.flows import read_flows, read_traffic
from bentpipe.experiment.resolve.known import features, known_figures
from bentpipe.experiment.resolve.layout import Channels
from bentpipe.experiment.resolve.network import read_network
from bentpipe.experiment.resolve.paths import pieces, read_paths
from bentpipe.experiment.resolve.profiles import read_profiles
from bentpipe.experiment.resolve.specs import Experiment, FlowSpec, LossSpec, NetworkSpec, RecordSpec, Tables
from bentpipe.results.knees import FIGURES
from bentpipe_hdl.words import nearest

__all__ = ["parse_experiment"]

_DEFAULT_METRIC: Final = {
    "throughput": "goodput",
    "aggregate throughput": "sum_of_flow_rates",
    "fairness index": "fairness",
    "share of 134.5 Mb/s": "share",
}


def parse_experiment(
    document: dict[str, Any],
    source: Source,
    *,
    seed: int | None = None,
    duration_ps: int | None = None,
    quick: bool = False,
) -> Experiment:
    """Validate a document.

    Parameters
    ----------
    document : dict
        As ``tomllib`` gives it, settings of the command line already in it.
    source : Source
        Names the file in messages.
    seed, duration_ps : int, optional
        Instead of the document's.
    quick : bool
        Run for the document's ``experiment.quick`` only.

    Raises
    ------
    ConfigError
        A line for each thing that is wrong, with the file, the key, and what is wrong with it.
    """
    tables = source.read(Document, document)
    if tables.extends is not None:
        raise source.error(
            ConfigProblem("extends", "can't be set: it stands in a file, and is read before settings are")
        )
    source.defaults.update(defaults(tables))
    problems = Problems(source)
    head = tables.experiment
    if quick and head.quick_ps is None:
        raise source.error(ConfigProblem("experiment", "the experiment declares no 'quick' duration; use --duration"))
    run_ps = duration_ps if duration_ps is not None else head.quick_ps if quick and head.quick_ps else head.duration_ps
    used_seed = head.seed if seed is None else seed
    network = read_network(tables, used_seed, problems)
    network = replace(network, vps=read_paths(tables.network.vps, network, problems))
    channels = Channels(tables.vc, network, problems)
    flows = read_flows(tables.flow, tables.hosts, channels, problems)
    schedule, script = None, ""
    if tables.traffic is not None:
        with problems.gathered():
            scripted, schedule, script = read_traffic(tables.traffic, tables.hosts, channels, source, len(flows))
            names = [flow.name for flow in flows]
            problems.found += [
                ConfigProblem("traffic", f"there are two flows {f.name!r}") for f in scripted if f.name in names
            ]
            flows += scripted
        problems.check()
    if not flows:
        problems.found.append(ConfigProblem("", "there is no flow ([[flow]], or a script in [traffic])"))
    problems.check()
    channels.check(problems)
    losses = _losses(tables.loss, channels, problems)
    record = _record(tables.record, run_ps, network, problems)
    known = [*known_figures(flows, channels.vcs, network, has=features(tables, record.losses > 0))]
    published = _published(tables, known, flows, problems)
    expect = _expect(tables, known, problems)
    for metric in head.shows:
        if metric not in known:
            what = f"unknown value {metric!r}{nearest(metric, known)}"
            problems.found.append(ConfigProblem("experiment.shows", what))
    theory = _theory(tables, network, flows, problems)
    _rare(tables, network, flows, problems)
    made = Experiment(
        id=head.id,
        title=head.title,
        paper=head.paper,
        figure=head.figure,
        description=head.description.strip(),
        duration_ps=run_ps,
        quick_ps=head.quick_ps,
        full_ps=head.duration_ps,
        seed=used_seed,
        network=network,
        vcs=tuple(channels.vcs),
        flows=tuple(flows),
        schedule=schedule,
        netspec=script,
        losses=losses,
        record=record,
        published=published,
        theory=theory,
        splitting=tables.splitting,
        rare_timeout=tables.rare_timeout,
        expect=expect,
        file=source.name,
        folder=source.folder,
        document=document,
        axis=head.axis,
        shows=head.shows,
        tables=_tables(tables, channels, flows),
    )
    return _with_changes(made, tables, source) if tables.event or tables.profile else made


def _with_changes(first: Experiment, tables: Document, source: Source) -> Experiment:
    """Return the experiment with its events and profiles."""

    def read(changed: dict[str, Any], named: Source) -> Experiment:
        return parse_experiment(changed, named, seed=first.seed, duration_ps=first.duration_ps)

    events = read_events(tables.event, first.document, source, first, read)
    return replace(first, events=events, profiles=read_profiles(tables.profile, first.document, source, first, read))


def _tables(document: Document, channels: Channels, flows: Sequence[FlowSpec]) -> Tables:
    own = [f"flow.{number}" for number, t in enumerate(document.flow) for _ in range(t.copies * len(hosts_of(t.sink)))]
    by_time = sorted(enumerate(document.event), key=lambda pair: pair[1].at_ps)
    return Tables(
        tuple(channels.keys),
        (*own, *("traffic" for _ in flows[len(own) :])),
        tuple(f"event.{number}.set" for number, _ in by_time),
    )


def _losses(tables: Sequence[LossTable], channels: Channels, problems: Problems) -> tuple[LossSpec, ...]:
    """Return the listed losses: each of a VC that is there, on a line that it passes."""
    names = [vc.name for vc in channels.vcs]
    lines = {line.name: line for line in channels.network.lines}
    found: dict[tuple[str, str], LossSpec] = {}
    for number, table in enumerate(tables):
        place = f"loss.{number}"
        with problems.gathered():
            if table.line not in lines:
                raise ConfigProblem(f"{place}.line", f"there is no line {table.line!r}{nearest(table.line, lines)}")
            if table.vc not in names:
                raise ConfigProblem(f"{place}.vc", f"there is no VC {table.vc!r}{nearest(table.vc, names)}")
            index = names.index(table.vc)
            root = channels.vcs[index].root
            tree = names[index if root is None else root]  # its leaves have one VPI/VCI
            if (table.line, tree) in found:
                raise ConfigProblem(f"{place}.vc", f"{table.vc!r} has losses on {table.line!r} already")
            ends = {end.switch for end in lines[table.line].ends}
            way = next((piece for piece in pieces(channels.vcs[index].path) if set(piece) == ends), None)
            if way is None:
                raise ConfigProblem(f"{place}.vc", f"{table.vc!r} does not pass the line {table.line!r}")
            pdus, cells = (tuple(sorted(set(numbers))) for numbers in (table.pdus, table.cells))
            found[table.line, tree] = LossSpec(index, way, pdus, cells)
    return tuple(found.values())


def _record(table: RecordTable, run_ps: int, network: NetworkSpec, problems: Problems) -> RecordSpec:
    if run_ps // table.interval_ps > 1_000_000:
        what = "more than a million intervals fit into the run; record less often"
        problems.found.append(ConfigProblem("record.interval", what))
    captures = []
    for text in table.pcap:
        try:
            captures.append(parse_capture(text, network))
        except ValueError as error:
            problems.found.append(ConfigProblem("record.pcap", str(error)))
    most = table.losses_most if table.losses else 0
    return RecordSpec(table.interval_ps, table.what, tuple(dict.fromkeys(captures)), most)


def _theory(
    tables: Document, network: NetworkSpec, flows: list[FlowSpec], problems: Problems
) -> tuple[TheoryTable, ...]:
    """Check that the series of predicted figures can exist, and return their tables."""
    owners = [flow.name for flow in flows]
    for switch in network.switches:
        owners += [switch.name, *(f"{switch.name}:{port}" for port in range(len(switch.ports)))]
    for number, table in enumerate(tables.theory):
        if table.metric and (what := _not_counted(table.metric, tables.splitting)):
            problems.found.append(ConfigProblem(f"theory.{number}.metric", what))
        for key in () if table.metric else ("growth", "per"):
            owner, _, series = getattr(table, key).partition(".")
            if owner not in owners:
                what = f"no flow, switch or port is called {owner!r}{nearest(owner, owners)}"
                problems.found.append(ConfigProblem(f"theory.{number}.{key}", what))
            elif not series:
                what = f"{owner!r} alone is no series: give one of it, as {owner}.drops.full"
                problems.found.append(ConfigProblem(f"theory.{number}.{key}", what))
    return tables.theory


def _not_counted(metric: str, table: SplittingTable | None) -> str:
    """Return why splitting has no such figure; "" if it has."""
    if table is None:
        return "is a figure of [splitting], which there isn't"
    if ("delay" in metric) == (table.delay_ps is not None):
        return ""
    return "needs 'delay' in [splitting]" if "delay" in metric else "is not counted with splitting.delay"


def _rare(tables: Document, network: NetworkSpec, flows: Sequence[FlowSpec], problems: Problems) -> None:
    """Check the tables for rare events, and raise all problems so far."""
    _splitting(tables, network, problems)
    _rare_timeout(tables, network, flows, problems)
    problems.check()


def _splitting(tables: Document, network: NetworkSpec, problems: Problems) -> None:
    """Check that the port of splitting exists, and that nothing is set that splitting cannot be combined with."""
    table = tables.splitting
    if table is not None:
        _queue_levels("splitting", table, network, problems)
        _constant("splitting", tables, network, problems)


def _rare_timeout(tables: Document, network: NetworkSpec, flows: Sequence[FlowSpec], problems: Problems) -> None:
    """Check that the flow and the port of ``[rare_timeout]`` exist, and that nothing is set that splitting cannot be
    combined with."""
    table = tables.rare_timeout
    if table is None:
        return
    by_name = {flow.name: flow for flow in flows}
    flow = by_name.get(table.flow)
    if flow is None:
        what = f"there is no flow {table.flow!r}{nearest(table.flow, by_name)}"
        problems.found.append(ConfigProblem("rare_timeout.flow", what))
    elif flow.protocol != "tcp" or flow.size is None:
        what = f"flow {table.flow} is no transfer: give a TCP flow with a size"
        problems.found.append(ConfigProblem("rare_timeout.flow", what))
    if tables.splitting is not None:
        problems.found.append(ConfigProblem("rare_timeout", "cannot be combined with [splitting]"))
    _queue_levels("rare_timeout", table, network, problems)
    _constant("rare_timeout", tables, network, problems)


def _queue_levels(key: str, table: SplittingTable | RareTimeoutTable, network: NetworkSpec, problems: Problems) -> None:
    """Check the port and the levels of its queue."""
    switches = {switch.name: switch for switch in network.switches}
    switch = switches.get(table.port.switch)
    if switch is None:
        what = f"there is no switch {table.port.switch!r}{nearest(table.port.switch, switches)}"
        problems.found.append(ConfigProblem(f"{key}.port", what))
    elif table.port.port >= len(switch.ports):
        problems.found.append(ConfigProblem(f"{key}.port", f"{switch.name} has no port {table.port.port}"))
    elif table.levels and table.levels[-1] > switch.settings.buffer_cells:
        what = (
            f"{switch.name} has a buffer of {switch.settings.buffer_cells} cells, and never {table.levels[-1]} queued"
        )
        problems.found.append(ConfigProblem(f"{key}.levels", what))


def _constant(key: str, tables: Document, network: NetworkSpec, problems: Problems) -> None:
    """Check that nothing is set that trials cannot have."""
    refused = (
        (tables.event, "event", "splitting needs settings that stay constant"),
        (tables.record.pcap, "record.pcap", "a capture cannot hold the trials"),
        (tables.record.losses, "record.losses", "each trial would copy the records"),
    )
    for given, at, why in refused:
        if given:
            problems.found.append(ConfigProblem(at, f"cannot be combined with [{key}]: {why}"))
    if network.sonet:
        problems.found.append(ConfigProblem(key, 'requires lines of cells: set line = "cell"'))


def _expect(tables: Document, known: Sequence[str], problems: Problems) -> tuple[ExpectTable, ...]:
    for number, table in enumerate(tables.expect):
        if table.metric not in known:
            what = f"unknown value {table.metric!r}{nearest(table.metric, known)}"
            problems.found.append(ConfigProblem(f"expect.{number}.metric", what))
    return tables.expect


def _published(
    tables: Document, known: Sequence[str], flows: list[FlowSpec], problems: Problems
) -> tuple[PublishedTable, ...]:
    rows = []
    known = [*known, "none", *(f"{flow.name}.{figure}" for flow in flows for figure in FIGURES)]
    for number, table in enumerate(tables.published):
        metric = table.metric or _DEFAULT_METRIC.get(table.quantity, "none")
        if metric not in known:
            what = f"unknown value {metric!r}{nearest(metric, known)}"
            problems.found.append(ConfigProblem(f"published.{number}.metric", what))
        rows.append(table.model_copy(update={"metric": "" if metric == "none" else metric}))
    return tuple(rows)
