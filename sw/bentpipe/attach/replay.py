"""A session that was recorded, once more: the same network, what came at the same ticks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bentpipe.attach.ends import parse_end
from bentpipe.attach.session import ARRIVALS, Options, Session
from bentpipe.errors import BentpipeError
from bentpipe.experiment.document.catalogue import find
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.results.folder import read_run

__all__ = ["recorded"]


def _folder_of(name: str) -> Path | None:
    """Return the folder of the files that an experiment names; None if its own file does not exist any more."""
    try:
        return find(name).parent
    except BentpipeError:
        return None


def recorded(folder: Path, pcap: Sequence[str] = ()) -> tuple[Session, dict[str, Any]]:
    """Return the session of a run folder for a replay of the same length, its earlier result, and these captures.

    Raises
    ------
    BentpipeError
        It is not there, or was not recorded.
    """
    summary = read_run(folder).summary
    then = summary.get("attached")
    if then is None:
        raise BentpipeError(f"{folder}: no session with attached hosts; for other runs use `bentpipe resume` or `run`")
    arrivals = folder / ARRIVALS
    if not arrivals.is_file():
        why = then.get("record_lost") or "the session was not recorded: bentpipe attach --record"
        raise BentpipeError(f"{folder}: {why}")
    document = dict(summary["configuration"])
    if pcap:
        document["record"] = {**document.get("record", {}), "pcap": list(pcap)}
    source = Source(str(folder / "result.json"), "", folder=_folder_of(summary["file"]))
    length = round(summary["time"]["simulated_s"] * 10**12)
    experiment = parse_experiment(document, source, seed=summary["seed"], duration_ps=length)
    for ours, recorded_then in zip(experiment.profiles, summary["profiles"], strict=True):
        if ours.sha256 != recorded_then["sha256"]:
            raise BentpipeError(f"{folder}: {ours.file} has changed since the session")
    ends = {row["host"]: parse_end(row["end"], "the session's") for row in then["ends"]}
    options = Options(computing_ps=then["wanted_ps"]["computing"], release_ps=then["wanted_ps"]["release"])
    return Session(experiment, ends, options, arrivals, then["changed"]), summary
