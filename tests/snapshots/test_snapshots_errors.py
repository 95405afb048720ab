"""What failed in a session, on the whole screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tui.demo import app_on, clean_log, settle, write

SAMPLE = Path(__file__).parents[2] / "sample_logs" / "errors-recurring.jsonl"
SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}")


async def errors(pilot: Any) -> None:
    await pilot.press("4")
    await settle(pilot)


@SIZES
def test_errors(snap_compare: Any, size: tuple[int, int]) -> None:
    """Each failure with its count, class, operation, decision, and its first and last time."""
    assert snap_compare(app_on(str(SAMPLE)), run_before=errors, terminal_size=size)


def test_nothing_failed(snap_compare: Any, tmp_path: Path) -> None:
    """A session in which nothing failed."""
    assert snap_compare(app_on(write(tmp_path, clean_log())), run_before=errors, terminal_size=(80, 24))
