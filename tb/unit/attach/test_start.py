"""Tests of ``--at``: the time of day at which a session's clock starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from bentpipe.attach.start import parse_start
from bentpipe.errors import BentpipeError

NOW = datetime(2026, 12, 24, 17, 30, tzinfo=UTC)


@pytest.fixture(name="zone", autouse=True)
def _zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the local time zone; the C library has the earlier one again after the test."""

    def use(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    use("CET-1")
    yield use
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00+00:00"),
        ("2026-12-24T18:00:00.25+00:30", "2026-12-24T17:30:00.250000+00:00"),
        ("2026-12-24 19:00", "2026-12-24T18:00:00+00:00"),
        ("19:00", "2026-12-24T18:00:00+00:00"),
        ("18:00:30.5", "2026-12-25T17:00:30.500000+00:00"),
        ("+30 s", "2026-12-24T17:30:30+00:00"),
        (" +1.5ms ", "2026-12-24T17:30:00.001500+00:00"),
    ],
)
def test_a_start_is_a_date_a_time_of_day_or_a_time_from_now(text: str, wanted: str) -> None:
    assert parse_start(text, NOW).astimezone(UTC).isoformat() == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2026-12-24T17:30:00Z", "that time has passed; it is 2026-12-24T17:30:00"),
        ("+0 s", "that time has passed"),
        ("2028-01-01", "more than 366 days away"),
        ("25:00", "expected a date and time"),
        ("soon", "expected a date and time"),
        ("+soon", "--at"),
        ("+1e30 s", "--at"),
        ("9999-12-31T23:59:59", "expected a date|more than 366 days"),
    ],
)
def test_what_is_no_start_is_a_line(text: str, message: str) -> None:
    with pytest.raises(BentpipeError, match=message):
        parse_start(text, NOW)


@pytest.mark.parametrize(
    ("text", "minute", "wanted"),
    [
        ("02:50", 45, "2026-10-25T00:50:00+00:00"),  # the first 02:50 of that night
        ("02:50", 105, "2026-10-25T01:50:00+00:00"),  # the second
        ("2026-10-25 02:50", 105, "2026-10-25T01:50:00+00:00"),
    ],
)
def test_the_hour_that_comes_twice(text: str, minute: int, wanted: str, zone: Callable[[str], None]) -> None:
    zone("CET-1CEST,M3.5.0,M10.5.0/3")
    now = datetime(2026, 10, 25, 0, tzinfo=UTC) + timedelta(minutes=minute)
    assert parse_start(text, now).astimezone(UTC).isoformat() == wanted


def test_a_time_of_day_is_at_most_a_day_away() -> None:
    for minute in range(0, 1440, 7):
        start = parse_start(f"{minute // 60:02}:{minute % 60:02}", NOW)
        assert timedelta() < start - NOW <= timedelta(1)
