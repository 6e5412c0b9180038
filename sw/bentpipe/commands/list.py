"""``bentpipe list``."""

from __future__ import annotations

import argparse
import shutil
import textwrap

from bentpipe.commands.command import Command, json_option, print_json

__all__ = ["COMMAND"]


def _run(given: argparse.Namespace) -> int:
    from bentpipe.experiment.document.catalogue import catalogue, read_extended
    from bentpipe_hdl.units import format_time, parse_time

    rows = []
    for name, path in catalogue().items():
        head = read_extended(path)[0]["experiment"]
        rows.append(
            {
                "name": name,
                "title": head["title"],
                "paper": head.get("paper", ""),
                "figure": head.get("figure", ""),
                "duration_s": parse_time(head["duration"]) / 10**12,
                "quick_s": parse_time(head["quick"]) / 10**12 if "quick" in head else None,
            }
        )
    if given.json:
        return print_json(rows)
    width = max(len(row["name"]) for row in rows)
    columns = max(width + 40, shutil.get_terminal_size((80, 24)).columns)
    for row in rows:
        length = f"at most {format_time(round(row['duration_s'] * 10**12))}"
        source = ", ".join(filter(None, (row["paper"], row["figure"], length)))
        first, *more = textwrap.wrap(f"{row['title']} ({source})", columns - width - 2)
        print(f"{row['name']:{width}}  {first}")
        for line in more:
            print(f"{'':{width}}  {line}")
    return 0


COMMAND = Command("list", "List the experiments of the catalogue.", _run, json_option)
