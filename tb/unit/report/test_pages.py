"""Pages of reports: the verdict, the network's drawing, figures' data, how a run is repeated, what leads where."""

import html
import itertools
import json
import re
import shlex
from array import array
from dataclasses import replace
from functools import cache

import pytest

from bentpipe.cli import main
from bentpipe.commands import commands
from bentpipe.commands import sweep as sweep_command
from bentpipe.experiment.document.catalogue import catalogue
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import _resolved
from bentpipe.report.figures import figures_of
from bentpipe.report.layout import lay_out, overlaps, text_width
from bentpipe.report.network import network_of
from bentpipe.report.places import in_sweep
from bentpipe.report.repeat import capture_commands, repeat_command, session_command
from bentpipe.report.run import _again, _events, _flows, _set_up, report_html
from bentpipe.report.verdict import run_verdict, several_verdict, sweep_verdict
from bentpipe.sweeps.grid import parse_axes
from bentpipe.sweeps.page import sweep_html
from bentpipe.sweeps.plan import plan_catalogue, plan_sweep
from bentpipe_hdl.units import format_time
from unit.experiment.made_up import PS, SAMPLES, made_up, some_cases, some_sweep


def finished(name="lan-3flows", **more):
    """The summary of a run that was not shortened."""
    result = made_up(name)
    result.summary.update({"status": "done", "reason": None, "shortened": False, "published": [], **more})
    return result.summary


# Verdicts


def test_the_verdict_names_what_was_carried_and_lost():
    verdict = run_verdict(finished())
    assert (verdict.level, verdict.word) == ("good", "Done")
    assert "3 flows carried" in verdict.text and "with fairness" in verdict.text and "PDUs were lost" in verdict.text


def row(ratio, quantity="throughput", **more):
    return {"quantity": quantity, "case": "", "unit": "Mb/s", "measured": 100.0, "predicted": None, "ratio": ratio,
            "remarks": [], **more}  # fmt: skip


def test_the_verdict_says_how_far_a_published_figure_is():
    assert "throughput 2.5 % below the measured 100.000 Mb/s" in run_verdict(finished(published=[row(0.975)])).text
    several = run_verdict(finished(published=[row(1.1), row(0.8, "fairness"), row(None)])).text
    assert "mean error 15.0 % over 2 published figures, worst 20.0 % (fairness)" in several


def test_bad_ends_are_said_before_all_else():
    failed = run_verdict(finished(status="failed", reason="cells are missing"))
    assert (failed.level, failed.text) == ("bad", "The experiment failed: cells are missing.")
    stopped = run_verdict(finished(status="interrupted", reason="SIGTERM"))
    assert stopped.level == "note" and stopped.text.startswith("by SIGTERM at 6.000 s of ")
    expected = {"metric": "goodput", "unit": "Mb/s", "min": 9.0, "max": None, "ours": 3.0, "holds": False}
    unmet = run_verdict(finished(expected=[expected]))
    assert (unmet.level, unmet.word) == ("bad", "Not as expected")
    assert unmet.text.startswith("goodput: 3 Mb/s, expected at least 9: ")


def test_the_verdict_on_cases():
    summary = some_cases("magic-mismatch")
    assert several_verdict(summary).text == "7 of 7 cases are done."
    for each in summary["published"]:
        each["ratio"] = 1.25
    whole = several_verdict(summary)
    assert whole.level == "good" and re.search(r"mean error 25.0 %|25.0 % above", whole.text)
    short = several_verdict(some_cases("magic-mismatch", False))
    assert short.level == "note" and "not compared with published" in short.text


# The network


def places(drawing):
    """Every box and every text of a line of a drawing: name, left, top, right, bottom."""
    for box in drawing.boxes:
        width = max(text_width(text, kind) for kind, text in box.texts)
        assert width <= 180, f"{box.texts} is wider than its box"
        yield box.name, box.x, box.y, box.x + 176, box.y + box.height
    for joint in drawing.joints:
        if joint.texts:
            (x, y), height = joint.at, 16 * len(joint.texts)
            width = max(text_width(text, kind) for kind, text in joint.texts)
            yield joint.title, x - width / 2, y - height / 2, x + width / 2, y + height / 2


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("name", sorted(catalogue()))
def test_nothing_in_the_drawing_of_a_network_stands_on_another(name, upright):
    e = load(name)
    summary = {"resolved": _resolved(e), "counters": {}, "drops": {}, "time": {"simulated_s": 1.0}}
    drawing = lay_out(network_of(summary), upright)
    found = list(places(drawing))
    for (one, ax, ay, bx, by), (two, cx, cy, dx, dy) in itertools.combinations(found, 2):
        assert min(bx, dx) - max(ax, cx) <= 1 or min(by, dy) - max(ay, cy) <= 1, f"{one} stands on {two}"
    for one, ax, ay, bx, by in found:
        assert ax >= 0 and ay >= 0 and bx <= drawing.width and by <= drawing.height, f"{one} is cut off"
    if upright:
        assert drawing.width <= 400
    else:
        crossed = [joint.title for joint in drawing.joints if joint.texts and overlaps(joint, drawing)]
        assert not crossed, "a line passes under another's texts"


