"""The figures of runs, each declared once: name, words, unit, what it is, and where it is counted.

Tables, figures, sweeps (``--metric``), Parquet and the manual take names, units and words from here. Computing them is
not done here: start reading in :mod:`bentpipe.results.metrics` and :mod:`bentpipe.results.cells`. What applications
report is declared beside each application (:class:`~bentpipe.apps.settings.Column`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from bentpipe.apps.registry import REPORTS

__all__ = [
    "METRICS",
    "SHOWN_UNITS",
    "Metric",
    "figure_in_words",
    "in_words",
    "is_whole",
    "label_of",
    "level_of",
    "metric_name",
    "metric_of",
    "metrics_of",
    "owner_in_words",
    "scale_of",
    "subject_columns",
    "unit_of",
]

Level = Literal["run", "group", "flow", "vc", "port"]
"""What a figure is of."""

SHOWN_UNITS: Final = {"b/s": ("Mb/s", 1e6), "ps": ("ms", 1e9)}
"""Units of tables and figures, and what figures in base units are divided by."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a run.

    Members
    -------
    name : str
        Of a flow, VC or port with its name in front: ``FLOW.goodput``, ``SWITCH:PORT.cell_loss_ratio``.
    words : str
        For figures and tables.
    unit : str
        Base unit; "" of counts and ratios.
    text : str
        Its definition, with the denominator.
    source : str
        Where it is counted.
    of : tuple of Level
    ratio : bool
        It spans decades: written with significant digits, drawn on a logarithmic axis.
    count : bool
        It is a number of things.
    needs : str
        The setting without which a run does not have it: ``[splitting]``, the same without ``delay`` ("rare losses") or
        with it ("rare delays"), ``[rare_timeout]`` ("rare time-outs"), ``record.losses``, ``histograms`` of the port's
        switch, ``cdv`` of the VC. "": every run has it.
    """

    name: str
    words: str
    unit: str
    text: str
    source: str
    of: tuple[Level, ...] = ("run",)
    ratio: bool = False
    count: bool = False
    needs: Literal["", "splitting", "rare losses", "rare delays", "rare time-outs", "losses", "histograms", "cdv"] = ""

    @property
    def shown(self) -> tuple[str, float]:
        """The unit in tables and figures, and the divisor of a value in base units."""
        if self.count:
            return "", 1.0
        if self.unit == "ps" and self.needs in ("histograms", "cdv"):
            return "us", 1e6
        return SHOWN_UNITS.get(self.unit, (self.unit, 1.0))

    @property
    def in_table(self) -> str:
        """The head of its column: words and unit."""
        unit = self.shown[0]
        return f"{self.words}, {unit}" if unit else self.words


_APPS: Final = "applications at the flows' sinks"
_LEDGER: Final = "loss ledger"
_COUNTERS: Final = "counters of the interfaces, and the loss ledger"
_SWITCH: Final = "counters of the switch"
_HISTOGRAM: Final = "histogram of the switch"
_RECORDS: Final = "loss records"
_TRIALS: Final = "queue monitor at the port"
_TRANSFERS: Final = "time-outs of the TCP sender, in all trials"
_ARRIVALS: Final = "arrival monitor at the node `cdv.at`"

METRICS: Final = (
    Metric(
        "aggregate_goodput",
        "aggregate throughput",
        "b/s",
        "Octets delivered by all flows, divided by their common time: from the first start to the last end",
        _APPS,
        ("run", "group"),
    ),
    Metric(
        "sum_of_flow_rates",
        "sum of the flows' rates",
        "b/s",
        "Sum of the flows' goodputs, each over the flow's own time, as in the papers. It is above the line's rate "
        "where flows end at different times",
        _APPS,
        ("run", "group"),
    ),
    Metric(
        "goodput",
        "throughput",
        "b/s",
        "Octets delivered to the sink, divided by the duration of the flow; of several flows their mean. The "
        "duration includes the time until a broken connection was given up, or until the last datagram was sent",
        _APPS,
        ("run", "group", "flow"),
    ),
    Metric("fairness", "fairness index", "", "Jain's fairness index of the flows' goodputs", _APPS, ("run", "group")),
    Metric(
        "share",
        "share of 134.5 Mb/s",
        "",
        "Rate that all flows delivered while any of them ran, divided by the best TCP rate over OC-3c (134.513 "
        "Mb/s); at most 1. No figure where the lines can deliver more than that",
        _APPS,
    ),
    Metric(
        "efficiency",
        "efficiency",
        "",
        "Octets that all flows delivered, divided by the most that the lines can deliver to them while they "
        "run; at most 1. Load-reactive lines count at their ceiling",
        _APPS,
    ),
    Metric(
        "sigma",
        "standard deviation of throughputs",
        "b/s",
        "Sample standard deviation (n - 1) of the flows' goodputs",
        _APPS,
        ("run", "group"),
    ),
    Metric(
        "carried",
        "share of datagrams carried",
        "",
        "Datagrams received, divided by datagrams received and lost",
        _APPS,
        ("flow",),
    ),
    Metric("retransmits", "segments sent again", "", "TCP segments sent again", "TCP", ("run", "flow"), count=True),
    Metric("timeouts", "time-outs", "", "Time-outs of TCP's retransmission timer", "TCP", ("run", "flow"), count=True),
    Metric("pdus_lost", "PDUs lost", "", "PDUs sent and lost, of all VCs", _LEDGER, count=True),
    Metric(
        "cells_dropped",
        "cells dropped",
        "cells",
        "Cells dropped by nodes for any reason, OAM cells included",
        "counters of all nodes",
        count=True,
    ),
    Metric(
        "cell_loss_ratio",
        "cell loss ratio",
        "",
        "CLR of CLP = 0+1: cells lost, divided by cells sent. Of a VC: cells of its PDUs, from its source's "
        "interface to its sink's. Of the run: all VCs together. Of a port: cells that the switch dropped, "
        "divided by cells offered; OAM cells included",
        _COUNTERS,
        ("run", "vc", "port"),
        ratio=True,
    ),
    Metric(
        "cell_loss_ratio_clp0",
        "cell loss ratio, CLP = 0",
        "",
        "CLR of CLP = 0: cells lost and cells received with CLP = 1, divided by cells sent. Interfaces send all "
        "cells with CLP = 0, so all sent cells count",
        _COUNTERS,
        ("run", "vc"),
        ratio=True,
    ),
    Metric(
        "cell_error_ratio",
        "cell error ratio",
        "",
        "CER: cells received with errors in the payload, divided by cells received",
        _COUNTERS,
        ("run", "vc"),
        ratio=True,
    ),
    Metric(
        "cell_misinsertion_rate",
        "cell misinsertion rate",
        "1/s",
        "CMR: user cells of other VCs that arrived at the sink as cells of this one, divided by the simulated time",
        _LEDGER,
        ("run", "vc"),
        ratio=True,
    ),
    Metric(
        "frame_loss_ratio",
        "frame loss ratio",
        "",
        "AAL5 PDUs lost between the interfaces, divided by PDUs given to the source's interface. PDUs that "
        "hosts drop do not count",
        _LEDGER,
        ("run", "vc"),
        ratio=True,
    ),
    Metric(
        "cells_sent", "cells sent", "cells", "Cells of PDUs sent by interfaces", _COUNTERS, ("run", "vc"), count=True
    ),
    Metric(
        "cells_lost",
        "cells lost",
        "cells",
        "Cells sent and lost. Of a port: cells of its VCs that the switch dropped",
        _LEDGER,
        ("run", "vc", "port"),
        count=True,
    ),
    Metric(
        "cells_offered",
        "cells offered",
        "cells",
        "Cells that arrived for the port, dropped cells included",
        _SWITCH,
        ("port",),
        count=True,
    ),
    Metric(
        "cell_delay_mean_ps",
        "mean delay in the switch",
        "ps",
        "Mean time of a cell in the switch, from its arrival until it leaves the buffer",
        _HISTOGRAM,
        ("port",),
        needs="histograms",
    ),
    Metric(
        "cell_delay_min_ps",
        "least delay in the switch",
        "ps",
        "Least delay of a cell in the switch: the lower end of its bin",
        _HISTOGRAM,
        ("port",),
        needs="histograms",
    ),
    Metric(
        "cell_delay_max_ps",
        "greatest delay in the switch",
        "ps",
        "Greatest delay of a cell in the switch: the upper end of its bin; the lower end of the last bin",
        _HISTOGRAM,
        ("port",),
        needs="histograms",
    ),
    Metric(
        "cell_delay_p99_ps",
        "99 % quantile of the delay in the switch",
        "ps",
        "Delay that 99 % of the cells do not exceed: the upper end of its bin",
        _HISTOGRAM,
        ("port",),
        needs="histograms",
    ),
    Metric(
        "one_point_cdv_max_ps",
        "greatest 1-point CDV",
        "ps",
        "1-point CDV of I.356: by how much a cell arrives before the time at which the reference clock of the peak "
        "cell rate expects it. The greatest is that of the worst clump",
        _ARRIVALS,
        ("vc",),
        needs="cdv",
    ),
    Metric(
        "one_point_cdv_min_ps",
        "least 1-point CDV",
        "ps",
        "Least 1-point CDV, negative: by how much a cell arrives later. After a late cell the clock goes on from it",
        _ARRIVALS,
        ("vc",),
        needs="cdv",
    ),
    Metric(
        "cells_nonconforming",
        "non-conforming cells",
        "cells",
        "Cells that do not conform to GCRA(1/PCR, CDVT) at the measurement point; OAM cells count",
        _ARRIVALS,
        ("vc",),
        count=True,
        needs="cdv",
    ),
    Metric(
        "nonconforming_cell_ratio",
        "non-conforming cell ratio",
        "",
        "Non-conforming cells, divided by cells that arrived at the measurement point",
        _ARRIVALS,
        ("vc",),
        ratio=True,
        needs="cdv",
    ),
    Metric(
        "loss_bursts",
        "loss bursts",
        "",
        "Bursts of consecutive lost cells of a VC, from the records in `losses.parquet`",
        _RECORDS,
        ("run", "vc"),
        count=True,
        needs="losses",
    ),
    Metric(
        "loss_burst_mean",
        "mean loss burst",
        "cells",
        "Mean length of the loss bursts",
        _RECORDS,
        ("run", "vc"),
        needs="losses",
    ),
    Metric(
        "loss_burst_max",
        "longest loss burst",
        "cells",
        "Length of the longest loss burst",
        _RECORDS,
        ("run", "vc"),
        count=True,
        needs="losses",
    ),
    Metric(
        "loss_gap_mean",
        "mean gap between loss bursts",
        "cells",
        "Mean number of cells of the VC between two bursts",
        _RECORDS,
        ("run", "vc"),
        needs="losses",
    ),
    Metric(
        "conditional_loss_probability",
        "conditional loss probability",
        "",
        "Share of lost cells whose next cell in the VC was also lost",
        _RECORDS,
        ("run", "vc"),
        ratio=True,
        needs="losses",
    ),
    Metric(
        "loss_ratio",
        "cell loss ratio, by splitting",
        "",
        "Splitting: cells lost at the port, divided by cells that arrived for it",
        _TRIALS,
        ratio=True,
        needs="rare losses",
    ),
    Metric(
        "loss_ratio_low",
        "its 95 % interval, lower end",
        "",
        "Splitting: lower end of the 95 % interval of the loss ratio",
        _TRIALS,
        ratio=True,
        needs="rare losses",
    ),
    Metric(
        "loss_ratio_high",
        "its 95 % interval, upper end",
        "",
        "Splitting: upper end of the 95 % interval of the loss ratio",
        _TRIALS,
        ratio=True,
        needs="rare losses",
    ),
    Metric(
        "loss_error",
        "relative error of the loss ratio",
        "",
        "Splitting: half the width of the interval, divided by the loss ratio",
        _TRIALS,
        needs="rare losses",
    ),
    Metric(
        "plain_loss_ratio",
        "cell loss ratio, plain run",
        "",
        "Splitting: loss ratio of the plain run alone",
        _TRIALS,
        ratio=True,
        needs="rare losses",
    ),
    Metric(
        "delay_ratio",
        "share of late cells, by splitting",
        "",
        "Splitting: cells that waited for `delay` or longer at the port, divided by cells that arrived for it",
        _TRIALS,
        ratio=True,
        needs="rare delays",
    ),
    Metric(
        "delay_ratio_low",
        "its 95 % interval, lower end",
        "",
        "Splitting: lower end of the 95 % interval of the share of late cells",
        _TRIALS,
        ratio=True,
        needs="rare delays",
    ),
    Metric(
        "delay_ratio_high",
        "its 95 % interval, upper end",
        "",
        "Splitting: upper end of the 95 % interval of the share of late cells",
        _TRIALS,
        ratio=True,
        needs="rare delays",
    ),
    Metric(
        "delay_error",
        "relative error of the share of late cells",
        "",
        "Splitting: half the width of the interval, divided by the share",
        _TRIALS,
        needs="rare delays",
    ),
    Metric(
        "plain_delay_ratio",
        "share of late cells, plain run",
        "",
        "Splitting: share of late cells of the plain run alone",
        _TRIALS,
        ratio=True,
        needs="rare delays",
    ),
    Metric(
        "cells_simulated",
        "cells simulated",
        "cells",
        "Splitting: cells that arrived for the port, in the plain run and all trials",
        _TRIALS,
        count=True,
        needs="splitting",
    ),
    Metric(
        "cells_plain",
        "cells that a plain run would need",
        "cells",
        "Splitting: cells that a plain run alone would need for the same interval",
        _TRIALS,
        count=True,
        needs="splitting",
    ),
    Metric(
        "timeout_probability",
        "probability of a time-out in the transfer",
        "",
        "Splitting: probability that the transfer has a retransmission time-out",
        _TRANSFERS,
        ratio=True,
        needs="rare time-outs",
    ),
    Metric(
        "timeout_probability_low",
        "its 95 % interval, lower end",
        "",
        "Splitting: lower end of the 95 % interval of the probability of a time-out",
        _TRANSFERS,
        ratio=True,
        needs="rare time-outs",
    ),
    Metric(
        "timeout_probability_high",
        "its 95 % interval, upper end",
        "",
        "Splitting: upper end of the 95 % interval of the probability of a time-out",
        _TRANSFERS,
        ratio=True,
        needs="rare time-outs",
    ),
    Metric(
        "timeout_probability_error",
        "relative error of the probability of a time-out",
        "",
        "Splitting: half the width of the interval, divided by the probability",
        _TRANSFERS,
        needs="rare time-outs",
    ),
    Metric(
        "transfers_simulated",
        "parts of transfers simulated",
        "trials",
        "Splitting: trials, each a part of a transfer",
        _TRANSFERS,
        count=True,
        needs="rare time-outs",
    ),
    Metric(
        "transfers_plain",
        "transfers that plain runs would need",
        "transfers",
        "Splitting: transfers that plain runs would need for the same interval",
        _TRANSFERS,
        count=True,
        needs="rare time-outs",
    ),
)
"""All but what applications report and the other numbers of a flow's row."""

