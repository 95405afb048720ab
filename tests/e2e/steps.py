"""What several tests do: move, go to a line, open the accept screen, read what was appended."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.e2e.terminal import Terminal

TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def moved(screen: Terminal, key: str, to: str = "") -> str:
    """Press a key that moves the cursor, and return the row that it is on then, which begins with `to`."""
    here = screen.marked
    screen.press(key)
    screen.wait_until(
        lambda: screen.marked not in ("", here) and screen.marked.lstrip().startswith(to),
        f"{key} moves from {here} to {to}",
    )
    return screen.marked


def to_line(screen: Terminal, line: int) -> None:
    """Go to a line of the log."""
    screen.press(":")
    screen.wait_for("go to line")
    screen.type(str(line))
    screen.press("enter")
    screen.wait_until(lambda: screen.marked.lstrip().startswith(f"{line} "), f"line {line}")


def accept(screen: Terminal) -> None:
    """Open the accept screen."""
    screen.press("a")
    screen.wait_until(
        lambda: "─ accept ─" in screen.text and "answer needed)" in screen.text,
        "the accept screen",
    )


def appended(log: Path, before: bytes) -> list[dict[str, Any]]:
    """The records after the old bytes, which must all be there still."""
    after = log.read_bytes()
    assert after.startswith(before)
    return [json.loads(line) for line in after[len(before) :].splitlines() if line]
