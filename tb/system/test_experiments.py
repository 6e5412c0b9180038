"""Experiments on the Verilated network with the software hosts, short ones."""

import pytest

from bentpipe.experiment.document.catalogue import find, read_extended
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.load import load
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.folder import RunFolder, read_run
from bentpipe.results.tables import note_texts

PS = 10**12


def run(name, *settings, folder=None, **options):
    return run_experiment(load(name, settings, **options), folder=folder)


def test_a_transfer_over_the_lan_is_whole():
    result = run("lan-1flow", "flow.0.size=2 MB")
    (flow,) = result.flows
    assert result.summary["status"] == "done"
    assert (flow["octets_delivered"], flow["bad_octets"], flow["error"]) == (2_000_000, 0, "")
    assert flow["retransmits"] == 0
    assert 40e6 < flow["goodput_bps"] < 134.6e6  # the first segment waits for a delayed ACK
    assert result.summary["time"]["simulated_s"] < 5
    times, delivered = result.trace.series["flow1.delivered"]
    assert delivered[0] == 0 and delivered[-1] == 2_000_000
    assert list(times) == sorted(set(times))
    assert "flow1.cwnd" in result.trace.series and "west.queue" in result.trace.series


def test_hundreds_of_flows_between_two_hosts():
    """Set up as many VCs as collided when a look-up was by the low bits of VPI and VCI."""
    document, files = read_extended(find("lan-1flow"))
    document["flow"] = [{"source": "alpha1", "sink": "alpha2", "size": "10 kB"}] * 129
    result = run_experiment(parse_experiment(document, Source("many.toml", files[0][1])))
    assert result.summary["status"] == "done"
    assert [(flow["octets_delivered"], flow["bad_octets"]) for flow in result.flows] == [(10_000, 0)] * 129


def test_a_line_in_loop_back_brings_back_what_it_was_sent():
    """Data and acknowledgements each take one pass of 267 ms."""
    result = run("acts-3flows", "flow.*.size=60 kB")
    assert result.summary["status"] == "done"
    assert [(f["octets_delivered"], f["bad_octets"], f["retransmits"]) for f in result.flows] == [(60_000, 0, 0)] * 3
    assert all(534e9 < f["rtt_min_ps"] < 536e9 for f in result.flows)
    counters = result.summary["counters"]["ku"]
    assert len(counters["departed"]) == 12 and counters["departed"][::2] == counters["departed"][1::2]


def test_what_a_run_keeps_as_it_goes_does_not_change_it(tmp_path, monkeypatch):
    """Bit errors and a narrow line, so that queues, timers and random numbers are busy."""
    settings = (
        "network.lines.lan.ber=2e-8",
        "network.switches.*.buffer_cells=512",
        "network.switches.*.epd_threshold=460",
    )
    alone = run("lan-3flows", *settings, duration_ps=PS // 2)
    monkeypatch.setattr("bentpipe.experiment.run.run._KEEP_S", 0)
    monkeypatch.setattr("bentpipe.experiment.run.run._KEEP_SHARE", 0)
    with RunFolder.claim(tmp_path / "run") as folder:
        kept = run("lan-3flows", *settings, duration_ps=PS // 2, folder=folder)
        folder.finish(kept)
    for name in ("metrics", "flows", "drops", "counters"):
        assert kept.summary[name] == alone.summary[name], name
    assert sum(sum(reasons.values()) for reasons in kept.summary["drops"].values()) > 0
    assert read_run(tmp_path / "run").trace == alone.trace


@pytest.mark.parametrize(
    ("settings", "duration_ps", "remark"),
    [
        (["flow.0.start=200 ms"], PS // 10, "Flow flow1 did not begin: its start is 200 ms, the end 100 ms."),
        ([], 30_000_000, "Flow flow1 had not connected by the end."),
        (["flow.0.size=1 kB", "network.switches.west.buffer_cells=100"], None, "A frame of 192 cells (the MTU's) does "
         "not fit into the buffer of west, 100 cells: EPD can hardly keep one whole."),
        (["flow.0.size=1 kB"], None, None),
    ],
)  # fmt: skip
def test_what_was_hardly_meant_so_is_remarked(settings, duration_ps, remark):
    summary = run("lan-1flow", *settings, duration_ps=duration_ps).summary
    assert summary["remarks"] == ([remark] if remark else [])
    assert not remark or remark in note_texts(summary)


def test_the_same_twice_and_however_often_it_is_sampled():
    runs = [
        run("lan-3flows", "flow.*.start=1 ms", f"record.interval={interval}", duration_ps=PS // 2)
        for interval in ("50 ms", "50 ms", "7 ms")
    ]
    first, again, finer = runs
    assert first.summary["drops"]["west"]["epd"] > 0
    assert again.trace == first.trace
    for other in (again, finer):
        assert other.flows == first.flows
        assert other.summary["counters"] == first.summary["counters"]


def test_drops_over_time_add_up_to_the_switchs_counter():
    result = run("lan-3flows", duration_ps=PS // 2)
    assert result.trace.series["west.drops.epd"][1][-1] == result.summary["drops"]["west"]["epd"]


def test_bit_errors_follow_the_seed():
    def errors(seed):
        result = run("acts-1flow", "network.lines.satellite.ber=1e-5", seed=seed, duration_ps=4 * PS)
        assert result.summary["status"] == "done"
        return [result.summary["counters"][f"satellite.{way}"]["error_bits"] for way in ("out", "back")]

    assert errors(1) == errors(1) != errors(2)


@pytest.mark.parametrize("rate", ["DS-3", "10 Mb/s"])
def test_the_slowest_line_bounds_the_throughput(rate):
    result = run("lan-1flow", f"network.lines.lan.rate={rate}", "network.switches.*.ports=4", duration_ps=PS // 2)
    cells = {"DS-3": 40_704_000, "10 Mb/s": 10_000_000}[rate]
    best = cells * 9140 / (192 * 53)
    assert 0.3 * best < result.flows[0]["goodput_bps"] <= best
