"""Runs with hosts, whose network is in the hosts' thread or in one of its own: what is to be the same of both."""

from __future__ import annotations

import dataclasses
from typing import Any

from bentpipe.experiment.build.hosts import build
from bentpipe.experiment.resolve.specs import Experiment
from bentpipe.experiment.run.record import TraceRecorder
from bentpipe.experiment.run.state import given, taken

__all__ = ["NAMES", "played"]

_STEP_PS = 50 * 10**9
NAMES = ("time", "digests", "counters", "ledger", "flows", "hosts", "series", "events")
"""Of what :func:`played` returns for a stop."""


def played(
    experiment: Experiment, until_ps: int, threads: int, save_at: int = -1
) -> tuple[list[tuple[Any, ...]], bool]:
    """Return what there is after each 50 ms of a run, and whether the network had a thread of its own.

    With two ``threads`` it always has one where that is possible. After the stop ``save_at`` the run is saved and
    resumed, with the other number of threads.
    """
    recorder = TraceRecorder(experiment.record.interval_ps, experiment.record.what)
    built: Any = build(experiment, recorder)
    network, engine = built.network, built.engine
    network.threads, engine.choice.is_fixed = threads, True
    network.trace()
    found, ran_ahead, time = [], False, 0
    try:
        while time < until_ps:
            time += _STEP_PS
            engine.run(time, lambda now: True)
            found.append(_outcome(network, engine, recorder))
            ran_ahead |= network.ran_ahead
            if all(flow.finished for flow in engine.flows):
                break
            if len(found) - 1 == save_at:
                saved, octets = network.save(), taken((network, engine, recorder))
                network.close()
                network, engine, recorder = given(octets)
                network.restore(saved)
                network.threads = 3 - threads
        network.check_conservation()
        return found, ran_ahead
    finally:
        network.close()


def _outcome(network: Any, engine: Any, recorder: Any) -> tuple[Any, ...]:
    now = engine.now_ps
    return (
        (now, network.now_ps),
        network.digests(),
        network.counters(),
        [dataclasses.asdict(account) for account in network.ledger()],
        [dataclasses.asdict(flow.report(now)) for flow in engine.flows],
        [
            (host.pdu_errors, host.processor.busy_ps, host.interface.drops, host.interface.identification())
            for host in engine.hosts
        ],
        {name: (list(series.times), list(series.values)) for name, series in recorder.series.items()},
        list(recorder.events),
    )
