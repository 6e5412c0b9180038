"""Sweeps on a real local cluster of two processes: nothing lost, nothing twice, one line for what goes wrong.

The runs are some milliseconds of a LAN; what takes time is to start workers, so most tests share them."""

import json
import os
import re
import resource
import signal
from pathlib import Path

import pytest

import bentpipe.plots.sweep
import bentpipe.sweeps.run
from bentpipe.cli import main
from bentpipe.errors import BentpipeError, ExperimentFailed
from bentpipe.results.folder import read_run
from bentpipe.results.schema import SCHEMA_VERSION
from bentpipe.sweeps import cluster
from bentpipe.sweeps.grid import parse_axes
from bentpipe.sweeps.plan import plan_sweep
from bentpipe.sweeps.run import claim_sweep, run_sweep
from bentpipe.sweeps.table import read_table
from bentpipe.sweeps.work import is_done

PS = 10**12
SHORT = PS // 100


@pytest.fixture(autouse=True)
def empty_folder(request, monkeypatch, tmp_path):
    """Plots, which take longer than the runs, are drawn only where a test asks for ``plots``."""
    if "plots" not in request.fixturenames:
        monkeypatch.setattr(bentpipe.plots.sweep, "write_sweep_plot", lambda *_: None)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def plots():
    """The plots are really drawn."""


def lan(seeds=range(1, 5), vary=("mtu=1500,9180",), duration_ps=SHORT):
    return plan_sweep("lan-1flow", parse_axes(vary), [*seeds], duration_ps=duration_ps)


def sweep(plan, path, client, progress=None, **options):
    with claim_sweep(plan, Path(path), **options) as folder:
        return run_sweep(plan, folder, cluster=client.scheduler.address, progress=progress)


def ran(summary):
    """Runs that this time had a worker."""
    return [run["folder"] for run in summary["runs"] if run["worker"]]


def one_line(text):
    assert text.count("\n") == 1 and text.startswith("bentpipe: "), text
    return text


def test_all_combinations_run_and_stand_in_one_table(client, plots):
    summary = sweep(lan(), "out", client)
    assert summary["status"] == "done" and len(summary["runs"]) == 8
    rows = read_table(Path("out")).to_pylist()
    rates = [row for row in rows if row["metric"] == "aggregate_goodput"]
    assert [(row["hosts.mtu"], row["seed"], row["verdict"]) for row in rates] == [
        (mtu, seed, "done") for mtu in (1500.0, 9180.0) for seed in (1, 2, 3, 4)
    ]
    for row in rates:
        run = read_run(Path("out") / row["run"])
        assert run.summary["metrics"]["aggregate_goodput"] == row["value"]
        assert (run.summary["seed"], run.summary["resolved"]["network"]["hosts"][0]["mtu"]) == (
            row["seed"],
            row["hosts.mtu"],
        )
    assert {path.name for path in Path("out").iterdir()} == {
        *("result.json", "table.parquet", "report.html", "runs", "overview.svg", "overview.png", "overview.pdf")
    }
    page = Path("out/report.html").read_text()
    for run in summary["runs"]:
        assert f'href="{run["folder"]}/report.html"' in page
        assert 'href="../../report.html"' in (Path("out") / run["folder"] / "report.html").read_text()
    means = {entry["hosts.mtu"]: entry["metrics"]["aggregate_goodput"] for entry in summary["means"]}
    values = [row["value"] for row in rates if row["hosts.mtu"] == 1500]
    assert means[1500.0]["mean"] == pytest.approx(sum(values) / 4) and means[1500.0]["count"] == 4
    assert json.loads(Path("out/result.json").read_text()) == summary


