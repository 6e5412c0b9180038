"""The contents of a run folder. ``SCHEMA_VERSION`` grows with a change that a reader has to know of.

``result.json``
    The object :attr:`RunResult.summary`: schema, id, file (as ``bentpipe run`` was given it), title,
    status ("running", "done", "interrupted", "failed"),
    reason, time, seed, changes (key, old and new value of what is not as in the experiment's file), shortened,
    events (changes in the run by events and requests, with the tick from which each holds and its ``source``),
    profiles (the files that settings followed), rates (from each time on, ``at_s``, at which
    any changed: what ``ports`` of switches may send, ``vcs`` are paced at), versions, metrics, flows, drops, ledger
    (for each VC its PDUs sent, delivered, ``repeated`` and ``duplicated`` ones, with EFCI among those, and all
    others by where and why; ``cells``: its cells sent, received, errored, misinserted, duplicated, tagged, and lost
    by where and why; ``cdv``, where it is measured: contract, cells, non-conforming ones, greatest and least
    1-point CDV), ports (of each port of a switch the cells that arrived for it, those dropped by reason, their delays
    where there are histograms), losses (null without ``record.losses``: lost cells ``recorded``, and ``left_out``),
    counters, board (null without: with a board in lockstep how much was compared; of a board by itself ``alone``,
    ``target``, ``gateware`` and what is ``missing``; then ledger is null, and drops, ports and counters are null if the
    board did not answer at the end), board_ticks (hosts act in the ticks of a board by itself), oam
    (of each end of OAM flows at a host its cells by kind, its states and their changes), splitting (null without:
    the loss ratio, by splitting and of the plain run, and each level:
    :func:`bentpipe.results.splitting.sum_up_trees`), rare_timeout (null without: the probability, and each level:
    :func:`bentpipe.results.rare_timeouts.sum_up`), theory (with ``ours``, ``low``, ``high``, ``half``,
    ``confidence``, ``batches`` and ``holds``), published (with ``ratio``, null in a shortened or failed run, and
    ``remarks``), expected (what ``[[expect]]`` says, with ``ours`` and ``holds``, null where it is not judged),
    configuration (the TOML document with the settings in it), resolved (every value in base units).
``flows.parquet``
    One row a flow: what the flow's report says.
``losses.parquet``
    One row for each lost cell (:mod:`bentpipe.results.losses`), with ``record.losses``.
``trace.parquet``
    Long form: ``series`` (``flow1.cwnd``, ``ground.queue``, …), ``time_ps``, ``value``, ``event`` (the kind of an
    event, null for a sample).

``changes.parquet``
    A row for each key that an event, a profile or a request wrote: ``time_ps``, ``source``, ``key``, ``value`` (of a
    number, or of true and false) and ``text`` (of what is no number, as JSON). Only of a run with such changes.

Version 3: losses, goodput, share and efficiency have other definitions than in version 2, and a cell arrives when its
last bit has.

Version 4: ``aggregate_goodput`` is over the flows' common time; the sum of their own rates is ``sum_of_flow_rates``.
Older results are refused, so that the two are not compared.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SCHEMA_VERSION", "RunResult", "Trace", "Writes"]

Writes = list[tuple[int, str, str, Any]]
"""What was changed in a run, in order: the time in ps, what wrote it, the dotted key, the value."""

SCHEMA_VERSION: Final = 4


@dataclass(slots=True)
class Trace:
    """Series by name (times in ps, values), and events (series, time in ps, kind, value)."""

    series: dict[str, tuple[array[int], array[int]]]
    events: list[tuple[str, int, str, int]]


@dataclass(slots=True)
class RunResult:
    """A run, as it is written and read back. ``losses`` are the records of lost cells, if there are any;
    ``late_signal`` came when the run was over, and was held back until its result is kept."""

    summary: dict[str, Any]
    flows: list[dict[str, Any]]
    trace: Trace
    losses: pa.Table | None = None
    writes: Writes = field(default_factory=list)
    late_signal: int | None = None
