"""The list of overrides: events, profiles and requests write single keys, and the last writer of each key wins."""

import copy
import json
import random
import tomllib

import pytest

from bentpipe.experiment.build.overrides import Overrides, Rates, Timeline
from bentpipe.experiment.document.source import Source
from bentpipe.experiment.load import apply_settings
from bentpipe.experiment.resolve.parse import parse_experiment
from bentpipe_sim.errors import NetworkError
from unit.experiment.test_parse import TEXT

PS = 10**12
HEAD = TEXT[: TEXT.index("[[published]]")]
LINE = "network.lines.wan"
FREE_RATE = (
    "network.switches.east.ports=4",
    f"{LINE}.bursts={{ good_cells = 10, bad_cells = 5, loss = 1.0 }}",
)
DRAWS = {
    f"{LINE}.ber": lambda draw: draw.choice([0, 1e-6, 3e-7, [1e-5, 0], [0, 1e-9]]),
    f"{LINE}.outage": lambda draw: draw.choice([True, False, [True, False]]),
    f"{LINE}.rate": lambda draw: draw.choice(["DS-3", 9e6, 20_000_000, "7 Mb/s"]),
    f"{LINE}.bursts.loss": lambda draw: draw.choice([0.0, 0.5, 1.0]),
    "network.switches.*.clp_threshold": lambda draw: draw.choice([9, 90, 900]),
    "network.switches.west.clp_threshold": lambda draw: draw.choice([7, 70]),
    "flow.0.cell_rate": lambda draw: draw.choice([9e6, "5 Mb/s"]),
}
"""Keys that the interleavings write, each with the function that draws a value."""


def toml(value):
    return json.dumps(value)


def started(tmp_path, tables="", settings=FREE_RATE, **options):
    document, _ = apply_settings(tomllib.loads(HEAD + tables), settings, "two.toml")
    experiment = parse_experiment(document, Source("two.toml", folder=tmp_path))
    became = []
    return experiment, Overrides(experiment, became.append, **options), became


def line_of(event):
    (line,) = event.network.lines
    return line.ber, line.outage


def test_an_event_leaves_an_outage_that_was_asked_for(tmp_path):
    """The event at 14 s names the error ratio alone; the outage of 6 s stays."""
    event = f'[[event]]\nat = "14 s"\nset = {{ "{LINE}.ber" = 1e-6 }}\n'
    experiment, overrides, became = started(tmp_path, event)
    overrides.write(6 * PS, "set", overrides.resolve({f"{LINE}.outage": True}))
    overrides.enter(Timeline(experiment).pop())
    assert line_of(became[-1]) == line_of(overrides.now) == ((1e-6, 1e-6), (True, True))
    assert [(entry["at_s"], entry["source"]) for entry in overrides.summary()] == [(6.0, "set"), (14.0, "event")]
    assert [change["key"] for entry in overrides.summary() for change in entry["changes"]] == [
        f"{LINE}.outage",
        f"{LINE}.ber",
    ]
    assert overrides.writes() == [
        (6 * PS, "set", f"{LINE}.outage", True),
        (14 * PS, "event", f"{LINE}.ber", 1e-6),
    ]


def test_events_alone_are_as_they_were_read(tmp_path):
    tables = "".join(f'[[event]]\nat = "{at} s"\nset = {{ "{LINE}.ber" = {ber} }}\n' for at, ber in ((1, 1e-6), (2, 0)))
    experiment, overrides, became = started(tmp_path, tables)
    timeline = Timeline(experiment)
    while timeline.before_ps is not None:
        overrides.enter(timeline.pop())
    assert became == list(experiment.events)


@pytest.mark.parametrize("part", range(3))
def test_the_last_writer_of_a_key_wins_in_60_random_interleavings(tmp_path, part):
    for number in range(20 * part, 20 * part + 20):
        _interleaving(tmp_path, random.Random(number))


