"""Tests of the summary of a sweep's runs, beside published figures."""

import pytest

from bentpipe.sweeps.summary import Results

MEASURED = {"quantity": "throughput", "case": "", "measured": 100.0, "predicted": None, "unit": "Mb/s", "source": "X"}


def head(**more):
    axes = [{"key": "hosts.mtu", "values": ["1500", "9180"]}]
    return {"id": "lan", "axes": axes, "over_cases": {}, **more}


def run(name, mtu="1500", seed=1, case=""):
    values = {"hosts.mtu": mtu}
    return {
        "experiment": "lan",
        "case": case,
        "at": None,
        "curve": "",
        "values": values,
        "seed": seed,
        "folder": f"runs/{name}",
    }


def result(rate, ours=None, remarks=(), status="done", changes=(), expected=()):
    published = [{**MEASURED, "ours": rate / 1e6, "ratio": None, "remarks": [*remarks]}] if ours is None else ours
    return {
        "status": status,
        "reason": None if status == "done" else "why",
        "shortened": "shortened" in remarks,
        "changes": [*changes],
        "expected": [*expected],
        "time": {"simulated_s": 1.0, "wall_s": 2.0},
        "metrics": {"aggregate_goodput": rate},
        "flows": [],
        "ledger": [],
        "drops": {},
        "published": published,
        "resolved": {"flows": []},
    }


def summed(results):
    return results.summary(*results.verdict(), {"wall_s": 3.0})


def test_means_are_by_what_is_varied():
    results = Results(head(), [run("a"), run("b", seed=2), run("c", "9180")])
    for name, rate in (("a", 80e6), ("b", 90e6), ("c", 120e6)):
        results.add(f"runs/{name}", result(rate), worker="w")
    found = summed(results)
    assert (found["status"], found["time"]["runs_s"]) == ("done", 6.0)
    one, two = found["means"]
    rate = one["metrics"]["aggregate_goodput"]
    assert (one["hosts.mtu"], one["seeds"], rate["mean"]) == (1500.0, [1, 2], 85e6)
    assert rate["half"] == pytest.approx(12.7062 * 5e6, rel=1e-4)
    assert (two["hosts.mtu"], two["metrics"]["aggregate_goodput"]["half"]) == (9180.0, None)


def test_published_figures_stand_beside_the_mean_over_seeds():
    results = Results(head(), [run("a"), run("b", seed=2), run("c", "9180")])
    for name, rate in (("a", 80e6), ("b", 90e6), ("c", 120e6)):
        results.add(f"runs/{name}", result(rate))
    rows = summed(results)["published"]
    assert [(row["values"]["hosts.mtu"], row["ours"], row["count"]) for row in rows] == [
        ("1500", 85.0, 2),
        ("9180", 120.0, 1),
    ]
    assert (rows[0]["ratio"], rows[1]["half"]) == (0.85, None)


def test_a_run_that_is_not_the_published_one_has_no_ratio():
    results = Results(head(), [run("a"), run("b", seed=2)])
    results.add("runs/a", result(80e6))
    results.add("runs/b", result(90e6, remarks=["shortened"]))
    (row,) = summed(results)["published"]
    assert (row["ratio"], row["remarks"], row["ours"]) == (None, ["shortened"], 85.0)


def test_failed_runs_count_nowhere_and_are_told():
    results = Results(head(), [run("a"), run("b", seed=2), run("c", seed=3)])
    results.add("runs/a", result(80e6))
    results.add("runs/b", result(1e6, status="failed"))
    results.fail("runs/c", "no memory")
    found = summed(results)
    assert (found["status"], found["reason"]) == ("failed", "2 of 3 runs failed, b: why")
    (entry,) = found["means"]
    assert (entry["seeds"], entry["left_out"]) == ([1], 1)
    assert [row["verdict"] for row in results.rows() if row["metric"] in ("aggregate_goodput", "")] == [
        "done",
        "failed",
        "failed",
    ]


def test_what_is_left_is_in_the_summary_and_not_in_the_table():
    results = Results(head(), [run("a"), run("b", seed=2)])
    results.add("runs/a", result(80e6))
    assert results.ended == 1
    assert [each["status"] for each in results.summary("running", None, {})["runs"]] == ["done", "left"]
    assert {row["run"] for row in results.rows()} == {"runs/a"}


def test_changes_of_the_sweep_are_those_of_all_runs():
    both, one = {"key": "x", "old": 1, "new": 2}, {"key": "y", "old": 1, "new": 2}
    results = Results(head(), [run("a"), run("b", seed=2)])
    results.add("runs/a", result(80e6, changes=[both, one]))
    results.add("runs/b", result(80e6, changes=[both]))
    assert summed(results)["changes"] == [both]
