"""The figures that the runs of an experiment can have, by name: what is checked before a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from bentpipe.apps.registry import reported
from bentpipe.apps.settings import BARE
from bentpipe.experiment.document.tables import RareTimeoutTable, SplittingTable
from bentpipe.experiment.resolve.specs import FlowSpec, NetworkSpec, VcSpec
from bentpipe.results.declared import metrics_of
from bentpipe.results.metrics import GROUPED

__all__ = ["features", "known_figures"]


class Splits(Protocol):
    """A document or an experiment: its tables for rare events."""

    @property
    def splitting(self) -> SplittingTable | None: ...
    @property
    def rare_timeout(self) -> RareTimeoutTable | None: ...


def features(given: Splits, record_losses: bool) -> list[str]:
    """Return the features of an experiment that some figures need, as :class:`~bentpipe.results.declared.Metric` has
    them."""
    splitting = given.splitting
    rare = [] if splitting is None else ["splitting", "rare losses" if splitting.delay_ps is None else "rare delays"]
    timeouts = [] if given.rare_timeout is None else ["rare time-outs"]
    return [*rare, *timeouts, *(["losses"] if record_losses else [])]


def known_figures(
    flows: Sequence[FlowSpec], vcs: Sequence[VcSpec], network: NetworkSpec, has: Collection[str]
) -> Iterator[str]:
    """Yield the names of all figures of runs with these flows, VCs and switches.

    ``has`` are the features of the experiment that some figures need (:func:`features`).
    """
    has = {"", *has}
    yield from (metric.name for metric in metrics_of("run") if metric.needs in has)
    for flow in flows:
        rates = [] if flow.protocol in BARE else ["goodput"]
        own = (*rates, *(["carried"] if flow.protocol == "udp" else []), *reported(flow.app))
        yield from (f"{flow.name}.{figure}" for figure in own)
    for group in dict.fromkeys(flow.group for flow in flows if flow.group):
        yield from (f"{group}.{figure}" for figure in GROUPED)
    for vc in vcs:
        features = has | {"cdv"} if vc.cdv is not None else has
        yield from (f"{vc.name}.{metric.name}" for metric in metrics_of("vc") if metric.needs in features)
    for switch in network.switches:
        features = has | {"histograms"} if switch.settings.histograms else has
        own_metrics = [metric for metric in metrics_of("port") if metric.needs in features]
        yield from (f"{switch.name}:{port}.{m.name}" for port in range(len(switch.ports)) for m in own_metrics)
