"""Thinning of recorded series."""

from bentpipe.experiment.run.record import TraceRecorder
from bentpipe.results.schema import Trace


def test_a_series_has_one_sample_an_interval_and_its_last_value():
    recorder = TraceRecorder(100, ("cwnd", "events"))
    for t in range(0, 1000):
        recorder.sample("flow1.cwnd", t, 10 * t)
    recorder.finish()
    series = recorder.series["flow1.cwnd"]
    assert 10 <= len(series.times) <= 21
    assert series.times[-1] == 999 and series.values[-1] == 9990
    assert all(v == 10 * t for t, v in zip(series.times, series.values, strict=True))
    assert list(series.times) == sorted(set(series.times))


def test_the_value_before_an_event_is_kept():
    recorder = TraceRecorder(1000, ("cwnd", "events"))
    for t, value in ((0, 1), (10, 2), (20, 99)):
        recorder.sample("flow1.cwnd", t, value)
    recorder.event("flow1", 21, "timeout", 5)
    recorder.sample("flow1.cwnd", 21, 1)
    recorder.finish()
    assert 99 in recorder.series["flow1.cwnd"].values
    assert recorder.events == [("flow1", 21, "timeout", 5)]


def test_only_what_was_asked_for_is_kept():
    recorder = TraceRecorder(100, ("cwnd",))
    recorder.sample("flow1.cwnd", 0, 1)
    recorder.sample("flow1.ssthresh", 0, 1)
    recorder.event("flow1", 5, "timeout", 0)
    recorder.finish()
    assert list(recorder.series) == ["flow1.cwnd"]
    assert recorder.events == []


def test_samples_of_the_run_are_all_kept():
    recorder = TraceRecorder(100, ("queue",))
    for t in range(5):
        recorder.put("west.queue", t, t)
    assert list(recorder.series["west.queue"].values) == [0, 1, 2, 3, 4]


def test_what_is_new_is_told_once():
    recorder = TraceRecorder(100, ("cwnd", "events"))
    recorder.put("west.queue", 0, 7)
    recorder.event("flow1", 5, "timeout", 1)
    first = recorder.news()
    assert {name: [list(column) for column in data] for name, data in first.series.items()} == {
        "west.queue": [[0], [7]]
    }
    assert first.events == [("flow1", 5, "timeout", 1)]
    recorder.put("west.queue", 10, 8)
    recorder.put("east.queue", 10, 9)
    second = recorder.news()
    assert {name: list(data[1]) for name, data in second.series.items()} == {"west.queue": [8], "east.queue": [9]}
    assert second.events == []
    assert recorder.news() == Trace({}, [])
    assert list(recorder.series["west.queue"].times) == [0, 10]
