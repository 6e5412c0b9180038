"""Profiles: what a file of a series means, when its rows are due, what is recorded, what is wrong with one."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bentpipe.errors import ConfigError
from bentpipe.experiment.build.overrides import Overrides, Timeline
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.experiment.run.state import given, taken
from bentpipe.results.folder import read_run
from unit.experiment.fake import blank, fake_build, write_run
from unit.experiment.test_parse import TEXT

PS = 10**12
HEAD = TEXT[: TEXT.index("[[published]]")]
WAN = "network.lines.wan"


@pytest.fixture
def read(tmp_path):
    """The experiment with one profile of this CSV text, or file."""

    def read(csv, *keys, settings=("network.switches.east.ports=4",), **options):
        if csv is not None:
            (tmp_path / "series.csv").write_text(csv, encoding="utf-8", errors="surrogateescape")
        given = [f'file = "{"series.csv" if csv is not None else "series.parquet"}"', *keys]
        (tmp_path / "two.toml").write_text(f"{HEAD}\n[[profile]]\n" + "\n".join(given) + "\n")
        return load(str(tmp_path / "two.toml"), settings, **options)

    return read


def steps(experiment, until_s=1000):
    """Return when each row is due, in seconds, and the values that hold then."""
    overrides, timeline = Overrides(experiment, lambda event: None), Timeline(experiment)
    found = []
    while timeline.before_ps is not None and timeline.before_ps < until_s * PS:
        overrides.enter(timeline.pop())
        (line,) = overrides.now.network.lines
        found.append((overrides.now.at_ps / PS, line))
    return found


def test_rows_hold_from_their_times_on(read):
    e = read("time,ber,rate,outage\n0.5,1e-6,DS-3,0\n1.25,0,,1\n", 'line = "wan"')
    (first, one), (second, two) = steps(e)
    assert (first, one.ber, one.rate_bps, one.outage) == (0.5, (1e-6, 1e-6), 40_704_000, (False, False))
    assert (second, two.ber, two.rate_bps, two.outage) == (1.25, (0, 0), 40_704_000, (True, True))
    assert e.profiles[0].members is not None  # written straight into the specs
    assert e.network.lines[0].ber == (1e-9, 0)  # as it begins


def test_a_profile_of_one_direction_leaves_the_other(read):
    e = read("time,ber\n1,1e-6\n", 'line = "wan"', 'direction = "back"')
    ((_, line),) = steps(e)
    assert line.ber == (1e-9, 1e-6)


def test_whole_keys_without_a_line(read):
    e = read("time,network.switches.west.clp_threshold,network.lines.wan.ber\n1,70,1e-6\n")
    assert e.profiles[0].members is None
    overrides = Overrides(e, lambda event: None)
    overrides.enter(Timeline(e).pop())
    assert overrides.now.network.switches[0].settings.clp_threshold == 70
    assert overrides.now.network.lines[0].ber == (1e-6, 1e-6)


def test_offset_begin_and_repeat(read):
    text = "time,ber\n0,1e-9\n2,2e-9\n3,3e-9\n"
    e = read(text, 'line = "wan"', "offset = 10", "begin = 1", "repeat = 5")
    found = [(at, line.ber[0]) for at, line in steps(e, 18)]
    assert found == [(10, 1e-9), (11, 2e-9), (12, 3e-9), (15, 1e-9), (16, 2e-9), (17, 3e-9)]


def test_straight_lines_between_rows(read):
    e = read("time,ber,outage\n0,1e-9,0\n1,3e-9,1\n", 'line = "wan"', 'interpolation = "linear"', 'interval = "250 ms"')
    found = [(at, line.ber[0], line.outage[0]) for at, line in steps(e)]
    assert [at for at, _, _ in found] == [0, 0.25, 0.5, 0.75, 1]
    assert [ber for _, ber, _ in found] == pytest.approx([1e-9, 1.5e-9, 2e-9, 2.5e-9, 3e-9])
    assert [out for _, _, out in found] == [False] * 4 + [True]


def test_columns_and_units_of_a_published_series(read):
    text = "# measured elsewhere\nt (ms),Capacity,site\n0,8.5,x\n500,4,x\n"
    e = read(
        text, 'line = "wan"', 'columns = { "t (ms)" = "time", Capacity = "rate" }',
        'units = { time = "ms", rate = "Mb/s" }',
    )  # fmt: skip
    assert [(at, line.rate_bps) for at, line in steps(e)] == [(0, 8_500_000), (0.5, 4_000_000)]


def test_a_parquet_file(read, tmp_path):
    table = pa.table({"time": [0, 1], "outage": [False, True], "_note": ["a", "b"]})
    pq.write_table(table, tmp_path / "series.parquet")
    e = read(None, 'line = "wan"')
    assert [(at, line.outage) for at, line in steps(e)] == [(0, (False, False)), (1, (True, True))]


@pytest.mark.parametrize(
    ("csv", "keys", "message"),
    [
        ("time,ber\n0,1\n", ['line = "wan"'], "profile.0.file: network.lines.wan.ber: 1 is out of range: 0, or 1e-15"),
        ("time,ber\n0,1e-9\n1,1e-20\n", ['line = "wan"'], "profile.0.file: network.lines.wan.ber: 1e-20 is out of"),
        ("time,ber\n0,0\n0,0\n", ['line = "wan"'], "profile.0.file: row 2: times begin at 0 or later, and each is"),
        ("time,ber\n-1,0\n", ['line = "wan"'], "profile.0.file: row 1: times begin at 0"),
        ("ber\n0\n", ['line = "wan"'], "profile.0.file: needs a column 'time', a column for a key, and a row"),
        ("time,ber\n", ['line = "wan"'], "profile.0.file: needs a column 'time'"),
        ("time,order\n0,kept\n", ['line = "wan"'], "profile.0.file: network.lines.wan.order can't be changed in a run"),
        ("time,berr\n0,1\n", ['line = "wan"'], "profile.0.file: network.lines.wan.berr: unknown key; did you mean"),
        ("time,ber\n0,0\n", ['line = "wam"'], "profile.0.line: there is no line 'wam'; did you mean 'wan'?"),
        ("time,ber\n0,0\n", ['direction = "out"'], "profile.0.direction: goes with 'line'"),
        ("time,ber\nx,0\n", ['line = "wan"'], "profile.0.file: column 'time': expected numbers"),
        ("time,ber\n0,0\n1e18,0\n", ['line = "wan"'], "profile.0.file: row 2: times are at most 100000 s"),
        ("time,ber\n-1e300,0\n", ['line = "wan"'], "profile.0.file: row 1: times are at most 100000 s"),
        ("time,ber\n0,inf\n", ['line = "wan"'], "profile.0.file: column 'ber': expected finite numbers"),
        ("time,ber,ber\n0,0,0\n", ['line = "wan"'], "profile.0.file: there are several columns 'ber'"),
        ("time,\udcff\n0,0\n", ['line = "wan"'], "cannot be read: it is not UTF-8"),
        ("time,ber\n0,0\n2,0\n", ['line = "wan"', "repeat = 2"], "profile.0.repeat: the file's last row comes at this"),
        ("time,ber\n0,0\n", ['line = "wan"', 'columns = { x = "ber" }'], "columns: the file has no column 'x'"),
        ("time,rate\n0,9\n", ['line = "wan"', 'units = { rate = "bps" }'], "profile.0.units: rate: unknown unit 'bps'"),
        (None, ['line = "wan"'], "there is no such file"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_profile(read, csv, keys, message):
    with pytest.raises(ConfigError) as caught:
        read(csv, *keys)
    place, line, _ = str(caught.value).split(":", 2)
    assert message in str(caught.value) and place == "two.toml" and int(line) > HEAD.count("\n")


def test_what_is_recorded_equals_the_file_at_every_row(read, tmp_path):
    """In the result, in the run folder, and after the state was saved and restored on the way."""
    rows = [(k / 100, (1 + k % 97) * 1e-8, 5_000_000 + 1000 * k, k % 13 == 0) for k in range(1000)]
    text = "time,ber,rate,outage\n" + "".join(f"{a},{b!r},{c},{int(d)}\n" for a, b, c, d in rows)
    e = read(text, 'line = "wan"', settings=("network.switches.east.ports=4", "flow.0.size=1 GB"))
    wanted = [
        (round(at * PS), "profile series.csv", f"{WAN}.{key}", value)
        for at, *values in rows
        for key, value in zip(("ber", "rate", "outage"), values, strict=True)
    ]
    result = run_experiment(e, build=fake_build)
    assert result.writes == wanted
    assert result.summary["profiles"][0]["rows"] == 1000 and result.summary["events"] == []
    write_run(tmp_path / "run", result, blank)
    kept = read_run(tmp_path / "run")
    assert [(at, source, key, float(value)) for at, source, key, value in kept.writes] == [
        (at, source, key, float(value)) for at, source, key, value in wanted
    ]
    overrides, timeline = Overrides(e, fake_change), Timeline(e)
    for _ in range(500):
        overrides.enter(timeline.pop())
    overrides, timeline = given(taken((overrides, timeline)))
    while timeline.before_ps is not None:
        overrides.enter(timeline.pop())
    assert overrides.writes() == wanted


def fake_change(event):
    pass
