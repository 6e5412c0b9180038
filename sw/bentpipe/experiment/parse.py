"""From a TOML document to a validated :class:`~bentpipe.experiment.schema.Experiment`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

from bentpipe.captures import parse_capture
from bentpipe.experiment.clocks import CLOCK_TOLERANCE_PPM, MAX_CLOCK_TOLERANCE_PPM, draw_clocks
from bentpipe.experiment.flows import HOST_COMMON, given_path, host_name, path_between, read_flows, read_traffic
from bentpipe.experiment.layout import clash
from bentpipe.experiment.losses import LOSS_KEYS, read_losses
from bentpipe.experiment.schema import (
    Experiment,
    Face,
    FlowSpec,
    HostSpec,
    LineSpec,
    NetworkSpec,
    PublishedRow,
    RecordSpec,
    SwitchSpec,
    VcSpec,
)
from bentpipe.experiment.table import Source, Table
from bentpipe_hdl.ticks import MOST_VCS
from bentpipe_hdl.units import (
    LINE_RATES,
    MAX_RATE_BPS,
    SONET_RATES,
    format_rate,
    format_time,
    parse_rate,
)
from bentpipe_hdl.words import nearest

__all__ = ["METRICS", "SERIES", "parse_experiment"]

SERIES: Final = ("goodput", "cwnd", "ssthresh", "una", "rtt", "lost", "queue", "drops", "events", "segments")
"""What ``record.what`` can name; "segments", an event for each, only if it is named."""

METRICS: Final = ("goodput", "aggregate_goodput", "fairness", "share", "sigma", "none")
"""Figures of ours that a published row can be compared with (``share``: of the best TCP rate, 134.513 Mb/s)."""

_DEFAULT_METRIC: Final = {
    "throughput": "goodput",
    "aggregate throughput": "aggregate_goodput",
    "fairness index": "fairness",
    "share of 134.5 Mb/s": "share",
}

_CLOCK: Final = ("clock_hz", "clock_cost", "clock_tolerance")
_TOP: Final = ("experiment", "network", "hosts", "vc", "flow", "traffic", "loss", "record", "published")
_EXPERIMENT: Final = ("id", "title", "paper", "figure", "description", "duration", "quick", "seed", "axis")
_NETWORK: Final = ("line", "clock_tolerance", "switches", "lines", "hosts")
_SWITCH: Final = (
    "ports",
    "buffer_cells",
    "policy",
    "epd_threshold",
    "clp_threshold",
    "vc_limit",
    "processing_delay",
)
_LINE: Final = ("ends", "rate", "delay", "ber", "line", "clock_tolerance", "ppm")
_KINDS: Final = ("cell", "sonet")
_MAX_PPM: Final = 320.0
_HOST: Final = ("port", "rate", "delay", "line", "line_clock_tolerance", *HOST_COMMON)
_VC: Final = ("name", "path", "from", "to", "vpi", "vci", "cell_rate", "policy", "limit", "epd_threshold")
_RECORD: Final = ("interval", "what", "pcap")
_PUBLISHED: Final = ("quantity", "case", "measured", "predicted", "unit", "source", "metric")
_POLICIES: Final = ("tail", "ppd", "epd")
_MAX_DELAY_PS: Final = 10**12
_MIN_BER: Final = 1e-15
_MAX_BER: Final = 1e-3


def parse_experiment(
    document: dict[str, Any],
    source: Source,
    *,
    seed: int | None = None,
    duration_ps: int | None = None,
    quick: bool = False,
    folder: Path | None = None,
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
    folder : Path, optional
        Where files that the document names are looked for.

    Raises
    ------
    ConfigError
        One line that names the file, the key, and what is wrong with it.
    """
    top = Table(document, "", source, _TOP)
    head = top.sub("experiment", _EXPERIMENT, required=True)
    identifier = head.text("id")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", identifier):
        raise head.error("id", f"{identifier!r} is not a name of letters, digits, '.', '_' and '-'")
    full_ps = head.time("duration", low=1_000_000)
    quick_ps = head.time("quick", None, low=1_000_000)
    if quick and quick_ps is None:
        raise head.error("", "the experiment declares no 'quick' duration; use --duration")
    run_ps = duration_ps if duration_ps is not None else quick_ps if quick and quick_ps else full_ps
    used_seed = seed if seed is not None else head.integer("seed", 1, high=2**32 - 1)
    network = _network(top, used_seed)
    vcs, names = _explicit_vcs(top, network)
    flows = read_flows(top, network, vcs, names)
    scripted, schedule, script = read_traffic(top, network, vcs, folder, len(flows))
    flows += scripted
    if not flows:
        raise top.error("", "there is no flow ([[flow]], or a script in [traffic])")
    _check_names(top, flows)
    _check_policies(top, network, vcs)
    _check_numbers(top, network, vcs)
    return Experiment(
        id=identifier,
        title=head.text("title"),
        paper=head.text("paper", ""),
        figure=head.text("figure", ""),
        description=head.text("description", "").strip(),
        duration_ps=run_ps,
        quick_ps=quick_ps,
        full_ps=full_ps,
        seed=used_seed,
        network=network,
        vcs=tuple(vcs),
        flows=tuple(flows),
        schedule=schedule,
        netspec=script,
        losses=tuple(read_losses(top.array("loss", LOSS_KEYS), network, vcs)),
        record=_record(top, run_ps, network),
        published=tuple(_published(top, flows)),
        file=source.name,
        document=document,
        axis=head.text("axis", ""),
    )


