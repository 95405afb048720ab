"""Whole processes, timed from outside: on pipes and on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

PATIENCE = 300.0  # seconds until a screen that doesn't come is a failure
NO_ANSWER = 1.0  # seconds after which a key is taken to have none
QUIET = 0.03  # seconds without a byte after which a screen is taken to stand

TRIAGE = (str(Path(sys.executable).with_name("triage")),)
PASS = (sys.executable, "-c", "pass")
PARSE = """
import sys, orjson
for path in sys.argv[1:]:
    for line in open(path, "rb"):
        try:
            orjson.loads(line)
        except ValueError:
            pass
"""
EMPTY_APP = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("painted")
Empty().run()
"""


def seconds(command: Sequence[str], one_core: bool = False) -> float:
    """How long a process takes from its start to its end. Raises RuntimeError where it fails."""
    return run(command, one_core)[0]


def run(command: Sequence[str], one_core: bool = False) -> tuple[float, int]:
    """Seconds and peak memory in bytes of a process (of its largest, where it starts others)."""
    core = min(os.sched_getaffinity(0))
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=(lambda: os.sched_setaffinity(0, {core})) if one_core else None,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return took, usage.ru_maxrss * 1024


class Screen:
    """A program on a pseudo-terminal of 120 columns and 40 rows."""

    def __init__(self, command: Sequence[str]) -> None:
        self._started = time.perf_counter()
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(command[0], command)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._seen = b""
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def until(self, wanted: bytes) -> float:
        """Seconds from the start until bytes that match `wanted` have come. Raises RuntimeError."""
        while not re.search(wanted, self._seen):
            if not self._read(PATIENCE):
                raise RuntimeError(f"{wanted!r} did not come; the last that came: {self._seen[-300:]!r}")
        return time.perf_counter() - self._started

    def press(self, key: bytes) -> tuple[float, int]:
        """Press a key. Seconds until its first answer came (or nothing did), and the answer's bytes."""
        self.settle()
        start, before = time.perf_counter(), self._count
        os.write(self._terminal, key)
        self._read(NO_ANSWER)
        took = time.perf_counter() - start
        self.settle()
        return took, self._count - before

    def settle(self, quiet: float = QUIET) -> None:
        """Wait until nothing more comes for so many seconds."""
        while self._read(quiet):
            pass

    def _read(self, patience: float) -> bool:
        if not select.select([self._terminal], [], [], patience)[0]:
            return False
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:
            return False
        self._seen = self._seen[-(1 << 16) :] + data
        self._count += len(data)
        return bool(data)

    @property
    def peak(self) -> int:
        """The most memory that it had, in bytes."""
        with open(f"/proc/{self._pid}/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def ratios(times: int, of: Callable[[], float], to: Callable[[], float]) -> list[float]:
    """The quotient of two measurements, `times` times, each pair taken one right after the other."""
    found = []
    for _ in range(times):
        yardstick = to()
        found.append(of() / yardstick)
    return found
