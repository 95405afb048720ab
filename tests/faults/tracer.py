"""A child that is stopped at each of its system calls, as it enters and as it leaves it (ptrace).

At a stop it can be killed, the call can be refused with an error or cut short, and the world around it
can be changed. The calls are the kernel's: nothing of the child's own code is replaced.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.child import Child, NotPermitted, Outcome, start

_TRACEME, _SYSCALL, _SETOPTIONS, _GET_INFO, _GETREGS, _SETREGS = 0, 24, 0x4200, 0x420E, 12, 13
_EXIT_KILL, _MARK_SYSCALLS = 1 << 20, 1
_AT_SYSCALL = signal.SIGTRAP | 0x80
_ENTRY = 1

# x86-64: numbers of the calls that tests name, and where registers lie in struct user_regs_struct
CALLS = {
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lseek": 8, "pread64": 17, "flock": 73,
    "fsync": 74, "ftruncate": 77, "getdents": 78, "readlink": 89, "getdents64": 217, "openat": 257,
    "newfstatat": 262, "unlinkat": 263, "unlink": 87, "readlinkat": 267, "statx": 332,
}  # fmt: skip
_NAMES = {number: name for name, number in CALLS.items()}
_REGISTERS, _VALUE, _COUNT, _NUMBER = 27, 10, 12, 15

MOST_IN_SEARCHES = 400  # stops in one append's searches through /proc that are tried

_ptrace = ctypes.CDLL(None, use_errno=True).ptrace if sys.platform == "linux" else None
if _ptrace is not None:
    _ptrace.restype = ctypes.c_long
    _ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True)
class Stop:
    """One stop of a child: `entry` or return, the call's name ("" for one not in CALLS), its arguments."""

    entry: bool
    name: str
    arguments: tuple[int, ...]


class Traced:
    """A child that runs from stop to stop."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.pid = child.pid
        self._ended: int | None = None
        self._signal = 0
        self._at: Stop | None = None
        if self._wait() != signal.SIGSTOP:
            outcome = child.outcome(self._ended or 0)
            raise NotPermitted(f"tracing a child: {outcome.err.strip().splitlines()[-1:]}")
        _call(_SETOPTIONS, self.pid, 0, _EXIT_KILL | _MARK_SYSCALLS)

    def step(self) -> bool:
        """Go on to the next stop; False where the child has ended instead."""
        while self._ended is None:
            _call(_SYSCALL, self.pid, 0, self._signal)
            found = self._wait()
            self._signal = 0
            if found == _AT_SYSCALL:
                return True
            self._signal = found or 0
        return False

    def stops(self) -> Iterator[Stop]:
        """Each stop from here on, with what the child is about to do or has done."""
        while self.step():
            yield self.look()

    def until(self, wanted: Callable[[Stop], bool]) -> Stop:
        """Go on to the first stop that is wanted. Fails where the child ends before."""
        for stop in self.stops():
            if wanted(stop):
                return stop
        raise AssertionError(f"it ended before: {self.child.outcome(self._ended or 0)}")

    def at(self, name: str, path: Path) -> Callable[[Stop], bool]:
        """Whether a stop is the entry of a call of this name on this file; an `openat`: for writing."""

        def wanted(stop: Stop) -> bool:
            if not stop.entry or stop.name != name:
                return False
            if name == "openat":
                return self.opened(stop) == str(path) and bool(stop.arguments[2] & os.O_WRONLY)
            return self.file(stop) == str(path)

        return wanted

    def look(self) -> Stop:
        """What the child is at."""
        buffer = ctypes.create_string_buffer(88)
        _call(_GET_INFO, self.pid, len(buffer), ctypes.addressof(buffer))
        if buffer.raw[0] == _ENTRY:
            number, *arguments = struct.unpack_from("=7Q", buffer.raw, 24)
            self._at = Stop(True, _NAMES.get(number, "") if _knows_registers() else "", tuple(arguments))
        elif self._at is not None:
            self._at = Stop(False, self._at.name, self._at.arguments)
        else:
            self._at = Stop(False, "", ())
        return self._at

    def file(self, stop: Stop) -> str:
        """The path of the file that a call's first argument, a descriptor, is open on; "" for none."""
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{stop.arguments[0]}")
        except OSError:
            return ""

    def opened(self, stop: Stop) -> str:
        """The path that an `openat` is about to open."""
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(stop.arguments[1])
            return os.fsdecode(memory.read(4096).split(b"\0")[0])

    def refuse(self, error: int) -> None:
        """At an entry: let the call fail with `error` instead of being made."""
        self._set(_NUMBER, 2**64 - 1)
        assert self.step()
        self._set(_VALUE, 2**64 - error)

    def shorten(self, count: int) -> None:
        """At the entry of a read or a write: let the kernel move only `count` bytes."""
        self._set(_COUNT, count)

    def kill(self) -> None:
        """SIGKILL, here and now."""
        os.kill(self.pid, signal.SIGKILL)
        while self._ended is None:
            self._wait()

    def finish(self) -> Outcome:
        """Let it run to its end, still step by step."""
        while self.step():
            pass
        return self.child.outcome(self._ended or 0)

    def _set(self, register: int, value: int) -> None:
        if not _knows_registers():
            raise NotPermitted(
                f"changing the registers of {platform.machine()}: only those of x86-64 are known"
            )
        registers = (ctypes.c_uint64 * _REGISTERS)()
        _call(_GETREGS, self.pid, 0, ctypes.addressof(registers))
        registers[register] = value
        _call(_SETREGS, self.pid, 0, ctypes.addressof(registers))

    def _wait(self) -> int | None:
        """The signal of the next stop; None where the child ended."""
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSTOPPED(status):
            return os.WSTOPSIG(status)
        self._ended = self.child._code = os.waitstatus_to_exitcode(status)
        return None


