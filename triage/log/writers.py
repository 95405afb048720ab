"""Who else has a log in hand: processes that hold it open for writing, or hold a lock on it.

Another triage is no agent: it holds a log for writing only while it owns the lock, and the append asks
under the lock. Nothing here writes.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

RECENT_SECONDS = 10.0  # a log that was written so lately may still be in use
_WRITES = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True, slots=True)
class Holder:
    """A process with the log in hand. `how` is "writes" or "locks"."""

    pid: int
    name: str
    how: str

    def __str__(self) -> str:
        does = "holds it open for writing" if self.how == "writes" else "holds a lock on it"
        return f"{self.name or 'a process'} (pid {self.pid}) {does}"


@dataclass(frozen=True, slots=True)
class Writers:
    """What was found, and in `unchecked` what could not be looked at, in words ("" where all was)."""

    holders: tuple[Holder, ...]
    unchecked: str = ""


def find_writers(status: os.stat_result) -> Writers:
    """The other processes that have the file of `status` in hand."""
    if sys.platform == "linux":
        return _on_linux(status)
    return _elsewhere(status)


def all_writers() -> dict[tuple[int, int], Holder]:
    """Who holds which file (device, inode) open for writing now, as far as this user may see; Linux only."""
    found: dict[tuple[int, int], Holder] = {}
    if sys.platform != "linux":
        return found
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            for file in _written_files(entry.name):
                found.setdefault(file, _holder(int(entry.name), "writes"))
    return found


def _written_files(pid: str) -> Iterator[tuple[int, int]]:
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            status = os.stat(f"{folder}/{name}")
            if stat.S_ISREG(status.st_mode) and _is_written(pid, name):
                yield status.st_dev, status.st_ino
    except OSError:
        return  # another user's process, or one that ended while we looked


def _is_written(pid: str, name: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as info:
        flags = next((line for line in info if line.startswith("flags:")), "flags: 0")
    return bool(int(flags.split()[1], 8) & _WRITES)


def written_lately(status: os.stat_result, now: float | None = None) -> bool:
    """Whether the file was written within the last `RECENT_SECONDS` (or in the future)."""
    return (time.time() if now is None else now) - status.st_mtime < RECENT_SECONDS


def _on_linux(status: os.stat_result) -> Writers:
    found: dict[tuple[int, str], Holder] = {}
    hidden = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if _writes(entry.name, status):
                found[int(entry.name), "writes"] = _holder(int(entry.name), "writes")
        except PermissionError:
            hidden += 1
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
    for pid in _lockers(status):
        found.setdefault((pid, "locks"), _holder(pid, "locks"))
    who = "a process of another user" if hidden == 1 else f"{hidden} processes of other users"
    unchecked = f"{who} could not be checked" if hidden else ""
    return Writers(tuple(found[key] for key in sorted(found)), unchecked)


def _writes(pid: str, status: os.stat_result) -> bool:
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        try:
            other = os.stat(f"{folder}/{name}")
            if (other.st_dev, other.st_ino) != (status.st_dev, status.st_ino):
                continue
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as info:
                flags = next(line for line in info if line.startswith("flags:"))
        except (FileNotFoundError, StopIteration):
            continue  # it was closed while we looked
        if int(flags.split()[1], 8) & _WRITES:
            return True
    return False


def _lockers(status: os.stat_result) -> set[int]:
    """The processes with a lock on the file, by the kernel's own table; -1 is a lock without an owner."""
    try:
        with open("/proc/locks", encoding="ascii") as table:
            rows = [line.split() for line in table]
    except OSError:
        return set()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    held = [row for row in rows if "->" not in row and len(row) >= 6 and row[5] == device]
    return {int(row[4]) for row in held} - {os.getpid(), -1}


def _holder(pid: int, how: str) -> Holder:
    import psutil  # only where somebody was found: its import costs more than the search

    try:
        return Holder(pid, psutil.Process(pid).name(), how)
    except psutil.Error:
        return Holder(pid, "", how)


def _elsewhere(status: os.stat_result) -> Writers:
    """Without /proc: by the paths of open files, which don't always say whether they are written."""
    import psutil

    found, hidden = [], 0
    for process in psutil.process_iter(["pid", "name"]):
        if process.pid == os.getpid():
            continue
        try:
            for file in process.open_files():
                mode = getattr(file, "mode", "a")
                if mode != "r" and os.path.samestat(os.stat(file.path), status):
                    found.append(Holder(process.pid, process.info["name"] or "", "writes"))
        except psutil.AccessDenied:
            hidden += 1
        except (psutil.Error, OSError):
            continue
    unchecked = "locks of other processes could not be checked on this system"
    if hidden:
        unchecked += f", nor the files of {hidden} processes"
    return Writers(tuple(found), unchecked)
