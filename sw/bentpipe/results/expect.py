"""Conditions on the results of runs: the rows of ``[[expect]]``, and their JUnit XML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from bentpipe.results.metrics import in_unit

__all__ = ["broken", "expectation_text", "judge", "unit_for", "write_junit"]

_RATES: Final = ("goodput", "sigma")


def unit_for(metric: str) -> str:
    """Return the default unit of a figure."""
    return "Mb/s" if metric.endswith(_RATES) else "ms" if metric.endswith("_ps") else "1"


def judge(rows: Iterable[Mapping[str, Any]], found: Mapping[str, float | None], whole: bool) -> list[dict[str, Any]]:
    """Return the rows with ``ours`` in their unit, and whether the condition ``holds``; None where it is unknown.

    Parameters
    ----------
    rows : Iterable[Mapping]
        As ``[[expect]]`` has them.
    found : Mapping
        The run's figures.
    whole : bool
        The run is over, and neither failed nor was shortened.
    """
    table = []
    for row in rows:
        unit = row["unit"] or unit_for(row["metric"])
        value = found.get(row["metric"])
        ours = None if value is None else in_unit(row["metric"], unit, value)
        holds = None
        if whole:  # a figure that is not there is not within bounds
            least, most = row["min"], row["max"]
            holds = ours is not None and (least is None or ours >= least) and (most is None or ours <= most)
        table.append({**row, "unit": unit, "ours": ours, "holds": holds})
    return table


def expectation_text(row: Mapping[str, Any]) -> str:
    """Return a text as ``aggregate_goodput: 134.1 Mb/s, expected at least 140``."""
    unit = "" if row["unit"] == "1" else f" {row['unit']}"
    ours = "no figure" if row["ours"] is None else f"{row['ours']:.6g}{unit}"
    bounds = [f"at least {row['min']:g}"] if row["min"] is not None else []
    bounds += [f"at most {row['max']:g}"] if row["max"] is not None else []
    return f"{row['metric']}: {ours}, expected {' and '.join(bounds)}"


def broken(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows whose condition does not hold."""
    return [row for row in rows if row["holds"] is False]


def write_junit(path: Path, name: str, runs: Sequence[Mapping[str, Any]]) -> None:
    """Write JUnit's XML: a suite with a test per run (a case of it) that it ran, and one per row of ``expected``.

    Parameters
    ----------
    path : Path
    name : str
        Name of the suite: the experiment's.
    runs : Sequence[Mapping]
        Each with ``name`` (of the case, "" without), ``status``, ``reason``, ``time`` and ``expected``.
    """
    suite = ElementTree.Element("testsuite", name=name)
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}

    def test(run: Mapping[str, Any], what: str, seconds: float) -> ElementTree.Element:
        counts["tests"] += 1
        of = f"{name}.{run['name']}" if run["name"] else name
        return ElementTree.SubElement(suite, "testcase", classname=of, name=what, time=f"{seconds:.3f}")

    for run in runs:
        whole = test(run, "run", run["time"]["wall_s"])
        if run["status"] != "done":
            counts["errors"] += 1
            ElementTree.SubElement(whole, "error", message=f"{run['status']}: {run['reason']}")
        for row in run["expected"]:
            text = expectation_text(row)
            each = test(run, f"{row['metric']}, {text.partition(', ')[2]}", 0.0)
            if row["holds"] is None:
                counts["skipped"] += 1
                ElementTree.SubElement(each, "skipped", message="not judged: the run was shortened or is not done")
            elif not row["holds"]:
                counts["failures"] += 1
                ElementTree.SubElement(each, "failure", message=text)
    for key, count in counts.items():
        suite.set(key, str(count))
    tree = ElementTree.ElementTree(suite)
    ElementTree.indent(tree)
    tree.write(path, encoding="utf-8", xml_declaration=True)
