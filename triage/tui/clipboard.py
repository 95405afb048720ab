"""Copying: through the terminal (OSC 52), and under tmux into its buffer too."""

from __future__ import annotations

import os
import subprocess

from textual.app import App

TMUX_SECONDS = 2.0
MOST_BYTES = 1 << 20  # of a text that is copied at all: all of it goes through the terminal
TERMINAL_BYTES = 74_000  # many terminals drop a longer OSC 52 without a word


def copy(app: App[object], text: str) -> str:
    """Copy `text`. Returns what the operator should know about it, or ""."""
    whole = text.encode("utf-8", "replace")
    app.copy_to_clipboard(whole.decode())
    if os.environ.get("TMUX") and not app.is_headless:
        app.run_worker(lambda: _to_tmux(whole), thread=True, group="clipboard", exit_on_error=False)
        return "in the tmux buffer too"
    if len(whole) > TERMINAL_BYTES:
        return "long: your terminal may have refused it"
    return ""


def _to_tmux(text: bytes) -> None:
    try:
        subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=text,
            timeout=TMUX_SECONDS,
            check=False,
            capture_output=True,
        )
    except (OSError, subprocess.SubprocessError):
        pass  # OSC 52 was sent; this is the second way
