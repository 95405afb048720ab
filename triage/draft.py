"""Answers that were given and not yet applied, kept for the next person.

One file per log and operator in the user's state folder, mode 0600. It holds call ids, findings, notes
and names; no text of the log. A draft is bound to the exact state of the log that it was made on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from triage.log.source import Base, Unreadable, open_for_reading, read_base
from triage.recovery.acknowledge import Answer
from triage.session import Session


@dataclass(frozen=True, slots=True)
class Draft:
    """What one operator answered, by entry key. `at` is the time of the last answer, ISO 8601, UTC."""

    operator: str
    at: str
    answers: Mapping[str, Answer]


def state_folder() -> Path:
    """The user's state folder of triage; it may not exist yet."""
    import platformdirs  # costs more than most commands need

    return platformdirs.user_state_path("triage")


def save(session: Session, operator: str, answers: Mapping[str, Answer]) -> None:
    """Keep the answers of one operator on this log; none drops the draft. Raises OSError."""
    if not answers:
        return drop(session, operator)
    path = _file(session, operator)
    for folder in (path.parents[1], path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    row = {
        "base": session.journal.base._asdict(),
        "operator": operator,
        "answers": {key: answer._asdict() for key, answer in answers.items()},
    }
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(row, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    return None


def load(session: Session) -> list[Draft]:
    """The drafts on this log that still hold, the latest last. Stale and unreadable ones are dropped.

    Stale is a draft whose state of the log is gone; one on a newer state than the session's is somebody
    else's, who opened the log later, and is kept.
    """
    found = []
    for path in state_folder().joinpath("drafts").glob(f"{_log_key(session)}-*.json"):
        kept = _read(path)
        if kept is not None and kept[0] == session.journal.base:
            found.append(kept[1])
        elif kept is None or not _is_now(session, kept[0]):
            with suppress(OSError):
                path.unlink()
    return sorted(found, key=lambda draft: draft.at)


def _is_now(session: Session, base: Base) -> bool:
    """Whether a base is the state in which the log is now."""
    try:
        descriptor = open_for_reading(session.journal.path)
    except Unreadable:
        return False
    try:
        return read_base(descriptor, base.last_seq) == base
    finally:
        os.close(descriptor)


def drop(session: Session, operator: str | None = None) -> None:
    """Forget the draft of one operator on this log, or (None) everybody's. Raises OSError."""
    paths = (
        state_folder().joinpath("drafts").glob(f"{_log_key(session)}-*.json")
        if operator is None
        else [_file(session, operator)]
    )
    for path in paths:
        path.unlink(missing_ok=True)


def _read(path: Path) -> tuple[Base, Draft] | None:
    try:
        row = json.loads(path.read_text("utf-8"))
        answers = {str(key): Answer(**answer) for key, answer in row["answers"].items()}
        if not all(isinstance(value, str) for answer in answers.values() for value in answer):
            return None
        at = max((answer.at for answer in answers.values()), default="")
        return Base(**row["base"]), Draft(str(row["operator"]), at, answers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _file(session: Session, operator: str) -> Path:
    who = hashlib.sha256(operator.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return state_folder() / "drafts" / f"{_log_key(session)}-{who}.json"


def _log_key(session: Session) -> str:
    name = os.path.realpath(session.journal.path)
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:24]
