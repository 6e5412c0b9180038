"""bentpipe from Python: the same runs as on the command line, as data frames."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import bentpipe.plots.sweep
from bentpipe import Run, Sweep, load, read, run, sweep
from bentpipe.errors import BentpipeError
from bentpipe.sweeps.grid import parse_seeds


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(bentpipe.plots.sweep, "write_sweep_plot", lambda *_: None)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def local():
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def test_load_takes_settings_as_a_mapping_or_as_texts():
    one = load("lan-1flow", {"hosts.tcp.variant": "sack", "hosts.mtu": 1500}, seed=4, duration="20 ms")
    two = load("lan-1flow", ["hosts.tcp.variant=sack", "mtu=1500"], seed=4, duration=0.02)
    assert one == two
    assert (one.seed, one.duration_ps, one.flows[0].tcp.variant) == (4, 20 * 10**9, "sack")
    assert load("magic-window", case="window 64 kB").case == "window 64 kB"


def test_numbers_may_be_numpys():
    numpy = pytest.importorskip("numpy")
    e = load("lan-1flow", {"hosts.mtu": numpy.int64(1500)}, seed=numpy.int64(4))
    assert e == load("lan-1flow", {"hosts.mtu": 1500}, seed=4) and type(e.seed) is int
    assert parse_seeds(numpy.arange(1, 4)) == (1, 2, 3)


def test_a_run_without_a_folder_writes_nothing():
    result = run("lan-1flow", {"hosts.mtu": 9180}, duration="50 ms")
    assert result.folder is None and not [*Path().iterdir()]
    assert result.summary["status"] == "done"
    flow = result.flows.iloc[0]
    assert flow["octets_delivered"] == result.summary["flows"][0]["octets_delivered"] > 0
    figures = result.to_pandas().set_index(["flow", "metric"])["value"]
    assert figures["", "aggregate_goodput"] == result.metrics["aggregate_goodput"] == figures["flow1", "goodput"]


def test_series_are_over_seconds():
    result = run("lan-1flow", duration="100 ms")
    delivered = result.series("flow1.delivered")
    assert delivered.index.name == "time_s" and delivered.index[-1] == pytest.approx(0.1)
    assert delivered.iloc[-1] == result.flows["octets_delivered"][0]
    trace = result.trace
    assert trace[trace["series"] == "flow1.delivered"]["value"].tolist() == delivered.tolist()
    with pytest.raises(BentpipeError, match=r"no series 'flow1.cwn'; did you mean 'flow1.cwnd'"):
        result.series("flow1.cwn")


def test_an_experiment_runs_as_it_was_loaded():
    experiment = load("lan-1flow", duration="20 ms", seed=9)
    assert run(experiment).summary["seed"] == 9
    with pytest.raises(BentpipeError, match=r"are given to load\(\)"):
        run(experiment, seed=1)


@pytest.mark.usefixtures("no_plots")
def test_a_run_folder_is_that_of_the_command_and_is_read_back():
    made = run("lan-1flow", duration="20 ms", folder="out")
    assert {"result.json", "report.html", "flows.parquet"} <= {path.name for path in Path("out").iterdir()}
    back = read("out")
    assert isinstance(back, Run) and back.summary == json.loads(json.dumps(made.summary))
    assert back.trace.equals(made.trace)


def test_a_sweep_is_a_tidy_table_and_means(local):
    made = sweep("lan-1flow", {"mtu": [1500, 9180]}, range(1, 4), duration="10 ms", folder="out", cluster=local)
    table = made.to_pandas()
    rates = table[table["metric"].eq("aggregate_goodput")]
    assert rates.groupby("hosts.mtu")["seed"].agg(list).to_dict() == {1500.0: [1, 2, 3], 9180.0: [1, 2, 3]}
    means = made.means().set_index("hosts.mtu")
    assert means["count"].tolist() == [3, 3]
    assert means["mean"].to_dict() == pytest.approx(rates.groupby("hosts.mtu")["value"].mean().to_dict())
    assert (means["low"] <= means["mean"]).all() and (means["mean"] <= means["high"]).all()
    one = made.run(rates["run"].iloc[0])
    assert one.metrics["aggregate_goodput"] == rates["value"].iloc[0]
    back = read("out")
    assert isinstance(back, Sweep) and back.summary == made.summary
    assert made.runs["status"].tolist() == ["done"] * 6


def test_a_sweep_that_replaces_another_has_all_its_runs(local):
    """Also those that the folder had before, which go with it."""
    for seeds in (range(1, 2), range(1, 3)):
        made = sweep("lan-1flow", {}, seeds, duration="5 ms", folder="out", force=True, cluster=local)
        assert all((Path("out") / name / "result.json").is_file() for name in made.runs["folder"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run("magic-window"), r"has cases: name one, or use sweep\(\)"),
        (lambda: load("lan-1flow", duration="0"), "duration 0: out of range"),
        (lambda: load("lan-1flow", seed=-1), "seed -1: out of range"),
        (lambda: load("lan-1flow", seed=1.5), "seed 1.5: expected a whole number"),
        (lambda: load("lan-1flow", quick=True, duration="1 s"), "duration and quick: give one of them"),
        (lambda: sweep("lan-1flow", quick=True, duration="1 s"), "duration and quick: give one of them"),
        (lambda: sweep("lan-1flow", {"window": 3}), "--vary window: expected some values, not 3"),
        (lambda: sweep("lan-1flow", seeds=["a"]), "--seeds 'a': expected a whole number"),
        (lambda: load("lan-1flow", "mtu=1500"), "expected a mapping or a list of KEY=VALUE"),
        (lambda: load("lan-1flow", {"hosts.mtuu": 1}), "did you mean 'mtu'"),
        (lambda: read("nothing"), "not a run folder"),
    ],
)
def test_what_makes_no_sense_is_a_line(call, message):
    with pytest.raises(BentpipeError, match=message):
        call()


def test_what_is_heavy_is_imported_when_it_is_used():
    """Neither the package nor the command's help wait for data frames or for Dask."""
    code = (
        "import sys, bentpipe, bentpipe.cli\n"
        "assert bentpipe.cli.main([]) == 2 and bentpipe.cli.main(['list']) == 0\n"
        "print({'pandas', 'dask', 'distributed', 'pyarrow', 'matplotlib'} & {*sys.modules})"
    )
    expected_text = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert expected_text.splitlines()[-1] == "set()"
