"""Experiments with cases: each with its own values and published figures; folders above folders."""

import json
import signal
import tomllib

import pytest

import bentpipe.experiment.build.hosts
import bentpipe.experiment.run.run
import bentpipe.results.folder
from bentpipe.cli import main
from bentpipe.errors import BentpipeError, ConfigError
from bentpipe.experiment.load import load, load_cases
from bentpipe.experiment.run.record import TraceRecorder
from unit.experiment.fake import fake_build
from unit.experiment.test_parse import TEXT

pytestmark = pytest.mark.usefixtures("no_plots")

CASES = """
[[case]]
name = "Fast line"
at = 2
set = { "network.lines.wan.delay" = "1 ms" }

[[case]]
name = "small window"
at = 1
set = { window = "32 kB" }

[[published]]
quantity = "throughput"
case = "small window"
measured = 3.0
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", fake_build)

    def write(cases=CASES, base=TEXT):
        path = tmp_path / "two.toml"
        path.write_text(base[: base.index("[[published]]")] + cases)
        tomllib.loads(path.read_text())
        return str(path)

    return write


def test_each_case_has_its_values_and_its_figures(write):
    fast, small = load_cases(write())
    assert (fast.case, fast.at, small.case, small.at) == ("Fast line", 2, "small window", 1)
    assert [e.network.lines[0].delay_ps for e in (fast, small)] == [10**9, 20 * 10**9]
    assert [e.flows[0].tcp.receive_buffer for e in (fast, small)] == [1 << 20, 32_000]
    assert [len(e.published) for e in (fast, small)] == [0, 1]


AXES = """
[[axis]]
name = "window"
points = [
  { at = 1, name = "small", set = { window = "32 kB" } },
  { at = 2, set = { window = "64 kB", mtu = 1500 } },
]

