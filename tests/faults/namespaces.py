"""Small worlds for one test: mounts of its own, processes of its own. Linux; elsewhere it is not permitted.

As root they take CAP_SYS_ADMIN, which a container may not have; as another user, user namespaces.
"""

from __future__ import annotations

import os
import sys

from tests.faults.child import NotPermitted, system

NEW_MOUNTS, NEW_USER, NEW_PIDS = 0x00020000, 0x10000000, 0x20000000
READ_ONLY, REMOUNT, RECURSIVE, PRIVATE = 1, 32, 16384, 1 << 18


def own_mounts() -> None:
    """From here on, what this process mounts is seen by it and its children alone, and goes with them."""
    _unshare(NEW_MOUNTS)
    mount("none", "/", "", RECURSIVE | PRIVATE, "")


def own_processes() -> None:
    """Where that is permitted, go on as the only process of a /proc of our own: a search in it is short."""
    try:
        other_numbers()
        mount("none", "/", "", RECURSIVE | PRIVATE, "")
        mount("proc", "/proc", "proc", 0, "")
    except NotPermitted:
        return


def other_numbers() -> None:
    """Go on as a process whose number is not the one that /proc knows it by."""
    _unshare(NEW_MOUNTS | NEW_PIDS)
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xFF)


def mount(source: str, target: str, type: str, flags: int, options: str) -> None:
    try:
        system("mount", source.encode(), target.encode(), type.encode(), flags, options.encode())
    except NotPermitted as refused:
        raise NotPermitted(f"mounting {type or 'a private root'} on {target}: {refused}") from refused


def small_disk(folder: str, size: str) -> None:
    """A file system in memory of `size` (as tmpfs takes it: `64k`)."""
    own_mounts()
    mount("tmpfs", folder, "tmpfs", 0, f"size={size}")


def make_read_only(folder: str) -> None:
    mount("tmpfs", folder, "tmpfs", REMOUNT | READ_ONLY, "")


def _unshare(flags: int) -> None:
    if sys.platform != "linux":
        raise NotPermitted("namespaces are Linux's own")
    user, group = os.geteuid(), os.getegid()
    try:
        if user == 0:
            system("unshare", flags)
            return
        system("unshare", flags | NEW_USER)
    except NotPermitted as refused:
        raise NotPermitted(f"a namespace of our own: {refused}") from refused
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
