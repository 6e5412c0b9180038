"""NetSpec scripts on the Verilated network: what is offered arrives, one stage after another, over TCP and UDP."""

import pytest

from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.folder import read_run
from unit.experiment.fake import write_run

PS = 10**12


def run(script, *settings, name="netspec-cbr", **options):
    settings = [*settings, *([f"traffic.netspec={script}"] if script else [])]
    result = run_experiment(load(name, settings, **options))
    assert result.summary["status"] == "done"
    return result, {flow["name"]: flow for flow in result.flows}


def test_the_papers_script_carries_what_it_offers():
    """18600 octets each 30 ms: 34 blocks in a second, and each of both at 4.96 Mb/s."""
    result, flows = run("", duration_ps=PS)
    assert list(flows) == ["flow1", "flow2"]
    # The first's send buffer of 52428 octets holds slow start up.
    assert flows["flow2"]["blocks_late"] == 0 < flows["flow1"]["blocks_late"] < 10
    for flow in flows.values():
        assert (flow["protocol"], flow["app"], flow["retransmits"]) == ("tcp", "cbr", 0)
        assert flow["blocks_written"] == 33  # from 39 ms on
        assert 31 * 18600 <= flow["octets_delivered"] <= 33 * 18600
        assert flow["bad_octets"] == 0
    assert result.summary["drops"]["west"]["epd"] == 0


