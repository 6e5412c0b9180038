"""``bentpipe schema``."""

from __future__ import annotations

import argparse

from bentpipe.commands.command import Command, plugin_option, print_json

__all__ = ["COMMAND"]


def _run(given: argparse.Namespace) -> int:
    from bentpipe.experiment.document.tables import json_schema

    return print_json(json_schema())


COMMAND = Command("schema", "Print the JSON Schema of experiment files, for editors.", _run, plugin_option)
