"""Keep the figures of the runs of a study in a small text file: a line of JSON for each run.

A line is added when a run has ended, so a command that was killed loses one run at most. Runs of an entry that has
changed since do not count, and are left out when the file is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bentpipe.errors import BentpipeError
from bentpipe.explain.plan import Study, Wanted

__all__ = ["Record", "Store"]

_DIGITS: Final = 7
"""Significant digits of a stored figure; far more than are compared."""


@dataclass(frozen=True, slots=True)
class Record:
    """A run that has ended.

    Members
    -------
    metrics : Mapping
        Figures in base units, by name.
    finished : bool
        Whether a whole run's data arrived in time. An unfinished run has no figure to compare.
    cpu_s : float
        Processor time.
    version : str
        Of the code.
    """

    metrics: Mapping[str, float]
    finished: bool
    cpu_s: float
    version: str


class Store:
    """The runs of a study that are done.

    Parameters
    ----------
    study : Study
    folder : Path
        Where the file ``ID.jsonl`` lies.

    Raises
    ------
    BentpipeError
        The file has something else in it.
    """

    def __init__(self, study: Study, folder: Path) -> None:
        self.study = study
        self.path = folder / f"{study.id}.jsonl"
        self._runs: dict[Wanted, Record] = {}
        self._stale = False
        if self.path.is_file():
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            for number, line in enumerate(lines, 1):
                self._read(line, f"{self.path}:{number}", number == len(lines))

    def _read(self, line: str, place: str, last: bool) -> None:
        try:
            row = json.loads(line)
            wanted = self.study.wanted(row["case"], row["set"], row["seed"], row["limit_ps"])
            record = Record(row["metrics"], row["finished"], row["cpu_s"], row["version"])
            entry = row["entry"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if last and not line.endswith("\n"):  # the command was killed while it wrote
                self._stale = True
                return
            raise BentpipeError(f"{place}: is no run of bentpipe explain ({error!r}); remove the line") from None
        if entry != self.study.entry:
            self._stale = True
        else:
            self._runs[wanted] = record

    def __contains__(self, wanted: Wanted) -> bool:
        return wanted in self._runs

    def __iter__(self) -> Iterator[tuple[Wanted, Record]]:
        return iter(self._runs.items())

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, wanted: Wanted) -> Record:
        return self._runs[wanted]

    def add(self, wanted: Wanted, record: Record) -> None:
        """Add a run, and write it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._stale:
            rest = "".join(self._line(*pair) for pair in self._runs.items())
            aside = self.path.with_suffix(".new")
            aside.write_text(rest, encoding="utf-8")
            aside.replace(self.path)
            self._stale = False
        self._runs[wanted] = record
        with self.path.open("a", encoding="utf-8") as file:
            file.write(self._line(wanted, record))

    def _line(self, wanted: Wanted, record: Record) -> str:
        row: dict[str, Any] = {
            "case": wanted.case,
            "set": dict(wanted.values),
            "seed": wanted.seed,
            "limit_ps": wanted.limit_ps,
            "metrics": {name: float(f"{value:.{_DIGITS}g}") for name, value in record.metrics.items()},
            "finished": record.finished,
            "cpu_s": round(record.cpu_s, 2),
            "version": record.version,
            "entry": self.study.entry,
        }
        return json.dumps(row, ensure_ascii=False) + "\n"
