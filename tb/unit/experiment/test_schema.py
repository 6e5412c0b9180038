"""The JSON Schema of experiments: it takes what bentpipe takes, and tells what an editor can tell."""

import copy
import json
import tomllib

import pytest

from bentpipe.cli import main
from bentpipe.experiment.catalogue import catalogue
from bentpipe.experiment.document import json_schema
from models.json_schema import errors
from unit.experiment.test_parse import TEXT, put

SCHEMA = json_schema()


def found(document):
    return list(errors(document, SCHEMA, SCHEMA))


@pytest.mark.parametrize("name", catalogue())
def test_the_catalogue_is_as_the_schema_says(name):
    document = tomllib.loads(catalogue()[name].read_text())
    assert document["experiment"] and found(document) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("network.switches.west.policy", "red"),
        ("network.switches.west.polcy", "epd"),
        ("network.switches.west.epd_threshold", 1.5),
        ("network.switches.west.buffer_cells", 0),
        ("network.lines.wan.delay", "5 seconds"),
        ("network.lines.wan.rate", "OC-48"),
        ("network.lines.wan.ends", ["west:0"]),
        ("network.lines.wan.ber", 0.5),
        ("network.hosts.a b", {"port": "west:1"}),
        ("network.hosts.anna.port", "west"),
        ("hosts.profile", "sparc-9"),
        ("hosts.tcp.variant", "vegas"),
        ("hosts.tcp.nagle", 1),
        ("flow.0.app", "ftpp"),
        ("flow.0.gap", "1 ms"),
        ("flow.0.size", "much"),
        ("record", {"what": ["qeue"]}),
        ("experiment.id", "a/b"),
        ("experiment.duration", ...),
    ],
)
def test_what_is_wrong_by_itself_is_told(path, value):
    document = copy.deepcopy(tomllib.loads(TEXT))
    assert found(document) == []
    put(path, value)(document)
    assert found(document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("network.switches.west.epd_threshold", 1),
        ("network.switches.west.ports", 16),
        ("network.lines.wan.rate", "oc 3"),
        ("network.lines.wan.rate", 2_000_000),
        ("network.lines.wan.delay", ".5ms"),
        ("network.lines.wan.delay", "1_000 us"),
        ("network.lines.wan.ber", 0),
        ("flow.0.size", "endless"),
        ("flow.0", {"source": "anna", "sink": "bert", "app": "random", "block": [1, "2 kB"], "gap": "1 ms"}),
        ("hosts.clock_hz", 0),
    ],
)
def test_every_way_of_writing_is_in_it(path, value):
    document = copy.deepcopy(tomllib.loads(TEXT))
    put(path, value)(document)
    assert found(document) == []


def test_keys_have_descriptions_and_defaults_as_one_writes_them():
    switch = SCHEMA["$defs"]["SwitchTable"]["properties"]
    assert switch["processing_delay"]["default"] == "5 us" and switch["buffer_cells"]["default"] == 8192
    assert switch["processing_delay"]["description"].endswith("(0 s to 10 ms)")
    for table in (SCHEMA, *SCHEMA["$defs"].values()):
        assert all(key["description"] for key in table["properties"].values())


def test_the_command_prints_it(capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(SCHEMA))
