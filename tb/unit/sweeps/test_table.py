"""The table of a sweep: its columns, what is in them, and means over seeds."""

import pytest

from bentpipe.errors import BentpipeError
from bentpipe.results.declared import unit_of
from bentpipe.sweeps.grid import parse_axes
from bentpipe.sweeps.groups import group_rows
from bentpipe.sweeps.table import figures_of, make_table, read_table, row_head

AXES = parse_axes(["hosts.mtu=1500,9180", "flow.0.size=64..128 KiB:2", "variant=reno,sack"])
VALUES = {"hosts.mtu": "1500", "flow.0.size": "64 KiB", "hosts.tcp.variant": "reno"}
RUN = {"experiment": "lan", "case": "", "at": None, "curve": "", "values": VALUES, "seed": 3}


def row(**changed):
    figure = {"flow": "", "metric": "goodput", "value": 5.0, "unit": "b/s", "verdict": "done"}
    return {**row_head(AXES, RUN), **figure, "remarks": "", "seconds": 1.5, "run": "runs/a", **changed}


def test_what_is_varied_has_a_column_each_numbers_where_they_are_bare():
    table = make_table(AXES, [row(), row(value=None)])
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {
        "experiment": "string",
        "case": "string",
        "at": "double",
        "curve": "string",
        "hosts.mtu": "double",
        "flow.0.size": "string",
        "hosts.tcp.variant": "string",
        "seed": "int64",
        "flow": "string",
        "vc": "string",
        "port": "string",
        "metric": "string",
        "value": "double",
        "unit": "string",
        "verdict": "string",
        "remarks": "string",
        "seconds": "double",
        "run": "string",
    }
    first = table.to_pylist()[0]
    assert (first["hosts.mtu"], first["flow.0.size"], first["hosts.tcp.variant"]) == (1500.0, "64 KiB", "reno")


def test_a_table_of_nothing_has_its_columns():
    assert make_table(AXES, []).column_names[4:7] == [axis.key for axis in AXES]


def test_a_damaged_table_is_told(tmp_path):
    with pytest.raises(BentpipeError, match="is missing"):
        read_table(tmp_path)
    (tmp_path / "table.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(BentpipeError, match="damaged"):
        read_table(tmp_path)


def test_figures_of_a_run_are_of_flows_or_of_the_run():
    summary = {
        "flows": [
            {"name": "a", "goodput_bps": 1.0, "retransmits": 2, "timeouts": 1, "error": None, "finished": True},
            {"name": "a.b", "goodput_bps": 2.0, "retransmits": 3, "timeouts": 0},
        ],
        "metrics": {"fairness": 0.5, "a.goodput": 1.0, "a.b.goodput": 2.0, "sigma": None},
        "ledger": [{"lost": [{"where": "west", "pdus": 4}, {"where": "", "pdus": 9}]}],
        "drops": {"west": {"epd": 7, "full": 1}},
    }
    assert figures_of(summary) == {
        ("", "fairness"): 0.5,
        ("a", "goodput"): 1.0,
        ("a.b", "goodput"): 2.0,
        ("", "sigma"): None,
        ("", "retransmits"): 5,
        ("", "timeouts"): 1,
        ("", "pdus_lost"): 4,
        ("", "cells_dropped"): 8,
        ("a", "retransmits"): 2,
        ("a", "timeouts"): 1,
        ("a.b", "retransmits"): 3,
        ("a.b", "timeouts"): 0,
    }


@pytest.mark.parametrize(
    ("metric", "unit"),
    [
        ("aggregate_goodput", "b/s"),
        ("goodput", "b/s"),
        ("sigma", "b/s"),
        ("fairness", ""),
        ("rtt_min_ps", "ps"),
        ("octets_delivered", "octets"),
        ("bad_octets", "octets"),
        ("cells_dropped", "cells"),
        ("retransmits", ""),
    ],
)
def test_units(metric, unit):
    assert unit_of(metric) == unit


def test_means_are_over_seeds_of_what_is_done():
    rows = [row(seed=seed, value=value) for seed, value in ((1, 2.0), (2, 4.0))]
    rows += [row(seed=3, value=100.0, verdict="failed"), row(seed=4, value=None), row(metric="", verdict="failed")]
    rows += [row(seed=1, value=7.0, **{"hosts.mtu": 9180.0})]
    one, other = group_rows(rows)
    assert one.mean and (one.mean.mean, one.mean.count, one.seeds, one.left_out) == (3.0, 2, (1, 2), 1)
    assert one.at["hosts.mtu"] == 1500.0 and "seed" not in one.at
    assert other.mean and (other.mean.mean, other.mean.half) == (7.0, None)
