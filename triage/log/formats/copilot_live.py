"""The living Copilot CLI processes that say that they run a session: `inuse.<pid>.lock` beside the log.

Stale locks are common: a dead pid, or one that another program has now, says nothing (the Copilot page).
"""

from __future__ import annotations

import os
import re

from triage.log.processes import living

PROGRAM = "copilot"
_LOCK = re.compile(r"inuse\.(\d{1,10})\.lock")


def processes(path: str) -> list[int]:
    """The pids of the living processes whose lock lies beside the log at `path`."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    found = []
    for name in names:
        match = _LOCK.fullmatch(name)
        if match is None:
            continue
        try:
            written = os.stat(os.path.join(folder, name)).st_mtime
        except OSError:
            continue
        if living(int(match[1]), PROGRAM, not_after=written):
            found.append(int(match[1]))
    return found
