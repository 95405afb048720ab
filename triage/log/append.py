"""The only code that writes a log, and only to append.

In order: the gate (every entry that needs a person has an answer), an exclusive lock, the comparison
with the plan's base, the search for a living writer, one write, fsync, and a read-back that must find
the same bytes and nothing left to repair. The lock is taken through a descriptor for reading; the one
for writing is opened last, so that a triage that waits is never taken for an agent.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from triage.log.blocks import read_of
from triage.log.events import TOOL_RESULT, call_id
from triage.log.formats import TakesFrames
from triage.log.journal import Journal, extend_journal, read_journal
from triage.log.source import Base, Unreadable, open_for_reading
from triage.log.writers import find_writers, in_hand
from triage.recovery.acknowledge import Answer, answered
from triage.recovery.plan import Plan, Refusal, Repair, make_plan

LOCK_SECONDS = 10.0  # how long another triage may hold the lock before we give up
LOCK_PAUSE = 0.02  # seconds between two tries
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class Refused(Exception):
    """The append did not go through; `refusal` says why and what is on disk."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.says)
        self.refusal = refusal


class Landed(NamedTuple):
    """One appended line (from 1): the type of its event, and the repair that it carries, where it does."""

    line: int
    type: str
    repair: Repair | None

    @property
    def key(self) -> str:
        """The key of the entry that it answers, "" where it answers none."""
        return self.repair.key if self.repair is not None and self.type == TOOL_RESULT else ""


class Applied(NamedTuple):
    """What was appended, line by line, and sizes in bytes. `text` is what the log reads as appended."""

    landed: tuple[Landed, ...]
    first_line: int
    text: bytes
    bytes_before: int
    bytes_after: int
    status: str  # of the log that was read again


