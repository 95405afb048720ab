"""The accept screen on its way from the first question to the log that is clean again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import GARBAGE, dispatch, log
from tests.tui.demo import NAME, app_on, crashed, healthy_turn, settle, two_unknown, write
from triage.session import Activity, Session

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}")


@SIZES
def test_unanswered(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """Three questions, none answered: the cursor on the first, the append locked."""
    assert snap_compare(app_on(write(tmp_path, two_unknown())), press=["a"], terminal_size=size)


@SIZES
def test_answered(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """Each answered in another way, one with a note: the append is open."""
    press = ["a", "R", "c", *"in the dashboard", "enter", "n", "U", "n", "D"]
    press = ["space" if key == " " else key for key in press]
    assert snap_compare(app_on(write(tmp_path, two_unknown())), press=press, terminal_size=size)


@SIZES
def test_appended(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """The lines that were written, and the log that was read again: clean."""
    app = app_on(write(tmp_path, crashed()))

    async def appended(pilot: Any) -> None:
        await pilot.press("a", "R", "A")
        await settle(pilot)

    assert snap_compare(app, run_before=appended, terminal_size=size)


def test_nothing_to_answer(snap_compare: Any, tmp_path: Path) -> None:
    """A crash in which no call may have run: the append is open at once."""
    path = write(tmp_path, [*healthy_turn(1, "look")[:-1]])
    assert snap_compare(app_on(path), press=["a"], terminal_size=(80, 24))


def test_corrupt_line_in_the_way(snap_compare: Any, tmp_path: Path) -> None:
    """A line of the open turn can't be read: said at the top."""
    path = write(tmp_path, [*crashed()[:-1], GARBAGE, crashed()[-1]])
    assert snap_compare(app_on(path), press=["a"], terminal_size=(80, 24))


def test_refused(snap_compare: Any, tmp_path: Path) -> None:
    """One JSON document: the plan is shown, the append refused with its reason and what to do."""
    events = [json.loads(line) for line in log(*crashed()).splitlines()]
    (tmp_path / NAME).write_text(json.dumps({"version": 2, "events": events}))
    assert snap_compare(app_on(NAME), press=["a"], terminal_size=(80, 24))


def test_in_use(snap_compare: Any, tmp_path: Path) -> None:
    """Another process holds the log: said before the answers are given."""

    def held(session: Session) -> Activity:
        return Activity(("python (pid 4711) holds it open for writing",), 0, False, False, "")  # type: ignore[arg-type]

    app = app_on(write(tmp_path, crashed()), look=held)

    async def looked(pilot: Any) -> None:
        await pilot.press("a")
        await settle(pilot)

    assert snap_compare(app, run_before=looked, terminal_size=(80, 24))


def test_moved(snap_compare: Any, tmp_path: Path) -> None:
    """The log grew under the answers: both states, the new plan, and which answers still hold."""
    app = app_on(write(tmp_path, two_unknown()))

    async def moved(pilot: Any) -> None:
        await pilot.press("a", "R", "n", "U", "n", "D")
        with (tmp_path / NAME).open("ab") as file:
            file.write(log(dispatch("call_3", "bash")))
        await pilot.press("A")
        await settle(pilot)

    assert snap_compare(app, run_before=moved, terminal_size=(80, 24))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_preview(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """The exact bytes, with the one answer that was given."""
    assert snap_compare(app_on(write(tmp_path, two_unknown())), press=["a", "R", "v"], terminal_size=size)


def test_leaving(snap_compare: Any, tmp_path: Path) -> None:
    """Leaving with answers: asked once, staying is the first choice."""
    app = app_on(write(tmp_path, two_unknown()))
    assert snap_compare(app, press=["a", "R", "escape"], terminal_size=(80, 24))


def test_comment(snap_compare: Any, tmp_path: Path) -> None:
    """The question for a note."""
    press = ["a", "c", "o", "k"]
    assert snap_compare(app_on(write(tmp_path, two_unknown())), press=press, terminal_size=(80, 24))
