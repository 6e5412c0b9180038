"""Changes of settings in a run: what may change, how a file says so, when it happens, what a result tells of it."""

import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.report.network import network_of
from bentpipe.results.metrics import deliverable, mean_over_time, port_rates
from bentpipe_hdl.ticks import TICK_PS, ps_to_ticks
from unit.experiment.fake import fake_build
from unit.experiment.test_parse import TEXT

PS = 10**12
HEAD = TEXT[: TEXT.index("[[published]]")]


@pytest.fixture
def read(tmp_path):
    """The experiment of a document with some events."""

    def read(*events, **options):
        file = tmp_path / "two.toml"
        file.write_text(HEAD + "".join(f"\n[[event]]\nat = {at}\nset = {{ {values} }}\n" for at, values in events))
        return load(str(file), **options)

    return read


def test_an_event_changes_the_network_from_then_on(read):
    e = read(('"2 s"', '"network.lines.wan.ber" = 1e-6'), ('"1 s"', '"network.switches.*.policy" = "tail"'))
    first, second = e.events
    assert (first.at_ps, second.at_ps) == (1 * PS, 2 * PS)
    (line,), policies = e.network.lines, [s.settings.policy for s in e.network.switches]
    assert line.ber == (1e-9, 0) and policies == ["epd", "epd"]
    assert [(e.network.lines[0].ber, e.network.switches[0].settings.policy) for e in e.events] == [
        ((1e-9, 0), "tail"),
        ((1e-6, 1e-6), "tail"),
    ]
    assert [(c.key, c.old, c.new) for c in second.changes] == [("network.lines.wan.ber", [1e-9, 0], 1e-6)]


def test_an_event_holds_from_the_first_tick_at_its_time_or_later(read):
    (event,) = read(('"1 us"', '"network.lines.wan.ber" = 0')).events
    assert event.tick == 6  # of 176.949 ns each: the sixth begins at 1.0617 us
    assert ps_to_ticks(event.before_ps) == 5
    (event,) = read(("0", '"network.lines.wan.ber" = 0')).events
    assert (event.tick, event.before_ps) == (0, -1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ('"network.lines.wan.order" = "merged"', "network.lines.wan.order can't be changed in a run; "),
        ('"network.switches.west.buffer_cells" = 9', "network.switches.west.buffer_cells can't be changed in a run; "),
        ('"flow.0.size" = 9', "flow.0.size can't be changed in a run; cell_rate, sustained_rate, burst can"),
        ('"hosts.cost" = 9', "hosts.cost can't be changed in a run"),
        ('"network.lines.wan" = 9', "network.lines.wan is a table: name a setting of it"),
        ('"network.lines.wan.berr" = 9', "network.lines.wan.berr: unknown key; did you mean 'ber'?"),
        ('"network.lines.wan.ber" = 9', "network.lines.wan.ber: 9 is out of range: 0, or 1e-15 to 0.001"),
        ('"network.lines.wan.rate" = "3 Gb/s"', "network.lines.wan.rate: impossible rate '3 Gb/s': "),
    ],
)
def test_what_an_event_can_not_do(read, values, message):
    with pytest.raises(ConfigError) as caught:
        read(('"1 s"', values))
    line = 1 + HEAD.count("\n") + 3
    assert str(caught.value).startswith(f"two.toml:{line}: event.0.set: {message}")
    assert not caught.value.more


def test_an_event_of_a_line_that_is_not_there(read):
    with pytest.raises(Exception, match=r"^event\.0\.set, network\.lines\.wam\.ber: there is no line 'wam'"):
        read(('"1 s"', '"network.lines.wam.ber" = 0'))


def test_a_sonet_line_keeps_its_rate(read):
    with pytest.raises(ConfigError, match="a SONET line keeps its rate"):
        read(
            ("0", '"network.lines.wan.rate" = "OC-3c"'),
            settings=("network.line=sonet", "network.switches.east.ports=4",
                      "network.lines.wan.rate=OC-12c"),
        )  # fmt: skip


