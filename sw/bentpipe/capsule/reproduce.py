"""Doing the runs of a capsule again, and comparing every figure with the one in it."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.capsule.crate import CAPSULE, METADATA, SCHEMA, digest
from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.schema import SCHEMA_VERSION
from bentpipe.sweeps.plan import code_version

__all__ = ["Outcome", "changed_files", "opened", "reproduce"]

_COMPARED: Final = ("metrics", "flows", "drops", "ledger", "ports")
"""Parts of a result that the run's input and seed decide."""

_MOST_OCTETS: Final = 2**31
"""Size of an unpacked capsule at most."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of repeating a run.

    Members
    -------
    name : str
    verdict : str
        ``reproduced``, ``differs`` or ``not comparable``.
    text : str
        How much it differs, or why it cannot be compared.
    figures : int
        How many were compared.
    """

    name: str
    verdict: str
    text: str = ""
    figures: int = 0


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Yield the folder of a capsule; a zip file is unpacked within the context.

    Raises
    ------
    BentpipeError
        It is no capsule.
    """
    if path.is_dir():
        yield path
        return
    try:
        with zipfile.ZipFile(path) as packed, tempfile.TemporaryDirectory() as folder:
            if sum(info.file_size for info in packed.infolist()) > _MOST_OCTETS:
                raise BentpipeError(f"{path}: is larger than {_MOST_OCTETS} octets unpacked")
            packed.extractall(folder)
            yield Path(folder)
    except (zipfile.BadZipFile, FileNotFoundError) as error:
        raise BentpipeError(f"{path}: is no capsule: {error}") from None


def changed_files(folder: Path) -> list[str]:
    """Return the files of a capsule that have changed since they were written, each with the fault."""
    try:
        graph = json.loads((folder / METADATA).read_text(encoding="utf-8"))["@graph"]
        written = {entity["@id"]: entity["sha256"] for entity in graph if "sha256" in entity}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BentpipeError(f"{folder / METADATA}: can't be read: {error}") from None
    found = []
    for name, expected in written.items():
        file = folder / name
        if not file.is_file():
            found.append(f"{name} is missing")
        elif digest(file.read_bytes()) != expected:
            found.append(f"{name} was changed")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return found + [f"{name} was added" for name in sorted(there - {*written, METADATA})]


def reproduce(
    folder: Path, only: Sequence[str] = (), on_start: Callable[[str], None] | None = None
) -> Iterator[Outcome]:
    """Repeat the runs of a capsule, and yield the outcome of each.

    Parameters
    ----------
    folder : Path
        Folder of a capsule whose files are as they were written.
    only : Sequence[str]
        Experiments, or names of runs; empty: all.
    on_start : callable, optional
        Called with the name of each run before it.
    """
    about = json.loads((folder / CAPSULE).read_text(encoding="utf-8"))
    if about.get("schema") != SCHEMA:
        raise BentpipeError(f"{CAPSULE} has schema {about.get('schema')}, this bentpipe reads {SCHEMA}")
    runs = [run for run in about["runs"] if not only or {run["name"], run["experiment"]} & {*only}]
    if not runs:
        raise BentpipeError(f"the capsule has no run of {', '.join(only)}")
    other = "" if about["version"] == code_version() else f"; made by {about['version']}, this is {code_version()}"
    for run in runs:
        if on_start:
            on_start(run["name"])
        yield _again(folder, run, other)


def _again(folder: Path, run: Mapping[str, Any], other: str) -> Outcome:
    before = json.loads((folder / run["result"]).read_text(encoding="utf-8"))
    if before["schema"] != SCHEMA_VERSION:
        return Outcome(
            run["name"], "not comparable", f"its figures are of schema {before['schema']}, ours of {SCHEMA_VERSION}"
        )
    try:
        limit_ps = round(run["limit_s"] * 1e12)
        experiment = load(str(folder / run["input"]), seed=run["seed"], duration_ps=limit_ps)
        now = json.loads(json.dumps(run_experiment(experiment).summary))
    except BentpipeError as error:
        return Outcome(run["name"], "not comparable", f"{error}{other}")
    if now["status"] != before["status"]:
        return Outcome(run["name"], "not comparable", f"the run is {now['status']}, and was {before['status']}{other}")
    figures = dict(_figures({key: before.get(key) for key in _COMPARED}))
    again = dict(_figures({key: now.get(key) for key in _COMPARED}))
    unlike = [name for name in {**figures, **again} if figures.get(name) != again.get(name)]
    if not unlike:
        return Outcome(run["name"], "reproduced", figures=len(figures))
    worst = max(unlike, key=lambda name: _share(figures.get(name), again.get(name)))
    share = _share(figures.get(worst), again.get(worst))
    how = f"{worst} is {again.get(worst)}, and was {figures.get(worst)}"
    text = f"by up to {100 * share:.3g} % in {len(unlike)} of {len(figures)} figures: {how}{other}"
    return Outcome(run["name"], "differs", text, len(figures))


def _figures(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers and texts of a result, with their places."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _figures(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _figures(each, f"{name}.{number}")
    else:
        yield name, value


def _share(before: Any, now: Any) -> float:
    """Return the difference of a figure, as a share of its earlier value."""
    numbers = [isinstance(value, (int, float)) and not isinstance(value, bool) for value in (before, now)]
    if not all(numbers):
        return 1.0
    return abs(now - before) / abs(before) if before else 1.0
