"""Whether a log changed since it was read, and reading it again beside the screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.worker import get_current_worker

from triage.log.source import Unreadable
from triage.session import Activity, Session
from triage.words import size_in_words

Read = Callable[[Callable[[int, int], None]], Session]  # takes what is told of the bytes read, and all


class Reading(Message):
    """How much of a log was read: bytes, of how many, and that from 0 to 1."""

    def __init__(self, done: int, size: int) -> None:
        super().__init__()
        self.done, self.size = done, size
        self.part = done / max(1, size)

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Reading)


class Reloaded(Message):
    """A log was read again: its session, or why it can't be read."""

    def __init__(self, session: Session | Unreadable) -> None:
        super().__init__()
        self.session = session


class InUse(Message):
    """Who has the log in hand now, in words; "" where nobody was found."""

    def __init__(self, says: str) -> None:
        super().__init__()
        self.says = says


def look(screen: Screen[Any], session: Session, look: Callable[[Session], Activity]) -> None:
    """Find out in a thread who has the log in hand. The screen gets one `InUse`."""

    def found() -> None:
        try:
            holders = look(session).holders
        except Unreadable:
            return  # it has gone, which `changed` says
        screen.post_message(InUse("in use: " + "; ".join(map(str, holders)) if holders else ""))

    screen.run_worker(found, thread=True, exclusive=True, group="in use", exit_on_error=False)


def changed(session: Session) -> str:
    """What happened to the file since it was read, in words; "" where nothing did."""
    try:
        now = os.stat(session.journal.path)
    except OSError as error:
        return f"the file has gone: {os.strerror(error.errno or 0)}"
    journal, size = session.journal, session.journal.base.size
    if now.st_size > size:
        return f"grew by {size_in_words(now.st_size - size)}: r reads it again"
    if now.st_size < size:
        return f"was cut by {size_in_words(size - now.st_size)}: r reads it again"
    if now.st_ino != journal.base.inode or now.st_mtime != journal.status.st_mtime:
        return "was changed: r reads it again"
    return ""


class _Stopped(Exception):
    """The screen was left while the log was read."""


def reload(screen: Screen[Any], read: Read) -> None:
    """Read a log in a thread. The screen gets `Reading` now and then, and one `Reloaded`."""
    screen.run_worker(lambda: _read(screen, read), thread=True, exclusive=True, group="reload")


def _read(target: MessagePump, read: Read) -> None:
    worker = get_current_worker()

    def progress(done: int, size: int) -> None:
        if worker.is_cancelled:  # nobody waits any more, and leaving must not wait for this
            raise _Stopped
        target.post_message(Reading(done, size))

    try:
        session = read(progress)
        session.journal.index.work_out()  # here rather than in front of somebody who presses keys
        target.post_message(Reloaded(session))
    except Unreadable as error:
        target.post_message(Reloaded(error))
    except _Stopped:
        pass
