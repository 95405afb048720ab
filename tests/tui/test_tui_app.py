"""The app around the screens: failures, the line for stdout, and what it imports."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key

from tests.tui.demo import NAME, app_on, crashed, drive, settle, write
from triage.export import write_new
from triage.log.source import Unreadable
from triage.session import open_session
from triage.tui import app as apps
from triage.tui.theme import DARK, LIGHT, PLAIN, theme_of_terminal


def test_a_failure_is_raised_to_the_command_line_and_prints_no_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session = open_session(write(tmp_path, crashed()))

    def broken(self: Any, *arguments: Any, **options: Any) -> None:
        secret = "text of the log"
        raise RuntimeError(f"broken {len(secret)}")

    monkeypatch.setattr(apps.TriageScreen, "on_mount", broken)
    monkeypatch.setattr(apps.TriageApp, "run", lambda self: apps.App.run(self, headless=True))
    with pytest.raises(RuntimeError, match="broken 15"):
        apps.run(session)
    printed = capsys.readouterr()
    assert printed.out == "" and "text of the log" not in printed.err and "Traceback" not in printed.err


def test_run_returns_the_line_for_stdout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(write(tmp_path, crashed()))

    async def press(pilot: Any) -> None:
        await pilot.press("a", "R", "A")
        await settle(pilot)
        for key in ("enter", "q"):  # nobody waits for the app that leaves
            pilot.app.post_message(Key(key, None))

    monkeypatch.setattr(
        apps.TriageApp, "run", lambda self: apps.App.run(self, headless=True, auto_pilot=press)
    )
    assert apps.run(session, operator="ann").startswith("sess_7f3.jsonl: appended 4 records")


def test_leaving_without_an_append_says_nothing(tmp_path: Path) -> None:
    app = app_on(write(tmp_path, crashed()))
    drive(app, ["q"])
    assert app.return_value == ""


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({}, DARK),
        ({"COLORFGBG": "0;15"}, LIGHT),
        ({"COLORFGBG": "15;0"}, DARK),
        ({"NO_COLOR": "1", "COLORFGBG": "0;15"}, PLAIN),
        ({"NO_COLOR": ""}, DARK),
    ],
)
def test_the_theme_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], theme: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert theme_of_terminal() == theme


def test_without_colour_no_colour_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(write(tmp_path, crashed()), theme=PLAIN)

    async def steps(pilot: Any) -> None:
        for filter in app._filters:
            assert type(filter).__name__ != "Monochrome"
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                colours = (segment.style.color, segment.style.bgcolor) if segment.style else ()
                assert all(colour is None or colour.is_default for colour in colours), segment

    drive(app, steps)


def test_an_export_never_overwrites_and_its_name_is_tame(tmp_path: Path) -> None:
    first = write_new(str(tmp_path), "../a b\x1b[2J", ".md", "one")
    second = write_new(str(tmp_path), "../a b\x1b[2J", ".md", "two\ud800")
    assert Path(first).parent == Path(second).parent == tmp_path
    assert Path(first).read_text() == "one" and first != second


def test_what_the_first_screen_does_not_need_is_not_imported_for_it() -> None:
    code = "import sys, triage.tui.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unwanted = ("accept_screen", "done_screen", "help_screen", "palette_screen", "prompt", "tui.out")
    assert not [name for name in done.stdout.split() if name.endswith(unwanted)]


def test_a_log_can_be_read_behind_a_first_screen(tmp_path: Path) -> None:
    write(tmp_path, crashed())
    app = apps.make_app(NAME, theme=DARK)
    assert "CRASHED" in drive(app, ["~", "~"])


def test_a_path_that_cannot_be_read_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apps.TriageApp, "run", lambda self: apps.App.run(self, headless=True))
    with pytest.raises(Unreadable, match=r"missing\.jsonl"):
        apps.run(str(tmp_path / "missing.jsonl"))


def test_leaving_does_not_wait_for_a_log_that_is_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, crashed())
    stopped = threading.Event()

    def slow(path: str, progress: Any) -> Any:
        try:
            while True:
                progress(1, 2)
        finally:
            stopped.set()

    monkeypatch.setattr("triage.tui.opening_screen.open_session", slow)
    drive(apps.make_app(NAME, theme=DARK), ["q"])
    assert stopped.wait(10)


def test_a_page_says_how_much_of_it_is_drawn(tmp_path: Path) -> None:
    shown = drive(app_on(write(tmp_path, crashed())), ["question_mark"], (80, 24))
    drawn = [line for line in shown.splitlines() if line.startswith("│")]
    assert f"1-{len(drawn)} of " in shown
