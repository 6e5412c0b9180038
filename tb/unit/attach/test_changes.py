"""Tests of changes in a session: requests and events of the file go through one list, on paths shorter by the slack."""

import pytest

from bentpipe.attach.session import Session
from bentpipe.attach.settings import read_settings
from bentpipe.attach.slack import Slack, shortened
from bentpipe.experiment.build.overrides import Overrides, Timeline
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
SLACK = Slack(0, 0, 10**9, {"wan": 10**9}, {}, (), {})


@pytest.fixture
def session(tmp_path):
    """A session in which nothing is simulated; what its network became is in ``became``."""
    (tmp_path / "two.toml").write_text(TEXT[: TEXT.index("[[published]]")] + EVENTS)
    made = object.__new__(Session)
    made.became, made._to_do, made.changed = [], [], []
    made.read = load(str(tmp_path / "two.toml"))
    made.experiment = shortened(made.read, SLACK)
    made._service = made._control = None
    made._stopped = False
    made._overrides = Overrides(
        made.read, made.became.append, adjusted=lambda read: shortened(read, SLACK), lenient=True
    )
    return made


def ask(session, at_ps, *settings):
    """Ask for settings; what the answer is."""
    resolved = session._overrides.resolve(read_settings(settings, session.read))
    return session.write(at_ps, resolved, settings)


def line(event):
    (found,) = event.network.lines
    assert found.delay_ps == 19 * 10**9
    return found.ber, found.outage


def test_an_event_leaves_what_was_asked_for(session):
    timeline = Timeline(session.experiment)
    assert ask(session, 0, "wan.outage=true")["source"] == "set"
    session._overrides.enter(timeline.pop())
    session._overrides.enter(timeline.pop())
    assert [line(event) for event in session.became] == [
        ((1e-9, 0), (True, True)),
        ((1e-6, 1e-6), (True, True)),
        ((1e-6, 1e-6), (False, False)),
    ]
    assert [(event.at_ps, event.source) for event in session._overrides.events] == [
        (0, "set"),
        (10**12, "event"),
        (2 * 10**12, "event"),
    ]
    assert session.changed == [{"at_ps": 0, "settings": ["wan.outage=true"]}]


def test_what_is_asked_for_leaves_what_an_event_changed(session):
    session._overrides.enter(Timeline(session.experiment).pop())
    ask(session, 0, "wan.outage=[true, false]")
    assert line(session.became[-1]) == ((1e-6, 1e-6), (True, False))


@pytest.mark.parametrize("step", [0, 1], ids=["before it holds", "when it holds"])
@pytest.mark.parametrize("settings", [["wan.ber=1e-7"], ["network.switches.*.policy=tail"]], ids=["a line", "a switch"])
def test_what_was_read_amid_a_change_does_not_undo_it(session, settings, step):
    """Requests are read in threads of their own, at any step of a change."""
    overrides, amid = session._overrides, []

    def change(event):
        session.became.append(event)
        amid.append(overrides.resolve(read_settings(settings, session.read)))

    before = overrides._to

    def changed(event):
        before(event)
        amid.append(overrides.resolve(read_settings(settings, session.read)))

    overrides._change, overrides._to = change, changed
    ask(session, 0, "wan.outage=true")
    assert len(amid) == 2
    overrides._change, overrides._to = session.became.append, before
    session.write(1, amid[step], settings)
    assert line(session.became[-1])[1] == (True, True)
    assert overrides.document()["network"]["lines"]["wan"]["outage"] is True


def test_what_was_recorded_is_done_again_at_its_time(session):
    session._to_do = [{"at_ps": 5, "settings": ["wan.ber=1e-7"]}, {"at_ps": 9, "settings": ["wan.ber=0"]}]
    assert session.turn(4)
    assert session.became == []
    assert session.turn(8)
    assert [line(event) for event in session.became] == [((1e-7, 1e-7), (False, False))]


def test_everything_goes_back_to_the_files_state(session):
    session._overrides.enter(Timeline(session.experiment).pop())
    ask(session, 5, "wan.outage=true", "network.switches.*.policy=tail")
    told = session.reset(9)
    assert line(session.became[-1]) == ((1e-9, 0), (False, False))
    assert session.became[-1].network == session._overrides.now.network
    assert {change["key"]: change["new"] for change in told["changes"]}["network.lines.wan.ber"] == [1e-9, 0]
    assert session.changed[-1] == {"at_ps": 9, "settings": [], "reset": True}
    assert line(session._overrides.resolve({"network.lines.wan.ber": 1e-6}).event) == ((1e-6, 1e-6), (False, False))
    assert session._overrides.writes()[-1][1] == "reset"