_BY_NAME: Final = {metric.name: metric for metric in METRICS}


def _reported(name: str) -> Metric | None:
    """Return the declaration of a figure that an application reports."""
    for app, report in REPORTS.items():
        for column in report.columns:
            if column.name == name:
                words = column.words or column.head or name
                return Metric(name, words, column.unit, column.text, app, ("flow",), column.ratio)
    return None


_UNITS: Final = {"_ps": "ps", "_bps": "b/s", "octets": "octets", "cells": "cells"}
"""What names of numbers in a flow's row begin or end with, and their units."""


def metric_of(name: str) -> Metric | None:
    """Return the declaration of a figure, by its name with or without its object.

    Return None for another number of a flow's row.
    """
    return _BY_NAME.get(name) or _BY_NAME.get(name.rpartition(".")[2]) or _reported(name.rpartition(".")[2])


def metrics_of(level: Level) -> list[Metric]:
    """Return the figures that a run, group, flow, VC or port has."""
    return [metric for metric in METRICS if level in metric.of]


def level_of(owner: str, metric: str) -> Level:
    """Return the kind of object of a figure, by the name of its owner ("": the run) and its own."""
    known = _BY_NAME.get(metric)
    if not owner:
        return "run"
    if known is None or "flow" in known.of:
        return "flow"
    return "port" if ":" in owner else "vc" if "vc" in known.of else "group"


