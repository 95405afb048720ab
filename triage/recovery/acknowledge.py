"""Which entries need a person, what an answer is, and when a plan may be applied.

The gate is here and nowhere else: `answered` gives the events to append, or raises `Unanswered`.
An answer never changes a risk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from triage.recovery.plan import Owed, Plan, Repair, synthetic_content

FINDINGS = ("ran", "did-not-run", "could-not-tell")
DENY = "deny"  # the one finding for a call that waits for a person (W1)

_FOUND = {
    "ran": "it did run",
    "did-not-run": "it did not run",
    "could-not-tell": "whether it ran could not be told",
    DENY: "the request is denied",
}


class Answer(NamedTuple):
    """What an operator found about one entry. `at` is an ISO 8601 time in UTC."""

    finding: str
    note: str = ""
    operator: str = ""
    at: str = ""


class Unanswered(Exception):
    """A plan may not be applied: `missing` are the keys of the entries that still need a person."""

    def __init__(self, missing: tuple[str, ...]) -> None:
        super().__init__(f"{len(missing)} of the owed calls still need an answer: {', '.join(missing)}")
        self.missing = missing


class BadAnswer(ValueError):
    """An answer for no entry of the plan, or a finding that the entry does not take."""


def findings_for(owed: Owed) -> tuple[str, ...]:
    """The findings that an entry takes: `deny` for a waiting call, the other three for the rest."""
    return (DENY,) if owed.rule == "W1" else FINDINGS


def parse_answer(text: str, plan: Plan) -> tuple[str, str, str]:
    """Split `KEY=FINDING[:NOTE]` into key, finding and note.

    The key ends at the first `=` that is followed by a finding and then by `:` or the end, so ids and
    notes may hold both signs; only where the plan knows no such key is a later one tried. Raises
    BadAnswer, naming what would be accepted.
    """
    splits = splits_of(text)
    if splits:
        keys = {owed.key for owed in plan.owed}
        split = next((split for split in splits if split[0] in keys), splits[0])
        check_answer(plan, *split[:2])
        return split
    raise BadAnswer(f"{text!r} is no answer: write KEY=FINDING[:NOTE], FINDING one of {', '.join(FINDINGS)}")


def splits_of(text: str) -> list[tuple[str, str, str]]:
    """Each key, finding and note that a `KEY=FINDING[:NOTE]` may be read as, the shortest key first."""
    splits = []
    at = text.find("=")
    while at >= 0:
        finding, _, note = text[at + 1 :].partition(":")
        if finding in (*FINDINGS, DENY):
            splits.append((text[:at], finding, note))
        at = text.find("=", at + 1)
    return splits


def check_answer(plan: Plan, key: str, finding: str) -> None:
    """Raise BadAnswer where the plan has no such entry or the entry does not take the finding."""
    entry = next((owed for owed in plan.owed if owed.key == key), None)
    if entry is None:
        known = ", ".join(owed.key for owed in plan.owed) or "none"
        raise BadAnswer(f"no owed call has the key {key!r}; the plan's keys: {known}")
    allowed = findings_for(entry)
    if finding not in allowed:
        raise BadAnswer(f"{key!r} does not take the finding {finding!r}, only {', '.join(allowed)}")


def missing(plan: Plan, answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """The keys of the entries that need a person and have no answer, in plan order."""
    return tuple(o.key for o in plan.owed if o.needs_acknowledgement and o.key not in answers)


def answered(plan: Plan, answers: Mapping[str, Answer]) -> tuple[Repair, ...]:
    """The events to append, each answer written into its entry's content and metadata.

    Raises Unanswered while an entry that needs a person has no answer, and BadAnswer for an answer that
    fits no entry.
    """
    for key, answer in answers.items():
        check_answer(plan, key, answer.finding)
    lacking = missing(plan, answers)
    if lacking:
        raise Unanswered(lacking)
    by_key = {owed.key: owed for owed in plan.owed}
    return tuple(
        _with_answer(repair, by_key[repair.key], answers[repair.key])
        if repair.type == "tool_result" and repair.key in answers
        else repair
        for repair in plan.repairs
    )


def _with_answer(repair: Repair, owed: Owed, answer: Answer) -> Repair:
    data: dict[str, Any] = dict(repair.data)
    acknowledged = {
        "finding": answer.finding,
        "note": answer.note,
        "operator": answer.operator,
        "at": answer.at,
    }
    data["metadata"] = {**data["metadata"], "acknowledged": acknowledged}
    data["content"] = synthetic_content(owed, found=found_in_words(answer))
    return Repair(repair.type, data, repair.key)


def found_in_words(answer: Answer) -> str:
    """One sentence for whoever reads the history next."""
    who = f" ({answer.operator})" if answer.operator else ""
    note = f" Note: {answer.note.strip()}" if answer.note.strip() else ""
    return f"An operator{who} checked: {_FOUND[answer.finding]}.{note}"


def keep_valid(answers: Mapping[str, Answer], old: Sequence[Owed], new: Sequence[Owed]) -> dict[str, Answer]:
    """The answers that still hold after a plan was rebuilt: those of entries that are still the same."""
    known = {owed.key: owed for owed in old}
    same = {owed.key for owed in new if owed.key in known and _is_same(known[owed.key], owed)}
    return {key: answer for key, answer in answers.items() if key in same}


def _is_same(one: Owed, other: Owed) -> bool:
    try:
        return _identity(one) == _identity(other)
    except RecursionError:  # arguments that are nested too deep to be compared
        return False


def _identity(owed: Owed) -> tuple[object, ...]:
    return owed.risk, owed.rule, owed.name, owed.turn_line, owed.line, owed.arguments
