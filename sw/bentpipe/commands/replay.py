"""``bentpipe replay``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bentpipe.commands.command import (
    Command,
    choose_engine,
    engine_option,
    json_option,
    pcap_option,
    run_folder_options,
)
from bentpipe.errors import ExperimentFailed

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    parser.add_argument("folder", type=Path, metavar="DIR", help="run folder of a session recorded with --record")
    run_folder_options(parser, "DIR-replayed")
    pcap_option(parser)
    engine_option(parser)


def _run(given: argparse.Namespace) -> int:
    from bentpipe.attach.replay import recorded
    from bentpipe.results.folder import RunFolder

    choose_engine(given)
    session, before = recorded(given.folder, given.pcap)
    with RunFolder.claim(given.out or given.folder.with_name(f"{given.folder.name}-replayed"), given.force) as folder:
        summary = session.run(folder, before["settings"]).summary
    return _say(given, before, summary, folder.path)


def _say(given: argparse.Namespace, before: dict[str, Any], summary: dict[str, Any], folder: Path) -> int:
    ours, theirs = summary["attached"]["digests"], before["attached"]["digests"]
    other = sorted(face for face in theirs if ours.get(face) != theirs[face])
    if summary["status"] == "failed":
        raise ExperimentFailed(f"{summary['reason']} (kept in {folder})")
    if other:
        raise ExperimentFailed(f"{given.folder}: the cells that left {', '.join(other)} are not those of the session")
    if given.json:
        print(json.dumps({"folder": str(folder), "same": True, "outputs": len(ours)}))
    else:
        print(f"The same cells at the same ticks at all {len(ours)} outputs.\nRun folder: {folder}")
    return 0


COMMAND = Command(
    "replay",
    "Replay a recorded session offline: the same cells at the same ticks.",
    _run,
    _arguments,
    prepares_hosts=True,
)