def subject_columns(owner: str, metric: str) -> dict[str, str]:
    """Return the columns of a table that name a figure's object: ``flow``, ``vc``, ``port``, each "" or a name."""
    level = level_of(owner, metric)
    return {column: owner if column == level else "" for column in ("flow", "vc", "port")}


def is_whole(row: Mapping[str, Any]) -> bool:
    """Return whether a row is of the run as a whole."""
    return not (row["flow"] or row.get("vc") or row.get("port"))


def metric_name(row: Mapping[str, Any]) -> str:
    """Return the name of a row's figure with its object, as ``--metric`` has it: ``flow1.goodput``."""
    owner = row["flow"] or row.get("vc") or row.get("port")
    return f"{owner}.{row['metric']}" if owner else row["metric"]


def unit_of(name: str) -> str:
    """Return the base unit of a figure, "" if it has none."""
    known = metric_of(name)
    if known is not None:
        return known.unit
    last = name.rpartition(".")[2]
    return next((unit for part, unit in _UNITS.items() if last.endswith(part) or last.startswith(part)), "")


def scale_of(name: str) -> tuple[str, float]:
    """Return the unit in which a figure is shown, and the divisor of a value in base units."""
    known, unit = metric_of(name), unit_of(name)
    return known.shown if known else SHOWN_UNITS.get(unit, (unit, 1.0))


def axis_names(axes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the name in words of each varied key of a sweep; the key itself if an older version wrote the result."""
    return {axis["key"]: axis.get("words") or axis["key"] for axis in axes}


def in_words(name: str) -> str:
    """Return the description of a figure, whatever its object is."""
    known = metric_of(name)
    last = name.rpartition(".")[2]
    return known.words if known else last.removesuffix("_ps").removesuffix("_bps").replace("_", " ")


def owner_in_words(name: str) -> str:
    """Return a figure's object in words: "VC cells"; "" for the run."""
    owner, _, last = name.rpartition(".")
    level = level_of(owner, last)
    return f"{'VC' if level == 'vc' else level} {owner}" if owner else ""


def label_of(name: str) -> str:
    """Return a figure in words, with its object: "cell loss ratio, VC cells"."""
    return ", ".join(filter(None, (in_words(name), owner_in_words(name))))


def figure_in_words(name: str) -> str:
    """Return the label of an axis: a figure in words and its unit."""
    unit = scale_of(name)[0]
    label = label_of(name)
    return f"{label} ({unit})" if unit else label
