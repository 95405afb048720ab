"""One session as a row: a pure function of its path, the same here, in a worker and on a cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from triage.log.source import Unreadable
from triage.log.writers import writer
from triage.recovery.plan import Owed
from triage.session import Session, open_session

SCHEMA = "triage.session/1"
NEEDS_REPAIR = ("crashed", "refused", "doubtful")
TITLE = 120  # characters of a title that a row keeps

# Parts of a tool's name that say it only looks. A hint for the order of rows: it changes no risk.
_LOOKS = (
    "read",
    "view",
    "list",
    "search",
    "grep",
    "glob",
    "find",
    "fetch",
    "get",
    "cat",
    "ls",
    "stat",
    "show",
)
_LOOKING = frozenset(_LOOKS)
_RANKS = {"crashed": 1, "refused": 1, "doubtful": 2, "unreadable": 3, "live": 4, "clean": 5}


class Row(NamedTuple):
    """What `triage scan` says of one session. `bytes` and `events` count; `why` is one sentence or "".

    Not printed: `danger` orders rows, it is how many unknown calls there are that don't merely look; `file`
    (device, inode) is which file was read.
    """

    path: str
    format: str | None
    status: str  # clean, crashed, doubtful, live, unreadable or refused
    owed: int = 0
    unknown: int = 0
    waiting: int = 0
    boundary: str | None = None
    bytes: int | None = None
    events: int | None = None
    last_time: Any = None
    title: str | None = None
    why: str = ""
    danger: int = 0
    file: tuple[int, int] | None = None

    def as_json(self) -> dict[str, Any]:
        """The row as the object that `triage scan --json` prints."""
        fields = self._asdict()
        del fields["danger"], fields["file"]
        return {"schema": SCHEMA, **fields}


def read_row(path: str) -> Row | None:
    """The row of one path, None where it holds no session log. Raises nothing for a bad file."""
    try:
        return row_of(open_session(path))
    except Unreadable as error:
        if error.code == "not_a_log":
            return None
        return Row(path, None, "unreadable", why=str(error))


def row_of(session: Session) -> Row:
    """The row of a session that was opened."""
    plan, journal = session.plan, session.journal
    status, why = plan.status, plan.doubt
    severities = [_severity(owed) for owed in plan.owed]
    if plan.refusal is not None and plan.repairs:
        status, why = "refused", plan.refusal.says
    elif severities:
        why = plan.owed[severities.index(max(severities))].why
    title = session.title
    return Row(
        path=session.path,
        format=journal.format.NAME,
        status=status,
        owed=len(plan.owed),
        unknown=plan.unknown,
        waiting=sum(owed.rule == "W1" for owed in plan.owed),
        boundary=plan.boundary.name,
        bytes=journal.size,
        events=journal.scan.events,
        last_time=_scalar(session.last_time),
        title=title[:TITLE] if title else None,
        why=why,
        danger=severities.count(2),
        file=(journal.status.st_dev, journal.status.st_ino),
    )


def _scalar(time: Any) -> Any:
    """A time as the log wrote it, where a row can carry it: a number, or a text of some length; else None."""
    return time[:TITLE] if isinstance(time, str) else time if isinstance(time, int | float) else None


def in_use(row: Row, writers: Mapping[tuple[int, int], int]) -> Row:
    """The row, which says so where its file is one of those that a process is writing (`all_writers`)."""
    pid = writers.get(row.file) if row.file is not None else None
    return row if pid is None else row._replace(status="live", why=str(writer(pid)))


def _severity(owed: Owed) -> int:
    """2: unknown, and it may have changed something; 1: unknown, of a tool that only looks; 0: the rest."""
    if owed.label != "UNKNOWN":
        return 0
    name = (owed.name or "").lower()
    return 1 if name.startswith(_LOOKS) or not _LOOKING.isdisjoint(re.split("[-_]", name)) else 2


def worst_first(row: Row) -> tuple[object, ...]:
    """The order of rows: what may have done damage first, then what else needs a person, then the rest."""
    rank = 0 if row.unknown and row.status in ("crashed", "refused") else _RANKS[row.status]
    return rank, -row.danger, -row.unknown, -row.waiting, -row.owed, row.path
