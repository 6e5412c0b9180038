"""What a sweep says as a whole: means over seeds, and published figures beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bentpipe.experiment.schema import Experiment, plain
from bentpipe.results.knees import over_cases
from bentpipe.results.metrics import NOT_COMPARED, compare
from bentpipe.results.statistics import mean_of
from bentpipe.sweeps.groups import group_rows

__all__ = ["beside_published", "means"]


def means(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The figures of whole runs over seeds, one entry for each case and combination of what is varied.

    Each has the columns of the table that its rows share, ``seeds``, ``left_out`` (runs that are not done), and
    ``metrics``: by name ``unit``, ``count``, ``mean``, ``sigma``, ``half`` (of the 95 % interval), ``least``, ``most``.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for group in group_rows(row for row in rows if not row["flow"]):
        at = {name: value for name, value in group.at.items() if name not in ("flow", "metric", "unit")}
        entry = found.setdefault(tuple(at.values()), {**at, "seeds": [], "left_out": group.left_out, "metrics": {}})
        entry["seeds"] = max(entry["seeds"], [*group.seeds], key=len)
        if group.mean is not None:
            entry["metrics"][group.at["metric"]] = {"unit": group.at["unit"], **asdict(group.mean)}
    return [*found.values()]


def beside_published(
    runs: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]],
    over: Sequence[tuple[Experiment, Mapping[str, Any], Mapping[str, Any]]],
) -> list[dict[str, Any]]:
    """The published rows with ``ours``, the mean over seeds, and its interval.

    Parameters
    ----------
    runs : Sequence
        Of each run its entry in ``result.json``, and its own published rows beside its figures.
    over : Sequence
        Of each run of an experiment that has published figures of all cases together: the experiment, its entry, and
        what of its summary they are made from.

    Returns
    -------
    list of dict
        A row of :func:`~bentpipe.results.metrics.compare`, with ``experiment``, ``values`` (what is varied), ``count``
        (of seeds), ``sigma`` and ``half`` (of the 95 % interval; None of one).
    """
    found: dict[tuple[Any, ...], list[tuple[dict[str, Any], Mapping[str, Any]]]] = {}

    def add(entry: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
        at = {"experiment": entry["experiment"], "values": dict(entry["values"])}
        for number, row in enumerate(rows):
            place = (entry["experiment"], *entry["values"].items(), entry["case"], number)
            found.setdefault(place, []).append((at, row))

    for entry, rows in runs:
        add(entry, rows)
    together: dict[tuple[Any, ...], list[tuple[Experiment, Mapping[str, Any], Mapping[str, Any]]]] = {}
    for each in over:
        entry = each[1]
        together.setdefault((entry["experiment"], *entry["values"].items(), entry["seed"]), []).append(each)
    for same in together.values():
        experiment, entry, _ = same[0]
        states = {
            "failed": any(e["status"] == "failed" for _, e, _ in same),
            "shortened": any(s["shortened"] for _, _, s in same),
            "changed": any(s["changes"] for _, _, s in same),
        }
        rows = [plain(row) for row in experiment.over_cases]
        figures = over_cases([s for _, _, s in same])
        add({**entry, "case": None}, compare(rows, figures, [state for state, holds in states.items() if holds]))
    return [_row(same) for same in found.values()]


def _row(same: Sequence[tuple[dict[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """One published row beside the mean of some runs."""
    at, row = same[0]
    remarks = [*dict.fromkeys(remark for _, each in same for remark in each["remarks"])]
    ours = [each["ours"] for _, each in same if each["ours"] is not None]
    mean = mean_of(ours) if ours else None
    reference = row["measured"] if row["measured"] is not None else row["predicted"]
    compared = mean is not None and reference and not NOT_COMPARED.intersection(remarks)
    return {
        **at,
        **row,
        "ours": mean.mean if mean else None,
        "ratio": mean.mean / reference if compared and mean else None,
        "remarks": remarks,
        "count": len(ours),
        "sigma": mean.sigma if mean else None,
        "half": mean.half if mean else None,
    }