def test_while_it_runs_there_is_a_page_of_what_is_done(client, monkeypatch, plots):
    monkeypatch.setattr(bentpipe.sweeps.run, "_KEEP_S", 0)
    monkeypatch.setattr(bentpipe.sweeps.run, "_KEEP_SHARE", 0)
    pages = []

    def look(done, total, workers):
        if done == 3:
            pages.append((Path("out/report.html").read_text(), read_table(Path("out")).to_pylist()))
            pages.append({path.name for path in Path("out").iterdir()})

    summary = sweep(lan(), "out", client, look)
    (page, rows), names = pages
    assert "<b>Running:</b> 3 of 8 runs are done" in page and 'http-equiv="refresh"' in page
    assert len({row["run"] for row in rows}) == 3 <= page.count('/report.html">')  # one may just be written
    assert "overview.svg" not in names and "overview.svg" not in page
    over = Path("out/report.html").read_text()
    assert summary["status"] == "done" and "refresh" not in over and 'href="overview.svg"' in over


def test_without_plots_there_are_none_and_none_of_fewer_runs(client, plots):
    sweep(lan(range(1, 2)), "out", client)
    assert Path("out/overview.svg").is_file()
    with claim_sweep(lan(range(1, 3)), Path("out")) as folder:
        run_sweep(lan(range(1, 3)), folder, cluster=client.scheduler.address, plots=False)
    assert not [*Path("out").glob("overview.*")] and "overview" not in Path("out/report.html").read_text()
    assert main(["report", "out"]) == 0
    assert Path("out/overview.svg").is_file()


def test_two_workers_share_the_work(client):
    """Each has a quarter of the runs at least: they take alike long, so that two take half as long as one."""
    summary = sweep(lan(range(1, 8)), "out", client)
    shares = {run["worker"]: 0 for run in summary["runs"]}
    for run in summary["runs"]:
        shares[run["worker"]] += 1
    assert len(shares) == 2 and min(shares.values()) >= 3


