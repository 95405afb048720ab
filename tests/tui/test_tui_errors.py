"""The errors of a session: key 4, going to the last occurrence, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import result, turn_start
from tests.tui.demo import app_on, clean_log, drive, says, screen_text, settle, write
from triage.failures import failures_of
from triage.log import blocks
from triage.session import open_session
from triage.tui import errors_screen
from triage.tui.errors_screen import ErrorsScreen
from triage.tui.timeline import key
from triage.tui.triage_screen import TriageScreen

ROOT = Path(__file__).parents[2]
SAMPLE = str(ROOT / "sample_logs" / "errors-recurring.jsonl")
KLBR = ROOT / "tests" / "fixtures" / "klbr" / "classes.jsonl"


def fails(error: str, **data: Any) -> dict[str, Any]:
    return result("x", "", status="error", error=error, **data)


def at(happening: dict[str, Any], time: str) -> dict[str, Any]:
    return {**happening, "time": time}


def test_each_failure_is_listed_with_its_policy() -> None:
    shown = drive(app_on(SAMPLE), ["4", "~"], (120, 40))
    assert "[4] errors 3 · worth an issue from 2 times on · a burst within 1m00s" in shown
    assert "at most 5 issues a turn" in shown
    listed = [line.strip("│▶ ") for line in shown.splitlines() if "│" in line]
    assert listed[0].startswith("✖ 4× sync.http.Timeout: https://supplier.example/items")
    assert listed[1].startswith("worth an issue · chronic: again beyond 1m00s ")
    assert listed[1].endswith(" failed · tool.execution")
    assert listed[2] == "first line 8, 2026-05-19 06:00Z · last line 59, 13:07:31Z"


def test_a_burst_a_single_failure_and_one_without_times(tmp_path: Path) -> None:
    lines = [
        turn_start(1),
        at(fails("ValueError: burst"), "2026-05-20T10:00:00Z"),
        at(fails("ValueError: burst"), "2026-05-20T10:00:09Z"),
        at(fails("KeyError: timeless"), "yesterday"),
        at(fails("KeyError: timeless"), "today"),
        fails("OSError: once"),
    ]
    shown = drive(app_on(write(tmp_path, lines)), ["4", "~"])
    assert "burst: again within 1m00s" in shown
    assert "burst: again, no time known" in shown
    assert "seen once" in shown and "no issue yet" in shown


def test_enter_goes_to_the_last_occurrence_wherever_it_is_folded_away() -> None:
    app = app_on(SAMPLE)

    async def steps(pilot: Any) -> None:
        await pilot.press("4")
        assert isinstance(app.screen, ErrorsScreen)
        await settle(pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, TriageScreen)
        assert app.screen.row == key(59)
        assert app.focused is app.screen._timeline
        await pilot.press("ctrl+o")
        assert app.screen.row != key(59)

    drive(app, steps)


@pytest.mark.parametrize("leave", ["escape", "q"])
def test_leaving_goes_nowhere(leave: str) -> None:
    app = app_on(SAMPLE)

    async def steps(pilot: Any) -> None:
        before = app.screen.row
        await pilot.press("4", "j", leave)
        assert isinstance(app.screen, TriageScreen)
        assert app.screen.row == before

    drive(app, steps)


def test_a_known_revision_and_a_recovered_error_are_shown() -> None:
    shown = drive(app_on(str(KLBR)), ["4", "~"])
    assert "recovered · cell.execution" in shown
    assert " 9f1c " in shown


def test_nothing_failed(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, clean_log())), ["4", "~", "enter", "j"])
    assert "nothing failed in this session" in shown


def test_the_list_can_be_left_while_the_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(_journal: Any, stop: Any) -> Any:
        while not stop():
            yield from ()

    monkeypatch.setattr(errors_screen, "failures_of", forever)
    app = app_on(write(tmp_path, clean_log()))

    async def steps(pilot: Any) -> None:
        await pilot.press("4")
        assert "reading…" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, TriageScreen)

    drive(app, steps)


def test_a_log_that_has_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 1)  # else it is in memory
    path = write(tmp_path, [turn_start(1), fails("ValueError: x")])
    app = app_on(path)
    (tmp_path / path).unlink()
    assert "does not exist" in drive(app, ["4", "~"])


def test_all_of_the_last_failure_is_in_view(tmp_path: Path) -> None:
    lines = [turn_start(1), *(fails(f"Error{n}Error: of its own") for n in range(30))]
    shown = drive(app_on(write(tmp_path, lines)), ["4", "~", "G"])
    assert "Error29Error" in shown and "line 31" in shown


def test_only_so_many_occurrences_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors_screen, "MOST", 2)
    path = write(tmp_path, [turn_start(1), *[fails("ValueError: x")] * 3])
    shown = drive(app_on(path), ["4", "~"])
    assert "✖ 2× " in shown and "only the first 2 occurrences are counted" in shown


def test_text_of_the_log_stays_text(tmp_path: Path) -> None:
    nasty = "[@click=app.quit]x[/] \x1b[2J\u202eError: [/red]"
    shown = drive(app_on(write(tmp_path, [says("go"), fails(nasty)])), ["4", "~"])
    assert "[@click=app.quit]x[/]" in shown
    assert "\x1b" not in shown and "\u202e" not in shown


def test_giving_up_ends_the_reading() -> None:
    journal = open_session(SAMPLE).journal
    assert len(list(failures_of(journal, lambda: False))) > 0
    assert list(failures_of(journal, lambda: True)) == []