def _face(table: Table, key: str, value: object, ports: dict[str, int]) -> Face:
    match = re.fullmatch(r"([\w-]+):(\d+)", value) if isinstance(value, str) else None
    if match is None:
        raise table.error(key, f'{value!r} is not a port; write "switch:port", as "{next(iter(ports))}:0"')
    name, port = match[1], int(match[2])
    if name not in ports:
        raise table.error(key, f"there is no switch {name!r}{nearest(name, ports)}")
    if port >= ports[name]:
        raise table.error(key, f"switch {name!r} has no port {port}; its ports are 0..{ports[name] - 1}")
    return Face(name, port)


def _network(top: Table, seed: int) -> NetworkSpec:
    table = top.sub("network", _NETWORK, required=True)
    ports: dict[str, list[int | None]] = {}
    switches = list(table.named("switches", _SWITCH))
    for name, switch in switches:
        ports[name] = _ports(switch)
    if not ports:
        raise table.error("", "there is no switch ([network.switches.NAME])")
    counts = {name: len(rates) for name, rates in ports.items()}
    taken: dict[Face, str] = {}

    def take(face: Face, where: Table, key: str, rate: int | None) -> int:
        """Attach something to a port; what the port sends at is the attached rate unless the port has its own."""
        if face in taken:
            raise where.error(key, f"port {face} is taken by {taken[face]}")
        taken[face] = where.path
        own = ports[face.switch][face.port]
        if own is not None and rate is not None and own > rate:
            raise where.error(
                "rate", f"port {face} sends at {format_rate(own)}, more than the line's {format_rate(rate)}"
            )
        return own or rate or LINE_RATES["OC-3c"]

    lines = []
    coming = dict.fromkeys(counts, 0)  # cells of all lines into a switch, and out of it
    going = dict.fromkeys(counts, 0)
    rates = dict.fromkeys(
        (Face(name, port) for name, count in counts.items() for port in range(count)), LINE_RATES["OC-3c"]
    )
    for name, switch in ports.items():
        for port, rate in enumerate(switch):
            rates[Face(name, port)] = rate or LINE_RATES["OC-3c"]
    for name, line in table.named("lines", _LINE):
        ends = line.items("ends")
        if len(ends) != 2:
            raise line.error("ends", f"a line has two ends, not {len(ends)}")
        faces = (_face(line, "ends", ends[0], counts), _face(line, "ends", ends[1], counts))
        given = line.rate("rate", None)
        looped = faces[0] == faces[1]
        sending = [take(face, line, "ends", given) for face in (faces[:1] if looped else faces)]
        rate = given or max(sending)
        kind = _kind(line, table, rate)
        ppm = _ppm(line, kind)
        for face, own in zip(faces, sending, strict=not looped):
            rates[face] = round(own * (1 - abs(ppm) * 1e-6))  # so that a slower payload takes all cells
        delay = line.time("delay", 0, high=_MAX_DELAY_PS)
        ber = _ber(line)
        if looped and ber[0] != ber[1]:
            raise line.error("ber", "a line in loop-back has one direction, so one error ratio")
        for face, far, own in zip(faces, reversed(faces), sending, strict=not looped):
            going[face.switch] += own
            coming[far.switch] += own
        clocks = _clocks(line, "clock_tolerance", table, seed, name)
        lines.append(LineSpec(name, faces, rate, delay, ber, kind, ppm, clocks))

    common = top.sub("hosts", (*HOST_COMMON, "tcp"))
    hosts = []
    for name, host in table.named("hosts", _HOST):
        if name in counts:
            raise host.error("", f"{name!r} is a switch already")
        face = _face(host, "port", host.text("port"), counts)
        rate = host.rate("rate", LINE_RATES["OC-3c"])
        rates[face] = take(face, host, "port", rate)
        going[face.switch] += rates[face]
        coming[face.switch] += rate
        clocks = _clocks(host, "line_clock_tolerance", table, seed, name)
        hosts.append(_host(name, face, rate, host, common, _kind(host, table, rate), clocks))
    if len(hosts) < 2:
        raise table.error("hosts", "an experiment has two hosts and more ([network.hosts.NAME])")
    for name, switch in switches:
        for asked, verb in ((coming[name], "bring"), (going[name], "take")):
            if asked > MAX_RATE_BPS:
                raise switch.error(
                    "ports",
                    f"its lines {verb} up to {format_rate(asked)} of cells together, and a switch moves "
                    f"{format_rate(MAX_RATE_BPS)}: give it fewer lines, or slower ones",
                )
    specs = [_switch(name, switch, [rates[Face(name, p)] for p in range(counts[name])]) for name, switch in switches]
    return NetworkSpec(tuple(specs), tuple(lines), tuple(hosts))


