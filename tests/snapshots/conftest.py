"""Snapshots are taken in a folder of their own, without colours of the host and without a blinking cursor."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "COLORFGBG", "TMUX", "TEXTUAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("triage.log.append.utc_now", lambda: "2026-05-20T11:00:30.000Z")
