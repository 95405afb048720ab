"""Each picture of a screen belongs to a test: one that nothing compares any more would lie."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_there_is_a_snapshot_for_each_test_and_no_other() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "tests/snapshots"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    tests = {line.replace(".py::", "/") for line in done.stdout.splitlines() if "::" in line}
    kept = (ROOT / "tests/snapshots/__snapshots__").glob("*/*")
    assert {f"tests/snapshots/{path.parent.name}/{path.stem}" for path in kept} == tests
