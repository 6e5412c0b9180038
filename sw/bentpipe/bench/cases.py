"""The measured cases: networks with saturated lines, and the hosts alone."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bentpipe.bench.kinds import evaluated, kind_of
from bentpipe.bench.samples import sampled
from bentpipe.experiment.build.hosts import BuiltExperiment, add_hosts
from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.build.overrides import Overrides
from bentpipe.experiment.build.rows import RowFeed
from bentpipe.experiment.load import load
from bentpipe.experiment.resolve.specs import Experiment
from bentpipe.experiment.run.record import TraceRecorder
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicLine, PacingSettings
from bentpipe_hdl.sonet.control import SonetSettings
from bentpipe_hdl.switch.control import SwitchPort
from bentpipe_sim.network import Network

__all__ = [
    "GOALS",
    "PS",
    "SDU",
    "TITLES",
    "WITH_HOSTS",
    "Saturated",
    "in_tenths",
    "measure",
    "network_of",
    "saturated",
    "segment",
]

PS: Final = 10**12
SDU: Final = 9188
"""Octets that fill 192 cells."""
_ACK = 40
_RATE: Final = 149_760_000
_LOST_A_SECOND: Final = 1000
_MOST_RECORDS: Final = 10**6
_SATELLITE_PS: Final = 267 * 10**9
_LAN = (
    "network.lines.satellite.delay=40 us",
    "network.lines.satellite.ber=0",
    "window=800 kB",
    "record.interval=50 ms",
)
_OF_HOSTS: Final = {
    "1flow": ("1flow", ()),
    "3flows": ("3flows", _LAN),
    "15flows": ("3flows", (*_LAN, *(f"flow.{k}.copies=5" for k in range(3)))),
}
"""An experiment beside this file, and its settings."""
WITH_HOSTS: Final = ("hosts", "rows")
"""Kinds of cases with hosts."""

TITLES = {
    "cells-1flow": "1 flow, no hosts: PDUs made and checked in C++",
    "cells-3flows": "3 flows, a third of the line each, no hosts",
    "cells-15flows": "15 flows in turn over switches of 16 ports, no hosts",
    "cells-overload": "3 flows, a whole line each, two thirds dropped, no hosts",
    "cells-losses": "3 flows, 1,000 cells dropped a second, no hosts",
    "cells-records": "the same with a record of each lost cell",
    "sonet-3": "an OC-3c SONET line full of cells both ways, two NICs included",
    "sonet-12": "an OC-12c SONET line full of cells both ways, two NICs included",
    "hosts-1flow": "1 flow, everything included, over the satellite",
    "rows-1flow": "the same with a profile of 100 rows a second: error ratio and rate",
    "hosts-3flows": "3 flows, everything included, over a LAN",
    "hosts-15flows": "15 flows of three hosts, everything included, over a LAN",
}
GOALS = {
    "cells-1flow": (0.08, 0.05),
    "cells-3flows": (0.1, 0.05),
    "cells-15flows": (0.12, 0.05),
    "cells-overload": (0, 0),
    "cells-losses": (0, 0),
    "cells-records": (0, 0),
    "sonet-3": (1.0, 0.25),
    "sonet-12": (2.5, 0.5),
    "hosts-1flow": (0.12, 0.07),
    "rows-1flow": (0.12, 0.07),
    "hosts-3flows": (0.5, 0.15),
    "hosts-15flows": (0.15, 0.06),
}
"""CPU seconds per simulated second: what is asked, what is aimed at."""


def _experiment(flows: str, *settings: str) -> Experiment:
    """Return the experiment of ``FLOWS.toml`` beside this file."""
    return load(str(Path(__file__).with_name(f"{flows}.toml")), settings)


_ROWS_A_SECOND: Final = 100


def _with_rows(experiment: Experiment, seconds: float) -> Experiment:
    """Return the experiment with a profile of its line for so many seconds; each row has another error ratio and
    rate."""
    rows = [
        f"{k / _ROWS_A_SECOND},{(1 + k % 97) * 1e-13},{_RATE - k % 89}" for k in range(int(seconds * _ROWS_A_SECOND))
    ]
    with TemporaryDirectory() as folder:
        file = Path(folder, "rows.csv")
        file.write_text("time,ber,rate\n" + "\n".join(rows) + "\n")
        profile = f'profile=[{{ file = "{file}", line = "satellite" }}]'
        return load(experiment.file, (profile,))


def _running(experiment: Experiment, built: BuiltExperiment) -> Callable[[int], object]:
    """Return a function that advances time, with rows of profiles as a run has them."""
    if not experiment.profiles:
        return built.engine.run
    overrides = Overrides(experiment, built.change, feed=RowFeed.of(experiment, built.network), adopt=built.adopt)
    assert overrides.fed

    def run(until_ps: int) -> None:
        overrides.feed(until_ps, until_ps)
        built.engine.run(until_ps)
        overrides.absorb()

    return run


def _cells(case: str) -> Network:
    """Return the network of an experiment, saturated by PDUs of the event loop; two are answered by one of one cell.

    Several flows share the satellite's line by pacing, as TCP's flows share it in the long run, or overload it. In the
    cases "losses" and "records" the overload makes the switch drop 1,000 cells a second.
    """
    experiment = _experiment("1flow" if case == "1flow" else "3flows")
    network, nics, vcs = build_network(experiment)
    if case != "overload":
        above = _LOST_A_SECOND / (_RATE / 424) if case in ("losses", "records") else 0.0
        for flow in experiment.flows:
            nic = nics[flow.source]
            sent = nic.sends[vcs[flow.vc]]
            nic.sends[vcs[flow.vc]] = replace(sent, period=int(nic.period * len(experiment.flows) / (1 + above)))
    network.start()
    if case == "records":
        network.record_losses(_MOST_RECORDS)
    loop = network.loop
    for key, flow in enumerate(experiment.flows):
        source, sink = nics[flow.source].index, nics[flow.sink].index
        assert flow.return_vc is not None
        loop.sink(sink, vcs[flow.vc], key, vcs[flow.return_vc], _ACK, 2)
        loop.sink(source, vcs[flow.return_vc], 0, 0, 0, 0)
        loop.source(source, vcs[flow.vc], SDU, key)
    return network


def _fifteen() -> Network:
    """Return a network of fifteen flows, each paced to a fifteenth of the satellite's line, on switches of 16 ports."""
    network = Network(seed=1)
    west, east = (network.add_switch(name, ports=(SwitchPort(_RATE),) * 16) for name in ("west", "east"))
    ways = []
    for name, here, there in (("out", west, east), ("back", east, west)):
        link = network.add_link(f"satellite.{name}", LinkSettings(delay_ps=_SATELLITE_PS))
        network.connect((here, 15), link)
        network.connect(link, (there, 15))
        ways.append(link)
    out, back = ways
    vcs = []
    for k in range(15):
        # Each line has a clock of its own: cells do not come at once for good.
        source, sink = (network.add_nic(f"{name}{k}", line=NicLine(_RATE, -k)) for name in ("source", "sink"))
        for nic, switch in ((source, west), (sink, east)):
            network.connect(nic, (switch, k))
            network.connect((switch, k), nic)
        paced = PacingSettings(cell_rate_bps=_RATE // 15)
        there = network.add_vc([source, west, out, east, sink], 0, 32 + k, pacing=paced)
        vcs.append((source, sink, there, network.add_vc([sink, east, back, west, source], 0, 64 + k)))
    network.start()
    for key, (source, sink, there, answer) in enumerate(vcs):
        network.loop.sink(sink.index, there, key, answer, _ACK, 2)
        network.loop.sink(source.index, answer, 0, 0, 0, 0)
        network.loop.source(source.index, there, SDU, key)
    return network


def _sonet(sts: int) -> Network:
    """Return a network of two NICs on a SONET line, which send at the line's rate."""
    network = Network(seed=1)
    rate = {3: 149_760_000, 12: 599_040_000}[sts]
    nics = [network.add_nic(name, line=NicLine(rate)) for name in ("left", "right")]
    line = network.add_sonet_line("line", SonetSettings(sts=3 if sts == 3 else 12))
    for end, nic in enumerate(nics):
        network.connect(nic, (line, end))
        network.connect((line, end), nic)
    ways = [network.add_vc([nics[k], line, nics[1 - k]], 0, 100 + k) for k in range(2)]
    network.start()
    loop = network.loop
    for k, vc in enumerate(ways):
        loop.sink(nics[1 - k].index, vc, k, 0, 0, 0)
        loop.source(nics[k].index, vc, SDU, k)
    return network


def network_of(case: str) -> Network:
    """Return the network of a case without hosts, begun."""
    kind, what = case.split("-")
    if what == "15flows":
        return _fifteen()
    return _cells(what) if kind == "cells" else _sonet(int(what))


@dataclass(frozen=True)
class Saturated:
    """A case that can run.

    Members
    -------
    network : Network
    begin_s : int
        The simulated time from which on its lines are full.
    run : callable
        Advances time up to a picosecond.
    check : callable
        Raises an error unless all cells are accounted for.
    delivered : callable
        Returns the octets that the hosts have delivered.
    """

    network: Network
    begin_s: int
    run: Callable[[int], object]
    check: Callable[[], object]
    delivered: Callable[[], int] | None = None


def saturated(case: str, seconds: float) -> Saturated:
    """Return a case that can run for so many simulated seconds after it has begun."""
    kind, flows = case.split("-")
    if kind not in WITH_HOSTS:
        network = network_of(case)
        begin = 10 if flows in ("losses", "records") else 1  # the satellite's line is full, and the buffer
        return Saturated(network, begin, network.run, network.check_conservation)
    # One flow: from the end of slow start on. Several: on the LAN, where the line is full from the start.
    begin = 11 if flows == "1flow" else 2
    name, settings = _OF_HOSTS[flows]
    experiment = _experiment(name, *settings)
    if kind == "rows":
        experiment = _with_rows(experiment, begin + seconds)
    recorder = TraceRecorder(experiment.record.interval_ps, experiment.record.what)
    network, nics, vcs = build_network(experiment)
    built = add_hosts(experiment, recorder, network, nics, vcs)

    def delivered() -> int:
        return sum(flow.report(built.now_ps()).octets_delivered for flow in built.flows.values())

    return Saturated(network, begin, _running(experiment, built), built.check, delivered)


def measure(case: str, seconds: float) -> dict[str, Any]:
    """Measure the CPU seconds per simulated second of a case, and where they are spent.

    ``seconds`` is the simulated time of the measurement.

    Returns
    -------
    dict
        ``ratio``, ``best_ratio`` (of the best tenth), ``where`` (:func:`_where`), and with hosts ``goodput_mbps``.
    """
    result: dict[str, Any] = {"case": case}
    found = saturated(case, 2 * seconds)
    network, begin, run = found.network, found.begin_s, found.run
    run(begin * PS)
    before = found.delivered() if found.delivered else 0
    spent = in_tenths(run, begin, seconds)
    if found.delivered:
        result["goodput_mbps"] = (found.delivered() - before) * 8 / seconds / 1e6
    result["simulated_s"], result["cpu_s"] = seconds, sum(spent)
    result["ratio"], result["best_ratio"] = sum(spent) / seconds, min(spent) * len(spent) / seconds
    result["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    evaluations = evaluated(network)
    shares = sampled(lambda: run(int((begin + 2 * seconds) * PS)))
    evaluations = {kind: number - evaluations[kind] for kind, number in evaluated(network).items()}
    result["where"] = _where(shares, evaluations, result["ratio"], seconds)
    found.check()
    return result


def _where(
    shares: Mapping[str, float], evaluations: Mapping[str, int], ratio: float, seconds: float
) -> dict[str, dict[str, float]]:
    """Return where time is spent: by kind of node, the event loop, hosts and the rest, the largest share first.

    Each has its ``share`` of the time and its CPU seconds per simulated second (``ratio``). Nodes also have
    ``evaluations`` per simulated second and nanoseconds of each (``ns``).
    """
    found: dict[str, float] = {}
    for file, share in shares.items():
        found[kind_of(file)] = found.get(kind_of(file), 0.0) + share
    where = {}
    for kind, share in sorted(found.items(), key=lambda item: -item[1]):
        where[kind] = {"share": share, "ratio": share * ratio}
        if evaluations.get(kind):
            often = evaluations[kind] / seconds
            where[kind] |= {"evaluations": often, "ns": share * ratio / often * 1e9}
    return where


def in_tenths(run: Any, begin: float, seconds: float) -> list[float]:
    """Return the CPU seconds of each tenth of the simulated seconds from ``begin`` on."""
    spent = []
    for tenth in range(1, 11):
        start = time.process_time()
        run(int((begin + seconds * tenth / 10) * PS))
        spent.append(time.process_time() - start)
    return spent


def segment() -> dict[str, Any]:
    """Return the microseconds per segment of the hosts alone: the best of three runs of each kind."""
    from bentpipe.hosts.bench import microseconds_a_segment

    cost = 62_000_000
    kinds = {"hosts that cost nothing": (0, 0, "reno"), "the same with SACK": (0, 0, "sack"),
             "62 us a segment": (cost, cost, "reno")}  # fmt: skip
    return {what: min(microseconds_a_segment(20_000, *how)[1] for _ in range(3)) for what, how in kinds.items()}