def utc_now() -> str:
    """The time now in UTC, ISO 8601, in milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_to_append(journal: Journal, repairs: tuple[Repair, ...], now: str | None) -> bytes:
    """The exact bytes of a repair: a leading newline where the file does not end in one, then its lines.

    `now` is the time of the append; None for a preview, in which each value made at the append is null.
    """
    lines = journal.decoder.encode(repairs, journal.base.last_seq + 1, now, journal.records)
    if not lines:
        return b""
    lead = b"" if journal.ends_with_newline else b"\n"
    return lead + "".join(line + "\n" for line in lines).encode("utf-8")


def append(journal: Journal, plan: Plan, answers: Mapping[str, Answer]) -> Applied:
    """Append the plan's repair with the operator's answers.

    Raises acknowledge.Unanswered and acknowledge.BadAnswer (nothing was opened for writing), Refused
    (nothing was written, except with the codes `write_failed`, `not_synced` and `read_back`, whose
    sentences say what is on disk), and journal.Unreadable where the log has gone.
    """
    if plan.refusal is not None:  # first: nobody is asked for answers that can't be used
        raise Refused(plan.refusal)
    repairs = answered(plan, answers)
    size, first = journal.base.size, journal.lines + 1
    if not repairs:
        return Applied((), first, b"", size, size, plan.status)
    text = text_to_append(journal, repairs, utc_now())
    framing = journal.format if journal.text is not None else None
    data = framing.frame(text) if isinstance(framing, TakesFrames) else text
    reader = open_for_reading(journal.path)
    try:
        _lock(reader, journal.path)
        with _agents_locks(reader, journal):
            with _before_writing(journal.path):
                _compare(reader, journal)
                _refuse_living(reader, journal)
                writer = _open_for_appending(reader, journal.path)
            _write(writer, journal, data)
            with _after_writing(journal.path):
                fresh, status = _read_back(reader, journal, data)
                landed = _landed(fresh, first, repairs)
    finally:
        _close(reader)  # and the lock with it
    return Applied(landed, first, text, size, size + len(data), status)


@contextmanager
def _before_writing(path: str) -> Iterator[None]:
    """Any call may fail on a bad disk; as long as nothing was written, that is said."""
    try:
        yield
    except OSError as error:
        says = f"{path} could not be appended to ({_why(error)}). Nothing was written"
        raise _refuse("write_failed", says, retryable=True) from error


@contextmanager
def _after_writing(path: str) -> Iterator[None]:
    """Once the repair is in the log, no failure may sound as if it were not."""
    try:
        yield
    except (OSError, Unreadable) as error:
        why = _why(error) if isinstance(error, OSError) else str(error)
        says = (
            f"{path}: the repair was written and is on disk, but it could not be read back ({why}). Open the "
            "log again: it shows what has landed"
        )
        raise _refuse("read_back", says, retryable=True) from error


def _why(error: OSError) -> str:
    return error.strerror or os.strerror(error.errno or errno.EIO)


def _close(descriptor: int) -> None:
    """Close a file. What was written to it is synced by then, so that a failure says nothing of it."""
    with suppress(OSError):
        os.close(descriptor)


def _landed(fresh: Journal, first: int, repairs: Sequence[Repair]) -> tuple[Landed, ...]:
    """Which repair each appended line carries: a format may write them in an order and number of its own."""
    pending: dict[tuple[str, str | None], list[Repair]] = {}
    for repair in repairs:
        pending.setdefault(_name(repair.type, repair.data), []).append(repair)
    found = []
    for line in range(first, fresh.lines + 1):
        events = fresh.events(line)
        names = [_name(event.type, event.data) for event in events]
        carried = next((pending[name].pop(0) for name in names if pending.get(name)), None)
        type = carried.type if carried else events[0].type if events else "other"
        found.append(Landed(line, type, carried))
    return tuple(found)


def _name(type: str, data: Mapping[str, Any]) -> tuple[str, str | None]:
    return type, call_id(data, "request_id", "tool_call_id")


def _refuse(code: str, says: str, *, retryable: bool = False) -> Refused:
    return Refused(Refusal(code, says, retryable=retryable))


def _lock(reader: int, path: str) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(reader, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            why = _why(error)
            if error.errno in _NO_LOCKS:
                says = f"{path} lies where files can't be locked ({why}): repair a copy on a local disk"
                raise _refuse("no_lock", says) from error
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise _refuse("no_lock", f"{path} can't be locked: {why}") from error
            if time.monotonic() > deadline:
                who = "; ".join(map(str, find_writers(os.fstat(reader)).holders)) or "another process"
                says = f"{path} is locked: {who}; try again when it is done"
                raise _refuse("locked", says, retryable=True) from error
        time.sleep(LOCK_PAUSE)


@contextmanager
def _agents_locks(reader: int, journal: Journal) -> Iterator[None]:
    """Hold the lock files that the log's own agent holds while it lives, where there are any."""
    held: list[int] = []
    try:
        for lock in journal.decoder.locks(journal.path):
            try:
                held.append(open_for_reading(lock))
                fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except Unreadable:
                continue  # its agent is not there
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    continue
                _refuse_living(reader, journal)  # with the process named, where it can be seen
                says = f"{journal.path} is in use: its agent holds {lock}. Stop it first. Nothing was written"
                raise _refuse("live_writer", says, retryable=True) from error
        yield
    finally:
        for descriptor in held:
            _close(descriptor)


def _compare(reader: int, journal: Journal) -> None:
    """Refuse where the log is not exactly what the plan was made from."""
    status = os.fstat(reader)
    try:
        same_file = os.path.samestat(os.stat(journal.path), status)
    except OSError:
        same_file = False
    if not same_file or status.st_size != journal.size or not _begins(reader, journal):
        raise Refused(moved(journal.path, journal.base))


def _begins(reader: int, journal: Journal) -> bool:
    """Whether the open file begins with the log that was read."""
    return journal.begins(read_of(reader, journal.size), os.fstat(reader))


