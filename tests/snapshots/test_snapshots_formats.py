"""A log of each other format on the screens: what it owes in the format's own words, and what accept says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.tui.demo import app_on

FIXTURES = Path(__file__).parents[1] / "fixtures"
LOGS = pytest.mark.parametrize(
    "log",
    [
        "claude/bash-progress.jsonl",
        "codex/finished-item.jsonl",
        "copilot/approved.jsonl",
        "dsh/killed.jsonl",
        "pi/killed.jsonl",
        "klbr/open.jsonl",
        "maka/tool_interrupted",
        "orchestral/effects",
    ],
    ids=lambda log: log.partition("/")[0],
)


@pytest.fixture
def opened(log: str, tmp_path: Path) -> str:
    """A copy of a fixture in the test's own folder; returns its name, or that of the log in the folder."""
    source = FIXTURES / log
    if source.is_file():
        shutil.copy(source, tmp_path)
        return source.name
    shutil.copytree(source, tmp_path / source.name)
    return next((str(path) for path in Path(source.name).glob("generic-checkpoint-*")), source.name)


@LOGS
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_opened(snap_compare: Any, opened: str, size: tuple[int, int]) -> None:
    """Agent, version and model in the header; the evidence names the lines of this format."""
    assert snap_compare(app_on(opened), terminal_size=size)


@LOGS
def test_accept(snap_compare: Any, opened: str) -> None:
    """What would be appended, or the refusal that says why nothing can be and what to do instead."""
    assert snap_compare(app_on(opened), press=["a"], terminal_size=(120, 40))