[[axis]]
name = "delay"
label = "delay, ms"
points = [
  { at = 10, set = { "network.lines.wan.delay" = "10 ms" } },
  { at = 30, set = { "network.lines.wan.delay" = "30 ms" } },
  { at = 2.5, set = { "network.lines.wan.delay" = "2.5 ms" } },
]
"""


def test_axes_make_a_case_of_each_combination(write):
    cases = load_cases(write(AXES))
    assert [(e.case, e.at, e.curve) for e in cases[:4]] == [
        ("window small, delay 10", 10, "window small"),
        ("window small, delay 30", 30, "window small"),
        ("window small, delay 2.5", 2.5, "window small"),
        ("window 2, delay 10", 10, "window 2"),
    ]
    assert {e.axis for e in cases} == {"delay, ms"}
    assert [e.network.lines[0].delay_ps / 10**9 for e in cases] == [10, 30, 2.5] * 2
    assert [e.flows[0].tcp.receive_buffer for e in cases] == [32_000] * 3 + [64_000] * 3


def test_a_point_of_an_axis_needs_no_place(write):
    """A line across the plot, as of sources at full rate beside those with some load."""
    text = AXES.replace("{ at = 30, set", '{ name = "far", set')
    assert [(e.case, e.at, e.curve) for e in load_cases(write(text))[:2]] == [
        ("window small, delay 10", 10, "window small"),
        ("window small, delay far", None, "window small"),
    ]


def test_settings_go_before_a_cases_own(write):
    fast, _ = load_cases(write(), ["network.lines.wan.delay=7 ms"])
    assert fast.network.lines[0].delay_ps == 7 * 10**9


def test_some_cases_only(write):
    (small,) = load_cases(write(), only=["small window"])
    assert small.case == "small window"
    with pytest.raises(BentpipeError, match="there is no case 'smal window'; did you mean 'small window'"):
        load_cases(write(), only=["smal window"])
    with pytest.raises(BentpipeError, match=r"lan-1flow\.toml: has no cases, so no case 'x'"):
        load_cases("lan-1flow", only=["x"])


def test_the_experiment_without_its_cases(write):
    assert load(write()).network.lines[0].delay_ps == 20 * 10**9


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ("[[case]]\nset = { window = 1 }\n", "the key 'name' is missing"),
        ('[[case]]\nname = "a"\n[[case]]\nname = "a"\n', "there is a case 'a' already"),
        ('[[case]]\nname = "a"\nat = 1\n[[case]]\nname = "b"\n', "either all cases have a place on the axis"),
        (CASES + AXES, "give either cases or axes"),
        ('[[axis]]\nname = "a"\npoints = []\n', "an axis has 1 to 1000 points, not 0"),
        ('[[axis]]\nname = "a"\npoints = [{ set = {} }]\n', r"a point has a place \('at'\), a name, or both"),
        (
            '[[axis]]\nname = "a"\npoints = [{ at = 1, set = {} }, { at = 1, set = {} }]\n',
            "there is a case 'a 1' already",
        ),
        ('[[case]]\nname = "a"\nset = 3\n', "expected a table, not 3"),
        ('[[case]]\nname = "a"\nsets = {}\n', "unknown key; did you mean 'set'"),
        ('[[case]]\nname = "a"\n[[published]]\nquantity = "x"\ncase = "b"\n', "there is no case 'b'"),
        ('[[case]]\nname = "a"\nset = { "network.lines.wan.dely" = 1 }\n', "case 'a': .*unknown key"),
        (
            '[[case]]\nname = "a"\nset = { "network.lines.man.delay" = 1 }\n',
            "case 'a': set network.lines.man.*there is no line 'man'",
        ),
    ],
)
def test_wrong_cases(write, cases, message):
    with pytest.raises((ConfigError, BentpipeError), match=message) as caught:
        load_cases(write(cases))
    assert "\n" not in str(caught.value)


def test_all_that_is_wrong_with_a_case_is_said_with_its_name(write):
    case = '[[case]]\nname = "a"\nset = { "network.lines.wan.dely" = 1, "hosts.mtu" = 1 }\n'
    with pytest.raises(ConfigError) as caught:
        load_cases(write(case))
    assert [text.startswith("case 'a': set ") for text in (str(caught.value), *caught.value.more)] == [True, True]


def test_a_run_has_a_folder_for_each_case(write, capsys, tmp_path):
    assert main(["run", write(), "--out", "out", "--quick"]) == 0
    out = capsys.readouterr().out
    assert "Fast line" in out and "small window" in out and "3.000" in out
    whole = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [case["folder"] for case in whole["cases"]] == ["fast-line", "small-window"]
    assert whole["status"] == "done" and len(whole["published"]) == 1
    for folder in ("fast-line", "small-window"):
        one = json.loads((tmp_path / "out" / folder / "result.json").read_text())
        assert one["status"] == "done" and one["case"]["name"].lower().replace(" ", "-") == folder
    page = (tmp_path / "out" / "report.html").read_text()
    assert "fast-line/report.html" in page and 'data-figure="cases"' in page
    for one, other in (("fast-line", "small-window"), ("small-window", "fast-line")):
        own = (tmp_path / "out" / one / "report.html").read_text()
        assert 'href="../report.html"' in own and f'href="../{other}/report.html"' in own
    assert main(["report", "out"]) == 0
    assert main(["run", write(), "--out", "out"]) == 2
    assert main(["run", write(), "--out", "out", "--force", "--quick", "--case", "small window", "--json"]) == 0
    assert not (tmp_path / "out" / "fast-line").exists()


@pytest.mark.parametrize(
    ("module", "function"), [(bentpipe.experiment.run.run, "versions"), (bentpipe.results.folder, "write_flows")]
)
def test_a_signal_behind_the_end_of_a_case_waits_until_its_result_is_kept(
    write, monkeypatch, tmp_path, module, function
):
    """It comes while the result is summed up, or written: the case is done, and the cases behind it are not run."""
    whole, over = getattr(module, function), TraceRecorder.finish

    def press(*arguments):
        signal.raise_signal(signal.SIGTERM)
        return whole(*arguments)

    def finish(recorder):
        monkeypatch.setattr(module, function, press)
        over(recorder)

    monkeypatch.setattr(TraceRecorder, "finish", finish)
    assert main(["run", write(), "--out", "out", "--quick"]) == 143
    one = json.loads((tmp_path / "out" / "fast-line" / "result.json").read_text())
    assert (one["status"], one["shortened"]) == ("done", True)
    assert (tmp_path / "out/fast-line/flows.parquet").is_file() and (tmp_path / "out/fast-line/trace.parquet").is_file()
    whole = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (whole["status"], whole["reason"]) == ("interrupted", "not all cases have run")
    assert not (tmp_path / "out" / "small-window").exists()


def test_an_interrupted_run_keeps_the_cases_so_far(write, monkeypatch, tmp_path):
    def build(experiment, recorder):
        if experiment.case == "small window":
            raise KeyboardInterrupt
        return fake_build(experiment, recorder)

    monkeypatch.setattr(bentpipe.experiment.build.hosts, "build", build)
    assert main(["run", write(), "--out", "out", "--quick"]) == 130
    whole = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (whole["status"], whole["reason"]) == ("interrupted", "not all cases have run")
    assert [case["name"] for case in whole["cases"]] == ["Fast line"]


def test_of_many_cases_only_the_plot_over_them_is_drawn_until_it_is_asked_for(write, capsys, tmp_path, monkeypatch):
    from bentpipe.experiment.run import perform

    monkeypatch.setattr(perform, "CASES_WITH_PLOTS", 1)
    assert main(["run", write(), "--out", str(tmp_path / "run")]) == 0
    assert f"bentpipe report {tmp_path / 'run'}" in capsys.readouterr().out.replace("\n", " ")
    drawn = sorted(str(file.relative_to(tmp_path / "run")) for file in (tmp_path / "run").rglob("*.svg"))
    assert drawn == ["overview.svg"]
    assert main(["report", str(tmp_path / "run")]) == 0
    assert len(sorted((tmp_path / "run").rglob("*.svg"))) == 3


def test_without_plots_no_page_leads_to_one(write, tmp_path):
    assert main(["run", write(), "--no-plots", "--out", str(tmp_path / "run")]) == 0
    assert "overview.svg" not in (tmp_path / "run" / "report.html").read_text()
