"""What the commands share: exit codes, arguments, and how they print and fail.

Exit codes: 0 nothing to repair, or repaired; 1 a repair is planned, or the log is doubtful; 2 wrong
usage; 3 a named log can't be read; 4 refused, nothing written. Of several, the highest.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from triage.text import clean, escape_json

CLEAN, PLANNED, USAGE, UNREADABLE, REFUSED = 0, 1, 2, 3, 4


def parser(name: str, description: str, **keywords: Any) -> argparse.ArgumentParser:
    """A parser for `triage` or one of its commands. It exits with code 2 by itself."""
    return argparse.ArgumentParser(
        prog=name,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **keywords,
    )


def login() -> str:
    """The name of the user, or "" where the system has none."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def code_of(status: str) -> int:
    """The exit code for a plan's status."""
    return CLEAN if status == "clean" else PLANNED


def say_if_empty(path: str, size: int) -> None:
    """An empty log is clean; that it is empty is said beside it."""
    if size == 0:
        note(f"{path} is empty: a log without events")


def show(text: str) -> None:
    """Print one line of a result."""
    sys.stdout.write(text + "\n")


def show_json(row: dict[str, Any]) -> None:
    """Print one row as JSON on a line of its own; a terminal that it lands on is safe from it."""
    from triage.log.json_text import dumps

    show(escape_json(dumps(row)))


def note(says: str) -> None:
    """One line on stderr, cleaned."""
    sys.stdout.flush()
    sys.stderr.write(f"triage: {clean(says)}\n")


def fail(says: str, code: int) -> int:
    """One line on stderr, cleaned; returns `code`."""
    note(says)
    return code
