"""``bentpipe show``."""

from __future__ import annotations

import argparse

from bentpipe.commands.command import Command, console, json_option, length_ps, print_json, settings_options

__all__ = ["COMMAND"]


def _arguments(parser: argparse.ArgumentParser) -> None:
    json_option(parser)
    settings_options(parser)


def _run(given: argparse.Namespace) -> int:
    from bentpipe.experiment.load import cases_of, load

    experiment = load(given.name, given.settings, seed=given.seed, duration_ps=length_ps(given), quick=given.quick)
    if given.json:
        from bentpipe.experiment.resolve.specs import plain

        data = plain(experiment)
        data["configuration"] = data.pop("document")
        data["cases"] = [{"name": c.name, "at": c.at, "settings": c.set} for c in cases_of(given.name)]
        return print_json(data)
    from bentpipe.experiment.resolve.describe import describe

    describe(console(), experiment, cases_of(given.name))
    return 0


COMMAND = Command("show", "Show an experiment: its network, flows and published figures.", _run, _arguments)
