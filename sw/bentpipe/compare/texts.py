"""The texts of a comparison, as tables: for the terminal, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bentpipe.compare.rows import KINDS, Errors, errors_of
from bentpipe.results.tables import change_text, figure_text

__all__ = ["Comparison", "Table", "published_comparison", "side_comparison"]

_SEVERAL: Final = "several flows"
_NEAR: Final = (("one flow", 10), (_SEVERAL, 25))
"""How near in percent a figure of one flow, or of several, is counted as near."""

_MOST_DIFFERENCES: Final = 20
"""Changed keys that a table shows; JSON has all."""


@dataclass(frozen=True, slots=True)
class Table:
    """Title, names of columns, rows of texts; the first ``left`` columns are texts."""

    title: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    left: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison: its rows as data, what sums them up, and tables of both.

    Members
    -------
    data : dict
        For JSON; ``rows`` are what CSV has.
    tables : list[Table]
    notes : list[str]
        Lines below the tables.
    """

    data: dict[str, Any]
    tables: list[Table]
    notes: list[str]

    def markdown(self) -> str:
        """Return tables and notes as Markdown."""
        parts = []
        for table in self.tables:
            parts += [f"## {table.title}\n", _markdown(table)]
        return "\n".join([*parts, *(f"- {note}" for note in self.notes)]) + "\n"

    def csv(self) -> str:
        """Return the rows, their figures as numbers."""
        flat = [_flat(row) for row in self.data["rows"]]
        out = io.StringIO()
        writer = csv.DictWriter(out, [*dict.fromkeys(name for row in flat for name in row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        return out.getvalue()


def _markdown(table: Table) -> str:
    marks = [":--" if index < table.left else "--:" for index in range(len(table.columns))]
    rows = [list(table.columns), marks, *([cell.replace("|", "\\|") for cell in row] for row in table.rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with nested figures as columns ``ours_mean``, and lists as texts."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= {f"{name}_{part}": inner for part, inner in value.items()}
        else:
            found[name] = "; ".join(map(str, value)) if isinstance(value, list) else value
    return found


def _with_half(value: float | None, half: float | None) -> str:
    return figure_text(value) + (f" ± {figure_text(half)}" if half is not None else "")


def _case(row: Mapping[str, Any]) -> str:
    """Return the case, and what was set otherwise in its runs."""
    return "; ".join(filter(None, (row["case"], *row["changes"])))


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"


def _errors_text(errors: Errors) -> str:
    place = ", ".join(filter(None, (errors.worst["experiment"], errors.worst["case"])))
    text = f"{errors.name}: {errors.near} of {errors.count} figures within {errors.near_percent} %, error "
    text += f"{errors.mean_percent:.1f} % on average, median {errors.median_percent:.1f} %, worst "
    text += f"{errors.worst['error_percent']:+.1f} % ({place})"
    if errors.predicted:
        text += f"; nearer than the authors' prediction in {errors.nearer} of {errors.predicted}"
    return text + "."


def side_comparison(
    ours: str,
    theirs: str,
    rows: list[dict[str, Any]],
    differences: Sequence[Mapping[str, Any]],
    remarks: Sequence[str] = (),
) -> Comparison:
    """Return the comparison of two sides: figures (:func:`~bentpipe.compare.rows.beside`), differences, and
    omissions."""
    columns = ("experiment", "case", "figure", "unit", "ours", "theirs", "error, %", "difference")
    shown = [
        [
            row["experiment"],
            _case(row),
            row["metric"],
            row["unit"],
            _with_half(row["ours"]["mean"], row["ours"]["half"]),
            _with_half(row["theirs"]["mean"], row["theirs"]["half"]),
            _percent(row["error_percent"]) + (f" ({', '.join(row['remarks'])})" if row["remarks"] else ""),
            _with_half(row["difference"], row["difference_half"]),
        ]
        for row in rows
    ]
    tables = [Table(f"{ours} (ours) beside {theirs} (theirs)", columns, shown, 4)]
    notes = []
    if differences:
        rows_of_settings = [[*_differ(each)] for each in differences[:_MOST_DIFFERENCES]]
        tables.append(Table("Set differently", ("key", "theirs -> ours"), rows_of_settings, 2))
        if len(differences) > _MOST_DIFFERENCES:
            notes.append(f"{len(differences) - _MOST_DIFFERENCES} more keys differ.")
    else:
        notes.append("Nothing was set differently.")
    notes += remarks
    notes += [_errors_text(found) for found in _sums("all figures", rows)]
    data = {"ours": ours, "theirs": theirs, "rows": rows, "differences": [*differences], "notes": [*remarks]}
    return Comparison(data | {"errors": [_plain(found) for found in _sums("all figures", rows)]}, tables, notes)


def _sums_of_kind(kind: str, name: str, near: int, rows: Iterable[Mapping[str, Any]]) -> Iterator[Errors]:
    """Yield the errors of the figures of one kind, of one flow or of several."""
    some = [row for row in rows if row["kind"] == kind and (row["flows"] > 1) == (name == _SEVERAL)]
    found = errors_of(f"{kind.capitalize()}, {name}", some, near)
    if found:
        yield found


def _sums(name: str, rows: Iterable[Mapping[str, Any]]) -> list[Errors]:
    found = errors_of(name, rows)
    return [found] if found else []


def _differ(change: Mapping[str, Any]) -> tuple[str, str]:
    key, _, values = change_text({"key": change["key"], "old": change["theirs"], "new": change["ours"]}).partition(": ")
    return key, values


def _plain(errors: Errors) -> dict[str, Any]:
    worst = {name: errors.worst[name] for name in ("experiment", "case", "metric", "error_percent")}
    return {
        "of": errors.name,
        "figures": errors.count,
        "mean_percent": errors.mean_percent,
        "median_percent": errors.median_percent,
        "near": errors.near,
        "near_percent": errors.near_percent,
        "worst": worst,
        "nearer": errors.nearer,
        "predicted": errors.predicted,
    }


def published_comparison(
    side: str, rows: list[dict[str, Any]], orders: list[dict[str, Any]], remarks: Sequence[str] = ()
) -> Comparison:
    """Return the comparison with published figures (:func:`~bentpipe.compare.rows.against_published`), orders, and
    omissions."""
    columns = (
        "experiment", "case", "quantity", "unit", "measured", "predicted", "ours", "seeds", "error, %", "theirs, %",
        "counted as", "remark",
    )  # fmt: skip
    shown = [
        [
            row["experiment"],
            _case(row),
            row["quantity"],
            row["unit"],
            "withheld" if row["withheld"] else figure_text(row["measured"]),
            figure_text(row["predicted"]),
            _with_half(row["ours"], row["half"]),
            str(row["seeds"]),
            _percent(row["error_percent"]),
            _percent(row["authors_percent"]),
            row["kind"] or "withheld",
            ", ".join(row["remarks"]),
        ]
        for row in rows
    ]
    tables = [Table("Published figures and ours", columns, shown, 4)]
    if orders:
        tables.append(Table("Orders as published", ("order", "source", "ours", "verdict"), _order_rows(orders), 4))
    sums = [found for kind in KINDS for name, near in _NEAR for found in _sums_of_kind(kind, name, near, rows)]
    notes = [_errors_text(found) for found in sums]
    if any(row["error_percent"] is None and not row["withheld"] for row in rows):
        notes.append(
            "Without an error: shortened, unfinished and failed runs, and the spread of one run. Also the best of one "
            "run where the average is published, too."
        )
    notes += remarks
    data = {"ours": side, "rows": rows, "orders": orders, "errors": [_plain(found) for found in sums]}
    data["notes"] = [*remarks]
    return Comparison(data, tables, notes)


def _order_rows(orders: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    rows = []
    for order in orders:
        per = 1e6 if all(each["metric"].endswith("goodput") for each in order["of"]) else 1.0
        parts = [
            _with_half(each["mean"] / per, None if each["half"] is None else each["half"] / per) for each in order["of"]
        ]
        seeds = min(each["seeds"] for each in order["of"])
        verdict = order["verdict"] + (" (one seed)" if seeds == 1 else f" ({seeds} seeds)")
        if order["remarks"]:
            verdict += f", {', '.join(order['remarks'])}"
        rows.append([order["name"], order["source"], " > ".join(parts), verdict])
    return rows
