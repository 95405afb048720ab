"""Answers that were given and not yet applied, kept for the next person.

One file per log and operator in the user's state folder, mode 0600. It holds call ids, findings, notes
and names; no text of the log. A draft is bound to the exact state of the log that it was made on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from triage.log.source import Base
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
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    row = {
        "base": asdict(session.journal.base),
        "operator": operator,
        "answers": {key: asdict(answer) for key, answer in answers.items()},
    }
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(row, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    return None


def load(session: Session) -> list[Draft]:
    """The drafts on this log that still hold, the latest last. Stale and unreadable ones are dropped."""
    found = []
    for path in state_folder().joinpath("drafts").glob(f"{_log_key(session)}-*.json"):
        draft = _read(path, session.journal.base)
        if draft is None:
            path.unlink(missing_ok=True)
        else:
            found.append(draft)
    return sorted(found, key=lambda draft: draft.at)


def drop(session: Session, operator: str | None = None) -> None:
    """Forget the draft of one operator on this log, or (None) everybody's. Raises OSError."""
    paths = (
        state_folder().joinpath("drafts").glob(f"{_log_key(session)}-*.json")
        if operator is None
        else [_file(session, operator)]
    )
    for path in paths:
        path.unlink(missing_ok=True)


def _read(path: Path, base: Base) -> Draft | None:
    try:
        row = json.loads(path.read_text("utf-8"))
        if Base(**row["base"]) != base:
            return None
        answers = {str(key): Answer(**answer) for key, answer in row["answers"].items()}
        at = max((answer.at for answer in answers.values()), default="")
        return Draft(str(row["operator"]), at, answers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _file(session: Session, operator: str) -> Path:
    who = hashlib.sha256(operator.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return state_folder() / "drafts" / f"{_log_key(session)}-{who}.json"


def _log_key(session: Session) -> str:
    base = session.journal.base
    name = f"{base.device}:{base.inode}:{os.path.realpath(session.path)}"
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:24]