def test_a_run_stops_just_before_an_event_and_tells_of_it(read):
    e = read(('"350 ms"', '"network.lines.wan.ber" = 0'), ('"9 s"', '"flow.0.cell_rate" = 9e6'), duration_ps=PS)
    made = []

    def build(experiment, recorder):
        made.append(fake_build(experiment, recorder))
        return made[0]

    result = run_experiment(e, build=build)
    (first, _) = e.events
    assert made[0].engine.changes == [(first.before_ps, first.at_ps)]
    assert 350_000_000_000 <= first.before_ps < 350_000_177_000
    assert result.summary["events"] == [
        {
            "at_s": 0.35,
            "tick": first.tick,
            "source": "event",
            "changes": [{"key": "network.lines.wan.ber", "old": [1e-09, 0], "new": 0}],
        }
    ]
    assert "The event at 9 s did not happen: the run ended at 1 s." in result.summary["remarks"]
    assert list(result.trace.series["flow1.delivered"][0]) == [i * PS // 10 for i in range(11)]


def test_what_lines_can_deliver_follows_events(read):
    e = read(
        ('"200 ms"', '"network.lines.wan.ber" = 0'),
        ('"250 ms"', '"network.lines.wan.rate" = "5 Mb/s"'),
        ('"500 ms"', '"flow.0.cell_rate" = "1 Mb/s"'),
        ('"9 s"', '"network.lines.wan.rate" = "1 Mb/s"'),
        settings=("network.switches.east.ports=4", "network.lines.wan.rate=20 Mb/s"),
        duration_ps=PS,
    )
    summary = run_experiment(e, build=fake_build).summary
    assert [rates["at_s"] for rates in summary["rates"]] == [0, 0.25, 0.5]
    user = 8 * 9140 / (424 * 192)
    most = deliverable(summary, ["flow1"])
    assert [(when, bps / user) for when, bps in most] == [
        (0, pytest.approx(20e6)),
        (0.25, pytest.approx(5e6)),
        (0.5, pytest.approx(1e6)),
    ]
    assert mean_over_time(most, 1.0) / user == pytest.approx(0.25 * 20e6 + 0.25 * 5e6 + 0.5 * 1e6)
    assert port_rates(summary)["west"][3] == pytest.approx(0.25 * 20e6 + 0.75 * 5e6)
    each_way = (0.25 * 20e6 + 0.75 * 5e6) * user  # queues may keep for later what comes before the VC is paced
    figures = summary["metrics"]
    assert figures["efficiency"] == pytest.approx(figures["aggregate_goodput"] / (2 * each_way))


def test_a_load_reactive_line_can_deliver_its_ceiling(read):
    reactive = "network.lines.wan.reactive"
    e = read(
        ('"500 ms"', f'"{reactive}.ceiling" = "8 Mb/s"'),
        settings=(f'{reactive}={{ floor = 0, ceiling = "4 Mb/s", low = 1, high = 2 }}',),
        duration_ps=PS,
    )
    summary = run_experiment(e, build=fake_build).summary
    assert port_rates(summary)["west"][3] == 6_000_000
    assert network_of(summary).lines[0].facts[2:] == ["BER 1e-09 / 0", "by load", "0 b/s to 4 Mb/s"]


def test_outages_and_bursts_of_a_line(read):
    e = read(
        settings=(
            "network.lines.wan.outage=[false, true]",
            'network.lines.wan.bursts={ good = "2 s", bad = "5 ms", ber = 1e-4 }',
        )
    )
    (line,) = e.network.lines
    assert line.outage == (False, True)
    assert (
        line.ways[0].bursts.good_ps,
        line.ways[0].bursts.bad_ps,
        line.ways[0].bursts.ber,
        line.ways[0].bursts.loss,
    ) == (2 * PS, PS // 200, 1e-4, 0)
    assert line.ways[0].bursts.lengths == pytest.approx((2e12 / TICK_PS, 5e9 / TICK_PS))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("bursts={ good = 2, ber = 1e-4 }", "bursts: give both mean lengths, 'good' and 'bad' as times, or "),
        ("bursts={ good = 2, bad_cells = 4 }", "bursts: give both mean lengths, 'good' and 'bad' as times, or "),
        ("bursts={ good_cells = 2, bad_cells = 0.5 }", "bursts.bad_cells: 0.5 is out of range 1 to 1e+12"),
        ("bursts={ good = 2, bad = 1, loss = 1.5 }", "bursts.loss: 1.5 is out of range 0 to 1"),
        ("outage=[true]", "outage: give one value, or two: from the first end to the second, and back"),
        ("outage=1", "outage: expected true or false, not 1"),
    ],
)
def test_outages_and_bursts_that_are_none(read, settings, message):
    with pytest.raises(ConfigError) as caught:
        read(settings=(f"network.lines.wan.{settings}",))
    assert f"network.lines.wan.{message}" in str(caught.value)


def test_bursts_of_a_sonet_line(read):
    with pytest.raises(ConfigError, match='bursts: bursts of errors require line = "cell"'):
        read(
            settings=(
                'network.switches.east.ports=["OC-3c", "OC-3c"]', "network.lines.wan.line=sonet",
                "network.lines.wan.bursts={ good = 2, bad = 1, loss = 1.0 }",
            )
        )  # fmt: skip
