"""The figures of a session's ends, and its verdict in a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bentpipe.attach.slack import Slack
from bentpipe_sim.attached import TIMES, Attachment, Distribution

__all__ = ["end_row", "verdict_of"]

_STOLEN_S: Final = 0.01
"""The least stolen time that a verdict mentions: the unit in which the kernel counts it."""


def end_row(attachment: Attachment, number: int) -> dict[str, Any]:
    """Return the figures of an end: its counters, and the distributions of times (ns)."""
    spreads = {what: _spread(attachment.times(what, number)) for what in TIMES}
    counts = attachment.counts(number)
    return {"counts": counts, "dropped": _dropped(counts), **spreads}


def _spread(times: Distribution) -> dict[str, Any]:
    found: dict[str, Any] = {"count": times.count}
    if times.count:
        shares = {"median": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
        found |= {"least": times.least, **{name: times.share(share) for name, share in shares.items()}}
        found |= {"most": times.most, "mean": times.mean, "bins": list(times.bins.items())}
    return found


def verdict_of(rows: Sequence[Mapping[str, Any]], slack: Slack, time_s: float, priority: str, stolen_s: float) -> str:
    """Return the verdict in a line: packets passed, late packets, release jitter, and deviations from the
    configuration.

    ``stolen_s`` is the processor time that the hypervisor gave to others during the session. The verdict has it where
    packets were late.
    """
    came = sum(row["counts"]["injected"] for row in rows)
    left = sum(row["counts"]["released"] for row in rows)
    late = sum(row["counts"]["late"] for row in rows)
    computed = sum(row["counts"]["out_late"] for row in rows)
    jitter = [row["jitter"] for row in rows if row["jitter"]["count"]]
    parts = [f"{time_s:.1f} s, {came:,} packets in, {left:,} out"]
    if late or computed:
        worst = max(row[what].get("most", 0) for row in rows for what in ("late", "computed_late"))
        parts.append(f"LATE: {late:,} injected late, {computed:,} computed late, by {worst / 1e6:.3g} ms at most")
        if stolen_s >= _STOLEN_S:
            parts.append(f"the hypervisor kept processors from this machine for {stolen_s:.2g} s")
    else:
        parts.append("none late")
    if jitter:
        p99, most = (max(spread[name] for spread in jitter) / 1e6 for name in ("p99", "most"))
        parts.append(f"sent {p99:.3g} ms late or less (99 %), {most:.3g} ms at most")
    early = sum(row["counts"]["early"] for row in rows)
    if early:
        parts.append(f"{early:,} before the start dropped")
    dropped = sum(_dropped(row["counts"]) for row in rows)
    if dropped:
        parts.append(f"{dropped:,} dropped at the ends")
    if slack.excess_ps:
        parts.append(
            f"each packet takes {slack.excess_ps / 1e9:.3g} ms more than configured, because the path has too "
            "little delay"
        )
    return f"{priority} priority: {'; '.join(parts)}"


def _dropped(counts: Mapping[str, Any]) -> int:
    """Return the number of packets that an end dropped, on the way in and out."""
    names = ("malformed", "too_long", "hec_errors", "no_vc", "no_vlan", "oam", "pdu_wrong", "queue_full", "kernel_full")
    return sum(counts[name] for name in (*names, "late_dropped", "out_late_dropped", "out_full", "unsent"))
