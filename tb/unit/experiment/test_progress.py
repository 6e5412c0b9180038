"""The progress bar: what it says, and that it is silent where it isn't wanted."""

import re

from bentpipe import progress
from bentpipe.progress import Progress, waiting

PS = 10**12


def shown(monkeypatch, capsys, steps, end_ps=100 * PS):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with Progress(end_ps, True) as bar:
        for wall, now_ps, done in steps:
            clock[0] = wall
            bar.update(now_ps, done)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)


def test_the_bar_tells_simulated_time_and_speed(monkeypatch, capsys):
    text = shown(monkeypatch, capsys, [(1.0, 5 * PS, 0.0), (10.0, 25 * PS, 0.0)])
    assert "25.0 s of 100 s" in text
    assert "2.50 x real time" in text


def test_a_run_that_ends_with_its_data_says_at_most(monkeypatch, capsys):
    assert "25.0 s of at most 100 s" in shown(monkeypatch, capsys, [(10.0, 25 * PS, 0.9)])


def test_nothing_is_shown_where_it_is_not_wanted(capsys):
    with waiting("patience", False), Progress(PS, False) as bar:
        bar.update(PS // 2)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
