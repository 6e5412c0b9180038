"""``bentpipe doctor``."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap

from bentpipe.commands.command import Command, json_option, print_json

__all__ = ["COMMAND"]


def _run(given: argparse.Namespace) -> int:
    from dataclasses import asdict

    from bentpipe.doctor import examine

    findings = examine()
    missing = [f for f in findings if f.required and f.found is None]
    if given.json:
        print_json({"ready": not missing, "findings": [asdict(f) for f in findings]})
    else:
        width = max(len(f.name) for f in findings)
        for title, required in (("Required", True), ("Optional, each for the purpose in brackets", False)):
            print(f"{title}:")
            for f in findings:
                if f.required is required:
                    state = f.found or f"MISSING, get it: {f.get}"
                    _print(f"{'ok' if f.found else '--'}  {f.name:{width}}  ", f"{state}  [{f.needed_for}]")
        print("Ready." if not missing else f"Missing: {', '.join(f.name for f in missing)}.")
    return 1 if missing else 0


def _print(head: str, text: str) -> None:
    """Print a finding; on a terminal, in as many lines as its width needs."""
    if sys.stdout.isatty():
        room = max(20, shutil.get_terminal_size().columns - len(head))
        text = f"\n{' ' * len(head)}".join(textwrap.wrap(text, room, break_on_hyphens=False))
    print(head + text)


COMMAND = Command("doctor", "Check the installation; show what is missing and how to get it.", _run, json_option)
