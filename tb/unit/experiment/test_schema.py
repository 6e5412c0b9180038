"""The JSON Schema of experiments: it takes what bentpipe takes, and tells what an editor can tell."""

import copy
import json
import tomllib

import pytest

from bentpipe.cli import main
from bentpipe.experiment.build.network import build_network
from bentpipe.experiment.document.catalogue import catalogue
from bentpipe.experiment.document.tables import json_schema
from bentpipe.experiment.load import load
from bentpipe.hosts.config import HostSettings
from bentpipe.manual import keys
from bentpipe_hdl.link.control import LinkSettings
from bentpipe_hdl.nic.control import NicSettings
from bentpipe_hdl.settings import key_of
from bentpipe_hdl.switch.control import SwitchSettings, VcSettings
from models.json_schema import errors
from unit.experiment.test_parse import TEXT, put

SCHEMA = json_schema()


def found(document):
    return list(errors(document, SCHEMA, SCHEMA))


@pytest.mark.parametrize("name", catalogue())
def test_the_catalogue_is_as_the_schema_says(name):
    document = tomllib.loads(catalogue()[name].read_text())
    assert document["experiment"] and found(document) == []


def test_what_extends_another_need_not_be_whole_but_knows_no_other_keys():
    west = {"ports": 8}
    document = {
        "extends": "acts-1flow",
        "experiment": {"id": "x", "title": "y"},
        "network": {"switches": {"west": west}},
    }
    assert found(document) == []
    assert found({key: value for key, value in document.items() if key != "extends"})
    for wrong in ({"prots": 4}, {"buffer_cells": 0}):
        assert found(document | {"network": {"switches": {"west": west | wrong}}})
    assert found(document | {"flow": [{"source": "alpha1"}]})
    assert found(document | {"experiment": {"id": "x"}})


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


@pytest.mark.parametrize(
    ("table", "model"),
    [
        ("SwitchTable", SwitchSettings),
        ("LineTable", LinkSettings),
        ("VcTable", VcSettings),
        ("HostsTable", NicSettings),
        ("HostTable", HostSettings),
        ("HostTable", NicSettings),
    ],
)
def test_every_setting_of_a_node_is_a_key(table, model):
    assert {key_of(name) for name in model.model_fields} <= set(SCHEMA["$defs"][table]["properties"])


def test_a_nodes_setting_without_a_line_of_its_own_goes_from_the_file_to_the_node(capsys):
    setting = "network.hosts.alpha2.reassembly_timeout=2 s"
    experiment = load("lan-1flow", [setting])
    assert [host.interface.reassembly_timeout_ps for host in experiment.network.hosts] == [0, 2 * 10**12]
    _, nics, _ = build_network(experiment)
    assert nics["alpha2"].settings.reassembly_timeout_ps == 2 * 10**12
    assert main(["show", "lan-1flow", "--set", setting]) == 0
    assert "reassembly_timeout 2 s" in capsys.readouterr().out


def test_the_manual_has_every_key():
    sections = keys.tables().split("### ")[1:]
    rows = {section.split("`")[1]: section for section in sections}
    for heading, name in (
        ("[network.switches.NAME]", "SwitchTable"),
        ("[record]", "RecordTable"),
        ("[[vc]]", "VcTable"),
    ):
        for key in SCHEMA["$defs"][name]["properties"]:
            table = f"[{heading.strip('[]')}.{key}]"
            assert table in rows or f"| `{key}` |" in rows[heading]
    row = "| `processing_delay` | time, 0 s to 10 ms | `5 us` | time from a cell's arrival to its queue |"
    assert row in keys.tables()
    assert all(f"`{name}`" in keys.profiles() for name in ("sparc-5", "ultrasparc"))


def test_the_command_prints_it(capsys):
    assert main(["schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(json.dumps(SCHEMA))
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
