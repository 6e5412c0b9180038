"""Settings that change in a run, on the Verilated network."""

import math
import random

import pytest

from bentpipe.experiment.build.rows import RowFeed
from bentpipe.experiment.load import load
from bentpipe.experiment.run.run import run_experiment
from bentpipe.report.network import network_of
from bentpipe.results.tables import DROP_COLUMNS, drop_rows

PS = 10**12

TEXT = """
[experiment]
id = "events"
title = "A source of datagrams, and what is done to the line"
duration = "300 ms"

[network]
clock_tolerance = 0

[network.switches.west]

[network.switches.east]

[network.lines.wan]
ends = ["west:3", "east:3"]
rate = "20 Mb/s"
delay = "1 ms"

[network.hosts.anna]
port = "west:0"

[network.hosts.bert]
port = "east:0"

[[flow]]
source = "anna"
sink = "bert"
protocol = "udp"
app = "cbr"
rate = "100 Mb/s"
block = 1000
datagram = 1000

[record]
interval = "10 ms"
"""


@pytest.fixture
def run(tmp_path):
    """A run with these events; the mean goodput between two times, in Mb/s."""

    def run(*events, profile=None, **options):
        file = tmp_path / "events.toml"
        own = f'[[profile]]\nfile = "{profile}"\nline = "wan"\n' if profile else ""
        file.write_text(TEXT + own + "".join(f"[[event]]\nat = {at}\nset = {{ {values} }}\n" for at, values in events))
        result = run_experiment(load(str(file), **options))
        assert result.summary["status"] == "done", result.summary["reason"]
        times, octets = result.trace.series["flow1.delivered"]
        at = dict(zip(times, octets, strict=True))

        def rate(a, b):
            return (at[b * PS // 1000] - at[a * PS // 1000]) * 8 / (b - a) / 1e3

        return result, rate

    return run


def test_the_rate_of_a_line_changes(run):
    """1000 octets, 8 of UDP, 20 of IP, 8 of LLC/SNAP and 8 of AAL5 are 22 cells."""
    result, rate = run(
        ('"100 ms"', '"network.lines.wan.rate" = "40 Mb/s"'), ('"200 ms"', '"network.lines.wan.rate" = 5e6')
    )
    user = 1000 / (22 * 53)
    assert rate(20, 100) == pytest.approx(20 * user, rel=0.01)
    assert rate(110, 200) == pytest.approx(40 * user, rel=0.01)
    assert rate(210, 300) == pytest.approx(5 * user, rel=0.02)
    (line,) = network_of(result.summary).lines
    assert line.facts == ["20 Mb/s", "1 ms", "21.67 Mb/s on average"]
    assert line.out.use == pytest.approx(1, rel=0.01)
    fullest = 9152 / (192 * 53)  # an MTU's data of its cells
    assert result.summary["metrics"]["efficiency"] == pytest.approx(user / fullest, rel=0.01)


def test_an_outage_loses_what_comes_into_the_line_meanwhile(run):
    """A cell every 21.2 us for 50 ms, and the frames that were under way as it began or ended."""
    result, rate = run(
        ('"100 ms"', '"network.lines.wan.outage" = [true, false]'), ('"150 ms"', '"network.lines.wan.outage" = false')
    )
    link = result.summary["counters"]["wan.out"]
    assert link["drop_outage"] in (2358, 2359)  # 50 ms / 21.2 us
    assert "drop_outage" not in result.summary["counters"]["wan.back"]  # it is built without
    (vc, _) = result.summary["ledger"]
    assert {"where": "wan.out", "why": "outage", "pdus": pytest.approx(2358 / 22, abs=2)} in vc["lost"]
    assert rate(110, 150) == 0 and rate(160, 300) == pytest.approx(rate(20, 100), rel=0.01)


def test_a_sonet_line_finds_its_frames_again_after_an_outage(run):
    result, rate = run(
        ('"100 ms"', '"network.lines.wan.outage" = true'),
        ('"150 ms"', '"network.lines.wan.outage" = false'),
        settings=("network.lines.wan.line=sonet", "network.lines.wan.rate=OC-3c"),
    )
    assert rate(110, 150) == 0
    assert rate(170, 300) == pytest.approx(rate(20, 100), rel=0.01)
    counters = result.summary["counters"]["wan.line"]
    assert counters["drop_line"][0] > 10_000 and counters["hit_words"][0] == pytest.approx(0.05 * 8000 * 270, abs=2)


def test_bursts_change_in_a_run(run):
    result, _ = run(
        ('"150 ms"', '"network.lines.wan.bursts.loss" = 0.0'),
        settings=("network.lines.wan.bursts={ good_cells = 10, bad_cells = 5, loss = 1.0 }",),
    )
    link = result.summary["counters"]["wan.out"]
    half = link["cells"] / 2
    assert link["drop_burst"] == pytest.approx(half / 3, rel=0.1)
    assert link["bad_cells"] == pytest.approx(2 * half / 3, rel=0.1)


def test_impairments_of_cells_change_in_a_run(run):
    """Duplicates, misinserted cells and a pattern of losses are in counters, ledger and the figures of I.356."""
    result, _ = run(
        ('"100 ms"', '"network.lines.wan.duplicate" = 0.01'),
        ('"150 ms"', '"network.lines.wan.duplicate" = 0.0, "network.lines.wan.misinsert" = 1000'),
        ('"200 ms"', '"network.lines.wan.lose" = 1'),
        ('"250 ms"', '"network.lines.wan.lose_of" = 500'),
    )
    link = result.summary["counters"]["wan.out"]
    tenth = 20e6 / 424 / 20  # cells in 50 ms
    assert link["made_copies"] == pytest.approx(0.01 * tenth, abs=2.6 * math.sqrt(0.01 * tenth))
    assert link["made_misinserted"] == pytest.approx(150, abs=2.6 * math.sqrt(150))
    assert link["drop_pattern"] == pytest.approx(tenth / 1000 + tenth / 500, abs=2)
    (row, back) = result.summary["ledger"]
    lost = {each["why"]: each["pdus"] for each in row["lost"]}
    assert set(lost) >= {"duplicated cell", "another VC's cell", "lost in a pattern"}
    cells = row["cells"]
    assert cells["duplicated"] == link["made_copies"]
    assert cells["misinserted"] + back["cells"]["misinserted"] >= link["made_misinserted"]
    rate = result.summary["metrics"]["cell_misinsertion_rate"]
    assert rate * 0.3 == pytest.approx(cells["misinserted"] + back["cells"]["misinserted"])
    assert {"node": "wan.out", "reason": "pattern of losses"}.items() <= dict(
        zip(
            DROP_COLUMNS,
            next(each for each in drop_rows(result.summary["drops"]) if each[1].startswith("pattern")),
            strict=True,
        )
    ).items()


def test_rows_that_the_event_loop_writes_are_as_those_written_one_by_one(run, tmp_path, monkeypatch):
    """Registers, counters, series and records; with events between rows, at the tick of one, and after all."""
    draw = random.Random(3)
    texts = [str(draw.choice(["", 0, 1e-5, 1e-4, 3e-4])) for _ in range(290)]
    rates = ["", 20e6, 17e6, 9e6]
    rows = [
        f"{(k + 1) / 1000},{texts[k]},{draw.choice(rates)},{k // 20 % 3 == 1:d},{1e-3 * (1 + k // 40 % 3)}"
        for k in range(290)
    ]
    (tmp_path / "series.csv").write_text(
        "time,ber,rate,outage,delay\n0.0005,1e-6,2e7,0,1e-3\n" + "\n".join(rows) + "\n"
    )
    events = (
        ('"20 ms"', '"network.lines.wan.ber" = 2e-4, "network.lines.wan.outage" = [true, false]'),
        ('"100.3 ms"', '"network.lines.wan.rate" = "33 Mb/s"'),
        ('"295 ms"', '"network.lines.wan.ber" = 0'),
    )
    fed, _ = run(*events, profile="series.csv")
    monkeypatch.setattr(RowFeed, "of", lambda *_: None)
    plain, _ = run(*events, profile="series.csv")
    assert fed.writes == plain.writes and len(fed.writes) > 400
    assert fed.trace.series == plain.trace.series
    for name in ("counters", "rates", "ledger", "events", "metrics", "drops"):
        assert fed.summary[name] == plain.summary[name], name
    counters = fed.summary["counters"]["wan.out"]
    assert counters["error_bits"] > 400 and counters["held"] > 50


def test_a_profile_drives_a_line(run, tmp_path):
    """A row every millisecond: the capacity goes up and down, the line fails for 20 ms, and the far end has errors."""
    rows = [(k / 1000, 10e6 + 1e5 * (k % 100), 0 if k < 150 else 1e-4, 200 <= k < 220) for k in range(300)]
    text = "time,rate,ber,outage\n" + "".join(f"{a},{b},{c},{int(d)}\n" for a, b, c, d in rows)
    (tmp_path / "series.csv").write_text(text)
    result, rate = run(('"250 ms"', '"network.lines.wan.outage" = true'), profile="series.csv")
    assert result.writes[:3] == [(0, "profile series.csv", f"network.lines.wan.{key}", value) for key, value in
                                 (("rate", 10_000_000), ("ber", 0), ("outage", False))]  # fmt: skip
    assert len(result.writes) == 3 * 300 + 1
    user = 1000 / (22 * 53)
    assert rate(20, 100) == pytest.approx(sum(10 + 0.1 * k for k in range(20, 100)) / 80 * user, rel=0.02)
    assert rate(210, 220) == 0
    link = result.summary["counters"]["wan.out"]
    assert link["drop_outage"] == pytest.approx(
        0.02 * 11e6 / 424 + 0.001 * 15e6 / 424, rel=0.1
    )  # the event's for a row
    assert 100 < link["error_bits"] < 300  # 1e-4 of some 1.9 Mbit
    assert sum(row["ports"]["west"][3] for row in result.summary["rates"]) and len(result.summary["rates"]) < 400