def test_stages_follow_one_another(tmp_path):
    result, flows = run("""serial {
        parallel {
            connection a { own = alpha1; peer = alpha3; size = 100 kB }
            connection b { own = alpha2; peer = alpha3; size = 200 kB; delay = 100 ms }
        }
        connection c { own = alpha1; peer = alpha3; protocol = udp; size = 200 kB
                       test = cbr(messagesize = 20 kB, period = 20 ms) }
        connection d { own = alpha3; peer = alpha2; test = ftp(size = 50 kB) }
    }""")
    assert all(flow["finished"] for flow in flows.values())
    assert [flow["octets_delivered"] for flow in flows.values()] == [100_000, 200_000, 200_000, 50_000]
    a, b, c, d = flows.values()
    assert (a["start_ps"], b["start_ps"]) == (0, PS // 10)
    assert c["start_ps"] > max(a["end_ps"], b["end_ps"]) and d["start_ps"] > c["end_ps"]
    assert (c["datagrams_sent"], c["datagrams_lost"], c["bad_octets"]) == (30, 0, 0)
    assert 19.5e9 < c["delay_min_ps"] <= c["delay_mean_ps"] <= c["delay_max_ps"] < 40e9
    assert d["ftp_mode"] == "get" and d["ftp_login_ps"] == pytest.approx(5 * 39e9, rel=0.05)
    assert result.summary["time"]["simulated_s"] < 10
    write_run(tmp_path / "run", result)
    again = read_run(tmp_path / "run").flows
    assert [{k: v for k, v in flow.items() if v is not None} for flow in again] == result.flows


def test_a_burst_that_overflows_the_switch_is_lost_in_whole_datagrams():
    """8 MB at once into a DS-3 with 8192 cells of buffer: what the sink misses is what the switch dropped."""
    size = 874 * 9152
    script = f"""connection u {{ own = alpha1; peer = alpha3; protocol = udp; size = {size};
                test = cbr(messagesize = {size}, period = 2 s) }}"""
    result, flows = run(script)
    flow = flows["u"]
    lost, sent = flow["datagrams_lost"], flow["datagrams_sent"]
    assert sent == 874 and 100 < lost < sent
    assert result.summary["drops"]["west"]["epd"] + result.summary["drops"]["west"]["ppd"] == pytest.approx(
        192 * lost, rel=0.01
    )
    assert flow["octets_delivered"] == size - 9152 * lost
    times, counts = result.trace.series["u.lost"]
    assert counts[-1] <= lost and list(counts) == sorted(counts) and times[-1] <= flow["end_ps"]


def test_the_seed_decides_random_blocks():
    script = (
        """connection { own = alpha1; peer = alpha3; test = random(messagesize = 1 kB..50 kB, period = 5 ms..50 ms) }"""
    )

    def delivered(seed):
        return run(script, seed=seed, duration_ps=PS // 2)[1]["flow1"]["octets_delivered"]

    assert delivered(1) == delivered(1) != delivered(2)


def test_a_hundred_connections():
    result, flows = run("", name="netspec-100", duration_ps=3 * PS // 2)
    assert len(flows) == 100
    second_file = flows.pop("ftp2")  # waits for the first
    assert second_file["octets_delivered"] == 0
    assert all(flow["octets_delivered"] > 0 and flow["bad_octets"] == 0 for flow in flows.values())
    assert len(result.summary["resolved"]["vcs"]) == 18
    offered = sum(flow.get("octets_written", 0) for flow in flows.values())
    got = sum(flow["octets_delivered"] for flow in flows.values() if flow["app"] != "ftp")
    assert 0.9 * offered < got <= offered


REQUESTS = """
[experiment]
id = "requests"
title = "Round trips, and requests with their responses"
duration = "5 s"

[network]
clock_tolerance = 0

[network.switches.west]
ports = ["OC-3c", "OC-3c"]

[network.hosts.a]
port = "west:0"
delay = "1 ms"

[network.hosts.b]
port = "west:1"
delay = "2 ms"

[[flow]]
name = "echo"
source = "a"
sink = "b"
app = "ping"
interval = "50 ms"
count = 10

[traffic]
netspec = \"\"\"
serial {
    connection each { transmit = b; receive = a; test = http(response = 2 kB, repeats = 20, think = uniform(min = 1 ms, max = 9 ms)); }
    connection kept { transmit = b; receive = a; test = http(response = pareto(shape = 1.2, min = 1 kB, most = 100 kB), users = 3, repeats = 30, connections = kept); }
    connection last { transmit = b; receive = a; test = ping(repeats = 2, period = 1 ms); }
}
\"\"\"

[[published]]
quantity = "response time"
unit = "ms"
measured = 12.1
metric = "each.http_median_ps"
"""  # noqa: E501


def test_round_trips_and_requests(tmp_path):
    """A round trip of ping: each way 3 ms of line, 5 us in the switch, and 3 cells over two lines, four cell times;
    some ticks of 177 ns in the nodes. A request takes two, and the time of its cells."""
    (tmp_path / "requests.toml").write_text(REQUESTS)
    result, flows = run("", name=str(tmp_path / "requests.toml"))
    cell = 53 * 8 / 149.76e6 * PS
    echo, each, kept, last = (flows[name] for name in ("echo", "each", "kept", "last"))
    rtt = 2 * (3e9 + 5e6 + 4 * cell)
    assert (echo["ping_received"], echo["ping_lost"]) == (10, 0)
    assert echo["ping_min_ps"] == pytest.approx(rtt, abs=2e6)
    assert echo["ping_min_ps"] <= echo["ping_mean_ps"] <= echo["ping_max_ps"] < rtt + 0.5e9
    assert (each["http_responses"], each["http_failed"], each["octets_delivered"]) == (20, 0, 40_000)
    # Two SYNs and an ACK of 2 cells, a request of 8, a response of 43.
    assert 2 * rtt < each["http_median_ps"] < 2 * rtt + 70 * cell
    assert kept["http_responses"] == 30 and kept["finished"]
    assert rtt < kept["http_median_ps"] < each["http_median_ps"]
    assert last["ping_received"] == 2 and last["start_ps"] > kept["end_ps"] > each["end_ps"]
    (row,) = result.summary["published"]
    assert row["ours"] == pytest.approx(each["http_median_ps"] / 1e9)
    assert result.summary["metrics"]["echo.ping_mean_ps"] == echo["ping_mean_ps"]
    assert {flow["bad_octets"] for flow in flows.values()} == {0}
