"""The declared columns are those that reports of flows, traces, changes and sweeps have."""

from dataclasses import fields

import pyarrow.parquet as pq
import pytest

from bentpipe.hosts.flow import FlowReport
from bentpipe.hosts.flow_base import CellFlowReport
from bentpipe.hosts.udp import UdpReport
from bentpipe.manual import keys
from bentpipe.results.columns import CHANGES, FLOWS, TRACE
from bentpipe.results.files import write_changes, write_trace
from bentpipe.results.schema import Trace


@pytest.mark.parametrize("report", [FlowReport, UdpReport, CellFlowReport])
def test_every_figure_of_a_flow_is_declared(report):
    assert {field.name for field in fields(report)} - {"facts"} <= FLOWS.keys()


def test_no_declared_figure_of_a_flow_is_unknown():
    known = {field.name for report in (FlowReport, UdpReport, CellFlowReport) for field in fields(report)}
    assert FLOWS.keys() <= known


def kinds(path):
    plain = {"dictionary": "string", "int32": "int64"}
    return {field.name: plain.get(str(field.type).partition("<")[0], str(field.type)) for field in pq.read_schema(path)}


def test_traces_and_changes_have_the_declared_columns(tmp_path):
    write_trace(tmp_path / "trace", Trace({}, [("flow1", 5, "timeout", 1)]))
    write_changes(tmp_path / "changes", [(1, "event", "a.b", 2.0), (2, "event", "a.c", "on")])
    assert kinds(tmp_path / "trace") == {name: kind for name, (kind, _) in TRACE.items()}
    assert kinds(tmp_path / "changes") == {name: kind for name, (kind, _) in CHANGES.items()}


def test_the_manual_has_every_column():
    text = keys.columns()
    assert all(f"| `{name}` |" in text for name in (*FLOWS, *TRACE, *CHANGES))
