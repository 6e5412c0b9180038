"""The runs of a sweep, and the keys by which they are known."""

import pytest

import bentpipe.sweeps.plan
from bentpipe.errors import BentpipeError
from bentpipe.sweeps.grid import parse_axes
from bentpipe.sweeps.plan import plan_catalogue, plan_sweep

PS = 10**12


def only(plan):
    (run,) = plan.runs
    return run


def test_runs_are_all_combinations_of_values_seeds_and_cases():
    plan = plan_sweep(
        "magic-window", parse_axes(["mtu=1500,9180"]), [3, 4], cases=["window 32 kB", "window 64 kB"], duration_ps=PS
    )
    found = [(run.values["hosts.mtu"], run.experiment.seed, run.experiment.case) for run in plan.runs]
    assert found == [
        (mtu, seed, case) for mtu in ("1500", "9180") for seed in (3, 4) for case in ("window 32 kB", "window 64 kB")
    ]
    assert [run.experiment.network.hosts[0].config.mtu for run in plan.runs] == [1500] * 4 + [9180] * 4
    assert len({run.folder for run in plan.runs}) == 8


def test_without_seeds_it_is_the_experiments_own():
    assert only(plan_sweep("lan-1flow")).experiment.seed == 1


def test_one_outcome_has_one_key_however_it_was_said():
    one = only(plan_sweep("lan-1flow", settings=["hosts.tcp.variant=sack"], seeds=[2]))
    two = only(plan_sweep("lan-1flow", parse_axes(["variant=sack"]), seeds=[2]))
    assert one.key == two.key


@pytest.mark.parametrize(
    "changed", [{"seeds": [2]}, {"settings": ["mtu=1500"]}, {"duration_ps": PS}, {"settings": ["flow.0.size=1000"]}]
)
def test_another_outcome_has_another_key(changed):
    assert only(plan_sweep("lan-1flow", **changed)).key != only(plan_sweep("lan-1flow")).key


def test_other_code_has_other_keys(monkeypatch):
    before = only(plan_sweep("lan-1flow")).key
    monkeypatch.setattr(bentpipe.sweeps.plan, "code_version", lambda: "0.1.0+other")
    assert only(plan_sweep("lan-1flow")).key != before


def test_code_versions_are_of_the_sources_that_make_cells(monkeypatch, tmp_path):
    def version():
        monkeypatch.setattr(bentpipe.sweeps.plan, "_DECIDES", {"bentpipe": ("tcp",)})
        return bentpipe.sweeps.plan.code_version.__wrapped__()

    import bentpipe

    tcp = tmp_path / "bentpipe" / "tcp"
    tcp.mkdir(parents=True)
    (tcp / "sender.py").write_text("window = 1\n")
    (tcp / "notes.txt").write_text("a\n")
    monkeypatch.setattr(bentpipe, "__file__", str(tmp_path / "bentpipe" / "__init__.py"))
    first = version()
    (tcp / "notes.txt").write_text("b\n")
    assert version() == first
    (tcp / "sender.py").write_text("window = 2\n")
    assert version() != first


def test_the_catalogue_is_quick_where_it_can_be():
    plan = plan_catalogue(["lan-1flow", "fall-floyd-1"], quick=True)
    assert [(run.experiment.id, run.experiment.shortened) for run in plan.runs] == [
        ("lan-1flow", True),
        ("fall-floyd-1", bool(plan.runs[1].experiment.quick_ps)),
    ]


def test_the_same_experiment_twice_is_refused():
    with pytest.raises(BentpipeError, match=r"hosts\.mtu=9180 and hosts\.mtu=9_180 are the same experiment"):
        plan_sweep("lan-1flow", parse_axes(["mtu=9180,9_180"]))
