"""The command that opens the operator's editor at a line, read-only where the editor can."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

_VI = ("vi", "vim", "nvim", "view", "gvim", "vimx")


def editor_command(path: str, line: int, environ: Mapping[str, str]) -> list[str]:
    """The words of the command. The log is only to be looked at, so editors that know how open it so."""
    words = _words(environ.get("VISUAL") or environ.get("EDITOR") or "vi")
    name = os.path.basename(words[0])
    path = os.path.abspath(path)
    if name in _VI:
        return [*words, "-R", f"+{line}", path]
    if name in ("nano", "pico"):
        return [*words, "-v", f"+{line}", path]
    if name in ("code", "codium", "cursor"):
        return [*words, "--goto", f"{path}:{line}"]
    if name in ("hx", "helix", "subl", "zed", "micro"):
        return [*words, f"{path}:{line}"]
    return [*words, f"+{line}", path]


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command) or ["vi"]
    except ValueError:
        return [command]
