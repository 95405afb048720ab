"""The files below a folder that may be session logs. Links are never followed out of the folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

from triage.log.formats import is_log_folder


def candidates(path: str) -> Iterator[str]:
    """`path` itself where it is a file or a log that is a folder; else every regular file below it, by name.

    A folder that can't be listed, or that vanishes meanwhile, holds nothing.
    """
    if not os.path.isdir(path) or is_log_folder(path):
        yield path
        return
    try:
        with os.scandir(path) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from candidates(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry.path
        except OSError:
            continue
