"""Where the parameters of the catalogue's experiments are from: each has a place in a paper, or a reason of ours."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from bentpipe.experiment.load import catalogue

sys.path.insert(0, str(Path(__file__).parents[3] / "docs"))

from generate import experiments, parameters

SECTIONS = "Bandwidth|TCP|System overview|Experimental parameters|Congestion-free|Congested network"
PLACE = re.compile(
    r"ACTS98 (section [1-7]|[2-6]\.[1-5]|table [1-3]|figure [1-7])\b"
    rf"|ACTS99, ({SECTIONS}|figure [1-6])\b"
    r"|LAZ (section [1-5]|[2-4]\.[1-5]|table [1-6]|figure [1-9])\b"
    r"|AAI97[, ]+\(?(figure [1-9]|table [1-4])\b"
    r"|FF96 section [1-5]\b|RFC \d+\b"
    r"|ours: .{10,}"
)
SAME = re.compile(r"as (?:the )?(first|\w+)\b")


def leaves(value, path=""):
    """Dotted keys of all values; an empty table is none."""
    if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in members:
            yield from leaves(member, f"{path}.{key}" if path else key)
    else:
        yield path


NO_PARAMETER = re.compile(
    r"experiment\.(id|title|paper|figure|description|axis)|published\..*|flow\.\d+\.name|case\.\d+\.(name|at)"
)


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_parameter_is_listed_with_its_place(name):
    text = catalogue()[name].read_text()
    listed = list(parameters(text))
    keys = [f"{p.table}.{p.key}".replace('"', "") for p in listed]
    # What stands in braces is listed as one.
    wanted = [key for key in leaves(tomllib.loads(text)) if not NO_PARAMETER.fullmatch(key)]
    assert len(set(keys)) == len(keys)
    assert {next((k for k in keys if f"{leaf}.".startswith(f"{k}.")), leaf) for leaf in wanted} == set(keys)
    tables = {p.table for p in listed}
    for p in listed:
        same = SAME.match(p.place)
        if same:
            kind = p.table.rpartition(".")[0]
            other = f"{kind}.{'0' if same[1] == 'first' else same[1]}"
            assert other in tables - {p.table}, f"{p.table}.{p.key}: {p.place}: there is no {other}"
        else:
            assert PLACE.match(p.place), f"{p.table}.{p.key}: {p.place!r} is no place in a paper, and no reason of ours"


def test_the_manual_has_all_of_them():
    """The table of each experiment names every parameter with its place."""
    sections = dict(re.findall(r"(?ms)^## ([\w-]+)\n(.*?)(?=^## |\Z)", experiments()))
    for name, path in catalogue().items():
        for p in parameters(path.read_text()):
            rows = [row for row in sections[name].splitlines() if row.startswith(f"| `{p.table}")]
            assert any(p.key in row and p.value in row and p.place in row for row in rows), f"{name}: {p}"


TEXT = '''
[experiment]
title = "a # b"         # no parameter
duration = "1 s"        # LAZ 4.3: "x # y"

[network.lines.a]       # ACTS98 3.2
rate = "OC-3c"
# ours: two lines
# of comment
delay = "2 s"

ber = 0

[network.lines.b]
rate = "OC-3c"

[[case]]                # LAZ 4.4
name = "one"
[case.set]
"hosts.mtu" = 9180

[traffic]
netspec = """
[x]
a = 1   # not a comment of TOML
"""
'''


def test_places_are_the_comments_beside_above_or_of_the_table():
    assert [(p.table, p.key, p.value, p.place, p.name) for p in parameters(TEXT)] == [
        ("experiment", "duration", '"1 s"', 'LAZ 4.3: "x # y"', ""),
        ("network.lines.a", "rate", '"OC-3c"', "ACTS98 3.2", ""),
        ("network.lines.a", "delay", '"2 s"', "ours: two lines of comment", ""),
        ("network.lines.a", "ber", "0", "ACTS98 3.2", ""),
        ("network.lines.b", "rate", '"OC-3c"', "", ""),
        ("case.0.set", '"hosts.mtu"', "9180", "LAZ 4.4", "one"),
        ("traffic", "netspec", "(text)", "", ""),
    ]
