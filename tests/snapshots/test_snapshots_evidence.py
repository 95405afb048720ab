"""Evidence on the whole screen: everything about one row, and the record's own bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import GARBAGE, names, result, step_start, turn_start
from tests.tui.demo import app_on, crashed, says, two_unknown, write

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda s: f"{s[0]}x{s[1]}")


@SIZES
def test_owed_call(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """An owed call: its risk, arguments, each rule with its lines, when, and earlier calls of the tool."""
    assert snap_compare(app_on(write(tmp_path, crashed())), press=["enter"], terminal_size=size)


def test_waiting_call(snap_compare: Any, tmp_path: Path) -> None:
    """A call that waits for a person: rule W1."""
    press = ["2", "j", "j", "enter"]
    assert snap_compare(app_on(write(tmp_path, two_unknown())), press=press, terminal_size=(80, 24))


@SIZES
def test_record(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """A record as fields: long texts are wrapped, nested values indented, numbers as they were written."""
    long = "word " * 200
    nested = {"a": [1, 2.50, {"b": None}], "text": "two\nlines", "big": 12345678901234567890123}
    lines = [turn_start(1), says("go"), step_start(), result("x", long, metadata=nested)]
    path = write(tmp_path, [*lines, names(("c", "bash", {}))])
    assert snap_compare(app_on(path), press=["colon", "4", "enter", "enter"], terminal_size=size)


def test_raw_record(snap_compare: Any, tmp_path: Path) -> None:
    """Enter once more: the record's own bytes."""
    assert snap_compare(app_on(write(tmp_path, crashed())), press=["enter", "enter"], terminal_size=(80, 24))


def test_corrupt_line(snap_compare: Any, tmp_path: Path) -> None:
    """A line that can't be read: where it lies in the file, and its bytes made visible."""
    path = write(tmp_path, [turn_start(1), GARBAGE, says("go on")])
    assert snap_compare(app_on(path), press=["colon", "2", "enter", "enter"], terminal_size=(80, 24))


def test_large_record_in_the_pane(snap_compare: Any, tmp_path: Path) -> None:
    """A record of more than a megabyte: its head, and how much more there is."""
    path = write(tmp_path, [turn_start(1), result("x", "0123456789" * 200_000)])
    assert snap_compare(app_on(path), press=["k"], terminal_size=(120, 40))


def test_not_wrapped(snap_compare: Any, tmp_path: Path) -> None:
    """Long lines cut at the edge and moved to the left."""
    path = write(tmp_path, [turn_start(1), says("0123456789" * 30)])
    app = app_on(path)

    async def cut(pilot: Any) -> None:
        await pilot.press("colon", "2", "enter", "enter", "w", "right", "right")

    assert snap_compare(app, run_before=cut, terminal_size=(80, 24))
