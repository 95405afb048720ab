"""Times are shown as a person reads them, and odd ones as they are."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from triage.tui.times import ago, duration, moment, parse_time, span

NOW = datetime(2026, 5, 20, 14, 41, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("2026-05-20T12:41:07.000Z", "12:41:07Z"),
        ("2026-05-20T14:41:07+02:00", "12:41:07Z"),
        ("2026-05-01T12:41:07Z", "2026-05-01 12:41Z"),
        (1779280867000, "12:41:07Z"),
        (1779280867, "12:41:07Z"),
        ("yesterday\x1b[2J", "yesterday␛[2J"),
        (None, ""),
        (1e300, "1e+300"),
        (True, "true"),
        (orjson.loads("[" * 1010 + "]" * 1010), "[" * 39 + "…"),
    ],
)
def test_a_time_is_short_where_it_can_be_read(value: object, shown: str) -> None:
    assert moment(value, NOW) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("2026-05-20T14:41:00Z", "7 s ago"),
        ("2026-05-20T14:01:07Z", "40 min ago"),
        ("2026-05-20T12:41:07Z", "2 h ago"),
        ("2026-05-10T12:41:07Z", "10 d ago"),
        ("2026-05-20T15:41:07Z", "in 1 h"),
        ("soon", ""),
    ],
)
def test_an_age_is_rough(value: str, shown: str) -> None:
    assert ago(value, NOW) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.34, "340ms"), (18, "18s"), (125, "2m05s"), (11_220, "3h07m"), (187_200, "2d04h")],
)
def test_a_duration_has_two_units_at_most(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_span_that_runs_backwards_is_not_shown() -> None:
    assert span("2026-05-20T12:00:01Z", "2026-05-20T12:00:00Z") == ""


def test_a_time_without_a_zone_is_taken_as_utc() -> None:
    assert parse_time("2026-05-20T12:00:00") == datetime(2026, 5, 20, 12, tzinfo=UTC)
