"""What these tests share: copies of the samples, `triage` on a pseudo-terminal, and `triage` without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.terminal import COMMAND, PATIENCE, Terminal, environment

SAMPLES = Path(__file__).parents[2] / "sample_logs"

TIMELINE = "[1] timeline"
Start = Callable[..., Terminal]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Sample = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of whoever runs `triage` in a test."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """`sample(name)` copies a sample log; it was written an hour ago, so no agent seems to be at it."""

    def copy(name: str, called: str = "log.jsonl") -> Path:
        path = tmp_path / called
        shutil.copyfile(SAMPLES / name, path)
        an_hour_ago = time.time() - 3600
        os.utime(path, (an_hour_ago, an_hour_ago))
        return path

    return copy


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    """`start(log, …, size=, env=, ready=)` opens the screen and waits for its first view."""
    opened: list[Terminal] = []

    def open_screen(
        *arguments: str | bytes | Path,
        size: tuple[int, int] = (120, 40),
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        ready: str = TIMELINE,
        colours: bool = False,
    ) -> Terminal:
        words = [os.fspath(argument) for argument in arguments]
        screen = Terminal(*words, home=home, size=size, env=env, cwd=cwd or home, colours=colours)
        opened.append(screen)
        if ready:
            screen.wait_until(
                lambda: ready in screen.text and screen.marked and len(screen.lines[2]) == screen.width, ready
            )
        return screen

    yield open_screen
    for screen in opened:
        screen.close()


@pytest.fixture
def run(home: Path) -> Run:
    """`run(…)` runs `triage` without a terminal and returns what it said and its exit code."""

    def run_command(
        *arguments: str | bytes | Path,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        **how: object,
    ) -> subprocess.CompletedProcess[str]:
        words = [os.fspath(argument) for argument in arguments]
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        return subprocess.run(  # type: ignore[call-overload,no-any-return]
            [COMMAND, *words],
            env=environment(home, env),
            cwd=cwd or home,
            timeout=2 * PATIENCE,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
            **given,
        )

    return run_command
