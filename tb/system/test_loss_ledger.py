"""The loss ledger of whole runs: in the result, in the table, in the report."""

import io

from rich.console import Console

from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.report.run import report_html
from bentpipe.results.tables import print_run

PS = 10**12


def shown(result):
    """Return the text that a reader sees, in the terminal and in the report."""
    out = io.StringIO()
    print_run(Console(file=out, width=200), result.summary, result.flows)
    return out.getvalue(), report_html(result)


def test_bit_errors_are_told():
    """Every segment sent is delivered, under way, or lost on the line; nobody says that nothing was lost."""
    result = run_experiment(load("acts-1flow", ["network.lines.satellite.ber=1e-7"], duration_ps=6 * PS))
    assert result.summary["status"] == "done"
    (flow,) = result.flows
    forth, back = result.summary["ledger"]
    assert (forth["flows"], forth["sent"]) == (["flow1"], flow["segments_sent"])
    assert back["delivered"] == flow["acks_received"]
    lost = {(row["where"], row["why"]): row["pdus"] for row in forth["lost"]}
    assert sum(lost.values()) == forth["sent"] - forth["delivered"]
    (hit,) = [pdus for (where, why), pdus in lost.items() if why == "bit error"]
    counters = result.summary["counters"]
    assert hit == sum(sum(node["pdus_crc"]) for node in counters.values() if "pdus_crc" in node) > 0
    for text in shown(result):
        assert "No cell was dropped" not in text and "None." not in text
        assert "PDUs lost" in text and "bit error" in text


def test_a_run_without_losses_says_so():
    result = run_experiment(load("lan-1flow", ["flow.0.size=200 kB"]))
    assert [vc["lost"] for vc in result.summary["ledger"]] == [[], []]
    for text in shown(result):
        assert "No cell was dropped, no PDU was lost." in text


def test_a_full_interface_queue_is_a_place_of_losses():
    """Segments that the host's own queue refused never reached its NIC, and are in the ledger all the same."""
    settings = ["hosts.interface_queue=5", "flow.0.size=3 MB", "hosts.tcp.send_buffer=1 MB"]
    result = run_experiment(load("lan-1flow", [*settings, "hosts.tcp.receive_buffer=1 MB"]))
    (flow,) = result.flows
    forth = result.summary["ledger"][0]
    rows = {(row["where"], row["why"]): row["pdus"] for row in forth["lost"]}
    assert rows[flow["source"], "interface queue"] == flow["quenches"] > 0
    assert forth["sent"] == flow["segments_sent"]


def test_pdus_that_met_congestion_are_told():
    """A switch that marks cells which find two others queued for their port: long packets' last ones, no ACKs'."""
    result = run_experiment(load("lan-1flow", ["flow.0.size=200 kB", "network.lines.lan.efci_threshold=2"]))
    forth, back = result.summary["ledger"]
    assert 0 < forth["congested"] <= forth["delivered"]
    assert back["congested"] == 0 < back["delivered"]
    assert sum(result.summary["counters"]["west"]["marked"]) > forth["congested"]
    for text in shown(result):
        assert "of delivered" in text