def test_a_killed_workers_runs_go_elsewhere(client):
    """Killed while it has one of them: another process does that, and the figures are those of an unkilled sweep."""
    pids = dict(client.run(os.getpid))
    killed = []

    def kill(done, total, workers):
        for address, keys in client.processing().items() if done and not killed else ():
            if keys and not killed:
                os.kill(pids[address], signal.SIGKILL)
                killed.append((pids[address], keys[0]))

    plan = lan(range(1, 4), duration_ps=PS // 5)
    summary = sweep(plan, "out", client, kill)
    (pid, key) = killed[0]
    assert summary["status"] == "done" and len(summary["runs"]) == len(plan.runs)
    (run,) = [run for run in summary["runs"] if run["folder"].removeprefix("runs/") in key]
    assert not run["worker"].endswith(f":{pid}")
    sweep(plan, "again", client)
    figures = [
        [(row["run"], row["flow"], row["metric"], row["value"]) for row in read_table(Path(out)).to_pylist()]
        for out in ("out", "again")
    ]
    assert figures[0] == figures[1]


def test_what_is_done_is_not_done_again(client):
    def press(done, total, workers):
        if done == 3:
            raise KeyboardInterrupt

    plan = lan()
    first = sweep(plan, "out", client, press)
    assert (first["status"], first["reason"], len(ran(first))) == ("interrupted", "SIGINT", 3)
    assert len({row["run"] for row in read_table(Path("out")).to_pylist()}) == 3
    before = {path: path.stat().st_mtime_ns for path in Path("out/runs").glob("*/result.json") if is_done(path.parent)}
    counts = []
    second = sweep(plan, "out", client, lambda *progress: counts.append(progress))
    assert second["status"] == "done"
    assert counts[0][0] >= len(before) >= 3 and len(ran(second)) == 8 - counts[0][0]
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    third = sweep(plan, "out", client, lambda *progress: counts.append(progress))
    assert ran(third) == [] and counts[-1] == (8, 8, 0)
    assert third["means"] == second["means"]


def test_a_killed_sweep_is_summed_up_from_its_runs(client, capsys):
    """Return the sweep as its process left it: its runs are whole, and result.json states that it is running."""
    summary = sweep(lan(), "out", client)
    left = {**summary, "status": "running", "means": [], "published": []}
    for run in left["runs"]:
        run |= {"status": "left", "seconds": None}
    Path("out/result.json").write_text(json.dumps(left))
    Path("out/table.parquet").unlink()
    (Path("out") / left["runs"][0]["folder"] / "result.json").unlink()
    assert main(["report", "out"]) == 0
    assert "7 of 8 runs done" in capsys.readouterr().out
    again = json.loads(Path("out/result.json").read_text())
    assert (again["status"], again["reason"]) == ("interrupted", "killed")
    assert again["means"][1] == summary["means"][1]
    assert again["means"][0]["seeds"] == [2, 3, 4]
    assert len({row["run"] for row in read_table(Path("out")).to_pylist()}) == 7


def test_more_seeds_are_added_to_what_is_there(client):
    sweep(lan(range(1, 3)), "out", client)
    summary = sweep(lan(range(1, 4)), "out", client)
    assert len(summary["runs"]) == 6 and len(ran(summary)) == 2


def test_a_run_that_fails_leaves_the_others(client):
    """Something stands where its folder is to be; the sweep says which run, and why."""
    plan = lan(range(1, 3))
    with claim_sweep(plan, Path("aside")) as folder:
        folder.put({"schema": SCHEMA_VERSION, "kind": "sweep", "id": plan.id, "version": plan.version})
        folder.begin()
        (folder.path / "runs").mkdir()
        (folder.path / "runs" / plan.runs[1].folder).write_text("no folder")
    summary = sweep(plan, "aside", client)
    assert summary["status"] == "failed"
    assert re.match(r"1 of 4 runs failed, lan-1flow-seed2-\w+: .*is a file, not a folder", summary["reason"])
    rows = read_table(Path("aside")).to_pylist()
    assert {row["verdict"] for row in rows} == {"done", "failed"}
    assert [entry["metrics"]["aggregate_goodput"]["count"] for entry in summary["means"]] == [1, 2]


def test_a_full_disk_at_a_worker_ends_the_sweep_and_loses_nothing(client, capfd):
    sweep(lan(range(1, 2)), "out", client)
    client.run(_limit, 3000)
    try:
        command = ["sweep", "lan-1flow", "--vary", "mtu=1500,9180", "--seeds", "1-4", "--duration", "10 ms"]
        assert main([*command, "--out", "out", "--cluster", client.scheduler.address]) == 1
    finally:
        client.run(_limit, resource.RLIM_INFINITY)
    line = one_line(capfd.readouterr().err)
    assert "File too large; the existing files are kept" in line
    rest = sweep(lan(), "out", client)
    assert rest["status"] == "done" and not any("seed1-" in folder for folder in ran(rest))


def _limit(octets):
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, resource.RLIM_INFINITY))


def test_a_full_disk_where_the_table_goes_is_one_line(client, capfd, monkeypatch):
    import pyarrow.parquet

    write = pyarrow.parquet.write_table

    def full(table, file, **options):
        if table.num_rows:  # the runs are done
            raise OSError(28, "No space left on device")
        write(table, file, **options)

    command = ["sweep", "lan-1flow", "--seeds", "1-2", "--duration", "10 ms", "--out", "out"]
    with monkeypatch.context() as disk:
        disk.setattr(pyarrow.parquet, "write_table", full)
        assert main([*command, "--cluster", client.scheduler.address]) == 1
    assert "table.parquet: No space left on device; the existing files are kept" in one_line(capfd.readouterr().err)
    assert ran(sweep(lan(range(1, 3), ()), "out", client)) == []


