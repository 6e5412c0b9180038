"""Histograms of delays from files."""

import pytest

from bentpipe.errors import BentpipeError
from bentpipe.experiment.load import load
from bentpipe_hdl.link.options.variation.control import VariationSettings, table_of

DRAWN = 'network.lines.satellite.variation={ distribution = "histogram", file = "%s" }'


def read(tmp_path, text):
    path = tmp_path / "delays.csv"
    path.write_text(text)
    return load("acts-1flow", [DRAWN % path]).network.lines[0].ways[0]


def test_delays_have_units_or_are_seconds(tmp_path):
    way = read(tmp_path, "# measured\nweight, delay, note\n3, 1 ms, a\n\n1, 0.004, b\n")
    assert way.variation.histogram == ((10**9, 3.0), (4 * 10**9, 1.0))
    ticks = [low for low, _ in table_of(way)]
    assert [ticks[0], ticks[190], ticks[194], ticks[255]] == [round(n * 5651.3207) for n in (1, 1, 4, 4)]


def test_a_histogram_may_stand_in_the_file_itself():
    given = 'network.lines.satellite.variation={ distribution = "histogram", histogram = [["1 ms", 1], ["2 ms", 0.5]] }'
    assert load("acts-1flow", [given]).network.lines[0].ways[1].variation.histogram == ((10**9, 1.0), (2 * 10**9, 0.5))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "needs a head, and 1 to 100,000 rows"),
        ("delay,share\n1,2\n", "needs the columns delay and weight, and has delay, share"),
        ("delay,weight\n1 ms\n", "line 2: a value is missing"),
        ("delay,weight\n1 ms,1\n-1 ms,2\n", "line 3: "),
        ("delay,weight\n1 ms,-1\n", "line 2: a weight is 0 to 1e15, not -1"),
        ("delay,weight\n1 ms,many\n", "line 2: could not convert"),
        ("delay,weight\n1 ms,0\n", "needs a weight above 0"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line(tmp_path, text, what):
    with pytest.raises(BentpipeError, match=r"network\.lines\.satellite\.variation") as error:
        read(tmp_path, text)
    assert what in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_is_not_there():
    with pytest.raises(BentpipeError, match=r"delays\.csv: cannot be read: No such file"):
        load("acts-1flow", [DRAWN % "delays.csv"])


@pytest.mark.parametrize(
    "given",
    [
        {"distribution": "histogram"},
        {"distribution": "histogram", "mean_ps": 5, "file": "a.csv"},
        {"distribution": "normal", "mean_ps": 5, "deviation_ps": 1, "file": "a.csv"},
        {"distribution": "uniform"},
        {"distribution": "histogram", "histogram": ((5, 0.0),)},
    ],
)
def test_settings_that_do_not_go_together(given):
    with pytest.raises(ValueError, match=r"histogram|mean"):
        VariationSettings(**given)
