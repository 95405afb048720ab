"""The screen while a large log is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import log
from tests.tui.demo import DARK, NAME, crashed
from triage.tui import watch
from triage.tui.app import make_app

TORN = b'{"seq":99,"type":"tool_result","time":null,"data":{"tool_call_id":"call_0a92","con'


async def half_way(pilot: Any) -> None:
    pilot.app.screen.post_message(watch.Reading(412_300_000, 1_000_000_000))
    await pilot.pause()


def test_opening(snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far the reading is, and the end of the log, which is no verdict."""
    (tmp_path / NAME).write_bytes(log(*crashed()) + TORN)
    monkeypatch.setattr(watch, "reload", lambda screen, path: None)
    assert snap_compare(make_app(NAME, theme=DARK), run_before=half_way, terminal_size=(100, 24))
