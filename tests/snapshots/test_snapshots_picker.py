"""The list of sessions: while it is read, and once it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tui.demo import Held, folder_of_sessions, picker_on, settle
from triage.fleet.row import Row
from triage.fleet.scan import Part
from triage.tui.picker_screen import Scanned
from triage.tui.theme import LIGHT, PLAIN

SIZES = pytest.mark.parametrize(
    "size", [(60, 15), (80, 24), (120, 40), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}"
)


async def scanned(pilot: Any) -> None:
    await settle(pilot)
    await pilot.press("j")


@SIZES
def test_sessions(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """The worst first, with what is owed, where it died, how old it is; below it what is with the second."""
    app = picker_on(folder_of_sessions(tmp_path), "gone.jsonl")
    assert snap_compare(app, run_before=scanned, terminal_size=size)


@SIZES
def test_scanning(snap_compare: Any, size: tuple[int, int]) -> None:
    """Rows that have come so far, and how far the scan is."""

    async def some(pilot: Any) -> None:
        rows = [
            Row("logs/a.jsonl", "claude", "crashed", 12, 3, 0, "tool_open", 2048, 40, None, "Fix the tests"),
            Row("logs/b.jsonl", "copilot", "live", 1, 0, 0, "calls_named", 90_000, 900, None, "Ship it"),
            Row("logs/c.jsonl", "maka", "refused", 1, 1, 0, "resolution_pending", 10, 1, None, None),
        ]
        part = Part([(row.path, row) for row in rows] + [("logs/notes.txt", None)], 10_000, True)
        pilot.app.screen.post_message(Scanned(part, over=False))
        await pilot.pause()

    assert snap_compare(picker_on(scan=Held()), run_before=some, terminal_size=size)


def test_before_anything_was_read(snap_compare: Any) -> None:
    """The first screen."""
    assert snap_compare(picker_on(scan=Held()), terminal_size=(80, 24))


def test_no_session(snap_compare: Any, tmp_path: Path) -> None:
    """A folder without any session."""
    (tmp_path / "empty").mkdir()
    assert snap_compare(picker_on("empty"), run_before=settle, terminal_size=(80, 24))


def test_search_and_filter(snap_compare: Any, tmp_path: Path) -> None:
    """What was searched for is marked where it stands."""

    async def searched(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("f", "slash", *"open", "enter")

    app = picker_on(folder_of_sessions(tmp_path))
    assert snap_compare(app, run_before=searched, terminal_size=(120, 40))


def test_light(snap_compare: Any, tmp_path: Path) -> None:
    """The light colours."""
    app = picker_on(folder_of_sessions(tmp_path), theme=LIGHT)
    assert snap_compare(app, run_before=scanned, terminal_size=(120, 40))


def test_without_colour(snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR: glyphs and words carry the meaning."""
    monkeypatch.setenv("NO_COLOR", "1")
    app = picker_on(folder_of_sessions(tmp_path), theme=PLAIN)
    assert snap_compare(app, run_before=scanned, terminal_size=(80, 24))


def test_help(snap_compare: Any, tmp_path: Path) -> None:
    """The keys of the list."""
    app = picker_on(folder_of_sessions(tmp_path))
    assert snap_compare(app, press=["question_mark"], terminal_size=(120, 40))