def moved(path: str, base: Base) -> Refusal:
    """The refusal for a log that is no longer in the state `base`: both states, and who moved it if known."""
    from triage.log.history import operators_after  # a log seldom moves

    fresh = read_journal(path)
    now = fresh.base
    says = (
        f"{path} moved since the plan was made: from {base.size:,} bytes, last seq {base.last_seq}, "
        f"to {now.size:,} bytes, last seq {now.last_seq}"
    )
    if (now.device, now.inode) != (base.device, base.inode):
        says += "; the file was replaced by another one"
    elif now.size == base.size:
        says += "; it was rewritten"
    operators = operators_after(fresh, base.size)
    if operators:
        says += f"; {', '.join(operators)} repaired it"
    return Refusal("log_moved", says + ". Nothing was written: look at the new plan", retryable=True)


def _refuse_living(reader: int, journal: Journal) -> None:
    path = journal.path
    found = in_hand(journal.decoder, path, os.fstat(reader))
    if found.holders:
        who = "; ".join(map(str, found.holders))
        says = f"{path} is in use: {who}. Stop it first, then look at the log again. Nothing was written"
        raise _refuse("live_writer", says, retryable=True)


def _open_for_appending(reader: int, path: str) -> int:
    try:
        writer = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        says = f"{path} can't be opened for appending ({_why(error)}). Nothing was written"
        raise _refuse("not_writable", says) from error
    try:
        if not os.path.sameopenfile(reader, writer):
            says = f"{path} was replaced just now. Nothing was written: look at the new plan"
            raise _refuse("log_moved", says, retryable=True)
    except BaseException:
        _close(writer)
        raise
    return writer


def _write(writer: int, journal: Journal, text: bytes) -> None:
    try:
        with _undisturbed():
            _write_all(writer, journal, text)
            _sync(writer, journal.path)
    finally:
        _close(writer)


def _write_all(writer: int, journal: Journal, text: bytes) -> None:
    """One write; where the system takes only a part of it, the rest, as long as nobody came between."""
    written = 0
    while written < len(text):
        try:
            if written and os.fstat(writer).st_size != journal.base.size + written:
                raise OSError(errno.EBUSY, "another process wrote at the same time")
            written += os.write(writer, text[written:])
        except OSError as error:
            why = _why(error)
            if not written:
                says = f"{journal.path} could not be appended to ({why}). Nothing was written"
                raise _refuse("write_failed", says, retryable=True) from error
            says = (
                f"{journal.path}: only {written:,} of {len(text):,} bytes were written ({why}). The log's "
                "own bytes are untouched; make room, open it again, and what is missing will be planned"
            )
            raise _refuse("write_failed", says, retryable=True) from error


def _sync(writer: int, path: str) -> None:
    try:
        os.fsync(writer)
    except OSError as error:
        why = _why(error)
        says = (
            f"{path}: the repair was written, but it is not certain to be on disk ({why}). Check the disk, "
            "then open the log again: it shows what has landed"
        )
        raise _refuse("not_synced", says, retryable=True) from error


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No signal to stop may fall between two parts of one repair."""
    stops = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _read_back(reader: int, journal: Journal, text: bytes) -> tuple[Journal, str]:
    """The log read again, and the status of its plan, which must hold no repair."""
    path = journal.path
    if not _begins(reader, journal) or os.pread(reader, len(text) + 1, journal.size) != text:
        says = f"{path} does not end as it was appended: another process wrote too. Open it again"
        raise _refuse("read_back", says, retryable=True)
    fresh = extend_journal(journal, whole=False) or read_journal(path)
    if (fresh.base.device, fresh.base.inode) != (journal.base.device, journal.base.inode):
        says = f"{path} was replaced just now: the repair was written to the file that was there before"
        raise _refuse("read_back", says, retryable=True)
    plan = make_plan(fresh.scan.state(), fresh.format.RECORDS)
    if plan.repairs:
        raise _refuse("read_back", f"{path} still owes something after the append: open it again")
    return fresh, plan.status
