"""The limits of a run with a board: settings that boards lack, and what is unknown on a board by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bentpipe.apps.settings import BARE
from bentpipe.errors import BentpipeError
from bentpipe.experiment.resolve.specs import Experiment

__all__ = ["MISSING", "UNKNOWN_COUNTS", "check_on_board"]

MISSING: Final = (
    "loss ledger",
    "cell figures of VCs",
    "check that all cells are accounted for",
    "UDP datagrams lost and under way",
)
"""What a run on a board by itself does not know."""

UNKNOWN_COUNTS: Final = ("datagrams_lost", "datagrams_under_way", "ping_lost", "ping_under_way")
"""Counts of a flow that need the ledger: without it, a lost datagram looks like one that is still under way."""


def check_on_board(experiment: Experiment, *, alone: bool) -> None:
    """Check that a board can run an experiment, beside the native network or ``alone``.

    Raises
    ------
    BentpipeError
        The experiment has a setting that no board has yet, or needs something that only the native network has.
    """
    networks = [experiment.network, *(event.network for event in experiment.events)]
    networks += [extreme.network for profile in experiment.profiles for extreme in profile.extremes]
    for host in (host for network in networks for host in network.hosts):
        if host.interface.impairs:
            raise BentpipeError(
                f"{experiment.id}: host {host.name}: boards lose, duplicate and reorder no frames of interfaces yet"
            )
    needs = list(_needs(experiment)) if alone else []
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
