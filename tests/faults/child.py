"""Real child processes: each is a fork of this one, in which everything is imported already.

outcome = triage("apply", log, "--ack", "a=ran")
assert outcome.code == 4, outcome
"""

from __future__ import annotations

import codecs
import ctypes
import getpass
import os
import pickle
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import platformdirs
import psutil
import pytest

import triage.commands.apply
import triage.commands.history
import triage.commands.plan
import triage.report
from triage.cli import main

NOBODY = 65534
PR_SET_NAME = 15
# What `triage` imports as late as it can: here, once, and not in each child, which may not be permitted to.
LATE = (codecs.lookup("ascii"), getpass, platformdirs.user_state_path("triage"), psutil)
_libc = ctypes.CDLL(None, use_errno=True)


class NotPermitted(Exception):
    """This environment does not let a test make its fault; the text says exactly what was refused."""


def system(name: str, *arguments: Any) -> int:
    """Call the C library. Raises NotPermitted with the call and the system's own words where it fails."""
    ctypes.set_errno(0)
    value: int = getattr(_libc, name)(*arguments)
    if value == -1 and ctypes.get_errno():
        raise NotPermitted(f"{name}: {os.strerror(ctypes.get_errno())}")
    return value


@dataclass(frozen=True)
class Outcome:
    """How a child ended. `code` is its exit code, or minus the signal that killed it."""

    code: int
    out: str
    err: str


@dataclass
class Child:
    """A running child and the files that its output goes to."""

    pid: int
    out: IO[bytes]
    err: IO[bytes]
    _code: int | None = field(default=None, repr=False)

    def wait(self) -> Outcome:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.outcome(self._code)

    def outcome(self, code: int) -> Outcome:
        texts = [os.pread(file.fileno(), 1 << 24, 0).decode() for file in (self.out, self.err)]
        self.out.close()
        self.err.close()
        return Outcome(code, *texts)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def fork(function: Callable[[], int], name: str = "") -> Child:
    """Run `function` in a child, its output in files; the child exits with what it returns."""
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
    pid = os.fork()
    if pid:
        return Child(pid, out, err)
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores them
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        if name:
            system("prctl", PR_SET_NAME, name.encode(), 0, 0, 0)
        code = function()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def start(*arguments: object, first: Callable[[], None] | None = None) -> Child:
    """Start `triage` with these arguments in a child; `first` is run in the child before it."""

    def run() -> int:
        if first is not None:
            first()
        try:
            return main([str(argument) for argument in arguments])
        except SystemExit as stop:
            return int(stop.code or 0)

    return fork(run)


def triage(*arguments: object, first: Callable[[], None] | None = None) -> Outcome:
    """`triage` with these arguments, from start to end."""
    return start(*arguments, first=first).wait()


@contextmanager
def standing(function: Callable[[], object], name: str = "") -> Iterator[Child]:
    """A child that has called `function`, and keeps what it returned until the block ends or it is killed."""
    (ready, done), (until, end) = os.pipe(), os.pipe()

    def stand() -> int:
        os.close(end)
        kept = function()
        os.write(done, b"!")
        os.read(until, 1)  # nothing comes: it ends when this process does
        return int(kept is None)

    child = fork(stand, name)
    os.close(done)
    os.close(until)
    try:
        if os.read(ready, 1) != b"!":
            raise AssertionError(child.wait())
        yield child
    finally:
        os.close(ready)
        os.close(end)
        child.wait()


def elsewhere(
    function: Callable[..., Any], *arguments: Any, prepare: Callable[[], None] | None = None
) -> Callable[[], Any]:
    """Start `function` in a child that calls `prepare` first. Call what this returns for its value.

    That fails the test where the function did, and skips it where the child was not permitted something.
    """
    answer = tempfile.TemporaryFile()  # noqa: SIM115

    def run() -> int:
        try:
            if prepare is not None:
                prepare()
            found: tuple[str, Any] = ("value", function(*arguments))
        except NotPermitted as refused:
            found = ("skip", str(refused))
        except BaseException:
            found = ("failure", traceback.format_exc())
        os.pwrite(answer.fileno(), pickle.dumps(found), 0)
        return 0

    child = fork(run)

    def value() -> Any:
        outcome = child.wait()
        with answer:
            raw = os.pread(answer.fileno(), 1 << 30, 0)
        kind, found = pickle.loads(raw) if raw else ("failure", str(outcome))
        if kind == "skip":
            raise NotPermitted(found)
        if kind == "failure":
            pytest.fail(found, pytrace=False)
        return found

    return value


def become_nobody() -> None:
    """Drop the rights of root, for which no file is read-only; another user stays who they are."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
