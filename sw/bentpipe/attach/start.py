"""The time of day at which a session's clock starts: ``--at``."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from bentpipe.errors import BentpipeError
from bentpipe_hdl.units import parse_time

__all__ = ["parse_start"]

_CLOCK: Final = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?")
_MOST: Final = timedelta(days=366)
_FORMS: Final = (
    "expected a date and time as 2026-12-24T18:00:00Z, a time of day as 18:00, or a time from now as '+30 s'"
)


def parse_start(text: str, now: datetime) -> datetime:
    """Return the start that ``--at`` names.

    Parameters
    ----------
    text : str
        A date and time by ISO 8601 (local time without an offset); a time of day (the next such time, local); or ``+``
        and a time from now.
    now : datetime
        The present time, with its zone.

    Raises
    ------
    BentpipeError
        It is none of these, has passed, or is more than a year away.
    """
    start = _start(text.strip(), now)
    if start <= now:
        raise BentpipeError(f"--at {text}: that time has passed; it is {now.isoformat(timespec='seconds')}")
    if start - now > _MOST:
        raise BentpipeError(f"--at {text}: more than {_MOST.days} days away")
    return start


def _start(text: str, now: datetime) -> datetime:
    if text.startswith("+"):
        try:
            return now + timedelta(microseconds=parse_time(text[1:].strip()) / 1e6)
        except (ValueError, OverflowError) as error:
            raise BentpipeError(f"--at {text}: {error}") from None
    try:
        if not _CLOCK.fullmatch(text):
            start = datetime.fromisoformat(text)
            return start if start.tzinfo else _local(start, now)
        clock = datetime.strptime(text, "%H:%M" if text.count(":") == 1 else _seconds(text)).time()
        date = now.astimezone().date()
        today = _local(datetime.combine(date, clock), now)
        return today if today > now else _local(datetime.combine(date + timedelta(1), clock), now)
    except (ValueError, OverflowError):
        raise BentpipeError(f"--at {text}: {_FORMS}") from None


def _local(time: datetime, now: datetime) -> datetime:
    """Return a local time with its offset; of the two in the hour that a change of clocks repeats, the next one."""
    first, second = (time.replace(fold=fold).astimezone() for fold in (0, 1))
    return second if first <= now < second else first


def _seconds(text: str) -> str:
    return "%H:%M:%S.%f" if "." in text else "%H:%M:%S"