def test_sources_are_before_switches_before_sinks():
    summary = finished("acts-3flows")
    box = {box.name: box for box in lay_out(network_of(summary)).boxes}
    assert box["source1"].x == box["source2"].x < box["ku"].x < box["sink"].x
    upright = {box.name: box for box in lay_out(network_of(summary), upright=True).boxes}
    assert upright["source1"].y < upright["ku"].y < upright["sink"].y


def test_use_is_the_share_of_the_time_that_cells_take():
    summary = finished("lan-3flows")
    network = network_of(summary)
    line = next(line for line in network.lines)
    rate = summary["resolved"]["network"]["lines"][0]["rate_bps"]
    assert line.out.use == pytest.approx(10**6 * 424 / 6.0 / rate)
    host = network.hosts[0]
    own = summary["resolved"]["network"]["hosts"][0]["rate_bps"]
    assert (host.out.use, host.back.use) == (pytest.approx(1e6 * 424 / 6 / own), pytest.approx(2e4 * 424 / 6 / own))


def test_losses_stand_at_the_hop():
    summary = finished("lan-3flows", drops={"west": {"epd": 1536, "full": 0}, "lan.out": {"hec": 7}})
    network = network_of(summary)
    name = network.lines[0].name
    summary["drops"] = {"west": {"epd": 1536, "full": 0}, f"{name}.out": {"hec": 7}}
    page = report_html(made_up_with(summary))
    assert "1,536 lost: EPD" in page and "→ 7 lost: header error" in page


def made_up_with(summary):
    result = made_up("lan-3flows")
    result.summary.update(summary)
    return result


# Figures


def curve(spec, name):
    return next(series for series in spec["series"] if series["name"] == name)


def times(series):
    return [step / 1e6 for step in itertools.accumulate(series["x"])]


def test_figures_have_the_recorded_values():
    result = made_up("lan-3flows")
    figures = figures_of(result)
    windows = curve(figures["windows"], "flow2")
    assert times(windows)[:SAMPLES] == pytest.approx([i / 10 for i in range(SAMPLES)])
    assert windows["y"][5] == pytest.approx(9.14 * 11)
    rate = curve(figures["throughput"], "flow1")
    assert rate["y"][0] == pytest.approx(10_010 * 8 / 0.1 / 1e6, rel=1e-4)
    drops = figures["drops"]["series"]
    assert sum(a - b for series in drops for a, b in zip(series["y"], series["low"], strict=True)) == 2 * 2 * 8 * 192


def test_queues_are_shares_of_the_time():
    result = made_up("lan-3flows")
    (name,) = {s["name"] for s in result.summary["resolved"]["network"]["switches"]} - {"east"}
    result.trace.series[f"{name}.queue"] = (array("q", [0, PS, 2 * PS, 10 * PS]), array("q", [0, 0, 50, 100]))
    shares = curve(figures_of(result)["queue-shares"], name)
    assert list(zip(shares["x"], shares["y"], strict=True)) == [(0, 100), (50, 90), (100, 80)]


def test_round_trips_are_shares_of_the_samples():
    result = made_up("acts-1flow")
    result.trace.series["flow1.rtt"] = (array("q", range(4)), array("q", [600 * 10**9] * 3 + [550 * 10**9]))
    (shares,) = figures_of(result)["rtt-shares"]["series"]
    assert list(zip(shares["x"], shares["y"], strict=True)) == [(550, 25), (600, 100)]


def test_many_flows_are_a_heat_map_and_bands():
    figures = figures_of(made_up("netspec-100"))
    assert len(figures["each-flow"]["rows"]) == len(figures["each-flow"]["heat"]) == 100
    assert [series["shape"] for series in figures["windows"]["series"]] == ["band", "band", "line"]
    assert [series["name"] for series in figures["throughput"]["series"]] == ["all 100"]


