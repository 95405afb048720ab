"""What `triage errors` remembers: how far each log was read, and each failure found, in one SQLite file.

The cursor of a log moves only in the transaction that stores what was read up to it, and a failure is
known by its place in its session: a process may die at any point, and a log may be read again, and each
failure still counts once.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from triage.errors.recurrence import Key, Occurrence, Row, Sighting, fold
from triage.log.json_text import dumps

APPLICATION = 0x7472_6961  # "tria": whose file it is
VERSION = 1
BUSY = 10.0  # seconds to wait for another triage
_LARGEST = 2**63 - 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS session (
    number INTEGER PRIMARY KEY, place BLOB NOT NULL, path BLOB NOT NULL, device TEXT NOT NULL,
    inode TEXT NOT NULL, head TEXT NOT NULL, tail TEXT NOT NULL DEFAULT '',
    at INTEGER NOT NULL DEFAULT 0, line INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS session_place ON session (place);
CREATE INDEX IF NOT EXISTS session_file ON session (device, inode);
CREATE TABLE IF NOT EXISTS start (
    session INTEGER NOT NULL, execution TEXT NOT NULL, payload TEXT NOT NULL,
    PRIMARY KEY (session, execution)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failure (
    session INTEGER NOT NULL, line INTEGER NOT NULL, part INTEGER NOT NULL,
    operation TEXT NOT NULL, revision TEXT NOT NULL, signature TEXT NOT NULL, class TEXT NOT NULL,
    workspace TEXT NOT NULL, time TEXT NOT NULL, ms INTEGER,
    PRIMARY KEY (session, line, part)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS failure_key ON failure (operation, revision, signature, class);
CREATE TEMP TABLE IF NOT EXISTS asked (session INTEGER PRIMARY KEY);
"""

# In the order of time, but each session in the order of its file: a clock that ran backwards there stays
# so. `reached` is the latest time of a session up to a failure.
_ROWS = """
SELECT f.operation, f.revision, f.signature, f.class, f.workspace,
       CASE WHEN s.number IN (SELECT session FROM asked) THEN s.path ELSE s.place END, f.line, f.time, f.ms,
       max(f.ms) OVER (PARTITION BY f.session ORDER BY f.line, f.part) AS reached
FROM failure f JOIN session s ON s.number = f.session
WHERE (f.operation, f.revision, f.signature, f.class) IN (
    SELECT operation, revision, signature, class FROM failure WHERE session IN (SELECT session FROM asked)
)
ORDER BY reached, f.session, f.line, f.part
"""


_SET_PLACE = "place = ?, path = ?, device = ?, inode = ?"


class Unusable(Exception):
    """The state file can't be used; the message says why and what to do."""


class Cursor(NamedTuple):
    """How far a log was read: bytes of its text (records, in one document), and lines before them."""

    at: int = 0
    line: int = 0


