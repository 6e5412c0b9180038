"""Segments over time, as sequence plots have them."""

from bentpipe.results.schema import RunResult, Trace
from bentpipe.results.sequence import segments_of


def result(*events):
    return RunResult({}, [], Trace({}, [("flow1", time * 10**12, kind, value) for time, kind, value in events]))


def test_segments_are_numbered_in_steps_of_the_mss_and_parted_by_whether_they_went_before():
    found = segments_of(
        result(
            (1, "segment", 0),
            (2, "segment", 1000),
            (3, "segment", 2000),
            (4, "timeout", 0),
            (5, "segment", 1000),
            (6, "segment", 2500),
        ),
        "flow1",
    )
    assert found is not None
    assert found.mss == 1000
    assert found.sent == ([1, 2, 3, 6], [1, 2, 3, 3.5])
    assert found.again == ([5], [2])
    assert found.marks == {"timeout": [4]}


def test_of_a_flow_without_segments_there_are_none():
    assert segments_of(result((1, "timeout", 0)), "flow1") is None
    assert segments_of(result((1, "segment", 0)), "flow2") is None
    assert segments_of(result((1, "segment", 0)), "flow1").mss == 1