def test_a_run_of_no_time_has_a_page():
    result = made_up("lan-3flows")
    result.trace.series.clear()
    result.trace.events.clear()
    result.summary["time"].update({"simulated_s": 0.0, "wall_per_simulated": None})
    assert "<h1>" in report_html(result) and figures_of(result) == {}


# What is on the page


def test_the_page_asks_the_network_for_nothing():
    page = report_html(made_up("lan-3flows"))
    assert "default-src 'none'" in page and "connect-src" not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_data_cannot_end_their_script():
    result = made_up("lan-3flows")
    result.flows[0]["name"] = result.summary["flows"][0]["name"] = "</script><b>"
    result.trace.series["</script><b>.rtt"] = (array("q", [1, 2, 3]), array("q", [1, 2, 3]))
    page = report_html(result)
    assert "</script><b>" not in page and "&lt;/script&gt;&lt;b&gt;" in page
    data = re.search(r'id="figures-data">(.*?)</script>', page, re.DOTALL)[1]
    assert curve(json.loads(data)["round-trips"], "</script><b>")


def test_what_differs_from_the_experiments_file_is_marked():
    result = made_up("lan-3flows")
    key = "experiment.duration"
    result.summary["changes"] = [{"key": key, "old": "99 s", "new": "6 s"}]
    page = report_html(result)
    assert "<mark>changed</mark> experiment.duration: 99 s -&gt; 6 s" in page
    assert re.search(r'<tr class="changed"><th scope="row"[^>]*>experiment.duration</th>.*was &quot;99 s&quot;', page)
    assert page.count('<tr class="changed">') == 1


def test_a_command_repeats_the_run():
    summary = finished(settings=["hosts.tcp.variant=reno", "a.b='x y'"], case={"name": "no pacing"})
    summary |= {"file": "my magic.toml", "seed": 7, "versions": {"engine": "verilator"}}
    summary["time"] = {"limit_s": 0.25, "full_s": 10.0}
    assert repeat_command(summary) == (
        "bentpipe run 'my magic.toml' --case 'no pacing' --seed 7 --set hosts.tcp.variant=reno "
        """--set 'a.b='"'"'x y'"'"'' --duration '0.25 s' --engine verilator"""
    )


HOW = "my.toml --seed 7 --set a.b=1"
SLACK = "--computing '20 ms' --late drop"


@pytest.mark.parametrize(
    ("commands", "wanted"),
    [
        (None, f"bentpipe attach {HOW} --a h1=ns:x --b h2=tap:y,9=v --end h3=udp:1-2 {SLACK}"),
        (["--there", "iperf3 -s"], f"bentpipe shell {HOW} {SLACK} --there 'iperf3 -s'"),
    ],
    ids=["attach", "shell"],
)
def test_a_command_starts_a_session_again(commands, wanted):
    """Not a run that simulates the flows of its hosts; that of a recorded one injects its packets again."""
    summary = finished(settings=["a.b=1"]) | {"file": "my.toml", "seed": 7, "versions": {"engine": "native"}}
    summary["time"] |= {"limit_s": 1e5, "full_s": 10.0}
    ends = [{"host": host, "end": end} for host, end in (("h1", "ns:x"), ("h2", "tap:y,9=v"), ("h3", "udp:1-2"))]
    wanted_ps = {"computing": 20 * 10**9, "release": 16 * 10**9}
    summary["attached"] = {"ends": ends, "wanted_ps": wanted_ps, "late": "drop", "commands": commands}
    assert session_command(summary) == wanted
    again = "".join(_again(summary))
    assert html.escape(wanted) in again and "bentpipe run" not in again and "replay" not in again
    assert "was not recorded" in again
    summary["attached"]["recorded"] = True
    again = "".join(_again(summary))
    assert "bentpipe replay ." in again and "was not recorded" not in again


