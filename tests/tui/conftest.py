"""Each test works in a folder of its own, so no path of the host shows on a screen."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "COLORFGBG", "TMUX", "TEXTUAL"):
        monkeypatch.delenv(name, raising=False)
