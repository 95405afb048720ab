"""Whether the process that an agent's own file names is still alive, and still that agent."""

from __future__ import annotations

import os

SLACK_SECONDS = 5.0  # between a process's start as the system tells it and as its agent wrote it


def living(pid: int, program: str, *, started: float | None = None, not_after: float | None = None) -> bool:
    """Whether `pid` lives and is the program; a pid that was given to another process since is not.

    `program` is a part of its name or command line. `started`: when it began, `not_after`: the latest that
    it can have begun, both in seconds since 1970. A process of which nothing can be read counts as living.
    """
    import psutil

    if pid <= 0 or pid == os.getpid():
        return False
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        born = process.create_time()
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
    if started is not None and abs(born - started) > SLACK_SECONDS:
        return False
    if not_after is not None and born > not_after + SLACK_SECONDS:
        return False
    try:
        words = [process.name(), *process.cmdline()]
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
    return any(program in word.lower() for word in words)
