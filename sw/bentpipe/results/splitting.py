"""Ratios of rare cells by splitting, from the counts of trials to an estimate with its interval.

Rare cells are lost ones, or those that wait for a certain time or longer.

The stem is a plain run in batches. In it an excursion begins when the queue comes to the first level, and ends when it
is empty. What is lost outside of excursions is counted there. For what is lost in them each batch has a tree of its
own (fixed effort; Garvels, The Splitting Method in Rare Event Simulation, 2000, chapter 2): a number of trials goes on
from states in which the queue came to a level, each until it comes to the next level or is empty. With ``e``
excursions, and at level ``i`` the share ``p_i`` of trials that came to the next and ``d_i`` cells lost a trial until
then, the batch's losses are estimated without bias by ``e (d_1 + p_1 (d_2 + p_2 (d_3 + ...)))``. The loss ratio is the
sum of these over the batches by the sum of the cells that arrived; the batches' spread gives its interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bentpipe.results.declared import METRICS
from bentpipe.results.statistics import t_quantile
from bentpipe.results.theory import FIGURE_CONFIDENCE as CONFIDENCE
from bentpipe.results.theory import LEAST_BATCHES, ratio

__all__ = [
    "CONFIDENCE",
    "DELAY_METRICS",
    "LEAST_BATCHES",
    "LOSS_METRICS",
    "SplittingLevel",
    "Tree",
    "interval",
    "of_delays",
    "ratio_of",
    "split_figures",
    "sum_up_trees",
]

LOSS_METRICS: Final = {metric.name: metric.text for metric in METRICS if metric.needs in ("splitting", "rare losses")}
"""Figures of a run with splitting that counts lost cells."""
DELAY_METRICS: Final = {metric.name: metric.text for metric in METRICS if metric.needs in ("splitting", "rare delays")}
"""Figures of a run with splitting that counts long waits."""


@dataclass(slots=True)
class SplittingLevel:
    """The trials that began at a level.

    Members
    -------
    level : int
        Cells queued.
    trials, reached : int
        How many there were, and how many came to the next level.
    lost, squares : int
        Cells lost, or late, in them, and the sum of the squares of each trial's.
    came : int
        Cells that arrived for the port.
    """

    level: int
    trials: int = 0
    reached: int = 0
    lost: int = 0
    squares: int = 0
    came: int = 0

    def add(self, reached: bool, lost: int, came: int) -> None:
        """Count a trial."""
        self.trials += 1
        self.reached += reached
        self.lost += lost
        self.squares += lost * lost
        self.came += came


@dataclass(slots=True)
class Tree:
    """A batch of the plain run, and its trials.

    Members
    -------
    came, lost : int
        Cells for the port, all and those lost, or late.
    outside : int
        Of the latter, how many outside of excursions.
    cycles, excursions : int
        Times that a cell found none queued; that the queue came to the first level since.
    heights : list of int
        Of the cycles that ended, how many had so many cells queued at most.
    """

    came: int = 0
    lost: int = 0
    outside: int = 0
    cycles: int = 0
    excursions: int = 0
    heights: list[int] = field(default_factory=list)
    stages: list[SplittingLevel] = field(default_factory=list)

    def weights(self) -> list[float]:
        """Return the estimated number of excursions that reach each level."""
        found, weight = [], float(self.excursions)
        for stage in self.stages:
            found.append(weight)
            weight *= stage.reached / stage.trials if stage.trials else 0.0
        return found

    def losses(self) -> float:
        """Return the estimated number of cells that the batch loses."""
        stages = zip(self.weights(), self.stages, strict=True)
        return self.outside + sum(weight * stage.lost / stage.trials for weight, stage in stages if stage.trials)


def interval(batches: Sequence[tuple[float, float]]) -> dict[str, float | int | None]:
    """Return a ratio of sums with its 95 % interval, computed for the ratio's logarithm.

    So it has no negative end. Estimates by splitting are products, and are more symmetric on that scale. Both ends are
    None if the spread of the batches is unknown.
    """
    found = ratio(batches, CONFIDENCE)
    below = sum(b for _, b in batches)
    value = sum(a for a, _ in batches) / below if below else None
    if found is None or not found.value or not found.half:
        return {"value": value, "low": None, "high": None, "error": None, "batches": len(batches)}
    error = found.half / found.value
    low, high = found.value * math.exp(-error), found.value * math.exp(error)
    return {"value": found.value, "low": low, "high": high, "error": error, "batches": found.batches}


def sum_up_trees(
    port: str,
    trees: Sequence[Tree],
    pilot: int,
    predicted: Sequence[float],
    *,
    done: int | None = None,
    planned: int | None = None,
) -> dict[str, Any]:
    """Return the value of ``splitting`` in ``result.json``.

    Parameters
    ----------
    port : str
    trees : Sequence[Tree]
        Of all batches of the plain run that have ended, with the same levels.
    done, planned : int, optional
        So many of the batches, the first ones, have all their trials, and the estimate is of these; so many were to
        be. Unless given: all that there are.
    pilot : int
        Cells that arrived for the port while levels were looked for.
    predicted : Sequence[float]
        By theory, the probability that in a cycle 1, 2, … cells are queued or more.
    """
    whole = trees if done is None else trees[:done]
    ours = interval([(tree.losses(), tree.came) for tree in whole])
    alone = interval([(tree.lost, tree.came) for tree in trees])
    stem = sum(tree.came for tree in trees)
    cells = pilot + stem + sum(stage.came for tree in trees for stage in tree.stages)
    return {
        "port": port,
        "loss_ratio": ours,
        "plain": alone,
        "cells": cells,
        "stem": stem,
        "trials": sum(stage.trials for tree in trees for stage in tree.stages),
        "cells_plain": _plain(whole, ours["error"], sum(tree.came for tree in whole)),
        "levels": _levels(whole),
        "heights": _heights(trees, predicted),
        "batches_done": len(whole),
        "batches": len(trees) if planned is None else planned,
    }


def of_delays(split: Mapping[str, Any], delay_ps: int) -> dict[str, Any]:
    """Return the result of :func:`sum_up_trees` for cells that wait ``delay_ps`` or longer instead of lost ones."""
    found = {name: value for name, value in split.items() if name != "loss_ratio"}
    return {"delay_ps": delay_ps, "delay_ratio": split["loss_ratio"], **found}


def ratio_of(split: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the estimated ratio, ``loss_ratio`` or ``delay_ratio``, and its value with the interval."""
    name = "delay_ratio" if "delay_ratio" in split else "loss_ratio"
    return name, split[name]


