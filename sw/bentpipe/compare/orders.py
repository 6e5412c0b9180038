"""The order of the papers' results, compared with the order here (``catalogue/published/orders.toml``)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.compare.sides import Side
from bentpipe.experiment.document.catalogue import read_document
from bentpipe.results.statistics import Mean, mean_of, step

__all__ = ["Order", "judged", "orders"]

_FILE: Final = Path(__file__).resolve().parent.parent / "catalogue" / "published" / "orders.toml"


@dataclass(frozen=True, slots=True)
class Order:
    """Figures of which each is greater than the next.

    Members
    -------
    name, source : str
    falls : tuple[tuple[str, str, str], ...]
        Experiment, case and metric of each, the greatest first.
    """

    name: str
    source: str
    falls: tuple[tuple[str, str, str], ...]


def orders() -> list[Order]:
    """Return the orders of the papers."""
    found = []
    for table in read_document(_FILE)[0]["order"]:
        metrics = table["metric"] if isinstance(table["metric"], list) else [table["metric"]] * len(table["falls"])
        falls = tuple((name, case, metric) for (name, case), metric in zip(table["falls"], metrics, strict=True))
        found.append(Order(table["name"], table["source"], falls))
    return found


def judged(side: Side, wanted: Sequence[Order]) -> list[dict[str, Any]]:
    """Return the orders whose figures are complete, from runs without changes, with figures, steps and a verdict.

    A step's verdict is "held" if the first mean is above the second by more than the 95 % interval of their difference
    (Welch) is wide to one side, "not held" if it is below by as much or the two are equal, else "open". Without several
    seeds on both sides there is no interval, and the sign alone decides. An order is "held" if all its steps are, "not
    held" if one is not, else "open".
    """
    groups = side.plain()
    found = []
    for order in wanted:
        here = [groups.get((name, case)) for name, case, _ in order.falls]
        means: list[Mean] = []
        for group, (_, _, metric) in zip(here, order.falls, strict=True):
            values = group.values(metric) if group else []
            if values:
                means.append(mean_of(values))
        if len(means) < len(order.falls):
            continue
        steps = [step(one, two) for one, two in itertools.pairwise(means)]
        verdicts = {step["verdict"] for step in steps}
        found.append(
            {
                "name": order.name,
                "source": order.source,
                "of": [
                    {"experiment": name, "case": case, "metric": metric, "mean": mean.mean, "half": mean.half}
                    | {"seeds": mean.count}
                    for (name, case, metric), mean in zip(order.falls, means, strict=True)
                ],
                "steps": steps,
                "verdict": "not held" if "not held" in verdicts else "open" if "open" in verdicts else "held",
                "remarks": sorted({remark for group in here if group for remark in group.remarks}),
            }
        )
    return found
