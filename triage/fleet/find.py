"""The files below a folder that may be session logs. Links are never followed out of the folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from triage.log.formats import is_log_folder


def agents_folders(environ: Mapping[str, str]) -> list[str]:
    """The folders in which the agents keep their sessions, those that are on this machine."""
    home = environ.get("HOME") or os.path.expanduser("~")
    claude = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    codex = environ.get("CODEX_HOME") or os.path.join(home, ".codex")
    places = [
        os.path.join(claude, "projects"),
        os.path.join(codex, "sessions"),
        os.path.join(codex, "archived_sessions"),
        os.path.join(home, ".copilot", "session-state"),
        os.path.join(home, ".dsh", "sessions"),
        os.path.join(home, ".pi", "agent", "sessions"),
    ]
    return [place for place in places if os.path.isdir(place)]


def files(paths: Iterable[str]) -> Iterator[str]:
    """The candidates of several paths, each once, found as they are asked for."""
    seen: set[str] = set()
    for path in paths:
        for file in candidates(path):
            if file not in seen:
                seen.add(file)
                yield file


def candidates(path: str) -> Iterator[str]:
    """`path` itself where it is a file or a log that is a folder; else every regular file below it, by name.

    A folder that can't be listed, or that vanishes meanwhile, holds nothing.
    """
    if not os.path.isdir(path) or is_log_folder(path):
        yield path
        return
    open_folders = [_entries(path)]
    while open_folders:
        entry = next(open_folders[-1], None)
        try:
            if entry is None:
                open_folders.pop()
            elif entry.is_dir(follow_symlinks=False) and not is_log_folder(entry.path):
                open_folders.append(_entries(entry.path))
            elif entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False):
                yield entry.path
        except OSError:
            continue


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return iter(sorted(entries, key=lambda entry: entry.name))
    except OSError:
        return iter(())