def split_figures(split: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the figures :data:`LOSS_METRICS` or :data:`DELAY_METRICS` of a run with splitting."""
    name, ours = ratio_of(split)
    return {
        name: ours["value"],
        f"{name}_low": ours["low"],
        f"{name}_high": ours["high"],
        f"{name.removesuffix('_ratio')}_error": ours["error"],
        f"plain_{name}": split["plain"]["value"],
        "cells_simulated": split["cells"],
        "cells_plain": split["cells_plain"],
    }


def _levels(trees: Sequence[Tree]) -> list[dict[str, Any]]:
    """Return each level with the probability to reach it in a cycle, and to reach the next one from it."""
    rows = []
    for k, stage in enumerate(trees[0].stages if trees else ()):
        same = [tree.stages[k] for tree in trees]
        trials, reached = sum(each.trials for each in same), sum(each.reached for each in same)
        rows.append(
            {
                "level": stage.level,
                "reach": interval([(tree.weights()[k], tree.cycles) for tree in trees]),
                "trials": trials,
                "next": reached / trials if trials and k + 1 < len(trees[0].stages) else None,
                "lost": sum(each.lost for each in same),
            }
        )
    return rows


def _heights(trees: Sequence[Tree], predicted: Sequence[float]) -> list[dict[str, Any]]:
    """Return the share of cycles with so many cells queued or more, in the plain run and by theory."""
    counts = [sum(column) for column in zip(*_padded([tree.heights for tree in trees]), strict=True)]
    total = sum(counts)
    shares = [sum(counts[k:]) / total for k in range(1, len(counts))] if total else []
    rows = max(len(shares), len(predicted))
    return [
        {
            "queue": k + 1,
            "plain": shares[k] if k < len(shares) and shares[k] else None,
            "predicted": predicted[k] if k < len(predicted) else None,
        }
        for k in range(rows)
    ]


def _padded(lists: Sequence[Sequence[int]]) -> list[list[int]]:
    longest = max(map(len, lists), default=0)
    return [[*each, *[0] * (longest - len(each))] for each in lists]


def _plain(trees: Sequence[Tree], error: Any, stem: int) -> float | None:
    """Return the number of cells that a plain run needs for the same relative error.

    Its losses are assumed to come in independent excursions. Each excursion that reaches the last level loses ``d``
    cells, with mean and mean square as in the trials from there.
    """
    last = [tree.stages[-1] for tree in trees if tree.stages]
    trials, lost, squares = (sum(getattr(each, name) for each in last) for name in ("trials", "lost", "squares"))
    there = sum(tree.weights()[-1] for tree in trees if tree.stages)
    if not error or not lost or not there or not stem:
        return None
    sigma = error / t_quantile((1 + CONFIDENCE) / 2, len(trees) - 1)
    mean = lost / trials
    return squares / trials / (there / stem * mean * mean * sigma * sigma)
