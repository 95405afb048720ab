"""`triage apply`: the append without a screen, behind the same gate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import orjson

from triage import contract
from triage.log.append import Applied, Refused, moved, utc_now
from triage.log.journal import Base, Unreadable
from triage.log.json_text import dumps
from triage.recovery.acknowledge import Answer, BadAnswer, Unanswered, parse_answer
from triage.recovery.plan import Plan, Refusal
from triage.session import Session, open_session
from triage.text import clean
from triage.words import acks_in_words, size_in_words

CLEAN, USAGE, UNREADABLE, REFUSED = 0, 2, 3, 4


def apply(path: str, acks: Sequence[str], *, operator: str, plan_file: str | None, json: bool) -> int:
    """Append the repair of one log with the answers `acks` (`KEY=FINDING[:NOTE]`). Returns the exit code.

    Whether the log moved is asked before the answers are looked at: a plan that no longer holds can't
    say which keys there are.
    """
    try:
        planned = _read_plan(plan_file) if plan_file is not None else None
    except (OSError, ValueError) as error:
        return _say(f"{plan_file} is no plan: {_reason(error)}", USAGE)
    try:
        session = open_session(path)
    except Unreadable as error:
        return _say(str(error), UNREADABLE)
    try:
        if planned is not None and planned[0] != session.journal.base:
            return _other_base(session, *planned, json=json)
        if not session.plan.repairs:
            return _nothing(session, json)
        answers = _answers(acks, session.plan, operator)
        applied = session.apply(answers)
    except BadAnswer as error:
        return _say(str(error), USAGE)
    except Unanswered as error:
        return _unanswered(session, error, json)
    except Refused as error:
        return _refuse(path, error.refusal, json)
    except Unreadable as error:
        return _say(str(error), UNREADABLE)
    _report(session, applied, answers, json)
    return CLEAN


def _read_plan(plan_file: str) -> tuple[Base, list[Any]]:
    with open(plan_file, "rb") as file:
        row = orjson.loads(file.read())
    return contract.base_of(row), row.get("repairs") or []


def _reason(error: Exception) -> str:
    return error.strerror or "" if isinstance(error, OSError) else str(error)


def _other_base(session: Session, base: Base, repairs: Sequence[Any], *, json: bool) -> int:
    """A plan made from another state: done already where all of it landed, else refused."""
    if not session.plan.repairs and session.holds(base, repairs):
        return _nothing(session, json)
    return _refuse(session.path, moved(session.path, base), json)


def _answers(acks: Sequence[str], plan: Plan, operator: str) -> dict[str, Answer]:
    now = utc_now()
    answers: dict[str, Answer] = {}
    for ack in acks:
        key, finding, note = parse_answer(ack, plan)
        if key in answers:
            raise BadAnswer(f"{key!r} is answered twice: give one answer for each call")
        answers[key] = Answer(finding, note, operator, now)
    return answers


def _nothing(session: Session, json: bool) -> int:
    size = session.journal.size
    if json:
        _print(dumps(contract.applied_row(session.path, Applied((), 0, b"", size, size), {})))
    else:
        _print(f"{clean(session.path)}: nothing to repair, nothing written")
    return CLEAN


def _unanswered(session: Session, error: Unanswered, json: bool) -> int:
    keys = acks_in_words([o for o in session.plan.owed if o.key in error.missing])
    refusal = Refusal(
        "unacknowledged",
        f"{session.path}: {error}; nothing was written. Check each one, then add {keys}",
        boundary=session.plan.boundary.name,
        ids=tuple(o.tool_call_id for o in session.plan.owed if o.key in error.missing),
        retryable=True,
    )
    return _refuse(session.path, refusal, json, error.missing)


def _refuse(path: str, refusal: Refusal, json: bool, missing: tuple[str, ...] = ()) -> int:
    if json:
        _print(dumps(contract.refusal_row(path, refusal, missing)))
    return _say(refusal.says, REFUSED)


def _report(session: Session, applied: Applied, answers: dict[str, Answer], json: bool) -> None:
    row = contract.applied_row(session.path, applied, answers)
    if json:
        _print(dumps(row))
        return
    _print(applied_in_words(session.path, applied))
    for entry in row["appended"]:
        found = entry["finding"] or "no answer needed"
        call = f"  {entry['tool_call_id']}  {entry['risk']}  {found}" if entry["tool_call_id"] else ""
        _print(clean(f"  line {entry['line']:,}  {entry['type']}{call}"))


def applied_in_words(path: str, applied: Applied) -> str:
    """One line on what an append did: `log.jsonl: appended 4 records (812 bytes) …`."""
    count = len(applied.repairs)
    return clean(
        f"{path}: appended {count} {'record' if count == 1 else 'records'} "
        f"({size_in_words(len(applied.text))}) from line {applied.first_line:,} on; the log is clean now"
    )


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _say(says: str, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"triage: {clean(says)}\n")
    return code
