"""What an experiment needs of the native network, and what is then missing on a board by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bentpipe.apps.settings import BARE
from bentpipe.errors import BentpipeError
from bentpipe.experiment.resolve.specs import Experiment

__all__ = ["MISSING", "UNKNOWN_COUNTS", "check_alone"]

MISSING: Final = (
    "loss ledger",
    "cell figures of VCs",
    "check that all cells are accounted for",
    "UDP datagrams lost and under way",
)
"""What a run on a board by itself does not know."""

UNKNOWN_COUNTS: Final = ("datagrams_lost", "datagrams_under_way", "ping_lost", "ping_under_way")
"""Counts of a flow that need the ledger: it tells what is lost from what is under way."""


def check_alone(experiment: Experiment) -> None:
    """Check that a board by itself can run an experiment.

    Raises
    ------
    BentpipeError
        The experiment needs something that only the native network has.
    """
    needs = list(dict.fromkeys(_needs(experiment)))
    if needs:
        raise BentpipeError(f"{experiment.id}: --alone has no native network, and these need it: {', '.join(needs)}")


def _needs(experiment: Experiment) -> Iterator[str]:
    """Yield the keys of settings that need the native network."""
    if experiment.record.pcap:
        yield "captures (--pcap, record.pcap)"
    if experiment.record.losses:
        yield "record.losses"
    if experiment.splitting is not None:
        yield "splitting"
    if experiment.rare_timeout is not None:
        yield "rare_timeout"
    for vc in experiment.vcs:
        if vc.cdv is not None:
            yield f"vc {vc.name}: cdv"
    for flow in experiment.flows:
        if flow.protocol in BARE:
            yield f"flow {flow.name}: app {flow.app}"
    networks = [experiment.network, *(event.network for event in experiment.events)]
    networks += [extreme.network for profile in experiment.profiles for extreme in profile.extremes]
    for network in networks:
        for host in network.hosts:
            if host.interface.impairs:
                yield f"host {host.name}: lost, duplicated or reordered frames"
