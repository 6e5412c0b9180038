"""Tests of a worker: how it handles a run, and which runs count as done."""

import json
import pickle
import shutil

import pytest

from bentpipe.experiment.run.run import run_experiment
from bentpipe.results.folder import RUNS, STATE, RunFolder, read_run
from bentpipe.sweeps.plan import code_version, plan_sweep
from bentpipe.sweeps.work import TOKEN, Job, OtherVersion, is_done, unpack, work
from models.resumed import outcome, stopped_at


@pytest.fixture
def job(monkeypatch, tmp_path):
    """A run of a sweep in ``tmp_path``; the settings of this process are as before when it has ended."""
    return made(monkeypatch, tmp_path, 10**10)


@pytest.fixture
def longer(monkeypatch, tmp_path):
    """One that can be stopped on its way."""
    return made(monkeypatch, tmp_path, 3 * 10**11)


def made(monkeypatch, tmp_path, duration_ps):
    monkeypatch.setenv("BENTPIPE_ENGINE", "native")
    (planned,) = plan_sweep("lan-1flow", duration_ps=duration_ps).runs
    (tmp_path / RUNS).mkdir()
    (tmp_path / TOKEN).write_text("this sweep's")
    experiment = pickle.dumps(planned.experiment)
    here = str(tmp_path)
    return Job(planned.folder, experiment, (), here, here, "this sweep's", code_version(), "native", "lan-1flow")


def changed(job, **values):
    return Job(**{name: values.get(name, getattr(job, name)) for name in Job.__dataclass_fields__})


def test_a_worker_writes_into_the_sweeps_folder(job, tmp_path):
    outcome = work(job)
    assert outcome.name == job.name and outcome.packed is None
    assert is_done(tmp_path / RUNS / job.name)


def test_what_another_has_done_meanwhile_is_left_as_it_is(job, tmp_path):
    work(job)
    file = tmp_path / RUNS / job.name / "result.json"
    before = file.stat().st_mtime_ns
    work(job)
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("token", ["another sweep's", None])
def test_a_worker_that_does_not_see_the_folder_sends_the_run_back(job, tmp_path, token):
    """There may be a folder of that name on its machine, too: of something else."""
    if token is None:
        (tmp_path / TOKEN).unlink()
    else:
        (tmp_path / TOKEN).write_text(token)
    outcome = work(job)
    assert not [*(tmp_path / RUNS).iterdir()]
    unpack(outcome.packed, tmp_path / RUNS, job.name)
    assert is_done(tmp_path / RUNS / job.name)
    assert [path.name for path in (tmp_path / RUNS).iterdir()] == [job.name]
    unpack(outcome.packed, tmp_path / RUNS, job.name)  # over what is there
    assert {path.name for path in (tmp_path / RUNS / job.name).iterdir()} == {
        "result.json",
        "flows.parquet",
        "trace.parquet",
        "report.html",
    }


def test_a_worker_with_other_sources_is_refused(job):
    with pytest.raises(OtherVersion, match=r"has bentpipe \S+, and the sweep 0.0.9"):
        work(changed(job, version="0.0.9"))


def test_a_run_that_was_cut_off_is_not_done(job, tmp_path):
    run = tmp_path / RUNS / job.name
    assert not is_done(run)
    work(job)
    (run / ".running").mkdir()  # its process was killed behind result.json
    assert not is_done(run)
    (run / ".running").rmdir()
    assert is_done(run)
    summary = json.loads((run / "result.json").read_text())
    for status in ("failed", "running", "interrupted"):
        (run / "result.json").write_text(json.dumps(summary | {"status": status}))
        assert not is_done(run)
    (run / "result.json").write_text(json.dumps(summary)[:-20])
    assert not is_done(run)


def stopped(job, path, at_ps=117 * 10**9):
    """Return the run as a signal has stopped it."""
    with stopped_at(at_ps), RunFolder.claim(path) as folder:
        result = run_experiment(pickle.loads(job.experiment), folder=folder)
        folder.finish(result)
    assert result.summary["status"] == "interrupted" and (path / STATE).is_file()


def test_a_run_that_was_stopped_goes_on_from_its_state(longer, tmp_path):
    run = tmp_path / RUNS / longer.name
    work(longer)
    whole = outcome(run)
    shutil.rmtree(run)
    stopped(longer, run)
    work(longer)
    assert is_done(run) and read_run(run).summary["time"]["resumed_s"] != []
    assert outcome(run) == whole
    assert 'href="../../report.html"' in (run / "report.html").read_text()


def test_a_run_whose_state_is_of_no_use_begins_anew(longer, tmp_path):
    run = tmp_path / RUNS / longer.name
    stopped(longer, run)
    (run / STATE).write_bytes(b"{}\nsomething else")
    work(longer)
    assert is_done(run) and read_run(run).summary["time"]["resumed_s"] == []
