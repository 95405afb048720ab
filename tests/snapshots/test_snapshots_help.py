"""Help for where one is, the palette, and the question what to export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tui.demo import app_on, crashed, write

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}")


@SIZES
def test_help_of_the_main_screen(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """All keys by group, then the signs."""
    assert snap_compare(app_on(write(tmp_path, crashed())), press=["question_mark"], terminal_size=size)


@SIZES
def test_help_of_the_accept_screen(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """The answers first."""
    assert snap_compare(app_on(write(tmp_path, crashed())), press=["a", "question_mark"], terminal_size=size)


@SIZES
def test_palette(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """The commands that hold the typed letters."""
    press = ["ctrl+p", "c", "o", "p", "y"]
    assert snap_compare(app_on(write(tmp_path, crashed())), press=press, terminal_size=size)


def test_export(snap_compare: Any, tmp_path: Path) -> None:
    """Which kind of export."""
    assert snap_compare(app_on(write(tmp_path, crashed())), press=["x"], terminal_size=(80, 24))
