"""The list of sessions: it fills while one moves in it, and one comes back to where one was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import log
from tests.tui.demo import (
    Held,
    clean_log,
    crashed,
    drive,
    folder_of_sessions,
    picker_on,
    says,
    screen_text,
    settle,
)
from triage.fleet.row import Row
from triage.fleet.scan import Part
from triage.tui import app as apps
from triage.tui import keys
from triage.tui.opening_screen import Opened, OpeningScreen
from triage.tui.picker_screen import PickerScreen, Scanned
from triage.tui.triage_screen import TriageScreen


def crash(path: str, unknown: int = 1, **fields: Any) -> Row:
    return Row(path, "native", "crashed", owed=unknown, unknown=unknown, boundary="tool_open", **fields)


def calm(path: str, **fields: Any) -> Row:
    return Row(path, "native", "clean", boundary="terminal", **fields)


async def come(pilot: Any, *rows: Row, found: int = 10_000) -> None:
    """Rows come from the scan."""
    part = Part([(row.path, row) for row in rows], found, True)
    pilot.app.screen_stack[0].post_message(Scanned(part, over=False))
    await pilot.pause()


def listed(app: Any) -> list[str]:
    return [os.path.basename(row.path) for row in app.screen.listing.shown]


def test_it_opens_before_any_file_was_read_and_says_how_far_the_scan_is() -> None:
    app = picker_on(scan=Held())

    async def steps(pilot: Any) -> None:
        assert "scanning …" in screen_text(app)
        await come(pilot, *(calm(f"logs/{n}") for n in range(312)))
        assert screen_text(app).startswith(" scanning 312 of 10,000 … ")
        app.screen.post_message(Scanned(Part([("logs/notes", None)], 10_000, True), over=False))
        await pilot.pause()
        assert screen_text(app).startswith(" scanning 313 of 10,000 … · 1 skipped ")

    drive(app, steps)


def test_the_worst_session_stands_first(tmp_path: Path) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        names = ["refund.jsonl", "waiting.jsonl", "reading.jsonl", "doubtful.jsonl", "clean.jsonl"]
        assert listed(app) == names
        shown = screen_text(app).splitlines()
        assert shown[0].startswith(" 5 sessions · 4 to repair · 1 unknown outcome · 1 skipped")
        assert shown[3].startswith(
            "│▶✖ CRASHED    ▲ 1/3        tool_open          2 h     look …  …p/refund.jsonl │"
        )
        assert shown[4].startswith("│ ✖ CRASHED    ◆ 0/1        awaiting_approval")

    drive(app, steps)


@pytest.mark.parametrize(
    ("width", "path", "shown"),
    [
        (80, "logs/a.jsonl", "clean up the …  a.jsonl"),
        (80, "logs/deep/refund.jsonl", "clean…  …p/refund.jsonl"),
        (120, "logs/deep/refund.jsonl", "clean up the whole rep…  deep/refund.jsonl"),
        (80, "logs/4f2c9a7e-1d33-4b18-9a5e-77c0de1f0a11.jsonl", "clean up t…  …a11.jsonl"),
        (80, "logs/漢字漢字漢字漢字漢字漢.jsonl", "clean up …  …字漢.jsonl"),
        (44, "logs/a.jsonl", "clean up the …"),
    ],
)
def test_a_long_title_leaves_room_for_the_file_name(width: int, path: str, shown: str) -> None:
    app = picker_on(scan=Held())

    async def steps(pilot: Any) -> None:
        await come(pilot, crash(path, title="clean up the whole repository, then ship the release"))
        line = app.screen.rows.render_line(1).text
        assert line.removesuffix("│").rstrip().endswith(shown), line

    drive(app, steps, (width, 24))


def test_a_short_title_gives_its_room_to_a_long_file_name() -> None:
    app = picker_on(scan=Held())

    async def steps(pilot: Any) -> None:
        await come(pilot, crash("logs/corrupt-middle.jsonl", title="Sync."))
        line = app.screen.rows.render_line(1).text
        assert line.removesuffix("│").rstrip().endswith("Sync.  …pt-middle.jsonl"), line

    drive(app, steps, (80, 24))


def test_the_cursor_stays_on_the_first_row_until_it_is_moved_and_then_with_its_session() -> None:
    app = picker_on(scan=Held())

    async def steps(pilot: Any) -> None:
        screen = app.screen
        assert isinstance(screen, PickerScreen)
        await come(pilot, *(calm(f"logs/{n:03}") for n in range(50)))
        await come(pilot, crash("logs/a"))
        assert screen.picked and screen.picked.path == "logs/a"
        await pilot.press("j", "j")
        assert screen.picked.path == "logs/001"
        line = screen.rows.cursor - screen.rows.top
        await come(pilot, *(crash(f"logs/b{n}") for n in range(30)))
        assert screen.picked.path == "logs/001"
        assert screen.rows.cursor == 32 and screen.rows.cursor - screen.rows.top == line
        await pilot.press("g")
        await come(pilot, crash("logs/c", unknown=2))
        assert screen.picked.path == "logs/a" and screen.rows.cursor == 1
        screen.rows.move_to(5)
        row = crash("logs/d", unknown=2)
        screen.on_scanned(Scanned(Part([(row.path, row)], 10_000, True), over=False))
        assert screen.picked.path == "logs/b11" and screen.rows.cursor == 6  # no move is lost between the two

    drive(app, steps)


@pytest.mark.parametrize("leave", ["escape", "q"])
def test_enter_opens_a_session_and_leaving_it_comes_back_to_its_row(tmp_path: Path, leave: str) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("j", "j", "enter")
        assert isinstance(app.screen, TriageScreen)
        assert app.desk.session.path == "logs/reading.jsonl"
        assert "q Sessions" in screen_text(app)
        await pilot.press(leave)
        await settle(pilot)
        assert isinstance(app.screen, PickerScreen)
        assert app.screen.picked and app.screen.picked.path == "logs/reading.jsonl"
        await pilot.press("enter", "enter", "escape", "question_mark")
        assert "Back to the sessions" in screen_text(app)

    drive(app, steps, (100, 120))


def test_keys_typed_ahead_reach_the_session_that_opens(tmp_path: Path) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        for key in ("enter", "a", "R"):
            app.post_message(apps.events.Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert app.desk.answers["call_0a92"].finding == "ran"

    drive(app, steps)


def test_a_session_that_was_repaired_shows_so_where_it_stood(tmp_path: Path) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("f", "enter", "a", "R", "A")
        await settle(pilot)
        await pilot.press("q")
        await settle(pilot)
        assert screen_text(app).splitlines()[3].startswith("│▶✓ CLEAN ")
        assert "3 to repair" in screen_text(app)
        await pilot.press("j", "enter", "a", "R", "D", "A")
        await settle(pilot)
        await pilot.press("enter", "q", "q")

    drive(app, steps)
    said = (app.return_value or "").splitlines()
    assert [line.split(":")[0] for line in said] == ["logs/deep/refund.jsonl", "logs/waiting.jsonl"]


def test_ctrl_q_quits_from_a_session_too(tmp_path: Path) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("enter", "ctrl+q")

    drive(app, steps)
    assert app.return_value == ""


def test_answers_that_could_not_be_kept_are_asked_about_on_the_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    def full(*arguments: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr("triage.draft.save", full)

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("enter", "a", "R")
        await settle(pilot)
        await app.run_action("leave")
        await pilot.pause()
        assert "1 answer given, nothing appended yet." in screen_text(app)
        await pilot.press("j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, PickerScreen)

    drive(app, steps)


def test_the_filter_goes_from_all_to_those_to_repair_to_unknown_outcomes(tmp_path: Path) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("f")
        assert len(listed(app)) == 4 and "needs repair only" in screen_text(app)
        await pilot.press("f")
        assert listed(app) == ["refund.jsonl"] and "unknown only" in screen_text(app)
        await pilot.press("f")
        assert len(listed(app)) == 5
        await pilot.press("f", "escape")
        assert len(listed(app)) == 5
        await pilot.press("escape")
        assert "q quits" in screen_text(app)

    drive(app, steps)


def test_a_search_leaves_the_sessions_that_hold_its_text(tmp_path: Path) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("slash", *"notes", "enter")
        assert listed(app) == ["reading.jsonl"] and "/notes" in screen_text(app)
        await pilot.press("escape")
        assert app.screen.picked.path == "logs/reading.jsonl" and len(listed(app)) == 5
        await pilot.press("slash", "enter")
        assert listed(app) == ["reading.jsonl"]
        await pilot.press("slash", *"Notes", "enter")
        assert listed(app) == [] and "no session is like that" in screen_text(app)
        await pilot.press("enter", "y", "n", "j", "G")
        assert isinstance(app.screen, PickerScreen)
        await pilot.press("escape")
        assert app.screen.picked.path == "logs/reading.jsonl"
        await pilot.press("slash", *"deep", "slash", "enter")
        assert listed(app) == ["refund.jsonl"]

    drive(app, steps)


def test_sorting_keeps_the_cursor_with_its_session() -> None:
    app = picker_on(scan=Held())

    async def steps(pilot: Any) -> None:
        await come(
            pilot,
            crash("logs/b", last_time="2026-05-19T08:00:00Z"),
            calm("logs/c", last_time="2026-05-20T08:00:00Z"),
            calm("logs/a"),
        )
        assert listed(app) == ["b", "a", "c"]
        await pilot.press("j", "s")
        assert listed(app) == ["c", "b", "a"] and "newest first" in screen_text(app)
        assert app.screen.picked.path == "logs/a"
        await pilot.press("s")
        assert listed(app) == ["a", "b", "c"] and "by path" in screen_text(app)
        assert app.screen.picked.path == "logs/a"
        await pilot.press("s")
        assert listed(app) == ["b", "a", "c"] and "worst first" in screen_text(app)

    drive(app, steps)


def test_n_goes_to_the_next_session_that_needs_repair() -> None:
    app = picker_on(scan=Held())

    async def steps(pilot: Any) -> None:
        await come(pilot, calm("logs/a"), crash("logs/b"), calm("logs/c"), crash("logs/d"))
        await pilot.press("s", "s", "g", "n")
        assert app.screen.picked.path == "logs/b"
        await pilot.press("n")
        assert app.screen.picked.path == "logs/d"
        await pilot.press("n")
        assert "no other session" in screen_text(app)
        await pilot.press("N")
        assert app.screen.picked.path == "logs/b"

    drive(app, steps)


def test_y_copies_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr("triage.tui.picker_screen.copy", lambda app, text: copied.append(text) or "")
    app = picker_on(folder_of_sessions(tmp_path))
    shown = drive(app, ["~", "y"])
    assert copied == ["logs/deep/refund.jsonl"] and "copied the path: logs/deep/refund.jsonl" in shown


def test_a_scan_can_be_stopped_and_what_was_read_stays() -> None:
    held = Held()
    app = picker_on(scan=held)

    async def steps(pilot: Any) -> None:
        await come(pilot, crash("logs/a"), calm("logs/b"))
        await pilot.press("r")
        assert "still scanning" in screen_text(app)
        await pilot.press("S")
        await settle(pilot)
        assert held.stopped
        assert screen_text(app).startswith(" stopped at 2 of 10,000 files · 1 to repair")
        assert listed(app) == ["a", "b"]

    drive(app, steps)


def test_stopping_a_scan_that_is_over_says_so(tmp_path: Path) -> None:
    shown = drive(picker_on(folder_of_sessions(tmp_path)), ["~", "S"])
    assert "no scan is running: r scans again" in shown


def test_scanning_again_shows_what_came_and_drops_what_went(tmp_path: Path) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("j")
        (tmp_path / "logs/reading.jsonl").unlink()
        (tmp_path / "logs/doubtful.jsonl").write_text("a log no more\n")
        (tmp_path / "logs/new.jsonl").write_bytes(log(*crashed()))
        await pilot.press("r")
        await settle(pilot)
        assert listed(app) == ["refund.jsonl", "new.jsonl", "waiting.jsonl", "clean.jsonl"]
        assert app.screen.picked.path == "logs/waiting.jsonl"

    drive(app, steps)


def test_a_path_that_is_not_there_is_a_row_and_opening_it_a_sentence() -> None:
    shown = drive(picker_on("gone.jsonl"), ["~", "enter"])
    assert "✖ UNREADABLE" in shown
    assert "gone.jsonl does not exist" in shown.splitlines()[-1]


def test_a_session_that_went_meanwhile_is_said_and_dropped_by_the_next_scan(
    tmp_path: Path,
) -> None:
    app = picker_on(folder_of_sessions(tmp_path))

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        (tmp_path / "logs/deep/refund.jsonl").unlink()
        await pilot.press("enter")
        assert isinstance(app.screen, PickerScreen) and "does not exist" in screen_text(app)
        await pilot.press("j", "enter")
        (tmp_path / "logs/waiting.jsonl").unlink()
        await pilot.press("q")
        await settle(pilot)
        assert "✖ UNREADABLE" in screen_text(app)
        await pilot.press("r")
        await settle(pilot)
        assert len(listed(app)) == 3

    drive(app, steps)


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shown = drive(picker_on("empty"), ["~", "enter", "j", "y", "n", "f", "s"])
    assert "no session" in shown
    assert "no session log was found in empty" in drive(picker_on("empty"), ["~"])


def test_a_large_log_is_read_behind_a_screen_that_can_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = picker_on(folder_of_sessions(tmp_path))
    monkeypatch.setattr(apps, "READ_BEHIND_A_SCREEN", 10)

    async def steps(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("j", "enter")
        await settle(pilot)
        assert isinstance(app.screen, TriageScreen) and len(app.screen_stack) == 2
        await pilot.press("q")
        (tmp_path / "logs/waiting.jsonl").unlink()
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, PickerScreen) and "does not exist" in screen_text(app)
        monkeypatch.setattr("triage.tui.watch.reload", lambda screen, path: None)
        await pilot.press("k", "enter")
        assert isinstance(app.screen, OpeningScreen)
        left = app.screen
        await pilot.press("q")
        assert isinstance(app.screen, PickerScreen)
        app.post_message(Opened(apps.open_session("logs/clean.jsonl"), left))
        await settle(pilot)
        assert isinstance(app.screen, PickerScreen)

    drive(app, steps)


def test_read_only_holds_for_each_session(tmp_path: Path) -> None:
    shown = drive(picker_on(folder_of_sessions(tmp_path), read_only=True), ["~", "enter", "a"])
    assert "read-only" in shown


def test_text_of_a_log_stays_text(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    hostile = "[@click=app.leave]x[/] \x1b[2J\u202e[red"
    (tmp_path / "logs" / "a\x1b[31m.jsonl").write_bytes(log(says(hostile), *clean_log()))
    app = picker_on("logs")
    shown = drive(app, ["~"], (200, 24))
    assert "[@click=app.leave]x[/] ␛[2J<U+202E>[red" in shown and "a␛[31m.jsonl" in shown
    assert "\x1b" not in shown and "\u202e" not in shown


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (40, 10), (20, 5), (10, 3), (4, 2), (1, 1)])
def test_no_size_breaks_it(tmp_path: Path, size: tuple[int, int]) -> None:
    keys = ["~", "j", "G", "pagedown", "g", "f", "s", "slash", "escape", "question_mark", "escape"]
    shown = drive(picker_on(folder_of_sessions(tmp_path)), keys, size)
    if size[0] >= 20:
        assert "CRASHED" in shown


def test_the_help_and_the_palette_know_the_keys(tmp_path: Path) -> None:
    logs = folder_of_sessions(tmp_path)
    shown = drive(picker_on(logs), ["question_mark"], (100, 60))
    for command in (*keys.PICKER, *keys.MOVES):
        assert not command.shown or f" {command.shown} " in shown, command
    shown = drive(picker_on(logs), ["~", "ctrl+p", *"newest", "enter"])
    assert "newest first" in shown
