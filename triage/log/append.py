"""The only code that writes a log, and only to append.

In order: the gate (every entry that needs a person has an answer), an exclusive lock, the comparison
with the plan's base, one write, fsync, and a read-back that must find the same bytes and nothing left
to repair. The lock is taken through a descriptor for reading; the one for writing is opened last.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from triage.log.journal import Base, Journal, open_for_reading, read_base, read_journal
from triage.recovery.acknowledge import Answer, answered
from triage.recovery.plan import Plan, Refusal, Repair, make_plan

LOCK_SECONDS = 10.0  # how long another triage may hold the lock before we give up
LOCK_PAUSE = 0.02  # seconds between two tries


class Refused(Exception):
    """Nothing was appended; `refusal` says why. `before` and `after` are sizes in bytes where they moved."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.says)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Applied:
    """What was appended: the records, the file's line (from 1) of the first, and sizes in bytes."""

    repairs: tuple[Repair, ...]
    first_line: int
    text: bytes
    bytes_before: int
    bytes_after: int


def utc_now() -> str:
    """The time now in UTC, ISO 8601, in milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_to_append(journal: Journal, repairs: tuple[Repair, ...], now: str | None) -> bytes:
    """The exact bytes of a repair: a leading newline where the file does not end in one, then its lines."""
    lines = journal.decoder.encode(repairs, journal.base.last_seq + 1, now, journal.records)
    if not lines:
        return b""
    lead = b"" if journal.base.ends_with_newline else b"\n"
    return lead + "".join(line + "\n" for line in lines).encode("utf-8")


def append(journal: Journal, plan: Plan, answers: Mapping[str, Answer], base: Base | None = None) -> Applied:
    """Append the plan's repair with the operator's answers.

    `base` is the state that the operator saw, where it isn't the journal's own. Raises Refused (nothing
    was written), acknowledge.Unanswered and acknowledge.BadAnswer (nothing was opened for writing).
    """
    repairs = answered(plan, answers)
    if plan.refusal is not None:
        raise Refused(plan.refusal)
    if not repairs:
        return Applied((), journal.lines, b"", journal.base.size, journal.base.size)
    text = text_to_append(journal, repairs, utc_now())
    reader = open_for_reading(journal.path)
    try:
        _lock(reader, journal.path)
        _compare(reader, journal.path, base or journal.base)
        _write(journal.path, reader, text)
        _read_back(reader, journal, text)
    finally:
        os.close(reader)  # and the lock with it
    size = journal.base.size
    first = journal.lines + 1
    return Applied(repairs, first, text, size, size + len(text))


def _lock(reader: int, path: str) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(reader, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                says = (
                    f"{path} can't be locked here ({os.strerror(error.errno or 0)}): copy it to a local disk"
                )
                raise Refused(Refusal("no_lock", says)) from error
            if time.monotonic() > deadline:
                says = f"{path} is locked by another process: try again when it is done"
                raise Refused(Refusal("locked", says, retryable=True)) from error
        time.sleep(LOCK_PAUSE)


def _compare(reader: int, path: str, base: Base) -> None:
    """Refuse where the log is not exactly what the plan was made from."""
    here = os.stat(path)
    held = os.fstat(reader)
    now = read_base(reader, base.last_seq)
    if (here.st_dev, here.st_ino) == (held.st_dev, held.st_ino) and now == base:
        return
    raise Refused(moved(path, base))


def moved(path: str, base: Base) -> Refusal:
    """The refusal for a log that is no longer in the state `base`; it names both states."""
    fresh = read_journal(path).base
    says = (
        f"{path} moved since the plan was made: from {base.size:,} bytes, last seq {base.last_seq}, "
        f"to {fresh.size:,} bytes, last seq {fresh.last_seq}; look at the new plan"
    )
    if fresh == base or (fresh.size, fresh.last_seq) == (base.size, base.last_seq):
        says += " (same size: the file was replaced or its end was rewritten)"
    return Refusal("log_moved", says, retryable=True)


def _write(path: str, reader: int, text: bytes) -> None:
    try:
        writer = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        says = f"{path} can't be opened for appending: {os.strerror(error.errno or 0)}"
        raise Refused(Refusal("not_writable", says)) from error
    try:
        if not os.path.sameopenfile(reader, writer):
            raise Refused(
                Refusal("log_moved", f"{path} was replaced just now: look at the new plan", retryable=True)
            )
        written = os.write(writer, text)
        while written < len(text):
            written += os.write(writer, text[written:])
        os.fsync(writer)
    finally:
        os.close(writer)


def _read_back(reader: int, journal: Journal, text: bytes) -> None:
    if os.pread(reader, len(text), journal.base.size) != text:
        says = f"{journal.path} does not hold what was just appended: another process wrote at the same time"
        raise Refused(Refusal("read_back", says))
    fresh = read_journal(journal.path)
    if make_plan(fresh.scan.state(), fresh.format.RECORDS).repairs:
        says = f"{journal.path} still owes something after the append: open it again"
        raise Refused(Refusal("read_back", says))
