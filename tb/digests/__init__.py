"""Digests: the catalogue carries the same cells at the same ticks as before. ``python -m digests`` (``make digests``).

Every entry runs with its hosts, case by case, and the event loop keeps a digest of the cells that enter each wire:
tick, header, payload, whether the header is marked as wrong. After each tenth of a run the digests are compared with
those that a commit had, kept beside this file. What differs is a wire, named by the node and port that send into it,
and the tenth in which it first did.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bentpipe.experiment.build.hosts import add_hosts
from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.load import load_cases
from bentpipe.experiment.resolve.specs import Experiment
from bentpipe.experiment.run.record import TraceRecorder
from bentpipe_hdl.units import format_time
from bentpipe_sim.network import Network

__all__ = ["PARTS", "QUICK", "SETS", "SHORT", "Digests", "RunSet", "differences", "digests"]

PARTS = 10
"""A run's digests are read so often."""
MS = 10**9

Digests = dict[str, list[str]]
"""By wire, the lower 32 bits of its digest after each part of a run."""


@dataclass(frozen=True)
class RunSet:
    """Runs of entries, changed in the same way, and what is kept of them.

    Members
    -------
    name : str
    commit : str
        Of which digests are kept.
    durations : mapping
        Picoseconds by pattern of an entry's name, the first that fits; without one an entry has its quick duration.
    settings : mapping
        What is set (as of ``--set``) in entries, by pattern of their names, the first that fits.
    also : mapping
        What is set beside that when an entry runs once more.
    entries : tuple of str
        Names of the entries of the set; empty: the whole catalogue.
    """

    name: str
    commit: str
    durations: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    entries: tuple[str, ...] = ()

    def runs(self, entry: str) -> Iterator[tuple[str, Experiment]]:
        """The runs of an entry, named: its cases, and what ``also`` asks for."""
        duration_ps = _fitting(self.durations, entry)
        for also in [(), self.also[entry]] if entry in self.also else [()]:
            settings = (*(_fitting(self.settings, entry) or ()), *also)
            for case in load_cases(entry, settings, duration_ps=duration_ps, quick=duration_ps is None):
                yield ", ".join(filter(None, (entry, case.case, *also))), case

    @property
    def file(self) -> Path:
        return Path(__file__).with_name(f"{self.name}-{self.commit}.json")

    def kept(self) -> dict[str, Digests]:
        """The digests kept, by run."""
        kept = json.loads(self.file.read_text()) if self.file.exists() else {}
        return {run: {wire: text.split() for wire, text in wires.items()} for run, wires in kept.items()}

    def keep(self, runs: Mapping[str, Digests]) -> None:
        """Keep these runs' digests beside those of others."""
        made = {**self.kept(), **runs}
        joined = {run: {wire: " ".join(parts) for wire, parts in wires.items()} for run, wires in made.items()}
        self.file.write_text(json.dumps(joined, indent=1) + "\n")


QUICK = RunSet("quick", "7c01327", also={"lan-1flow": ("line=sonet",)})
SHORT = RunSet(
    "short",
    "7c01327",
    {  # with losses and what follows them where there are any
        "phase-lock": 20 * MS,
        "fall-floyd-*": 3000 * MS,
        "magic-mismatch": 3000 * MS,
        "*-3flows": 1700 * MS,
        "acts-variants": 1700 * MS,
        "*": 500 * MS,
    },
    # so that windows open and queues fill in so short a time
    {"magic-window": (), "phase-lock": (), "*": ("network.lines.*.delay=2 ms",)},
    # neither SONET lines nor many bit errors are in the catalogue itself
    {
        "acts-1flow": ("line=sonet", "network.lines.satellite.ber=1e-8"),
        "lan-1flow": ("network.lines.lan.ber=3e-8",),
        "phase-lock": ("line=sonet",),
    },
    (
        *("acts-1flow", "acts-3flows", "acts-modern", "acts-variants", "fall-floyd-1", "fall-floyd-2", "fall-floyd-3"),
        *("fall-floyd-4", "lan-1flow", "lan-3flows", "magic-mismatch", "magic-window", "netspec-100", "netspec-cbr"),
        "phase-lock",
    ),
)
SETS = {each.name: each for each in (QUICK, SHORT)}


def _fitting(patterns: Mapping[str, Any], name: str) -> Any:
    return next((value for pattern, value in patterns.items() if fnmatch(name, pattern)), None)


def digests(experiment: Experiment, at_end: Callable[[Network], None] = lambda network: None) -> Digests:
    """Run an experiment for its digests; raises if its cells or PDUs don't add up. ``at_end`` gets its network."""
    network, nics, vcs = build_network(experiment)
    try:
        recorder = TraceRecorder(experiment.record.interval_ps, experiment.record.what)
        built = add_hosts(experiment, recorder, network, nics, vcs)
        network.trace()
        found: Digests = {f"{node}:{port}": [] for node, port in network.digests()}
        for part in range(1, PARTS + 1):
            built.engine.run(experiment.duration_ps * part // PARTS)
            for (node, port), digest in network.digests().items():
                found[f"{node}:{port}"].append(f"{digest & 0xFFFFFFFF:08x}")
        built.check()
        built.ledger()
        at_end(network)
        return found
    finally:
        network.close()


def differences(kept: Digests, found: Digests, duration_ps: int) -> list[str]:
    """A line for each part of a run in which wires began to differ, the first first; it names them."""
    since: dict[int, list[str]] = {}
    for wire in sorted({*kept, *found}):
        then, now = kept.get(wire, []), found.get(wire, [])
        if then != now:
            part = next((k for k, pair in enumerate(zip(then, now, strict=False)) if pair[0] != pair[1]), -1)
            since.setdefault(part, []).append(wire)
    lines = []
    for part, wires in sorted(since.items()):
        begin, end = (format_time(duration_ps * k // PARTS) for k in (part, part + 1))
        when = f"differ from between {begin} and {end} on" if part >= 0 else "are wires only then or only now"
        lines.append(f"{', '.join(wires)} {when}")
    return lines
