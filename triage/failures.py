"""What failed in a log, page by page, for `triage errors`: it reads and judges, and the store remembers.

A log is read from where the store left it. Each page goes to the store whole, together with the cursor
after it; nothing here may keep anything of a page longer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from triage.errors.classify import (
    COUNTED,
    UNRESOLVED_REVISION,
    Judgement,
    classify,
    classify_native,
    execution_of,
    operation_of,
    revision_of,
    workspace_of,
)
from triage.errors.recurrence import Key, Occurrence, Sighting
from triage.failure_store import Cursor, Failure, Page, Place, Session, Store
from triage.log import formats
from triage.log.blocks import lines_of
from triage.log.codes import CODES
from triage.log.decoder import BaseDecoder
from triage.log.events import TOOL_RESULT, Corrupt
from triage.log.formats import native
from triage.log.journal import Journal, records_of_document
from triage.log.json_text import dumps
from triage.log.lines import read_line
from triage.log.source import Opened, new_decoder, opened
from triage.words import parse_time

PAGE = 256  # events of a page
MARK = 4096  # bytes by which a place in a log is known again
STARTED = "execution.started"
_OF_A_START = ("revision", "workspace", "workspace_path")  # what later events ask of a start
_MAY_FAIL = (CODES["damaged"], CODES[TOOL_RESULT])  # the native lines that may hold a failure

Record = Mapping[str, Any]
Placed = tuple[int, int, Record]  # line (from 1), part of the line (from 0), record


def read_failures(store: Store, path: str, revision: str) -> int | None:
    """Read what is new in the log at `path` into the store. Returns the session's number there.

    None for an empty log. `revision` is for events that name no execution. Raises Unreadable for what is
    no log, and sqlite3.Error where the store fails.
    """
    while True:
        with opened(path) as log:
            if log.length == 0:
                return None
            place = Place(os.path.realpath(log.path), path, log.status.st_dev, log.status.st_ino)
            text = _Document(log) if log.one_document else _Lines(log)
            folder = os.path.dirname(os.path.abspath(log.path))
            session = store.session(place, text.head(), text.mark)
            if _read_on(store, session, log, text, folder, revision):
                return session.number
        # Another process read the log meanwhile: go on from its cursor, with the log as it is now.


def _read_on(
    store: Store, session: Session, log: Opened, text: _Lines | _Document, folder: str, revision: str
) -> bool:
    """Read a session to its end; False where another process moved its cursor meanwhile."""
    decoder = new_decoder(log.format, log.path)
    for placed, after in text.pages(session.cursor):
        starts: dict[str, Record] = {}
        failures = [
            Failure(line, part, key, workspace, time, ms)
            for line, part, record in placed
            for key, workspace, time, ms in _failed(
                _finished(log.format, decoder, record, line),
                starts,
                partial(store.start_of, session),
                folder,
                revision,
            )
        ]
        if not store.keep(session, Page(failures, starts, after, text.mark(after.at))):
            return False
        session = Session(session.number, after)
    return True


def failures_of(journal: Journal, stop: Callable[[], bool]) -> Iterator[Occurrence]:
    """What failed in a log that is open, in its order, as far as the journal goes; nothing is stored.

    Gives up when `stop()` says so. Raises Unreadable.
    """
    decoder = new_decoder(journal.format, journal.path)
    folder = os.path.dirname(os.path.abspath(journal.path))
    starts: dict[str, Record] = {}
    for line, code in enumerate(journal.codes, 1):
        if stop():
            return
        if journal.format is native and code not in _MAY_FAIL:
            continue
        for record in journal.records(line):
            finished = _finished(journal.format, decoder, record, line)
            for key, workspace, time, ms in _failed(finished, starts, _nowhere, folder, UNRESOLVED_REVISION):
                yield Occurrence(key, workspace, Sighting(journal.path, line, time, ms))


def _nowhere(_execution: str) -> None:
    """No start is known besides those of the log itself."""


def _failed(
    finished: Iterable[tuple[str, Record, Any, int | None]],
    starts: dict[str, Record],
    start_of: Callable[[str], Record | None],
    folder: str,
    revision: str,
) -> Iterator[tuple[Key, str, Any, int | None]]:
    """The failures among what has finished: key, workspace, time as written and in ms.

    What has started is put into `starts`; `start_of` is asked for the starts that are not in it.
    """
    for kind, payload, time, ms in finished:
        execution = execution_of(payload)
        if kind == STARTED:
            if execution is not None:
                starts[execution] = {key: payload[key] for key in _OF_A_START if key in payload}
            continue
        judged = _judge(kind, payload)
        if judged.classification not in COUNTED:
            continue
        start = None if execution is None else starts.get(execution)
        if start is None and execution is not None:
            start = start_of(execution)
        key = Key(
            operation_of(kind),
            revision_of(payload, start, revision),
            judged.signature or "",
            judged.classification,
        )
        yield key, workspace_of(payload, start, folder), time, ms


def _finished(
    format: formats.Format, decoder: BaseDecoder, record: Record, line: int
) -> Iterator[tuple[str, Record, Any, int | None]]:
    """What a record says has started or finished: kind, payload, time as written, and in ms since 1970."""
    if isinstance(format, formats.HasRows):
        row = format.row(record)
        if row is not None:
            kind, payload, time = row
            yield kind, payload, time, time if type(time) is int else _ms(time)
        return
    for event in decoder.decode(record, line) or ():
        if event.type == TOOL_RESULT:
            ms = _ms(event.time) if event.ms is None else event.ms
            yield TOOL_RESULT, event.data, event.time, ms


def _judge(kind: str, payload: Record) -> Judgement:
    return classify_native(payload) if kind == TOOL_RESULT else classify(kind, payload)


def _ms(time: Any) -> int | None:
    moment = parse_time(time)
    return None if moment is None else round(moment.timestamp() * 1000)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


class _Lines:
    """A log whose records are lines. A cursor counts bytes of its text."""

    def __init__(self, log: Opened) -> None:
        self._log = log

    def head(self) -> str:
        """What the log begins with: its first line, or as much of it as `MARK` bytes hold."""
        return _digest(self._log.read(min(MARK, self._log.length), 0).partition(b"\n")[0])

    def mark(self, at: int) -> str:
        """What lies before byte `at`, which may lie beyond `length` by now: the log may have grown."""
        start = max(0, at - MARK)
        return _digest(os.pread(self._log.source, at - start, start))

    def pages(self, cursor: Cursor) -> Iterator[tuple[Sequence[Placed], Cursor]]:
        """The records from a cursor on, `PAGE` at a time, each page with the cursor after it.

        A last line without its newline may be in the writing: it is read, and stays before the cursor.
        """
        at, line = cursor
        page: list[Placed] = []
        after = cursor
        for raw in lines_of(self._log.read, self._log.length, at):
            line += 1
            pieces = read_line(raw, line, at, self._log.format)
            at += len(raw)
            page += [
                (line, part, piece) for part, piece in enumerate(pieces) if not isinstance(piece, Corrupt)
            ]
            if raw.endswith(b"\n"):
                after = Cursor(at, line)
            if len(page) >= PAGE:
                yield page, after
                page = []
        yield page, after


class _Document:
    """A log that is one JSON document. A cursor counts its records."""

    def __init__(self, log: Opened) -> None:
        raw = log.read(log.length, 0).removeprefix(b"\xef\xbb\xbf")
        found = records_of_document(raw, log.format)[0]
        self._records = [record if isinstance(record, dict) else {} for record in found]

    def head(self) -> str:
        """What the log begins with: its first record."""
        return self.mark(1)

    def mark(self, at: int) -> str:
        """The record before position `at`."""
        known = 0 < at <= len(self._records)
        return _digest(dumps(self._records[at - 1]).encode()) if known else ""

    def pages(self, cursor: Cursor) -> Iterator[tuple[Sequence[Placed], Cursor]]:
        """The records from a cursor on, `PAGE` at a time, each page with the cursor after it."""
        records = self._records
        for start in range(cursor.at, max(len(records), cursor.at + 1), PAGE):
            page = [(start + i + 1, 0, record) for i, record in enumerate(records[start : start + PAGE])]
            stop = start + len(page)
            yield page, Cursor(stop, stop)