def test_the_page_of_a_session_says_what_was_changed_and_has_no_empty_table():
    """A session without flows of its own: each change with its time and who made it, and no table of flows."""
    change = {"key": "network.lines.wan.ber", "old": 0, "new": 1e-6}
    result = made_up("acts-1flow")
    result.flows.clear()
    result.summary |= {
        "attached": {"ends": []},
        "events": [{"at_s": 6.0, "tick": 9, "source": "set", "changes": [change]}],
        "profiles": [
            {"file": "f.csv", "keys": ["network.lines.wan.rate"], "direction": "out", "rows": 9, "first_s": 0}
        ],
    }
    assert "".join(_flows(result)) == ""
    (line,) = result.summary["resolved"]["network"]["lines"]
    source, sink = (result.summary["resolved"]["vcs"][0]["path"][end] for end in (0, -1))
    result.summary["resolved"]["flows"] = []
    slack = {"lines": {line["name"]: 5 * 10**9}, "longer": {}}
    result.summary["attached"] = {"ends": [{"host": source}, {"host": sink}], "slack": slack}
    network = network_of(result.summary)
    assert network.lines[0].facts[1] == format_time(line["delay_ps"] + 5 * 10**9)
    assert [(path[0], path[-1]) for path in network.paths] == [(source, sink)]
    message = _events(result.summary)
    assert ">6 s<" in message and ">set<" in message and "followed f.csv (out): 9 rows from 0 s on" in message
    assert "at the start; some were changed in the run" in "".join(_set_up(result.summary | {"changes": []}))


def test_captures_have_filters_for_their_flows():
    summary = finished("lan-3flows", captures=["source1.ip.pcap", "lan.cells.pcap"])
    line = summary["resolved"]["network"]["lines"][0]
    captures = [
        {"kind": "ip", "host": "source1", "switch": "", "port": 0, "file": "source1.ip.pcap"},
        {"kind": "cells", "host": "", "switch": line["ends"][0]["switch"], "port": 3, "file": "lan.cells.pcap"},
        {"kind": "ip", "host": "sink", "switch": "", "port": 0, "file": "not-made.pcap"},
    ]
    summary["resolved"]["record"] = {**summary["resolved"]["record"], "pcap": captures}
    found = dict(capture_commands(summary))
    assert list(found) == ["source1.ip.pcap", "lan.cells.pcap"]
    names = [host["name"] for host in summary["resolved"]["network"]["hosts"]]
    sink = f"10.0.0.{names.index('sink') + 1}"
    assert found["source1.ip.pcap"][1:] == [
        f"tshark -r source1.ip.pcap -Y 'ip.addr == 10.0.0.1 && ip.addr == {sink}'  # flow1"
    ]
    assert "atm.vci == 32 || atm.vci == 33" in found["lan.cells.pcap"][1] and len(found["lan.cells.pcap"]) == 4


# Sweeps


def figures_in(text):
    """The data of a page's figures."""
    found = re.search(r'<script type="application/json" id="figures-data">(.*?)</script>', text)
    return json.loads(found[1]) if found else {}


