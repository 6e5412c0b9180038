"""The probability of a rare time-out within a transfer, from the counts of trials to an estimate with its interval.

Each batch begins with the transfer's beginning, and has a fixed number of trials from each level (fixed effort;
:mod:`bentpipe.results.splitting`). At level ``i`` the share ``p_i`` of the trials reached the next level, and the share
``t_i`` had a time-out before. The batch estimates without bias ``t_0 + p_0 (t_1 + p_1 (t_2 + ...))``. The estimate is
the mean over the batches; their spread gives its interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from bentpipe.results.splitting import CONFIDENCE, interval
from bentpipe.results.statistics import t_quantile

__all__ = ["Level", "Outcome", "Stage", "sum_up", "timeout_figures"]


class Outcome(Enum):
    """The end of a trial: at the next level, with a time-out, with the transfer, or with the run before these."""

    REACHED = auto()
    TIMEOUT = auto()
    ENDED = auto()
    UNFINISHED = auto()


@dataclass(frozen=True, slots=True)
class Level:
    """A level: ``value`` cells queued (``what`` is "queue"), or so many PDUs lost ("lost")."""

    what: str
    value: int


@dataclass(slots=True)
class Stage:
    """The trials from a level; None: from the transfer's beginning."""

    level: Level | None
    trials: int = 0
    reached: int = 0
    timeouts: int = 0
    unfinished: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count a trial."""
        self.trials += 1
        self.reached += outcome is Outcome.REACHED
        self.timeouts += outcome is Outcome.TIMEOUT
        self.unfinished += outcome is Outcome.UNFINISHED


def weights(stages: Sequence[Stage]) -> list[float]:
    """Return the estimated probability to reach each level."""
    found, weight = [], 1.0
    for stage in stages:
        found.append(weight)
        weight *= stage.reached / stage.trials if stage.trials else 0.0
    return found


def probability(stages: Sequence[Stage]) -> float:
    """Return a batch's estimate."""
    pairs = zip(weights(stages), stages, strict=True)
    return sum(weight * stage.timeouts / stage.trials for weight, stage in pairs if stage.trials)


def sum_up(
    flow: str, port: str, batches: Sequence[Sequence[Stage]], planned: int, cells: int, plain: bool
) -> dict[str, Any]:
    """Return the value of ``rare_timeout`` in ``result.json``.

    Parameters
    ----------
    flow, port : str
    batches : Sequence
        Of the completed batches the stages, with the same levels.
    planned : int
        So many batches were to be.
    cells : int
        Cells that arrived for the port in all trials.
    plain : bool
        The plain run had a time-out.
    """
    ours = interval([(probability(stages), 1.0) for stages in batches])
    return {
        "flow": flow,
        "port": port,
        "probability": ours,
        "plain": plain,
        "cells": cells,
        "trials": sum(stage.trials for stages in batches for stage in stages),
        "unfinished": sum(stage.unfinished for stages in batches for stage in stages),
        "transfers_plain": _plain(ours, len(batches)),
        "levels": _levels(batches),
        "batches_done": len(batches),
        "batches": planned,
    }


def _levels(batches: Sequence[Sequence[Stage]]) -> list[dict[str, Any]]:
    """Return each level with the probability to reach it, and to reach the next one from it."""
    rows = []
    for k, stage in enumerate(batches[0] if batches else ()):
        same = [stages[k] for stages in batches]
        trials, reached = sum(each.trials for each in same), sum(each.reached for each in same)
        rows.append(
            {
                "what": stage.level.what if stage.level else "begin",
                "level": stage.level.value if stage.level else None,
                "reach": interval([(weights(stages)[k], 1.0) for stages in batches]),
                "trials": trials,
                "next": reached / trials if trials and k + 1 < len(batches[0]) else None,
                "timeouts": sum(each.timeouts for each in same),
            }
        )
    return rows


def _plain(ours: dict[str, Any], batches: int) -> float | None:
    """Return the number of plain transfers with the same relative error."""
    value, error = ours["value"], ours["error"]
    if not value or not error:
        return None
    sigma = error / t_quantile((1 + CONFIDENCE) / 2, batches - 1)
    return (1 - value) / (value * sigma * sigma)


def timeout_figures(found: dict[str, Any]) -> dict[str, float | None]:
    """Return the figures of a run with ``[rare_timeout]``."""
    ours = found["probability"]
    return {
        "timeout_probability": ours["value"],
        "timeout_probability_low": ours["low"],
        "timeout_probability_high": ours["high"],
        "timeout_probability_error": ours["error"],
        "transfers_simulated": found["trials"],
        "transfers_plain": found["transfers_plain"],
    }
