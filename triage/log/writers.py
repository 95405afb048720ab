"""Who else has a log in hand: processes that hold it open for writing, or hold a lock on it.

Another triage is no agent: it holds a log for writing only while it owns the lock, and the append asks
under the lock. Nothing here writes.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from triage.log.decoder import BaseDecoder

RECENT_SECONDS = 10.0  # a log that was written so lately may still be in use
_WRITES = os.O_WRONLY | os.O_RDWR
_LOCKS = ("FLOCK", "POSIX", "OFDLCK")  # as the kernel writes them; a lease is no lock
_NOBODY = -1  # the owner of a lock that belongs to an open file, not to a process


_DOES = {
    "writes": "holds it open for writing",
    "locks": "holds a lock on it",
    "runs": "says that it runs this session",
    "guards": "holds its agent's lock",
}


class Holder(NamedTuple):
    """A process with the log in hand. `how` is a key of `_DOES`."""

    pid: int
    name: str
    how: str

    def __str__(self) -> str:
        who = f"{self.name or 'a process'} (pid {self.pid})" if self.pid != _NOBODY else "a hidden process"
        return f"{who} {_DOES[self.how]}"


class Writers(NamedTuple):
    """What was found, and in `unchecked` what could not be looked at, in words ("" where all was)."""

    holders: tuple[Holder, ...]
    unchecked: str = ""


def in_hand(decoder: BaseDecoder, path: str, status: os.stat_result) -> Writers:
    """Who has the log of `path` in hand: the processes of `find_writers`, and those of its own agent."""
    found = find_writers(status)
    known = {holder.pid for holder in found.holders}
    agents = dict.fromkeys(_guards(decoder.locks(path)), "guards")
    agents.update(dict.fromkeys(decoder.processes(path), "runs"))
    others = [_holder(pid, how) for pid, how in sorted(agents.items()) if pid not in known]
    return Writers((*found.holders, *others), found.unchecked)


def _guards(locks: Sequence[str]) -> Iterator[int]:
    """The processes that hold one of an agent's lock files; Linux only: elsewhere the append finds them."""
    for lock in locks:
        with suppress(OSError):
            yield from _lockers(os.stat(lock))


def find_writers(status: os.stat_result) -> Writers:
    """The other processes that have the file of `status` in hand."""
    if sys.platform == "linux":
        return _on_linux(status)
    return _elsewhere(status)


def all_writers() -> dict[tuple[int, int], int]:
    """Which process holds which file (device, inode) open for writing now, as far as this user may see.

    Linux only.
    """
    found: dict[tuple[int, int], int] = {}
    if sys.platform != "linux":
        return found
    with suppress(OSError):
        for pid in _others():
            for file in _written_files(pid):
                found.setdefault(file, int(pid))
    return found


def writer(pid: int) -> Holder:
    """The process of this pid, which `all_writers` found."""
    return _holder(pid, "writes")


def _written_files(pid: str) -> Iterator[tuple[int, int]]:
    folder, names = f"/proc/{pid}/fd", list[str]()
    with suppress(OSError):  # another user's process, or one that ended while we looked
        names = os.listdir(folder)
    for name in names:
        with suppress(OSError):  # it was closed while we looked
            status = os.stat(f"{folder}/{name}")
            if stat.S_ISREG(status.st_mode) and _is_written(pid, name):
                yield status.st_dev, status.st_ino


def _is_written(pid: str, name: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as info:
        flags = next((line for line in info if line.startswith("flags:")), "flags: 0")
    return bool(int(flags.split()[1], 8) & _WRITES)


def written_lately(status: os.stat_result, now: float | None = None) -> bool:
    """Whether the file was written within the last `RECENT_SECONDS` (or in the future)."""
    return (time.time() if now is None else now) - status.st_mtime < RECENT_SECONDS


def _on_linux(status: os.stat_result) -> Writers:
    found: dict[int, str] = {}
    hidden, unchecked = 0, []
    try:
        pids = _others()
        if not os.path.exists("/proc/1"):  # it shows this user's own alone
            unchecked.append("processes of other users are hidden here and could not be checked")
    except OSError:
        pids = []
        unchecked.append("other processes could not be checked")
    for pid in pids:
        try:
            how = _has_in_hand(pid, status)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        except OSError:
            hidden += 1
        else:
            if how:
                found[int(pid)] = how
    try:
        for locker in _lockers(status):
            if locker != _NOBODY or not found:
                found.setdefault(locker, "locks")
    except OSError:
        unchecked.append("locks of other processes could not be checked")
    if hidden:
        who = "a process of another user" if hidden == 1 else f"{hidden} processes of other users"
        unchecked.append(f"{who} could not be checked")
    return Writers(tuple(_holder(pid, found[pid]) for pid in sorted(found)), "; ".join(unchecked))


def _others() -> list[str]:
    """The other processes, by /proc, whose numbers may not be ours: asked there too. Raises OSError."""
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    if not pids:  # not even we: it is not mounted
        raise FileNotFoundError
    own = str(_own_pid())
    return [pid for pid in pids if pid != own]


def _own_pid() -> int:
    try:
        return int(os.readlink("/proc/self"))
    except (OSError, ValueError):
        return os.getpid()


def _has_in_hand(pid: str, status: os.stat_result) -> str:
    """How a process holds the file: "writes" where it is open for writing, "locks" where locked, else ""."""
    folder, how = f"/proc/{pid}/fd", ""
    for name in os.listdir(folder):
        try:
            other = os.stat(f"{folder}/{name}")
            if (other.st_dev, other.st_ino) != (status.st_dev, status.st_ino):
                continue
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as info:
                rows = [line.split() for line in info]
        except FileNotFoundError:
            continue  # it was closed while we looked
        if any(row[0] == "flags:" and int(row[1], 8) & _WRITES for row in rows if len(row) > 1):
            return "writes"
        if any(row[0] == "lock:" and row[2] in _LOCKS for row in rows if len(row) > 2):
            how = "locks"
    return how


def _lockers(status: os.stat_result) -> set[int]:
    """The processes with a lock on the file, by the kernel's own table: also those whose files are hidden."""
    with open("/proc/locks", encoding="ascii") as table:
        rows = [line.split() for line in table]
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    held = [row for row in rows if len(row) > 5 and row[1] in _LOCKS and row[5] == file]
    return {int(row[4]) for row in held} - {_own_pid()}


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