def _knows_registers() -> bool:
    return platform.machine() == "x86_64"


def _call(request: int, pid: int, address: int, data: int) -> None:
    assert _ptrace is not None
    if _ptrace(request, pid, address, data) == -1:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace({request}): {os.strerror(error)}")


def _be_traced() -> None:
    if _ptrace is None:
        raise NotPermitted("ptrace is Linux's own")
    if _ptrace(_TRACEME, 0, 0, 0) == -1:
        raise NotPermitted(f"ptrace: {os.strerror(ctypes.get_errno())}")
    os.kill(os.getpid(), signal.SIGSTOP)


@contextmanager
def traced(*arguments: object) -> Iterator[Traced]:
    """`triage` with these arguments, stopped before its first system call. It does not outlive the block."""
    child = Traced(start(*arguments, first=_be_traced))
    try:
        yield child
    finally:
        if child._ended is None:
            child.kill()


Place = tuple[bool, int]  # of a stop: whether it lies in a search through /proc, and its number among such


def places(child: Traced) -> Iterator[tuple[Place, Stop]]:
    """Each stop from here on and its place, which is the same each time outside the searches."""
    counts, searching = [0, 0], False
    for stop in child.stops():
        if stop.name == "openat" and stop.entry:
            searching = child.opened(stop).startswith("/proc")
        counts[searching] += 1
        yield (searching, counts[searching]), stop


def places_to_try(child: Traced, wanted: Callable[[Stop], bool] = bool) -> tuple[int, list[Place]]:
    """How many of a child's stops are wanted, and the places of those to make a fault at.

    That is all of them; but where the search for writers goes through more processes than a space of our
    own would have, only some of its stops, each as good as another.
    """
    found = [place for place, stop in places(child) if wanted(stop)]
    inside = [place for place in found if place[0]]
    some = inside[:: 1 + len(inside) // MOST_IN_SEARCHES]
    return len(found), [*(place for place in found if not place[0]), *some]


def reach(child: Traced, wanted: Place) -> Stop | None:
    """Go on to a place; None where the child has none such this time, and has ended."""
    return next((stop for place, stop in places(child) if place == wanted), None)
