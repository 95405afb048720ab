"""A fault of triage itself: its trace goes to a file, not to a screen that may be pasted somewhere."""

from __future__ import annotations

import os
import time
import traceback

from triage.draft import state_folder


def keep_trace(error: BaseException) -> str:
    """Write the trace of an error (no values of variables) and return the file's path, "" if it can't be."""
    path = state_folder() / f"fault-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.txt"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return ""
    return str(path)