def _ports(switch: Table) -> list[int | None]:
    value = switch.value("ports", 4)
    if not isinstance(value, list):
        return [None] * switch.integer("ports", 4, low=1, high=16)
    if not 1 <= len(value) <= 16:
        raise switch.error("ports", f"a switch has 1 to 16 ports, not {len(value)}")
    try:
        return [parse_rate(rate) for rate in value]
    except ValueError as error:
        raise switch.error("ports", str(error)) from None


def _switch(name: str, table: Table, rates: list[int]) -> SwitchSpec:
    buffer_cells = table.integer("buffer_cells", 8192, low=1, high=32768)
    return SwitchSpec(
        name=name,
        port_rates_bps=tuple(rates),
        buffer_cells=buffer_cells,
        policy=table.text("policy", "epd", choices=_POLICIES),
        epd_threshold=_epd_threshold(table, buffer_cells),
        clp_threshold=table.integer("clp_threshold", 0, high=buffer_cells),
        vc_limit=table.integer("vc_limit", 0, high=buffer_cells),
        processing_delay_ps=table.time("processing_delay", 5_000_000, high=10**10),
    )


def _epd_threshold(table: Table, buffer_cells: int) -> int:
    """Cells, or a share of the buffer, which goes with the buffer when that is changed."""
    value = table.data.get("epd_threshold")
    if not isinstance(value, float):
        if isinstance(value, int) and value > buffer_cells:
            what = (
                f"{value} cells are more than the buffer's {buffer_cells}; give a share of it, as 0.9, or fewer cells"
            )
            raise table.error("epd_threshold", what)
        return table.integer("epd_threshold", buffer_cells * 9 // 10, things="cells")
    if not 0 <= value <= 1:
        raise table.error(
            "epd_threshold", f"{value!r} is neither a number of cells nor a share of the buffer, 0.0 to 1.0"
        )
    return int(buffer_cells * value)


def _ber(line: Table) -> tuple[float, float]:
    value = line.value("ber", 0)
    both = value if isinstance(value, list) else [value, value]
    if len(both) != 2:
        raise line.error("ber", "give one error ratio, or two: from the first end to the second, and back")
    for ratio in both:
        if isinstance(ratio, bool) or not isinstance(ratio, (int, float)):
            raise line.error("ber", f"expected a number, not {ratio!r}")
        if ratio != 0 and not _MIN_BER <= ratio <= _MAX_BER:
            raise line.error("ber", f"{ratio!r} is out of range: 0, or {_MIN_BER:g} to {_MAX_BER:g}")
    return float(both[0]), float(both[1])


def _kind(own: Table, network: Table, rate: int) -> str:
    """``line`` of a line, or of the whole network."""
    owner = own if "line" in own else network
    kind = owner.text("line", "cell")
    if kind not in _KINDS:
        raise owner.error("line", f"unknown value {kind!r}{nearest(kind, _KINDS)}")
    if kind == "sonet" and rate not in SONET_RATES:
        raise owner.error("line", f"{own.path} has {format_rate(rate)}; SONET is OC-3c or OC-12c")
    return kind


def _clocks(own: Table, key: str, network: Table, seed: int, name: str) -> tuple[float, float]:
    """The offsets of a line's two clocks in ppm, drawn from the seed within its tolerance or the network's."""
    place, place_key = (own, key) if key in own else (network, "clock_tolerance")
    tolerance = place.number(place_key, CLOCK_TOLERANCE_PPM)
    if not 0 <= tolerance <= MAX_CLOCK_TOLERANCE_PPM:
        raise place.error(place_key, f"{tolerance!r} ppm is out of range 0 to {MAX_CLOCK_TOLERANCE_PPM:g}")
    return draw_clocks(seed, name, tolerance)


def _ppm(line: Table, kind: str) -> float:
    if "ppm" in line and kind != "sonet":
        raise line.error("ppm", 'a clock offset needs line = "sonet"')
    ppm = line.number("ppm", 0.0)
    if not -_MAX_PPM <= ppm <= _MAX_PPM:
        raise line.error("ppm", f"{ppm!r} is out of range -{_MAX_PPM:g} to {_MAX_PPM:g}")
    return float(ppm)


def _host(
    name: str, face: Face, rate: int, own: Table, common: Table, line: str, line_clock_ppm: tuple[float, float]
) -> HostSpec:
    """A host: what its own table says, what its own profile says, then the same of [hosts]."""

    def pick(key: str) -> Table:
        return own if key in own else common

    def cost(key: str) -> int | None:
        """Own ``send_cost``, own ``cost``, own profile, then the same of [hosts]; None: the profile decides."""
        for table in (own, common):
            for key_or_both in (key, "cost"):
                if key_or_both in table:
                    return table.time(key_or_both, high=10**12)
            if "profile" in table:
                return None
        return None

    spread = pick("cost_spread").number("cost_spread", 0.0)
    if not 0 <= spread <= 1:
        raise pick("cost_spread").error("cost_spread", "is a share of the cost, between 0 and 1 (0.05: within 5 %)")
    clock_hz, clock_cost_ps, clock_ppm = _clock(name, own, common)
    return HostSpec(
        name=name,
        port=face,
        rate_bps=rate,
        delay_ps=own.time("delay", 0, high=_MAX_DELAY_PS),
        profile=_profile(pick("profile")),
        send_cost_ps=cost("send_cost"),
        receive_cost_ps=cost("receive_cost"),
        cost_spread=spread,
        mtu=pick("mtu").integer("mtu", 9180, low=104, high=65527),
        interface_queue=pick("interface_queue").integer("interface_queue", 0),
        clock_hz=clock_hz,
        clock_cost_ps=clock_cost_ps,
        clock_tolerance_ppm=clock_ppm,
        timer_phase_ps=pick("timer_phase").time("timer_phase", None, high=10**12),
        line=line,
        line_clock_ppm=line_clock_ppm,
    )


def _clock(host: str, own: Table, common: Table) -> tuple[float, int, float]:
    """Interrupts a second, processor time of each, tolerance in ppm of a host's clock."""
    from bentpipe.hosts.clock import MAX_CLOCK_HZ, MAX_CLOCK_PPM, clock_period_ps
    from bentpipe.hosts.profiles import HostProfile, profile

    def place(key: str) -> tuple[Table, HostProfile | None]:
        """Where a key is given, or else where the profile is that decides, and that profile."""
        for table in (own, common):
            if key in table:
                return table, None
            if "profile" in table:
                return table, profile(_profile(table) or "")
        return common, None

    (hz_place, by_hz), (cost_place, by_cost), (ppm_place, by_ppm) = map(place, _CLOCK)
    hz = hz_place.number("clock_hz", by_hz.clock_hz if by_hz else 0.0)
    if hz and not 1 <= hz <= MAX_CLOCK_HZ:
        raise hz_place.error("clock_hz", f"{hz!r} is neither 0 nor in the range 1 to {MAX_CLOCK_HZ}")
    cost_ps = cost_place.time("clock_cost", by_cost.clock_cost_ps if by_cost else 0, high=10**12)
    ppm = ppm_place.number("clock_tolerance", by_ppm.clock_ppm if by_ppm else 0.0)
    if not 0 <= ppm <= MAX_CLOCK_PPM:
        raise ppm_place.error("clock_tolerance", f"{ppm!r} ppm is out of range 0 to {MAX_CLOCK_PPM}")
    if cost_ps and not hz and "clock_hz" not in hz_place:
        raise cost_place.error("clock_cost", "needs clock_hz: how many clock interrupts there are a second")
    if hz and not cost_ps and "clock_cost" not in cost_place:
        raise hz_place.error("clock_hz", "needs clock_cost: how long each of the interrupts takes")
    if hz and cost_ps >= clock_period_ps(hz, -ppm):
        period = format_time(clock_period_ps(hz, 0.0))
        what = f"an interrupt of {format_time(cost_ps)} each {period} leaves the processor of {host} no time"
        raise cost_place.error("clock_cost", what) if "clock_cost" in cost_place else hz_place.error("clock_hz", what)
    return hz, cost_ps, ppm


def _profile(table: Table) -> str | None:
    if "profile" not in table:
        return None
    from bentpipe.hosts.profiles import load_profiles

    return table.text("profile", choices=tuple(load_profiles()))


def _explicit_vcs(top: Table, network: NetworkSpec) -> tuple[list[VcSpec], dict[str, int]]:
    vcs: list[VcSpec] = []
    names: dict[str, int] = {}
    for table in top.array("vc", _VC):
        if "path" in table:
            if "from" in table or "to" in table:
                raise table.error("path", "give either 'path' or 'from' and 'to'")
            path = given_path(table, network)
        else:
            path = path_between(table, network, host_name(table, "from", network), host_name(table, "to", network))
        vc = VcSpec(
            name=table.text("name"),
            path=path,
            vpi=table.integer("vpi", 0, high=255),
            vci=table.integer("vci", low=32, high=65535),
            cell_rate_bps=table.rate("cell_rate", None),
            policy=table.text("policy", None, choices=_POLICIES),
            limit=table.integer("limit", 0, high=65535),
            epd_threshold=table.integer("epd_threshold", None, high=65535),
        )
        if vc.name in names:
            raise table.error("name", f"there is a VC {vc.name!r} already")
        twice = clash(vcs, vc)
        if twice:
            other, (a, b) = twice
            raise table.error(
                "vci", f"VPI/VCI {vc.vpi}/{vc.vci} is used twice from {a} to {b}: by {other.name!r} and {vc.name!r}"
            )
        names[vc.name] = len(vcs)
        vcs.append(vc)
    return vcs, names


def _check_names(top: Table, flows: list[FlowSpec]) -> None:
    for index, flow in enumerate(flows):
        if any(flow.name == other.name for other in flows[:index]):
            raise top.error("traffic", f"there are two flows {flow.name!r}")


def _check_policies(top: Table, network: NetworkSpec, vcs: list[VcSpec]) -> None:
    """The harness sets policy and limit of a VC once for its whole path: its switches must agree on them."""
    for vc in vcs:
        path = [s for s in network.switches if s.name in vc.path]
        for key, own in (("policy", vc.policy), ("vc_limit", vc.limit)):
            differing = {getattr(s, key) for s in path}
            if not own and len(differing) > 1:
                names = " and ".join(s.name for s in path)
                instead = "policy" if key == "policy" else "limit"
                raise top.error(
                    "network.switches",
                    f"{names} differ in {key}, but VC {vc.name!r} passes both; give it its own {instead} in [[vc]]",
                )


def _check_numbers(top: Table, network: NetworkSpec, vcs: list[VcSpec]) -> None:
    """No host and no switch has more VCs than its node can have."""
    passing = Counter(node for vc in vcs for node in vc.path)
    for node in (*network.hosts, *network.switches):
        if passing[node.name] > MOST_VCS:
            raise top.error("", f"{node.name} has {passing[node.name]} VCs, a node has {MOST_VCS} at most")


def _record(top: Table, run_ps: int, network: NetworkSpec) -> RecordSpec:
    table = top.sub("record", _RECORD)
    what = table.items("what", [name for name in SERIES if name != "segments"])
    for name in what:
        if name not in SERIES:
            raise table.error("what", f"unknown series {name!r}{nearest(str(name), SERIES)}")
    interval = table.time("interval", 100_000_000_000, low=1_000_000)
    if run_ps // interval > 1_000_000:
        raise table.error("interval", "more than a million intervals fit into the run; record less often")
    try:
        captures = [parse_capture(str(text), network) for text in table.items("pcap", [])]
    except ValueError as error:
        raise table.error("pcap", str(error)) from None
    return RecordSpec(interval, tuple(what), tuple(dict.fromkeys(captures)))


def _published(top: Table, flows: list[FlowSpec]) -> list[PublishedRow]:
    rows = []
    known = (*METRICS, *(f"{f.name}.goodput" for f in flows))
    for table in top.array("published", _PUBLISHED):
        quantity = table.text("quantity")
        metric = table.text("metric", _DEFAULT_METRIC.get(quantity, "none"), choices=known)
        rows.append(
            PublishedRow(
                quantity=quantity,
                case=table.text("case", ""),
                unit=table.text("unit", "Mb/s"),
                source=table.text("source", ""),
                measured=table.number("measured", None),
                predicted=table.number("predicted", None),
                metric="" if metric == "none" else metric,
            )
        )
    return rows
