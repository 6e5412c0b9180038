"""Figures of all cases together: where a curve bends, and the buffer behind that."""

import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.load import load, load_cases
from bentpipe.experiment.run.run import cases_head, run_experiment
from bentpipe.report.cases import sum_up_cases
from bentpipe.results.knees import buffer_of, knee, over_cases
from bentpipe_hdl.units import LINE_RATES


def test_a_knee_is_where_a_hundredth_is_lost():
    assert knee([(10, 1.0), (40, 1.0), (50, 0.9), (60, 0.5)]) == pytest.approx(41)
    assert knee([(60, 0.5), (50, 0.9), (10, 1.0), (40, 1.0)]) == pytest.approx(41)
    assert knee([(10, 1.0), (20, 0.995)]) is None
    assert knee([(10, 0.5), (20, 0.4)]) is None
    assert knee([(10, 1.0), (20, 0.5), (30, 1.0), (40, 0.2)]) == pytest.approx(10.2)  # the first


@pytest.fixture(scope="module")
def resolved():
    from bentpipe.experiment.resolve.specs import plain

    return plain(load("burst-probe"))


@pytest.mark.parametrize("name", ["to-nrl", "to-ittc"])
def test_the_buffer_behind_a_knee(resolved, name):
    """9152 octets are in 192 cells; while they come at OC-3c, the DS-3 takes its share."""
    share = 1 - LINE_RATES["DS-3"] / LINE_RATES["OC-3c"]
    assert buffer_of(resolved, name, 9152 * 10) == pytest.approx(1920 * 53 * share)


def test_no_buffer_shows_where_no_faster_line_leads(resolved):
    assert buffer_of(resolved | {"network": _slow(resolved["network"])}, "to-nrl", 9152) is None


def _slow(network):
    return network | {"hosts": [host | {"rate_bps": 1_000_000} for host in network["hosts"]]}


def test_both_knees_of_the_probe_show_the_switches_buffers():
    """The smaller knee from runs of a second; the larger, which takes bursts of 4 MB, in a smaller buffer."""
    settings = [
        "network.switches.gsd.buffer_cells=2000",
        "flow.*.duration=1 s",
        "flow.1.start=1.5 s",
    ]
    sizes = (41, 43, 45, 48, 125, 131, 137)
    experiments = [load("burst-probe", [*settings, f"flow.*.block={size} kB"]) for size in sizes]
    found = over_cases([run_experiment(experiment).summary for experiment in experiments])
    assert found["to-ittc.buffer"] == pytest.approx(660 * 53, rel=0.05)
    assert found["to-nrl.buffer"] == pytest.approx(2000 * 53, rel=0.05)


def test_the_published_figures_of_all_cases_stand_below_those_of_each():
    experiments = load_cases("burst-probe")
    assert all(not experiment.published for experiment in experiments)
    head = cases_head(experiments, (), {})
    assert [(row["metric"], row["measured"]) for row in head["over_cases"]] == [
        ("to-nrl.buffer", 3500),
        ("to-ittc.buffer", 35),
    ]
    whole = sum_up_cases(head, [])
    assert [(row["ours"], row["remarks"]) for row in whole["published"]] == [(None, ["unfinished"])] * 2


def test_only_figures_of_all_cases_go_without_a_case(tmp_path):
    text = (tmp_path / "probe.toml").parent / "probe.toml"
    from bentpipe.experiment.document.catalogue import find

    text.write_text(find("burst-probe").read_text().replace("to-nrl.buffer", "to-nrl.goodput"))
    with pytest.raises(ConfigError, match=r"published\.0\.case: there is no case ''"):
        load_cases(str(text))