@cache
def swept(*vary, seeds=(1, 2, 3)):
    """A sweep whose throughput hangs on the MTU, with 2 Mb/s from seed to seed."""
    plan = plan_sweep("lan-3flows", parse_axes(vary), seeds, duration_ps=PS // 5)

    def rate(values, seed):
        return 1e6 * (int(values.get("hosts.mtu", 9180)) / 100 + 2 * seed + 10 * ("sack" in values.values()))

    return some_sweep(plan, rate=rate)


def test_a_sweeps_figure_has_mean_interval_and_seeds():
    figure = figures_in(sweep_html(*swept("hosts.mtu=1500,4470,9180", "hosts.tcp.variant=reno,sack")))
    series = {each["name"]: each for each in figure["aggregate-goodput"]["series"]}
    assert series["reno"]["x"] == [1500, 4470, 9180] and series["reno"]["y"] == pytest.approx([19, 48.7, 95.8])
    assert series["sack"]["y"] == pytest.approx([29, 58.7, 105.8])
    half = 4.302653 * 2 / 3**0.5  # Student's t of two degrees of freedom, standard deviation 2
    band = series["reno, 95 % interval"]
    assert band["low"] == pytest.approx([each - half for each in series["reno"]["y"]], abs=1e-4)
    assert band["y"] == pytest.approx([each + half for each in series["reno"]["y"]], abs=1e-4)
    assert series["sack, each seed"]["y"][:3] == pytest.approx([27, 29, 31])
    assert figure["aggregate-goodput"]["x"]["label"] == "MTU"


def test_a_sweep_without_numbers_has_bars_with_intervals():
    text = sweep_html(*swept("hosts.tcp.variant=reno,sack"))
    assert figures_in(text) == {}
    bars = re.findall(
        r'<li><span>(.*?)</span>.*?<i style="width:(.*?)%"></i><s style="left:(.*?)%;width:(.*?)%">', text
    )
    assert [name for name, *_ in bars] == ["reno", "sack"]
    for _, mean, low, width in bars:
        assert float(mean) == pytest.approx(float(low) + float(width) / 2, abs=0.02)


def test_a_sweep_leads_to_each_of_its_runs_and_they_lead_back():
    summary, rows = swept("hosts.mtu=1500,4470,9180", "hosts.tcp.variant=reno,sack")
    folders = [run["folder"] for run in summary["runs"]]
    assert re.findall(r'href="(runs/[^"]*)"', sweep_html(summary, rows)) == [f"{each}/report.html" for each in folders]
    some = sweep_html(summary, rows, folders[:2])  # the others have no report
    assert re.findall(r'href="(runs/[^"]*)"', some) == [f"{each}/report.html" for each in folders[:2]]
    nav = in_sweep(summary["id"]).nav()
    assert 'href="../../report.html"' in nav and "The sweep of lan-3flows" in nav


def test_the_verdict_on_a_sweep():
    summary, _ = swept("hosts.mtu=1500,4470,9180", "hosts.tcp.variant=reno,sack")
    verdict = sweep_verdict(summary)
    assert verdict.level == "good"
    assert verdict.text.startswith(
        "18 of 18 runs are done; throughput: 19.000 ± 4.968 Mb/s (MTU = 1500, TCP variant = reno) "
        "to 105.800 ± 4.968 Mb/s (MTU = 9180, TCP variant = sack)"
    )
    failed = sweep_verdict(summary | {"status": "failed", "reason": "one run failed"})
    assert (failed.level, failed.word) == ("bad", "Failed")
    row = {"metric": "fairness", "unit": "1", "min": 0.9, "max": None, "ours": 0.5, "holds": False, "case": ""}
    runs = [summary["runs"][0] | {"expected": [row]}, *summary["runs"][1:]]
    unmet = sweep_verdict(summary | {"runs": runs})
    assert (unmet.level, unmet.word) == ("bad", "Not as expected")
    assert "fairness: 0.5, expected at least 0.9" in unmet.text


def test_what_failed_is_said_with_its_reason():
    summary, rows = swept("hosts.tcp.variant=reno,sack")
    runs = [summary["runs"][0] | {"status": "failed", "reason": "cells <are> missing"}, *summary["runs"][1:]]
    text = sweep_html(summary | {"status": "failed", "reason": "x", "runs": runs}, rows)
    assert "What failed" in text and "cells &lt;are&gt; missing" in text


def test_the_command_that_repeats_a_sweep_plans_the_same_runs(monkeypatch):
    axes = parse_axes(["hosts.mtu=1500..9180:2", "window=16,64 KiB"])
    plan = plan_sweep("lan-3flows", axes, (1, 2, 3, 7), ["hosts.tcp.variant=sack"], duration_ps=PS // 5)
    planned = []
    commands()  # others have it from there
    monkeypatch.setattr(sweep_command, "do_sweep", lambda given, plan, show=None: planned.append(plan) or 0)
    assert plan.command.startswith("bentpipe sweep lan-3flows --vary hosts.mtu=1500,9180 ")
    assert main(shlex.split(plan.command)[1:]) == 0
    assert [run.key for run in planned[0].runs] == [run.key for run in plan.runs]


@cache
def some_catalogue():
    plan = plan_catalogue(["lan-1flow", "lan-3flows", "acts-variants"])
    short = [replace(each, experiment=replace(each.experiment, duration_ps=PS // 5)) for each in plan.runs]
    return some_sweep(replace(plan, runs=tuple(short)))


def test_the_page_of_the_catalogue_has_a_row_for_each_entry():
    summary, rows = some_catalogue()
    for row, ratio in zip(summary["published"], itertools.cycle([1.1, 0.8]), strict=False):
        row["ratio"] = ratio
    text = sweep_html(summary, rows)
    table = re.search(r'aria-label="Experiments".*?<tbody>(.*?)</tbody>', text, re.DOTALL)[1]
    entries = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("</tr>") if row.strip()]
    assert [re.sub("<.*?>", "", entry[0]) for entry in entries] == ["lan-1flow", "lan-3flows", "acts-variants"]
    assert 'href="runs/lan-1flow-seed1-' in entries[0][0] and 'href="#of-acts-variants"' in entries[2][0]
    assert 'id="of-acts-variants"' in text
    assert entries[2][3:5] == ["done", "6"] and entries[2][6:8] == ["15.0%", "-20.0%"]
    assert "bentpipe catalogue run --only lan-1flow --only lan-3flows --only acts-variants" in text
