"""A run that isn't the published one says so beside its figures: what was changed, shortened or lost."""

import json
import os
import re
import signal

import pytest

import bentpipe.experiment.build.hosts
import bentpipe.plots.cases
import bentpipe.plots.figures
from bentpipe.cli import main
from bentpipe.experiment.document.changes import Change, changes_between
from bentpipe.experiment.load import load, load_cases
from bentpipe.results.tables import change_text
from unit.experiment.fake import fake_build
from unit.experiment.test_cases import CASES
from unit.experiment.test_parse import TEXT

BER = "network.lines.wan.ber"


@pytest.fixture(autouse=True)
def stand_in(monkeypatch, tmp_path):
    """A quick network and no plots, in a folder with the experiments ``one.toml`` and ``two.toml`` (with cases)."""

    def blank(folder, what):
        (folder / "overview.svg").write_text("<svg/>")

    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", fake_build)
    monkeypatch.setattr(bentpipe.plots.figures, "write_plots", blank)
    monkeypatch.setattr(bentpipe.plots.cases, "write_cases_plot", blank)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.toml").write_text(TEXT)
    (tmp_path / "two.toml").write_text(TEXT[: TEXT.index("[[published]]")] + CASES)


@pytest.fixture
def run(capsys, tmp_path):
    """Run the command; what it printed, the page it wrote, and the summary."""

    def run(*arguments, code=0):
        assert main(["run", *arguments, "--out", "out", "--force"]) == code
        page = (tmp_path / "out" / "report.html").read_text()
        page = re.sub(r"<details>.*", "", page, flags=re.DOTALL).replace("&gt;", ">").replace("&#x27;", "'")
        return capsys.readouterr().out, page, json.loads((tmp_path / "out" / "result.json").read_text())

    return run


def changes(name, *settings, **options):
    return [(c.key, c.old, c.new) for c in load(name, settings, **options).changes]


def table_row(text, start):
    return next(line for line in text.splitlines() if line.startswith(start))


def test_a_change_names_the_old_value_and_the_new():
    assert changes("one.toml", f"{BER}=1e-8") == [(BER, [1e-9, 0], 1e-8)]
    assert changes("one.toml", "hosts.tcp.variant=reno", "flow.1.start=3 s") == [
        ("hosts.tcp.variant", "newreno", "reno"),
        ("flow.1.start", "2 s", "3 s"),
    ]


def test_to_give_what_a_key_has_anyway_is_no_change():
    assert changes("one.toml", "hosts.tcp.nagle=true", "network.switches.west.clp_threshold=0") == []


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        ("network.lines.lan.ber=1e-8", ("network.lines.lan.ber", 0, 1e-8)),
        ("hosts.tcp.delayed_ack=100 ms", ("hosts.tcp.delayed_ack", "200 ms", "100 ms")),
        ("hosts.tcp.nagle=false", ("hosts.tcp.nagle", True, False)),
        ("network.switches.west.clp_threshold=9", ("network.switches.west.clp_threshold", 0, 9)),
        ("network.switches.*.vc_limit=9", ("network.switches.*.vc_limit", 0, 9)),
        ("flow.0.start=1 s", ("flow.0.start", "0 s", "1 s")),
        ("network.hosts.alpha1.mtu=1500", ("network.hosts.alpha1.mtu", None, 1500)),
        ("network.hosts.alpha1.cost=9 us", ("network.hosts.alpha1.cost", None, "9 us")),
    ],
)
def test_the_old_value_of_what_the_file_leaves_out_is_the_default(setting, change):
    assert change in changes("lan-1flow", setting)


def test_what_leaves_the_experiment_as_it_is_is_no_change():
    same = ("hosts.tcp.variant=newreno", "record.interval=50 ms", 'record.pcap=["ip:anna"]')
    assert changes("one.toml", *same, seed=1, duration_ps=10**13) == []


def test_seed_and_more_time_are_changes():
    assert changes("one.toml", seed=7) == changes("one.toml", "experiment.seed=7") == [("experiment.seed", 1, 7)]
    assert changes("one.toml", duration_ps=2 * 10**13) == [("experiment.duration", "10 s", "20 s")]


def test_one_change_of_all_entries_is_said_once():
    before = {"flow": [{"size": 1}, {"size": 1}], "hosts": {"a": {"mtu": 1, "x": 1}, "b": {"mtu": 1}}, "ports": [1, 2]}
    after = {"flow": [{"size": 2}, {"size": 2}], "hosts": {"a": {"mtu": 2, "x": 1}, "b": {"mtu": 3}}, "ports": [1, 3]}
    assert changes_between(before, after, {}) == [
        Change("flow.*.size", 1, 2),
        Change("hosts.a.mtu", 1, 2),
        Change("hosts.b.mtu", 1, 3),
        Change("ports", [1, 2], [1, 3]),
    ]


def test_a_table_where_a_value_was_is_one_change():
    assert changes_between({"a": 1, "b": {}}, {"a": {"c": 1}, "b": {"c": 1}}, {"b.c": 2}) == [
        Change("a", 1, {"c": 1}),
        Change("b.c", 2, 1),
    ]


def test_changes_as_text():
    assert change_text({"key": BER, "old": 0, "new": 1e-8}) == f"{BER}: 0 -> 1e-08"
    assert change_text({"key": "a", "old": None, "new": ["x"]}) == 'a: not given -> ["x"]'
    assert change_text({"key": "a", "old": "b\n" * 99, "new": True}) == f"a: {'b ' * 29}b… -> true"


