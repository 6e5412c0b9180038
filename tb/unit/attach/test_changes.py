"""Events of the file and what somebody asks for meanwhile: each changes only what it names."""

import types

import pytest

from bentpipe.attach.control import SessionChanges
from bentpipe.attach.session import Session
from bentpipe.attach.slack import Slack
from bentpipe.experiment.load import load
from unit.experiment.test_parse import TEXT

EVENTS = """
[[event]]
at = "1 s"
set = { "network.lines.wan.ber" = 1e-6 }

[[event]]
at = "2 s"
set = { "network.lines.wan.outage" = false, "network.switches.*.policy" = "tail" }
"""


@pytest.fixture
def session(tmp_path):
    """A session in which nothing is simulated; what its network became is in ``became``."""
    (tmp_path / "two.toml").write_text(TEXT[: TEXT.index("[[published]]")] + EVENTS)
    made = object.__new__(Session)
    made.became = []
    made._built = types.SimpleNamespace(change=made.became.append, asked=[])
    made.experiment = load(str(tmp_path / "two.toml"))
    made._changes = SessionChanges(made.experiment, Slack(0, 0, 0, {}, {}, (), {}))
    return made


def line(event):
    (found,) = event.network.lines
    return found.ber, found.outage


def test_an_event_leaves_what_was_asked_for(session):
    settings = ["wan.outage=true"]
    session._done(0, settings, session._changes.event(settings))
    for event in session.experiment.events:
        session._event(event)
    assert [line(event) for event in session.became] == [((1e-6, 1e-6), (True, True)), ((1e-6, 1e-6), (False, False))]
    assert [event.at_ps for event in session._built.asked] == [0, 10**12, 2 * 10**12]


def test_what_is_asked_for_leaves_what_an_event_changed(session):
    session._event(session.experiment.events[0])
    asked = session._changes.event(["wan.outage=[true, false]"])
    assert line(asked) == ((1e-6, 1e-6), (True, False))


def test_events_alone_are_as_they_were_read(session):
    for event in session.experiment.events:
        session._event(event)
    assert session.became == list(session.experiment.events) and not session._built.asked


def test_an_event_that_makes_no_experiment_any_more_is_left_out(session, caplog):
    """As with buffers' thresholds: each is right by itself."""
    settings = ["west.fair_share=2.0"]
    session._done(0, settings, session._changes.event(settings))
    (bad,) = (event for event in session.experiment.events if event.at_ps == 10**12)
    session._event(types.SimpleNamespace(at_ps=bad.at_ps, settings=(("network.lines.wan.ber", 9),), changes=()))
    assert "1 s: the event is left out: network.lines.wan.ber: 9 is out of range" in caplog.text
    assert session.became == [session._changes.now]
