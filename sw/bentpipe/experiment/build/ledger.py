"""The loss ledger of a run: for each VC every PDU that was sent and not delivered, by where and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from bentpipe.experiment.resolve.specs import Experiment
from bentpipe.results.cells import HOST_CAUSES
from bentpipe_sim.errors import SimulationError

if TYPE_CHECKING:
    from bentpipe_sim.accounts import Account, CellAccount

__all__ = ["LedgerHost", "LedgerInterface", "check_ledger", "make_ledger"]


class LedgerInterface(Protocol):
    """A host's interface: PDUs that its full queue refused, by VC."""

    @property
    def refused(self) -> Mapping[int, int]: ...


class LedgerHost(Protocol):
    """A host: PDUs that came whole, by VC: with a wrong header or checksum, when the input queue was full, and those
    whose last cell had EFCI."""

    @property
    def interface(self) -> LedgerInterface: ...
    @property
    def damaged(self) -> Mapping[int, int]: ...
    @property
    def overrun(self) -> Mapping[int, int]: ...
    @property
    def congested(self) -> Mapping[int, int]: ...


def make_ledger(
    experiment: Experiment, accounts: Sequence[Account], hosts: Mapping[str, LedgerHost]
) -> list[dict[str, Any]]:
    """Return one row per VC: the network's account, and what the hosts dropped before and after it.

    The rows have the form of ``result.json``:

    - ``sent`` are the PDUs that the source's host made for the VC; ``delivered`` those that the sink's host accepted
      whole.
    - ``repeated`` are duplicates of delivered PDUs; ``duplicated`` are PDUs that the source's interface sent twice.
    - ``lost`` are all others by ``where`` and ``why``; those under way at the end have no ``where``.
    - ``congested`` are delivered PDUs whose last cell arrived with EFCI.
    - ``cells`` are the cells of its PDUs (:class:`~bentpipe_sim.accounts.CellAccount`), as the hardware counted them.
    - ``cdv`` exists only if the VC's 1-point CDV is measured: the contract and
      :class:`~bentpipe_sim.arrival_monitor.ArrivalCounts`.
    """
    ledger = []
    for index, (vc, account) in enumerate(zip(experiment.vcs, accounts, strict=True)):
        lost = dict(account.lost)
        sent, delivered = account.sent, account.delivered
        refused = hosts[account.source].interface.refused.get(account.vc, 0)
        if refused:
            lost[account.source, HOST_CAUSES[0]] = refused
            sent += refused
        sink = hosts[account.sink]
        for cause, pdus in zip(HOST_CAUSES[1:], (sink.damaged, sink.overrun), strict=True):
            if account.vc in pdus:
                lost[account.sink, cause] = pdus[account.vc]
                delivered -= pdus[account.vc]
        ledger.append(
            {
                "vc": vc.name,
                "source": account.source,
                "sink": account.sink,
                "flows": [f.name for f in experiment.flows if index in (f.vc, f.return_vc)],
                "sent": sent,
                "delivered": delivered,
                "repeated": account.repeated,
                "duplicated": account.duplicated,
                "congested": hosts[account.sink].congested.get(account.vc, 0),
                "lost": [{"where": where, "why": why, "pdus": pdus} for (where, why), pdus in sorted(lost.items())],
                "cells": _cells(account.cells),
            }
        )
        if vc.cdv is not None and account.arrivals is not None:
            ledger[-1]["cdv"] = vc.cdv.members() | dataclasses.asdict(account.arrivals)
    return ledger


def _cells(account: CellAccount) -> dict[str, Any]:
    lost = [{"where": where, "why": why, "cells": cells} for (where, why), cells in sorted(account.lost.items())]
    return {**dataclasses.asdict(account), "lost": lost}


def check_ledger(ledger: Sequence[Mapping[str, Any]]) -> None:
    """Raise SimulationError unless every VC's rows sum up to sent minus delivered."""
    for row in ledger:
        missing = row["sent"] - row["delivered"] - sum(loss["pdus"] for loss in row["lost"])
        if missing:
            raise SimulationError(f"VC {row['vc']}: {row['sent']} PDUs sent, {row['delivered']} delivered, and "
                                  f"{missing} are in no row of the ledger")  # fmt: skip
