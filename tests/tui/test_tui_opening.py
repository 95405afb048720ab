"""What one sees while a large log is read: how far it is, and its end, which is no verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import log
from tests.tui.demo import DARK, NAME, crashed, drive, two_unknown
from triage.log.tail import last_records
from triage.tui import watch
from triage.tui.app import TriageApp, make_app

TORN = b'{"seq":99,"type":"tool_result","time":null,"data":{"tool_call_id":"call_0a92","con'


@pytest.fixture
def opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TriageApp:
    """An app that never gets on with the reading."""
    (tmp_path / NAME).write_bytes(log(*crashed()) + TORN)
    monkeypatch.setattr(watch, "reload", lambda screen, path: None)
    return make_app(NAME, theme=DARK)


async def half_way(pilot: Any) -> None:
    pilot.app.screen.post_message(watch.Reading(412_300_000, 1_000_000_000))
    await pilot.pause()


def test_the_last_record_stands_last_and_nothing_is_said_of_a_verdict(opening: TriageApp) -> None:
    screen = drive(opening, half_way, size=(80, 12))
    assert "412.3 MB of 1.0 GB, 41%" in screen
    assert "the end of the log; no verdict yet" in screen
    assert "CRASHED" not in screen and "UNKNOWN" not in screen
    rows = [row for row in screen.splitlines() if row.strip()]
    assert rows[-1].split()[0] == "unreadable" and "tool_result" in rows[-1]
    assert rows[-2].split()[0] == "tool_call"


def test_a_screen_without_room_shows_how_far_it_is_alone(opening: TriageApp) -> None:
    screen = drive(opening, half_way, size=(40, 5))
    assert "41%" in screen and "verdict" not in screen


def test_q_leaves_while_the_log_is_read(opening: TriageApp) -> None:
    assert drive(opening, ["q"]) == ""


def test_text_of_the_end_is_cleaned(opening: TriageApp, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(log(*two_unknown()) + b'{"type":"\x1b[2J","data":{"x":"\\u001b[31m"}\xff\n')
    screen = drive(opening, half_way)
    assert "␛" in screen and "\x1b" not in screen


def test_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triage.log.tail.BLOCK", 300)
    (tmp_path / NAME).write_bytes(b'{"type":"a"}\n' * 1000 + b'{"type":"b"}\n\n[1]\n')
    found = last_records(NAME, 1000)
    assert len(found) < 30 and found[-2:] == [{"type": "b"}, b"[1]\n"]
    assert last_records(NAME, 1) == [b"[1]\n"]