def _interleaving(tmp_path, draw):
    """Events, profiles of each direction and requests, against a model that has a last value of each key."""
    columns = draw.sample([f"{LINE}.ber", f"{LINE}.outage", f"{LINE}.rate", f"{LINE}.bursts.loss"], 2)
    direction = draw.choice(["both", "out", "back"])
    rows = [[0.25 + k, *(draw.choice(["", *VALUES[key]]) for key in columns)] for k in range(4)]
    for place, key in enumerate(columns, 1):
        rows[0][place] = VALUES[key][0]
    keys = [key.removeprefix(f"{LINE}.") for key in columns]
    csv = "\n".join(",".join(map(str, row)) for row in [["time", *keys], *rows])
    (tmp_path / "profile.csv").write_text(csv + "\n")
    tables = f'[[profile]]\nfile = "profile.csv"\nline = "wan"\ndirection = "{direction}"\n'
    events = []
    for _ in range(draw.randrange(4)):
        at = draw.choice([0.25, 0.5, 1.25, 2.0, 3.25])
        key = draw.choice([*DRAWS])
        events.append((at, {key: DRAWS[key](draw)}))
        tables += f'[[event]]\nat = {at}\nset = {{ "{key}" = {toml(events[-1][1][key])} }}\n'
    experiment, overrides, _ = started(tmp_path, tables)
    asked = sorted((draw.choice([0.3, 0.6, 1.3, 2.1]), draw.choice([*DRAWS])) for _ in range(draw.randrange(4)))

    steps = [(at, 0, dict(zip(columns, row, strict=True)), "profile") for at, *row in rows]
    steps += [(at, 1, values, "event") for at, values in sorted(events, key=lambda event: event[0])]
    steps += [(at, 2, {key: DRAWS[key](draw)}, "set") for at, key in asked]
    timeline, model = Timeline(experiment), experiment.document
    middle = draw.randrange(len(steps))
    for number, (at, _, values, source) in enumerate(sorted(steps, key=lambda step: step[:2]), 1):
        if source == "set":
            overrides.write(round(at * PS), "set", overrides.resolve(values))
        else:
            overrides.enter(timeline.pop())
        model = written(model, values, direction if source == "profile" else "both")
        if number in (middle, len(steps)):
            wanted = parse_experiment(model, Source("model"), seed=experiment.seed)
            assert overrides.now.network == wanted.network and overrides.now.vcs == wanted.vcs
    assert timeline.before_ps is None


VALUES = {
    f"{LINE}.ber": [1e-6, 0, 2e-5],
    f"{LINE}.outage": [1, 0],
    f"{LINE}.rate": ["DS-3", "6 Mb/s"],
    f"{LINE}.bursts.loss": [0.25, 0.75],
}


def written(document, values, direction):
    """A document with values at dotted keys, by a few lines of its own."""
    document = {key: value for key, value in copy.deepcopy(document).items() if key not in ("event", "profile")}
    for key, value in values.items():
        if value == "":
            continue
        *path, last = key.split(".")
        places = [document]
        for part in path:
            places = [
                each
                for place in places
                for each in (place.values() if part == "*" else [place[int(part) if isinstance(place, list) else part]])
            ]
        for place in places:
            given = bool(value) if last == "outage" and not isinstance(value, list) else value
            if direction != "both" and last in ("ber", "outage"):
                both = place.get(last, 0 if last == "ber" else False)
                both = list(both) if isinstance(both, list) else [both, both]
                both[direction == "back"] = given
                given = both
            place[last] = given
    return document


def test_what_the_network_refuses_leaves_it_as_it_was(tmp_path):
    def change(event):
        became.append(event)
        if line_of(event)[1] == (True, True):
            raise NetworkError("built without outages")

    _, overrides, _ = started(tmp_path)
    became, first = [], overrides.now
    overrides._change = change
    with pytest.raises(NetworkError, match="built without"):
        overrides.write(PS, "set", overrides.resolve({f"{LINE}.outage": True}))
    assert overrides.now is first is became[-1] and overrides.count == 0 and not overrides.summary()


def test_an_event_that_makes_no_experiment_any_more_is_left_out_where_that_is_wanted(tmp_path, caplog):
    event = '[[event]]\nat = 1\nset = { "network.switches.*.policy" = "tail" }\n'
    for lenient in (True, False):
        experiment, overrides, _ = started(tmp_path, event, lenient=lenient)
        overrides.write(0, "set", overrides.resolve({"network.switches.west.epd_threshold": 0.5}))
        overrides._change = _refusing
        if lenient:
            assert overrides.enter(Timeline(experiment).pop()) is None
            assert "1 s: left out, as the network does not take it: no" in caplog.text
        else:
            with pytest.raises(NetworkError, match="no"):
                overrides.enter(Timeline(experiment).pop())


def _refusing(event):
    if event.network.switches[0].settings.policy == "tail":
        raise NetworkError("no")


def test_rates_that_a_profile_changes_are_averaged_exactly(tmp_path):
    rows = [5e6 + 1e4 * ((7 * k) % 100) for k in range(1000)]
    (tmp_path / "profile.csv").write_text("time,rate\n" + "".join(f"{k / 100},{rate}\n" for k, rate in enumerate(rows)))
    experiment, overrides, _ = started(tmp_path, '[[profile]]\nfile = "profile.csv"\nline = "wan"\n')
    timeline = Timeline(experiment)
    while timeline.before_ps is not None:
        overrides.enter(timeline.pop())
    found = overrides.rates.rows(10 * PS)
    assert len(found) <= 202
    (line,) = experiment.network.lines
    end = line.ends[0]
    times = [row["at_s"] for row in found] + [10.0]
    mean = (
        sum(row["ports"][end.switch][end.port] * (b - a) for row, a, b in zip(found, times, times[1:], strict=False))
        / 10
    )
    assert mean == pytest.approx(sum(rows) / 1000)
    assert isinstance(overrides.rates, Rates) and overrides.rates.rows(10 * PS) == found
