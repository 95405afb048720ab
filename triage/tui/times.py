"""Times and spans of time as a person reads them. Whatever a log wrote as a time is shown, odd or not."""

from __future__ import annotations

from datetime import datetime, timedelta

from triage.text import clean
from triage.words import parse_time, time_in_words

DAY = 86400.0


def moment(value: object, now: datetime | None = None) -> str:
    """A record's time, short: `12:41:07Z`, with its date where it is more than a day from `now`.

    A time that can't be read is shown as it is; none at all is "".
    """
    if value is None:
        return ""
    time = parse_time(value)
    if time is None:
        return clean(time_in_words(value), limit=40)
    near = now is None or abs(now - time) < timedelta(days=1)
    return f"{time:%H:%M:%S}Z" if near else f"{time:%Y-%m-%d %H:%M}Z"


def ago(value: object, now: datetime) -> str:
    """How long before `now` a record's time lies: `2 h ago`; "" where that can't be told."""
    time = parse_time(value)
    if time is None:
        return ""
    seconds = (now - time).total_seconds()
    return f"in {_rough(-seconds)}" if seconds < -1 else f"{_rough(max(0.0, seconds))} ago"


def span(start: object, end: object) -> str:
    """The time between two records' times: `18s`, `2m05s`; "" where that can't be told."""
    first, last = parse_time(start), parse_time(end)
    if first is None or last is None or last < first:
        return ""
    return duration((last - first).total_seconds())


def duration(seconds: float) -> str:
    """`340ms`, `18s`, `2m05s`, `3h07m`, `2d04h`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < DAY:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def _rough(seconds: float) -> str:
    for unit, size in (("d", DAY), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{int(seconds // size):,} {unit}"
    return f"{int(seconds)} s"
