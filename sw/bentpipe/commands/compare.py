"""``bentpipe compare``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.commands.command import Command, console, print_json
from bentpipe.errors import BentpipeError

if TYPE_CHECKING:
    from bentpipe.compare.texts import Comparison

__all__ = ["COMMAND"]

_PUBLISHED: Final = "published"


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sides",
        nargs="+",
        metavar="DIR|published",
        help="folders of runs, cases or sweeps, the first is the reference; with the word published, all are "
        "compared with the papers' figures",
    )
    parser.add_argument(
        "--metric",
        dest="metrics",
        action="append",
        default=[],
        metavar="NAME",
        help="compare only this metric, for example fairness or flow1.goodput (may be repeated)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write compare.md, compare.csv, compare.json and the plots to a folder",
    )


def _run(given: argparse.Namespace) -> int:
    from bentpipe.compare.sides import read_side

    folders = [Path(side) for side in given.sides if side != _PUBLISHED]
    if _PUBLISHED in given.sides:
        if not folders:
            raise BentpipeError("compare published: name the folders of the runs to compare")
        if given.metrics:
            raise BentpipeError("--metric goes with two folders of runs; published figures have their own")
        return _published(given, folders)
    if len(folders) < 2:
        raise BentpipeError("compare: give two folders, or one and the word published")
    ours, *others = [read_side([folder]) for folder in folders]

    def draw(into: Path) -> None:
        from bentpipe.compare.figures import draw_beside

        for number, other in enumerate(others, 1):
            own = into if len(others) == 1 else into / str(number)
            own.mkdir(exist_ok=True)
            draw_beside(ours, other, own)

    return _put(given, [_beside(given, ours, other) for other in others], draw)


def _published(given: argparse.Namespace, folders: list[Path]) -> int:
    from bentpipe.compare.orders import judged, orders
    from bentpipe.compare.rows import against_published, groups_text
    from bentpipe.compare.sides import read_side
    from bentpipe.compare.texts import published_comparison

    side, out = read_side(folders).comparable()
    notes = side.notes()
    if out:
        notes.append(f"Left out, as there are whole runs with the same settings: {groups_text(out)}.")

    def draw(into: Path) -> None:
        from bentpipe.compare.figures import draw_published

        draw_published(side, into)

    made = published_comparison(side.name, against_published(side), judged(side, orders()), notes)
    return _put(given, [made], draw)


def _beside(given: argparse.Namespace, ours: Any, theirs: Any) -> Comparison:
    from bentpipe.compare.rows import beside, different, pairs_of, seeds_text, unpaired_text
    from bentpipe.compare.texts import side_comparison

    rows = beside(ours, theirs, given.metrics)
    pairs = pairs_of(ours, theirs)
    found = [each for pair in pairs for each in different(*pair)]
    unlike = [each for n, each in enumerate(found) if each not in found[:n]]
    seeds = dict.fromkeys(text for pair in pairs if (text := seeds_text(*pair)))
    notes = [*seeds, *ours.notes(), *theirs.notes(), *unpaired_text(ours, theirs)]
    return side_comparison(ours.name, theirs.name, rows, unlike, notes)


def _put(given: argparse.Namespace, made: list[Comparison], draw: Callable[[Path], None]) -> int:
    if given.out:
        _write(given.out, made)
        draw(given.out)
    if given.json:
        return print_json(made[0].data if len(made) == 1 else [each.data for each in made])
    if given.csv or given.markdown:
        for each in made:
            sys.stdout.write(each.csv() if given.csv else each.markdown())
        return 0
    from bentpipe.results.tables import print_table

    out = console()
    for each in made:
        for table in each.tables:
            print_table(out, table.title, table.columns, table.rows, table.left)
            out.print()
        for note in each.notes:
            out.print(note, highlight=False, soft_wrap=True)
    return 0


def _write(folder: Path, made: list[Comparison]) -> None:
    import json

    folder.mkdir(parents=True, exist_ok=True)
    data = made[0].data if len(made) == 1 else [each.data for each in made]
    (folder / "compare.json").write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "compare.csv").write_text("".join(each.csv() for each in made), encoding="utf-8")
    (folder / "compare.md").write_text("\n".join(each.markdown() for each in made), encoding="utf-8")


COMMAND = Command("compare", "Compare runs with each other or with published figures.", _run, _arguments)
