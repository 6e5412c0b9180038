"""Finding experiments, the catalogue against the published figures, and ``--set``."""

import csv
from pathlib import Path

import pytest

from bentpipe.errors import BentpipeError, ConfigError
from bentpipe.experiment.document.catalogue import catalogue, find, networks
from bentpipe.experiment.load import apply_settings, load, load_cases
from bentpipe.hosts.config import host_costs

NAMES = (
    "acts-1flow", "acts-3flows", "lan-1flow", "lan-3flows", "wan-1flow", "wan-3flows", "acts-oc12", "acts-noisy",
    "aai-ds3", "aai-ftp", "host-limits", "aai-tenhosts",
)  # fmt: skip


def published():
    with (Path(__file__).parent / "published.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_the_catalogue_loads(name):
    load_cases(name)
    e = load(name)
    assert e.id == name
    assert e.title and e.description and e.quick_ps
    assert e.published or not e.figure or e.paper == "LRL" or name == "mtu-sweep"  # curves without numbers


@pytest.mark.parametrize("name", NAMES)
def test_the_catalogue_has_the_published_figures(name):
    def figure(text):
        return float(text) if text else None

    wanted = [
        (r["paper"], r["case"], r["quantity"], r["unit"], figure(r["measured"]), figure(r["predicted"]))
        for r in published()
        if r["id"] == name
    ]
    ours = [(p.source, p.case, p.quantity, p.unit, p.measured, p.predicted) for p in load(name).published]
    assert ours == wanted and wanted


def test_the_satellites_round_trip_is_534_ms():
    """ACTS98 table 1: out and back, or two passes of the loop."""
    for name in ("acts-1flow", "acts-3flows", "acts-variants"):
        assert [2 * line.delay_ps for line in load(name).network.lines] == [534_000_000_000]


@pytest.mark.parametrize("name", ["acts-3flows", "acts-variants"])
def test_three_workstations_send_to_one_through_a_loop(name):
    """ACTS98 3.2, scenario 3: three on OC-3c, one on OC-12c, all at KU, the OC-3 satellite link in loop-back."""
    e = load(name)
    (line,), (switch,) = e.network.lines, e.network.switches
    assert line.looped and line.rate_bps == 149_760_000
    assert {(h.rate_bps, h.port.switch) for h in e.network.hosts if h.name != "sink"} == {(149_760_000, switch.name)}
    assert e.host("sink").rate_bps == 599_040_000 and {f.sink for f in e.flows} == {"sink"}
    assert {vc.path.count(switch.name) for vc in e.vcs} == {2}  # data and acknowledgements through the loop


@pytest.mark.parametrize("name", ["acts-1flow", "acts-3flows", "acts-variants", "lan-1flow", "lan-3flows"])
def test_the_amount_of_data_ends_a_trial(name):
    """ACTS98 section 5: 1 GB, 102 windows of 10 MB; the bound on the time is out of reach."""
    for e in load_cases(name):
        assert {flow.size for flow in e.flows} == {2**30} and {flow.duration_ps for flow in e.flows} == {None}
        assert e.duration_ps > len(e.flows) * 2**30 * 8 * 10**12 // 45_000_000


def test_the_single_flow_is_as_published():
    e = load("acts-1flow")
    (flow,) = e.flows
    assert flow.size == 2**30
    assert flow.tcp.variant == "reno"
    assert flow.tcp.receive_buffer * 8 / 0.534 / 1e6 == pytest.approx(157.088, rel=1e-4)
    assert {host_costs(h.config) for h in e.network.hosts} == {(62_000_000, 62_000_000)}
    assert e.network.lines[0].ber == (1e-13, 1e-11)  # data comes down at GSFC, its acknowledgements at TIOC
    assert [h.rate_bps for h in e.network.hosts] == [149_760_000, 599_040_000]
    assert {(s.settings.buffer_cells, s.settings.policy) for s in e.network.switches} == {(8192, "epd")}


def test_settings_change_values_at_dotted_keys():
    e = load(
        "acts-3flows",
        [
            "hosts.tcp.variant=sack",
            "network.lines.satellite.delay=10 ms",
            "flow.*.size=5 MB",
            "flow.2.start=1.5",
            "network.switches.*.buffer_cells=9000",
            "line=cell",
            "mtu=1500",
        ],
        seed=9,
    )
    assert [f.tcp.variant for f in e.flows] == ["sack"] * 3
    assert e.network.lines[0].delay_ps == 10_000_000_000
    assert [f.size for f in e.flows] == [5_000_000] * 3
    assert [f.start_ps for f in e.flows] == [0, 0, 1_500_000_000_000]
    assert {s.settings.buffer_cells for s in e.network.switches} == {9000}
    assert {h.config.mtu for h in e.network.hosts} == {1500}
    assert e.seed == 9
    assert e.document["flow"][0]["size"] == "5 MB"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("hosts.tcp.varient=sack", "--set hosts.tcp.varient: unknown key; did you mean 'variant'?"),
        ("variant=vegas", "--set hosts.tcp.variant: unknown value 'vegas'"),
        ("line=sonett", "--set network.line: unknown value 'sonett'; did you mean 'sonet'?"),
        ("network.lines.satelite.delay=1", "there is no line 'satelite'; did you mean 'satellite'?"),
        ("network.lines.satellite.rate=0", "--set network.lines.satellite.rate: impossible rate 0"),
        ("flow.7.size=1", "--set flow.7.size: flow has entries 0..2"),
        ("experiment.title.x=1", "--set experiment.title.x: experiment.title is not a table"),
        ("extends=lan-1flow", "--set extends: can't be set: it stands in a file"),
        ("varient=sack", "--set varient: unknown key; did you mean 'variant'?"),
        ("nothing", "--set nothing: expected KEY=VALUE"),
        ("=1", "expected KEY=VALUE"),
        ("a..b=1", "expected KEY=VALUE"),
    ],
)
def test_wrong_settings_are_one_line(setting, message):
    with pytest.raises(BentpipeError) as caught:
        load("acts-3flows", [setting])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_leave_the_document_alone():
    document = {"a": {"b": 1}}
    changed, touched = apply_settings(document, ["a.b=2", "a.c.d=x"], "f")
    assert document == {"a": {"b": 1}}
    assert changed == {"a": {"b": 2, "c": {"d": "x"}}}
    assert touched == {"a.b": "--set", "a.c.d": "--set"}