class Place(NamedTuple):
    """Where a log lies: its real path, the path that it was named by, and its file."""

    real: str
    path: str
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Session:
    """A log that the store knows: its number there, and how far it was read."""

    number: int
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure: its line (from 1), its place in the line (from 0), and what it is. `ms` since 1970."""

    line: int
    part: int
    key: Key
    workspace: str
    time: Any
    ms: int | None


@dataclass(frozen=True, slots=True)
class Page:
    """What one page of a log holds, the cursor after it, and the mark by which that place is known again.

    `starts` holds, by execution, what its start says.
    """

    failures: Sequence[Failure]
    starts: Mapping[str, Mapping[str, Any]]
    after: Cursor
    mark: str


class Store:
    """One state file. `path` is None for a store that lives and ends with the process."""

    def __init__(self, path: str | None) -> None:
        try:
            if path is not None:
                _create(path)
            self._db = sqlite3.connect(path or ":memory:", timeout=BUSY, isolation_level=None)
            self._check(path or "the store")
            # A killed process leaves the log of its last page behind, whole or not at all.
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            with self._transaction():
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {VERSION}")
            if path is not None:
                os.chmod(path, 0o600)
        except (OSError, sqlite3.Error) as error:
            raise Unusable(
                f"the state file {path} can't be used ({error}): name another with --state"
            ) from error

    def _check(self, path: str) -> None:
        """Raise Unusable for another program's database, before anything is written into it."""
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and (application, version) != (APPLICATION, VERSION):
            whose = "another version of triage" if application == APPLICATION else "another program"
            raise Unusable(f"{path} is a database of {whose}: name another file with --state")

    def close(self) -> None:
        """Close the file. What was kept is on disk."""
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def session(self, place: Place, head: str, mark: Callable[[int], str]) -> Session:
        """The session of a log, with its cursor; a new one where the store has not seen it.

        `head` is what the log begins with, `mark` what lies before a cursor, both as digests. A log that
        moved is the same session. One that was cut or rewritten in its place is read again from its
        start, and what was stored of it is dropped; one that begins differently is another session.
        """
        here = (os.fsencode(place.real), os.fsencode(place.path), str(place.device), str(place.inode))
        known = self._known(here, head)
        for number, at, line, tail, *there in known:
            if at == 0 or mark(at) == tail:
                if tuple(there) != here:
                    self._db.execute(f"UPDATE session SET {_SET_PLACE} WHERE number = ?", (*here, number))
                return Session(number, Cursor(at, line))
        with self._transaction():
            for number, _, _, _, old, *_ in self._known(here, head):
                if old == here[0]:
                    self._forget(number)
                    self._db.execute(f"UPDATE session SET {_SET_PLACE} WHERE number = ?", (*here, number))
                    return Session(number, Cursor())
            made = self._db.execute(
                "INSERT INTO session (place, path, device, inode, head) VALUES (?, ?, ?, ?, ?)", (*here, head)
            )
            return Session(made.lastrowid or 0, Cursor())

    def _known(self, here: tuple[bytes, bytes, str, str], head: str) -> list[Any]:
        """The sessions that begin alike and lay here, or in this file, before: those of this path first."""
        real, _, device, inode = here
        return self._db.execute(
            "SELECT number, at, line, tail, place, path, device, inode FROM session WHERE head = ? AND "
            "(place = ? OR (device = ? AND inode = ?)) ORDER BY place = ? DESC, number DESC",
            (head, real, device, inode, real),
        ).fetchall()

    def _forget(self, number: int) -> None:
        for table in ("failure", "start"):
            self._db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
        self._db.execute("UPDATE session SET at = 0, line = 0, tail = '' WHERE number = ?", (number,))

    def start_of(self, session: Session, execution: str) -> Mapping[str, Any] | None:
        """What the start of an execution says, where a page of this session that was kept held it."""
        found = self._db.execute(
            "SELECT payload FROM start WHERE session = ? AND execution = ?",
            (session.number, _text(execution)),
        ).fetchone()
        return orjson.loads(found[0]) if found else None

    def keep(self, session: Session, page: Page) -> bool:
        """Store a page and move the cursor, both or neither.

        False, and nothing stored, where the cursor is no longer the session's: another process has read on.
        """
        at, line = session.cursor
        if page.after == session.cursor and not page.failures and not page.starts:
            return True
        with self._transaction():
            moved = self._db.execute(
                "UPDATE session SET at = ?, line = ?, tail = ? WHERE number = ? AND at = ? AND line = ?",
                (*page.after, page.mark, session.number, at, line),
            )
            if moved.rowcount != 1:
                return False
            starts = [(session.number, _text(id), dumps(start)) for id, start in page.starts.items()]
            self._db.executemany("INSERT OR REPLACE INTO start VALUES (?, ?, ?)", starts)
            failures = [_values(session.number, failure) for failure in page.failures]
            marks = ", ".join("?" * 10)
            self._db.executemany(f"INSERT OR IGNORE INTO failure VALUES ({marks})", failures)
        return True

    def rows(self, sessions: Iterable[int]) -> list[Row]:
        """The failures of these sessions, each with every time that the store has seen it, in any session."""
        self._db.execute("DELETE FROM asked")
        self._db.executemany("INSERT OR IGNORE INTO asked VALUES (?)", ((number,) for number in sessions))
        return list(fold(map(_occurrence, self._db.execute(_ROWS))).values())


def _create(path: str) -> None:
    """Make the file, readable by its owner alone, where there is none."""
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not os.path.isfile(path):  # SQLite would wait at a pipe
            raise OSError(f"{path} is no regular file") from None


def _values(session: int, failure: Failure) -> tuple[Any, ...]:
    key = [_text(value) for value in failure.key]
    ms = failure.ms if failure.ms is not None and abs(failure.ms) <= _LARGEST else None
    place = (session, failure.line, failure.part)
    return (*place, *key, _text(failure.workspace), dumps(failure.time), ms)


def _occurrence(found: Sequence[Any]) -> Occurrence:
    operation, revision, signature, kind, workspace, path, line, time, ms, _ = found
    seen = Sighting(os.fsdecode(path), line, orjson.loads(time), ms)
    return Occurrence(Key(operation, revision, signature, kind), workspace, seen)


def _text(text: str) -> str:
    """`text` as the store can hold it: bytes that were no UTF-8 are written out."""
    return text.encode("utf-8", "backslashreplace").decode()
