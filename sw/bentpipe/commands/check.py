"""``bentpipe check``."""

from __future__ import annotations

import argparse

from bentpipe.commands.command import Command, json_option, plugin_option, print_json
from bentpipe.errors import BentpipeError, one_line

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    plugin_option(parser)
    json_option(parser)
    parser.add_argument("names", nargs="+", metavar="NAME|FILE", help="experiment files, or names from the catalogue")


def _run(given: argparse.Namespace) -> int:
    from bentpipe.experiment.load import load_cases
    from bentpipe_hdl.units import format_time

    found = []
    for name in given.names:
        try:
            cases = load_cases(name)
        except BentpipeError as error:
            lines = [one_line(error), *error.more]
            found.append({"name": name, "valid": False, "errors": lines})
            if not given.json:
                print("\n".join(lines))
            continue
        first = cases[0]
        row = {
            "name": name,
            "valid": True,
            "id": first.id,
            "cases": len(cases) if first.case else 0,
            "switches": len(first.network.switches),
            "hosts": len(first.network.hosts),
            "flows": max(len(case.flows) for case in cases),
            "at_most_s": sum(case.duration_ps for case in cases) / 10**12,
        }
        found.append(row)
        if not given.json:
            several = f"cases {row['cases']}, " if first.case else ""
            length = format_time(sum(case.duration_ps for case in cases))
            counts = ", ".join(f"{key} {row[key]}" for key in ("switches", "hosts", "flows"))
            print(f"{name}: OK; {several}{counts}; simulates at most {length}")
    if given.json:
        print_json(found)
    return 0 if all(row["valid"] for row in found) else 2


COMMAND = Command("check", "Validate experiment files.", _run, _arguments)