def test_what_cannot_be_found(tmp_path):
    for name, message in (
        ("acts-2flows", "no such experiment in the catalogue; did you mean 'acts-"),
        ("missing.toml", "missing.toml: no such file"),
        (str(tmp_path), "is a folder"),
    ):
        with pytest.raises(BentpipeError, match=message):
            find(name)


def test_files_that_are_no_toml(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("[experiment\n")
    with pytest.raises(ConfigError, match=r"bad\.toml: not valid TOML: .*line 1"):
        load(str(bad))
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(str(bad))


def test_a_bom_is_no_error(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + find("lan-1flow").read_bytes())
    assert load(str(path)).id == "lan-1flow"


@pytest.mark.parametrize(("value", "cells"), [("0.9", 3686), ("1.0", 4096), ("0.0", 0), ("1", 1), ("4096", 4096)])
def test_the_epd_threshold_is_cells_or_a_share_of_the_buffer(value, cells):
    e = load("acts-3flows", ["network.switches.*.buffer_cells=4096", f"network.switches.*.epd_threshold={value}"])
    assert {switch.settings.epd_cells for switch in e.network.switches} == {cells}


def test_the_catalogues_threshold_goes_with_the_buffer():
    for name in ("acts-1flow", "acts-3flows", "lan-1flow", "lan-3flows", "acts-variants"):
        assert {s.settings.epd_cells for s in load(name).network.switches} == {7372}
        e = load(name, ["network.switches.*.buffer_cells=4096"])
        assert {s.settings.epd_cells for s in e.network.switches} == {3686}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("8193", "8193 cells are more than the buffer's 8192; give a share of it, as 0.9, or fewer cells"),
        ("1.5", "1.5 is neither"),
        ("-1", "-1 is out of range"),
        ("x", "expected a whole number of cells"),
    ],
)
def test_wrong_epd_thresholds(value, message):
    with pytest.raises(ConfigError) as caught:
        load("lan-1flow", [f"network.switches.*.epd_threshold={value}"])
    assert message in str(caught.value)


def test_a_wrong_choice_names_the_nearest_and_all():
    known = "known: epd, fba, ppd, selective, tail"
    with pytest.raises(ConfigError, match=rf"unknown value 'edp'; did you mean 'epd'\? {known}"):
        load("lan-1flow", ["network.switches.*.policy=edp"])
    with pytest.raises(ConfigError, match=rf"unknown value 'random'.* {known}"):
        load("lan-1flow", ["network.switches.*.policy=random"])


def test_a_published_figure_of_an_unknown_case_is_an_error():
    with pytest.raises(ConfigError, match=r"published\.0\.case: there is no case 'x'.* known: "):
        load_cases("acts-variants", ["published.0.case=x"])


BASE = """
[experiment]
id = "base"
title = "The base"
duration = "2 s"
seed = 7
description = "not inherited"

[network.switches.lan]
ports = ["OC-3c", "OC-3c"]
buffer_cells = 100

[network.hosts.a]
port = "lan:0"

[network.hosts.b]
port = "lan:1"

[[flow]]
source = "a"
sink = "b"

[[case]]
name = "one"

[[published]]
quantity = "throughput"
case = "one"
measured = 1.0
unit = "Mb/s"
source = "x"
"""

