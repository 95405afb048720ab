"""The main screen at each boundary: where in the loop it died, and what may happen next."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.tui.demo import app_on

SAMPLES = Path(__file__).parents[2] / "sample_logs"
NAMES = [
    *sorted(path.stem for path in SAMPLES.glob("boundary-*.jsonl")),
    "clean",  # terminal
    "crashed-dispatched",  # tool_open
    "waiting-input",
]


@pytest.mark.parametrize("name", NAMES)
def test_boundary(snap_compare: Any, tmp_path: Path, name: str) -> None:
    """The boundary in the header, and its sentence beside the plan."""
    shutil.copy(SAMPLES / f"{name}.jsonl", tmp_path)
    assert snap_compare(app_on(f"{name}.jsonl"), terminal_size=(120, 40))
