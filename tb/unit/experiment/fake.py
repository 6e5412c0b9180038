"""A small stand-in for network and hosts: flows that share a line, fill a queue, lose cells and halve their windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bentpipe.experiment.build.hosts import BuiltExperiment
from bentpipe.experiment.resolve.specs import EventSpec, Experiment
from bentpipe.results.folder import RunFolder
from bentpipe.results.schema import RunResult

STEP_PS = 50_000_000_000
MSS = 9140


@dataclass(frozen=True)
class FakeReport:
    name: str
    variant: str
    octets_delivered: int
    start_ps: int
    end_ps: int
    goodput_bps: float
    segments_sent: int
    retransmits: int
    timeouts: int
    fast_retransmits: int
    bad_octets: int
    datagrams_lost: int = 0


class FakeFlow:
    def __init__(self, name: str, variant: str, size: int | None) -> None:
        self.name, self.variant, self.size = name, variant, size
        self.cwnd = MSS
        self.ssthresh = 1 << 30
        self.delivered = 0
        self.lost = 0
        self.bad = 0

    @property
    def finished(self) -> bool:
        return self.size is not None and self.delivered >= self.size

    def report(self, end_ps: int) -> FakeReport:
        rate = self.delivered * 8e12 / end_ps if end_ps else 0.0
        sent = self.delivered // MSS
        return FakeReport(
            self.name, self.variant, self.delivered, 0, end_ps, rate, sent, self.lost, 0, self.lost, self.bad
        )


class FakeNetwork:
    """Engine and network in one: windows grow each step; past the buffer every flow loses a packet."""

    def __init__(self, experiment: Experiment, recorder: Any) -> None:
        self.now_ps = 0
        self.recorder = recorder
        self.flows = [FakeFlow(f.name, "" if f.tcp is None else f.tcp.variant, f.size) for f in experiment.flows]
        self.queue = 0
        self.dropped = 0
        self.balance = 0
        self.closed = False
        self.ledger: list[dict[str, Any]] = []
        self.at_step: Any = None
        self.changes: list[tuple[int, int]] = []

    def run(self, until_ps: int, progress: Any = None) -> None:
        while self.now_ps < until_ps and not all(f.finished for f in self.flows):
            self.now_ps = min(self.now_ps + STEP_PS, until_ps)
            self._step()
            if self.at_step is not None:
                self.at_step(self)
            if progress is not None and progress(self.now_ps) is False:
                return

    def _step(self) -> None:
        window = sum(f.cwnd for f in self.flows)
        capacity = 9_000_000
        self.queue = max(0, min(8192, (window - capacity) // 48))
        for flow in self.flows:
            if not flow.finished:
                flow.delivered += min(flow.cwnd, capacity * flow.cwnd // window) // 10
                if flow.size is not None:
                    flow.delivered = min(flow.delivered, flow.size)
            flow.cwnd += flow.cwnd // 20 if flow.cwnd < flow.ssthresh else MSS // 2
            self.recorder.sample(f"{flow.name}.cwnd", self.now_ps, flow.cwnd)
            self.recorder.sample(f"{flow.name}.ssthresh", self.now_ps, flow.ssthresh)
        if self.queue == 8192:
            for flow in self.flows:
                flow.lost += 1
                self.dropped += 192
                self.recorder.event(flow.name, self.now_ps, "fast_retransmit", flow.delivered)
                flow.ssthresh = flow.cwnd = flow.cwnd // 2

    def change(self, event: EventSpec) -> None:
        self.changes.append((self.now_ps, event.at_ps))

    def check(self) -> None:
        if self.balance:
            from bentpipe_sim.errors import NetworkError

            raise NetworkError(f"west: {self.balance} cells are missing")

    def close(self) -> None:
        self.closed = True


def fake_build(experiment: Experiment, recorder: Any) -> BuiltExperiment:
    network = FakeNetwork(experiment, recorder)
    first, *others = (s.name for s in experiment.network.switches)
    return BuiltExperiment(
        engine=network,
        flows={f.name: f for f in network.flows},
        now_ps=lambda: network.now_ps,
        samples=lambda: {f"{first}.queue": network.queue} | dict.fromkeys((f"{name}.queue" for name in others), 0),
        counters=lambda: {first: {"cells_in": 10**6, "drop_epd": [network.dropped, 0]}},
        drops=lambda hosts: {first: {"epd": network.dropped, "full": 0}},
        check=network.check,
        ledger=lambda: network.ledger,
        close=network.close,
        change=network.change,
        capture=lambda folder: dict,  # at its end no file was lost
    )


def blank(folder: Path, _result: Any) -> None:
    """In place of plots that take long to draw, of their size."""
    for name in ("overview.svg", "overview.png"):
        (folder / name).write_text("<svg/>".ljust(250_000))


def write_run(
    path: Path, result: RunResult, make_report: Callable[[Path, RunResult], None] | None = None, force: bool = False
) -> None:
    """Write the folder of a run that is over."""
    with RunFolder.claim(path, force) as folder:
        folder.finish(result)
        if make_report is not None:
            folder.draw(lambda aside: make_report(aside, result))