def test_a_dead_cluster_address_is_one_line(capfd, monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT_S", 0.3)
    command = ["sweep", "lan-1flow", "--seeds", "1-2", "--duration", "10 ms", "--out", "out"]
    for address in ("tcp://127.0.0.1:9", "nonsense://x", "there-is-none.json"):
        assert main([*command, "--cluster", address]) == 2
        assert f"--cluster {address}: no" in one_line(capfd.readouterr().err)
        assert not Path("out").exists()


def test_a_cluster_that_goes_away_leaves_what_is_done(monkeypatch):
    """The scheduler ends while runs are under way."""
    from distributed import LocalCluster

    monkeypatch.setattr(cluster, "_CONNECT_S", 0.3)
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as own:

        def leave(done, total, workers):
            if done == 2:
                own.close()

        with claim_sweep(lan(), Path("out")) as folder, pytest.raises(ExperimentFailed, match="the cluster went away"):
            run_sweep(lan(), folder, cluster=own.scheduler_address, progress=leave)
    kept = json.loads(Path("out/result.json").read_text())
    assert kept["status"] == "failed" and sum(run["status"] == "done" for run in kept["runs"]) >= 2


OTHERS = [
    ({"id": "acts-3flows"}, "is a sweep of acts-3flows, not of lan-1flow"),
    ({"version": "0.0.9+abc"}, "was made by bentpipe 0.0.9+abc, this is"),
    ({"schema": 1}, "schema 1 is of an older bentpipe"),
    ({"schema": 99}, "schema 99 is newer"),
    ({"kind": "cases"}, "is a run folder, not a sweep folder"),
]


@pytest.mark.parametrize(
    ("changed", "message"), OTHERS, ids=[next(iter(c)) + str(n) for n, (c, _) in enumerate(OTHERS)]
)
def test_a_folder_of_something_else_is_refused_and_left_alone(capfd, changed, message):
    plan = lan()
    head = {"schema": SCHEMA_VERSION, "kind": "sweep", "id": plan.id, "version": plan.version, "status": "done"}
    Path("out").mkdir()
    before = json.dumps(head | changed)
    Path("out/result.json").write_text(before)
    command = ["sweep", "lan-1flow", "--vary", "mtu=1500,9180", "--duration", "10 ms", "--out", "out"]
    assert main(command) == 2
    assert message in one_line(capfd.readouterr().err)
    assert Path("out/result.json").read_text() == before and len([*Path("out").iterdir()]) == 1


def test_a_sweep_under_way_is_not_joined(capfd):
    plan = lan()
    with claim_sweep(plan, Path("out")) as folder:
        folder.put(
            {"schema": SCHEMA_VERSION, "kind": "sweep", "id": plan.id, "version": plan.version, "status": "running"}
        )
        folder.begin()
        assert main(["sweep", "lan-1flow", "--duration", "10 ms", "--out", "out"]) == 2
    assert "its run is still in progress" in one_line(capfd.readouterr().err)


def test_a_worker_of_another_version_is_told(client, monkeypatch):
    plan = lan(range(1, 2))
    other = [run.__class__(run.experiment, run.values, run.settings, run.key) for run in plan.runs]
    plan = plan.__class__(plan.id, plan.title, tuple(other), axes=plan.axes, version="0.0.9+abc")
    with pytest.raises(BentpipeError, match=r"the worker \S+ has bentpipe \S+, and the sweep 0.0.9\+abc"):
        sweep(plan, "out", client)


def test_run_with_seeds_is_a_sweep_over_seeds_and_cases(client, capsys):
    command = [
        "run",
        "magic-window",
        "--case",
        "window 32 kB",
        "--case",
        "window 64 kB",
        "--seeds",
        "3,5",
        "--duration",
        "10 ms",
    ]
    assert main([*command, "--out", "out", "--json", "--cluster", client.scheduler.address]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert [(run["case"], run["seed"]) for run in summary["runs"]] == [
        (case, seed) for seed in (3, 5) for case in ("window 32 kB", "window 64 kB")
    ]
    assert [entry["seeds"] for entry in summary["means"]] == [[3, 5], [3, 5]]
    assert main(["export", "out", "--csv"]) == 0
    lines = Path("out/csv/table.csv").read_text().splitlines()
    assert lines[0].startswith('"experiment","case","at","curve","seed"')
    assert len(lines) == 1 + read_table(Path("out")).num_rows


def test_what_is_not_as_expected_is_exit_code_1(client, capfd):
    """The figures count all the same."""
    Path("mine.toml").write_text(
        'extends = "lan-1flow"\n[experiment]\nid = "mine"\ntitle = "t"\nduration = "10 ms"\n'
        '[[expect]]\nmetric = "fairness"\nmax = 1\n[[expect]]\nmetric = "aggregate_goodput"\nmin = 1000\n'
    )
    command = [
        "run",
        "mine.toml",
        "--seeds",
        "1-2",
        "--out",
        "out",
        "--junit",
        "out.xml",
        "--set",
        "flow.0.size=endless",
    ]
    assert main([*command, "--cluster", client.scheduler.address]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2 and all("expected at least 1000" in line for line in lines)
    assert Path("out.xml").read_text().count("<failure") == 2
    summary = json.loads(Path("out/result.json").read_text())
    assert summary["status"] == "done" and summary["means"][0]["seeds"] == [1, 2]
    assert {row["verdict"] for row in read_table(Path("out")).to_pylist()} == {"unexpected"}


def test_the_command_prints_means(client, capsys):
    command = ["sweep", "lan-1flow", "--vary", "mtu=1500,9180", "--seeds", "1-3", "--duration", "10 ms"]
    assert main([*command, "--cluster", client.scheduler.address, "--metric", "cells_dropped"]) == 0
    out = capsys.readouterr().out
    assert "6 of 6 runs done" in out and "cells dropped" in out
    assert re.search(r"9180 +3 +0\.0 ± 0\.0", out)
    assert "runs/lan-1flow-1/table.parquet" in out


def test_the_catalogue_is_a_sweep(client, capsys):
    command = ["catalogue", "run", "--only", "fall-floyd-1", "--only", "fall-floyd-2", "--json", "--out", "out"]
    assert main([*command, "--cluster", client.scheduler.address]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert [run["experiment"] for run in summary["runs"]] == ["fall-floyd-1", "fall-floyd-2"]
    assert {row["experiment"] for row in read_table(Path("out")).to_pylist()} == {"fall-floyd-1", "fall-floyd-2"}


WRONG = [
    (["sweep", "lan-1flow", "--vary", "mtu=1500", "--set", "hosts.mtu=9180"], "is given by --set, too"),
    (["sweep", "lan-1flow", "--vary", "hosts.mtuu=1500"], "--vary hosts.mtuu: unknown key; did you mean 'mtu'"),
    (["sweep", "lan-1flow", "--vary", "mtu=1500,-3"], "--vary hosts.mtu: -3 is out of range"),
    (["sweep", "lan-1flow", "--seeds", "x"], "--seeds x: expected"),
    (["sweep", "lan-1flow", "--vary", "mtu=9180,9_180"], "are the same experiment"),
    (["sweep", "lan-1flow", "--vary", "mtu=104..9000:8000", "--seeds", "1-20"], "160000 runs, and 100000 are the most"),
    (["run", "lan-1flow", "--seed", "1", "--seeds", "1-3"], "--seed and --seeds"),
    (["run", "lan-1flow", "--workers", "2"], "--workers is for --seeds alone"),
    (["catalogue", "run", "--only", "ACTS77"], "no paper and no experiment of the catalogue"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[" ".join(w[0][2:]) for w in WRONG])
def test_wrong_use_is_one_line_before_anything_runs(capfd, tmp_path, arguments, message):
    assert main(arguments) == 2
    assert message in one_line(capfd.readouterr().err)
    assert list(tmp_path.iterdir()) == []
