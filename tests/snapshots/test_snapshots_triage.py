"""The main screen: what one sees in the first second, and the timeline under folds, filters and searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import GARBAGE, names, speaks, step_start, torn, turn_start
from tests.tui.demo import app_on, clean_log, crashed, says, settle, two_unknown, write
from triage.tui.theme import LIGHT, PLAIN

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}")


@SIZES
def test_crashed(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """A crash with one unknown outcome: the headline, the dangerous call under the cursor, its evidence."""
    assert snap_compare(app_on(write(tmp_path, crashed())), terminal_size=size)


@SIZES
def test_clean(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """A healthy log: nothing to repair, accept is greyed, the cursor stands at the end."""
    assert snap_compare(app_on(write(tmp_path, clean_log())), terminal_size=size)


@SIZES
def test_damaged(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """Garbage inside the open turn and a torn last line: both are rows, and the calls are unknown."""
    lines = [turn_start(4), says("go on"), step_start(), names(("c1", "bash", {"command": "make"})), GARBAGE]
    path = write(tmp_path, lines, torn(says("and then")))
    assert snap_compare(app_on(path), terminal_size=size)


def test_doubtful(snap_compare: Any, tmp_path: Path) -> None:
    """No turn is open, but an unreadable line may have opened one: doubtful, never clean."""
    path = write(tmp_path, [*clean_log(), GARBAGE, names(("k1", "bash", {"command": "make"}))])
    assert snap_compare(app_on(path), terminal_size=(120, 40))


def test_light(snap_compare: Any, tmp_path: Path) -> None:
    """The light colours."""
    assert snap_compare(app_on(write(tmp_path, crashed()), theme=LIGHT), terminal_size=(120, 40))


def test_without_colour(snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR: the cursor is reversed, glyphs and words carry the meaning."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(app_on(write(tmp_path, crashed()), theme=PLAIN), terminal_size=(80, 24))


def test_read_only(snap_compare: Any, tmp_path: Path) -> None:
    """Opened read-only: the header says so, accept is locked."""
    assert snap_compare(app_on(write(tmp_path, crashed()), read_only=True), terminal_size=(120, 40))


@SIZES
def test_unfolded_turn(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """A closed turn and its first step unfolded: each event is a row, each named call another."""
    press = ["g", "j", "l", "j", "j", "l"]
    assert snap_compare(app_on(write(tmp_path, crashed())), press=press, terminal_size=size)


@pytest.mark.parametrize("filter", ["calls", "problems"])
def test_filter(snap_compare: Any, tmp_path: Path, filter: str) -> None:
    """Only calls and their results; only problems."""
    app = app_on(write(tmp_path, crashed()))

    async def filtered(pilot: Any) -> None:
        app.screen.timeline.set_filter(filter)
        app.screen._fill(app.screen.timeline.end)
        await pilot.pause()

    assert snap_compare(app, run_before=filtered, terminal_size=(120, 40))


def test_search(snap_compare: Any, tmp_path: Path) -> None:
    """A search that is on: its text in the title, its matches marked, n goes on to the next."""
    app = app_on(write(tmp_path, crashed()))

    async def searched(pilot: Any) -> None:
        await pilot.press("slash", *"refunds", "enter")
        await settle(pilot)

    assert snap_compare(app, run_before=searched, terminal_size=(120, 40))


def test_search_question(snap_compare: Any, tmp_path: Path) -> None:
    """The question for a search, at the bottom."""
    app = app_on(write(tmp_path, crashed()))
    assert snap_compare(app, press=["slash", "r", "e"], terminal_size=(80, 24))


def test_owed_zoomed(snap_compare: Any, tmp_path: Path) -> None:
    """The owed calls on the whole screen."""
    app = app_on(write(tmp_path, two_unknown()))
    assert snap_compare(app, press=["2", "z", "j"], terminal_size=(80, 24))


def test_hostile(snap_compare: Any, tmp_path: Path) -> None:
    """Log text that attacks the screen: markup, escapes, direction marks, newlines. It stays text."""
    nasty = "[@click=app.quit]x[/] \x1b[2J\x1b]0;t\x07 \u202egpj.exe \u2028✓ CLEAN\n[/red]"
    lines = [
        turn_start(nasty),
        says(nasty),
        step_start(),
        names((nasty, nasty, {nasty: nasty, "command": nasty})),
        speaks(nasty),
    ]
    assert snap_compare(app_on(write(tmp_path, lines)), terminal_size=(120, 40))


@pytest.mark.parametrize("size", [(60, 20), (40, 12), (20, 6)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_small(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """Smaller than it is meant for, and still usable."""
    assert snap_compare(app_on(write(tmp_path, crashed())), terminal_size=size)
