"""The living Claude Code processes that say that they run a session.

Each writes a file into `sessions/` of its home, with its pid, the session and when it started. It keeps no
handle on the log, so the file is all there is to go by (the Claude Code page, "Live").
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from triage.log.processes import living

PROGRAM = "claude"


def processes(path: str) -> list[int]:
    """The pids of the living processes whose file names the session of the log at `path`."""
    session = os.path.basename(path).partition(".")[0]
    found = []
    for name, row in _files(os.path.join(_home(path), "sessions")):
        if row.get("sessionId") != session:
            continue
        pid = row.get("pid", name.partition(".")[0])
        started = row.get("startedAt")
        seconds = started / 1000 if isinstance(started, int | float) else None
        if str(pid).isdigit() and living(int(pid), PROGRAM, started=seconds):
            found.append(int(pid))
    return found


def _home(path: str) -> str:
    """The agent's home: the folder that holds `projects/`, where the log lies in such a one."""
    projects = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    if os.path.basename(projects) == "projects":
        return os.path.dirname(projects)
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")


def _files(folder: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                row = json.load(file)
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield name, row