def test_a_changed_run_says_so_beside_its_figures(run):
    wanted = f"{BER}: [1e-09, 0] -> 1e-08; hosts.tcp.variant: newreno -> reno."
    text, page, summary = run("one.toml", "--set", f"{BER}=1e-8", "--set", "variant=reno")
    (row,) = summary["published"]
    assert summary["changes"][0] == {"key": BER, "old": [1e-9, 0], "new": 1e-8}
    assert row["remarks"] == ["changed"] and row["ratio"] == pytest.approx(row["ours"] / 30)
    for place in (text, page):
        assert wanted in place and f"{row['ratio']:.3f} (changed)" in place
    published = text[text.index("Published figures") :]
    assert wanted in published


def test_another_seed_is_another_trial_and_no_change_beside_the_figures(run):
    text, _, summary = run("one.toml", "--seed", "2")
    assert [change["key"] for change in summary["changes"]] == ["experiment.seed"]
    assert summary["published"][0]["remarks"] == [] and "(changed)" not in text


def test_an_unchanged_run_says_nothing(run):
    text, page, summary = run("one.toml")
    assert summary["changes"] == [] and summary["published"][0]["remarks"] == []
    shown = page[page.index("<body>") :]
    for place in (text, shown):
        assert "hanged" not in place and "hortened" not in place


@pytest.mark.parametrize("how", [["--quick"], ["--duration", "2"], ["--set", "experiment.duration=3 s"]])
def test_a_shortened_run_has_no_ratio(run, how):
    text, page, summary = run("one.toml", *how)
    (row,) = summary["published"]
    assert summary["shortened"] is True and row["ours"] > 0
    assert row["ratio"] is None and row["remarks"] == ["shortened"]
    assert table_row(text, "throughput").split()[-1] == "shortened"
    assert "shortened from 10 s" in text and "shortened from 10 s" in page
    assert "Shortened: start-up weighs more" in text and "Shortened: start-up weighs more" in page
    assert "(changed)" not in text


def test_an_interrupted_run_has_no_ratio(run, monkeypatch):
    def build(experiment, recorder):
        built = fake_build(experiment, recorder)
        built.engine.at_step = lambda network: network.now_ps == 10**12 and os.kill(os.getpid(), signal.SIGINT)
        return built

    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", build)
    text, _, summary = run("one.toml", code=130)
    assert (summary["published"][0]["ratio"], summary["published"][0]["remarks"]) == (None, ["shortened"])
    assert table_row(text, "throughput").split()[-1] == "shortened"


def test_a_limit_that_the_flows_do_not_reach_shortens_nothing(run):
    text, _, summary = run("one.toml", "--set", "flow.*.size=1 kB", "--duration", "9")
    assert summary["time"]["simulated_s"] < 9 and summary["shortened"] is False
    assert summary["published"][0]["ratio"] is not None and "hortened" not in text


def test_a_failed_run_has_no_ratio(run, monkeypatch):
    def build(experiment, recorder):
        built = fake_build(experiment, recorder)
        built.engine.balance = 3
        return built

    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", build)
    text, _, summary = run("one.toml", code=1)
    assert summary["published"][0]["ratio"] is None
    assert table_row(text, "throughput").split()[-1] == "failed"


def test_changes_of_all_cases_stand_above_and_those_of_one_beside_it(run):
    text, page, summary = run("two.toml", "--set", "network.lines.wan.delay=5 ms", "--seed", "3")
    delay = "network.lines.wan.delay"
    assert summary["changes"] == [{"key": "experiment.seed", "old": 1, "new": 3}]
    assert [[(c["old"], c["new"]) for c in case["changes"]] for case in summary["cases"]] == [
        [("1 ms", "5 ms")],
        [("20 ms", "5 ms")],
    ]
    for place in (text, page):
        assert "experiment.seed: 1 -> 3." in place
        assert f"{delay}: 20 ms -> 5 ms" in place and "(changed)" in place
    assert f"{delay}: 1 ms -> 5 ms" in table_row(text, "Fast line")


def test_shortened_cases_have_no_ratio(run):
    text, page, summary = run("two.toml", "--quick")
    assert summary["shortened"] is True and summary["published"][0]["ratio"] is None
    assert "shortened from 10 s" in table_row(text, "small window") and "shortened from 10 s" in page
    assert table_row(text, "throughput").split()[-1] == "shortened"


def test_cases_without_a_difference_say_so(run):
    text, page, summary = run("two.toml")  # the stand-in knows neither delays nor windows
    assert [case["same_as"] for case in summary["cases"]] == [None, "Fast line"]
    assert table_row(text, "small window").endswith("no difference from 'Fast line'")
    assert "no difference from 'Fast line'" in page
    assert "no difference from 'Fast line' yet" in " ".join(run("two.toml", "--quick")[0].split())


def test_a_case_is_compared_with_itself():
    fast, small = load_cases("two.toml", ["window=32 kB"])
    assert [c.key for c in fast.changes] == ["hosts.tcp.window"]
    assert small.changes == ()


def test_an_empty_table_where_there_was_none_is_a_change():
    assert changes_between({"a": {}}, {"a": {"histograms": {}}}, {}) == [Change("a.histograms", None, {})]
