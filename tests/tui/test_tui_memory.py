"""What the screens keep doesn't grow with use: objects are counted, once everything was seen before."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from textual.widget import Widget

from tests.helpers import log
from tests.tui.demo import NAME, app_on, crashed, drive, healthy_turn, settle
from triage.tui.rows import Rows

PAGES, SEARCHES = 1000, 100
FEW = 800  # objects by which two counts may differ: less than one for each page


def objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def test_a_thousand_pages_and_a_hundred_searches_leave_nothing_behind(tmp_path: Path) -> None:
    turns = [happening for number in range(1, 60) for happening in healthy_turn(number, "look")]
    (tmp_path / NAME).write_bytes(log(*turns, *crashed()))
    counts = []

    async def use(pilot: Any, pages: int, searches: int) -> None:
        screen = pilot.app.screen
        rows = screen.query_one("#timeline", Rows)
        for number in range(pages):
            rows.action_page(1 if number % 100 < 50 else -1)
            for y in range(rows.size.height):
                rows.render_line(y)
            rows.refresh()
        await pilot.pause()
        for number in range(searches):
            screen._finder.start(f"part_{number % 10}")
            await settle(pilot)
        counts.append(objects())

    async def steps(pilot: Any) -> None:
        await use(pilot, 200, 20)
        await use(pilot, PAGES, SEARCHES)

    drive(app_on(NAME), steps)
    before, after = counts
    assert after - before < FEW, f"{before:,} objects, then {after:,}"


def test_a_question_that_was_answered_or_left_leaves_no_widget_behind(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(log(*crashed()))
    counts = []

    async def steps(pilot: Any) -> None:
        for _ in range(3):
            await pilot.press("slash", "escape", "slash", "a", "enter")
            await settle(pilot)
            gc.collect()
            counts.append(sum(isinstance(thing, Widget) for thing in gc.get_objects()))

    drive(app_on(NAME), steps)
    assert len(set(counts)) == 1
