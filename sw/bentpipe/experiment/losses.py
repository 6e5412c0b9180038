"""Listed losses of an experiment: ``[[loss]]``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bentpipe.experiment.layout import directed_lines
from bentpipe.experiment.schema import LossSpec, NetworkSpec, VcSpec
from bentpipe.experiment.table import Table
from bentpipe_hdl.words import nearest

__all__ = ["LOSS_KEYS", "read_losses"]

LOSS_KEYS: Final = ("line", "vc", "pdus", "cells")


def read_losses(tables: Iterable[Table], network: NetworkSpec, vcs: Sequence[VcSpec]) -> Iterator[LossSpec]:
    """The losses that the tables list.

    Raises
    ------
    ConfigError
        No such line or VC, the VC doesn't pass the line, or the numbers are none.
    """
    names = [vc.name for vc in vcs]
    lines = {line.name: line for line in network.lines}
    seen: set[tuple[str, str]] = set()
    for table in tables:
        line_name, vc_name = table.text("line"), table.text("vc")
        if line_name not in lines:
            raise table.error("line", f"there is no line {line_name!r}{nearest(line_name, lines)}")
        if vc_name not in names:
            raise table.error("vc", f"there is no VC {vc_name!r}{nearest(vc_name, names)}")
        if (line_name, vc_name) in seen:
            raise table.error("vc", f"{vc_name!r} has losses on {line_name!r} already")
        seen.add((line_name, vc_name))
        index = names.index(vc_name)
        ends = {end.switch for end in lines[line_name].ends}
        way = next((piece for piece in directed_lines(vcs[index].path) if set(piece) == ends), None)
        if way is None:
            raise table.error("vc", f"{vc_name!r} does not pass the line {line_name!r}")
        pdus, cells = _numbers(table, "pdus"), _numbers(table, "cells")
        if bool(pdus) == bool(cells):
            raise table.error("pdus", "give either 'pdus' or 'cells': the numbers of those to lose, from 1 on")
        yield LossSpec(index, way, pdus, cells)


def _numbers(table: Table, key: str) -> tuple[int, ...]:
    values = table.items(key, [])
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 32:
            raise table.error(key, f"{value!r} is not a number from 1 on")
    return tuple(sorted(set(values)))