OVER = """
extends = "base.toml"

[experiment]
id = "over"
title = "Over it"

[network.switches.lan]
buffer_cells = 200
"""


def _files(tmp_path, **texts):
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def test_a_file_over_another_has_what_it_changes_and_the_rest_of_that(tmp_path):
    over = load(str(_files(tmp_path, base=BASE, over=OVER) / "over.toml"))
    assert (over.id, over.title, over.seed, over.duration_ps) == ("over", "Over it", 7, 2 * 10**12)
    (switch,) = over.network.switches
    assert (switch.settings.buffer_cells, len(switch.ports)) == (200, 2)
    assert [(flow.source, flow.sink) for flow in over.flows] == [("a", "b")]


def test_cases_figures_and_texts_are_each_files_own(tmp_path):
    (over,) = load_cases(str(_files(tmp_path, base=BASE, over=OVER) / "over.toml"))
    assert (over.case, over.published, over.description) == ("", (), "")


def test_arrays_of_tables_stand_instead_of_those_below(tmp_path):
    text = OVER + '[[flow]]\nsource = "b"\nsink = "a"\n'
    over = load(str(_files(tmp_path, base=BASE, over=text) / "over.toml"))
    assert [(flow.source, flow.sink) for flow in over.flows] == [("b", "a")]


def test_an_experiment_may_extend_one_of_the_catalogue_and_that_another(tmp_path):
    middle = 'extends = "lan-1flow"\n[experiment]\nid = "middle"\ntitle = "m"\n[hosts]\nmtu = 1500\n'
    top = 'extends = "middle.toml"\n[experiment]\nid = "top"\ntitle = "t"\n[hosts.tcp]\nwindow = "64 KiB"\n'
    found, below = load(str(_files(tmp_path, middle=middle, top=top) / "top.toml")), load("lan-1flow")
    assert found.network.switches == below.network.switches
    (tcp,) = [flow.tcp for flow in found.flows]
    assert (found.document["hosts"]["mtu"], tcp.receive_buffer) == (1500, 65536)


ON_A_NETWORK = """
extends = "networks/lan"

[experiment]
id = "mine"
title = "Mine"
duration = "1 s"

[network.hosts.a]
port = "west:0"

[network.hosts.b]
port = "east:0"

[[flow]]
source = "a"
sink = "b"
"""


def test_a_network_of_the_catalogue_may_be_extended_and_is_no_experiment(tmp_path):
    assert not set(networks()) & set(catalogue())
    found, below = load(str(_files(tmp_path, mine=ON_A_NETWORK) / "mine.toml")), load("lan-1flow")
    assert found.network.switches == below.network.switches
    assert [line.delay_ps for line in found.network.lines] == [38 * 10**6]
    with pytest.raises(BentpipeError, match="no such"):
        load("networks/lan")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base": BASE.replace("= 100", "= 0")}, "base.toml:11: network.switches.lan.buffer_cells: 0 is out of range"),
        ({"over": OVER.replace("= 200", "= 0")}, "over.toml:9: network.switches.lan.buffer_cells: 0 is out of range"),
        ({"over": OVER.replace("base.toml", "bse.toml")}, "over.toml:2: extends: bse.toml: no such file"),
        ({"over": OVER.replace("base.toml", "lan-1flwo")}, "over.toml:2: extends: lan-1flwo: no such experiment"),
        ({"over": OVER.replace('"base.toml"', "3")}, "over.toml:2: extends: expected the name of an experiment, not 3"),
        ({"base": 'extends = "over.toml"\n' + BASE}, "base.toml:1: extends: over.toml: extends itself"),
        ({"over": OVER.replace('title = "Over it"', "")}, "over.toml:4: experiment: the key 'title' is missing"),
    ],
)
def test_what_is_wrong_is_said_of_the_file_that_has_it(tmp_path, changes, message):
    files = {"base": BASE, "over": OVER, **changes}
    if files["over"] == OVER:
        files["over"] = OVER.replace("buffer_cells = 200", "epd_threshold = 0.5")
    with pytest.raises(BentpipeError) as caught:
        load(str(_files(tmp_path, **files) / "over.toml"))
    assert str(caught.value).startswith(message)


def test_a_document_is_read_a_second_time_only_if_the_command_line_changes_it(monkeypatch):
    from bentpipe.experiment import load as module

    read, parse = [], module.parse_experiment
    monkeypatch.setattr(module, "parse_experiment", lambda *a, **k: read.append(1) or parse(*a, **k))
    load("lan-1flow")
    assert len(read) == 1
    load("lan-1flow", quick=True)
    assert len(read) == 3
