"""The columns of the tables that runs and sweeps write: type and meaning, for writers and for the manual.

Not here: ``losses.parquet`` (:mod:`bentpipe.results.losses`), metrics (:mod:`bentpipe.results.declared`), and figures
that applications report (:class:`bentpipe.apps.settings.Column`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CHANGES", "FLOWS", "SWEEP", "SWEEP_HEAD", "TRACE", "Columns", "arrow_schema"]

Columns = Mapping[str, tuple[str, str]]
"""Type and meaning of each column by its name."""

TRACE: Final[Columns] = {
    "series": ("string", "name of the series, for example `flow1.cwnd` or `ground.queue`"),
    "time_ps": ("int64", "simulated time, ps"),
    "value": ("int64", "value of the sample, in the unit of the series"),
    "event": ("string", "kind of an event; null for a sample"),
}

CHANGES: Final[Columns] = {
    "time_ps": ("int64", "simulated time of the change, ps"),
    "source": ("string", "event, profile or request that changed the value"),
    "key": ("string", "dotted key"),
    "value": ("double", "new value, if it is a number, true or false"),
    "text": ("string", "new value as JSON, if it is anything else"),
}

FLOWS: Final[Columns] = {
    "name": ("string", "name of the flow"),
    "protocol": ("string", "`tcp`, `udp` or `oam`"),
    "app": ("string", "application"),
    "variant": ("string", "TCP: loss recovery, for example `reno`"),
    "growth": ("string", "TCP: congestion control, for example `cubic`"),
    "source": ("string", "sending host"),
    "sink": ("string", "receiving host"),
    "finished": ("bool", "true if the flow ended before the run"),
    "state": ("string", "TCP: state of the source's last connection"),
    "error": ("string", "TCP: reason of the first broken connection; empty if none broke"),
    "octets_delivered": ("int64", "octets read by the sink application; UDP: payload received, without duplicates"),
    "octets_acknowledged": ("int64", "TCP: octets acknowledged to the source"),
    "start_ps": ("int64", "start of the flow, ps: the connect. Negative if the flow did not start"),
    "end_ps": ("int64", "last octet read (TCP) or last datagram (UDP), ps; the end of the run if not finished"),
    "goodput_bps": ("double", "octets delivered over the time from start to end, b/s"),
    "segments_sent": ("int64", "TCP: segments sent by the source"),
    "data_segments_sent": ("int64", "TCP: segments with data sent by the source"),
    "acks_received": ("int64", "TCP: ACKs received by the source"),
    "acks_sent": ("int64", "TCP: ACKs sent by the sink"),
    "retransmits": ("int64", "TCP: segments sent again"),
    "retransmitted_octets": ("int64", "TCP: octets sent again"),
    "timeouts": ("int64", "TCP: time-outs of the retransmission timer"),
    "fast_retransmits": ("int64", "TCP: fast retransmissions"),
    "dup_acks": ("int64", "TCP: duplicate ACKs received"),
    "out_of_order": ("int64", "TCP: segments received out of order"),
    "duplicates": ("int64", "segments or datagrams received twice"),
    "quenches": ("int64", "TCP: times that a full interface queue shut the window"),
    "window_probes": ("int64", "TCP: probes of a closed window"),
    "cwnd": ("int64", "TCP: congestion window at the end, octets"),
    "ssthresh": ("int64", "TCP: slow-start threshold at the end, octets"),
    "rtt_count": ("int64", "TCP: round trips measured"),
    "rtt_min_ps": ("int64", "TCP: least round trip, ps; 0 if none was measured"),
    "rtt_mean_ps": ("int64", "TCP: mean round trip, ps; 0 if none was measured"),
    "rtt_max_ps": ("int64", "TCP: greatest round trip, ps; 0 if none was measured"),
    "bad_octets": ("int64", "octets delivered wrong although every checksum was right; not 0: the run fails"),
    "datagrams_sent": ("int64", "UDP: datagrams made by the source's host, dropped ones at its interface included"),
    "datagrams_refused": ("int64", "UDP: datagrams that found the interface queue full (ENOBUFS)"),
    "datagrams_received": ("int64", "UDP: datagrams received, without duplicates"),
    "datagrams_lost": ("int64", "UDP: datagrams sent, and neither received nor in flight"),
    "datagrams_under_way": ("int64", "UDP: datagrams in the network, or waiting for the sink's processor"),
    "datagrams_missing": ("int64", "UDP: numbers missing at the receiver up to the highest received"),
    "datagrams_reordered": ("int64", "UDP: datagrams received after one with a higher number (RFC 4737)"),
    "delay_min_ps": ("int64", "UDP: least delay from write to sink, ps; 0 if none was received"),
    "delay_mean_ps": ("int64", "UDP: mean delay from write to sink, ps; 0 if none was received"),
    "delay_max_ps": ("int64", "UDP: greatest delay from write to sink, ps; 0 if none was received"),
}

SWEEP_HEAD: Final[Columns] = {
    "experiment": ("string", "id of the experiment"),
    "case": ("string", 'name of the case; "" without cases'),
    "at": ("double", "place of the case on the axis; null without one"),
    "curve": ("string", 'curve of the case; "" without one'),
}
"""The columns before those of the varied keys."""

SWEEP: Final[Columns] = {
    "seed": ("int64", "seed of the run"),
    "flow": ("string", 'flow that the figure belongs to; "" for the run, VCs and ports'),
    "vc": ("string", 'VC that the figure belongs to, or ""'),
    "port": ("string", 'port that the figure belongs to, `SWITCH:PORT`, or ""'),
    "metric": ("string", "name of the metric or column of `flows.parquet`"),
    "value": ("double", "value in base units; null if the run has no such figure"),
    "unit": ("string", '`b/s`, `ps`, `octets`, `cells`, `1/s`, or "" for counts and shares'),
    "verdict": ("string", "`done`; `unexpected` (an `[[expect]]` does not hold); `failed`"),
    "remarks": ("string", "differences from the published run, joined by commas: `shortened`, `changed`, …"),
    "seconds": ("double", "real time of the run, s; null if unknown"),
    "run": ("string", "run folder, relative to the sweep's folder"),
}
"""The columns after those of the varied keys."""


def arrow_schema(*parts: Columns) -> pa.Schema:
    """Return the schema of a table whose columns are those of the parts, in order."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
    return pa.schema({name: kinds[kind] for part in parts for name, (kind, _) in part.items()})
