"""The sentences that a person reads: one for each status, boundary, risk and rule, the same everywhere.

No two of them may be alike: "proven not dispatched" and "may have run" must never sound the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from triage.log.json_text import dumps
from triage.playbook import Hint
from triage.recovery.boundary import Boundary
from triage.recovery.plan import Owed, Plan
from triage.recovery.rules import NOT_STARTED
from triage.recovery.verdict import FAILURE_SENTENCES, REASON_SENTENCES

GLYPHS = {"UNKNOWN": "▲", "NOT STARTED": "●", "WAITING": "◆", "DENIED": "■"}
STATUS_GLYPHS = {"crashed": "✖", "doubtful": "?", "clean": "✓"}
SESSION_GLYPHS = {**STATUS_GLYPHS, "refused": "✖", "unreadable": "✖", "live": "~"}

RISKS = {
    "UNKNOWN": "Outcome unknown: the call may have taken effect. Check it, then answer.",
    "NOT STARTED": "Not started: it never reached its tool and had no effect.",
    "WAITING": "Waiting for a person: it did not run. Closing this denies the request.",
    "DENIED": "Denied before the end: it did not run.",
}

NEXT = {
    "terminal": "No turn is open: there is nothing to repair.",
    "tool_open": "A call may have run: never run it again by itself; a person checks each one first.",
    "awaiting_approval": "An approval is waiting: closing it denies it; granting it is up to the agent.",
    "awaiting_input": "A question is waiting: closing it leaves it unanswered; answering is up to the agent.",
    "resolution_pending": "A decision was made and nothing shows its effect: it is not safe to resume.",
    "model_attempt_open": "The model's answer was never seen: no side effect; it isn't sent again by itself.",
    "calls_named": "None of the named calls ran: it is safe to ask the model again.",
    "stable": "Nothing is owed and the model has spoken: safe to resume at the next round.",
    "prepared": "The turn opened and nothing happened in it: safe to run from the start.",
}


FOUND = {
    "ran": "it ran",
    "did-not-run": "it did not run",
    "could-not-tell": "could not tell",
    "deny": "denied: closing it denies the request",
}


def synthetic_in_words(metadata: Mapping[str, Any]) -> str:
    """What a result that no tool gave stands for: what an operator found, else its risk."""
    answer = metadata.get("acknowledged")
    finding = answer.get("finding") if isinstance(answer, Mapping) else None
    risk = "it did not start" if metadata.get("risk") == NOT_STARTED else "outcome unknown"
    return FOUND.get(str(finding), risk)


def what_next(boundary: Boundary) -> str:
    """What may happen next, in one sentence that a tired person can act on."""
    sentence = NEXT[boundary.name]
    if boundary.name == "resolution_pending" and boundary.command_id:
        sentence += f" Decision: {boundary.command_id}."
    return sentence


def at_the_end(plan: Plan, now: datetime) -> list[str]:
    """What else is known of where it died, a sentence each, uncleaned: figures, a deadline, the verdict.

    The verdict looks only at the end of the log, so it never stands alone: the owed calls are beside it.
    """
    boundary, said = plan.boundary, []
    figures = [
        f"round {boundary.round:,}" if boundary.round is not None else "",
        f"request {boundary.request_id}" if boundary.request_id is not None else "",
        _tokens(boundary.output_tokens_reserved, "reserved for the answer"),
        _tokens(boundary.input_tokens_left, "of input left"),
    ]
    if any(figures):
        said.append("At the end: " + ", ".join(figure for figure in figures if figure) + ".")
    deadline = parse_time(boundary.deadline)
    if deadline is not None and deadline < now:
        said.append(f"The deadline {time_in_words(boundary.deadline)} has passed: resuming ends at once.")
    if plan.verdict is not None:
        diagnostic = plan.verdict.get("diagnostic", {})
        reason, failure = diagnostic.get("recoveryReason"), str(plan.verdict.get("failureClass"))
        said.append(f"Run: {reason}. {REASON_SENTENCES.get(reason, '')}".strip())
        if failure in FAILURE_SENTENCES and failure != "app_restarted":
            said.append(FAILURE_SENTENCES[failure])
    return said


def _tokens(count: int | None, what: str) -> str:
    return "" if count is None else f"{counted(count, 'token')} {what}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 call`, `2 calls`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def owed_in_words(plan: Plan) -> str:
    """How many calls are owed and of which kind: `3 owed: 1 OUTCOME UNKNOWN, 2 not started`."""
    if not plan.owed:
        return "nothing owed"
    labels = [owed.label for owed in plan.owed]
    kinds = [
        ("UNKNOWN", "OUTCOME UNKNOWN"),
        ("WAITING", "WAITING"),
        ("NOT STARTED", "not started"),
        ("DENIED", "denied"),
    ]
    parts = [f"{labels.count(label)} {words}" for label, words in kinds if label in labels]
    return f"{len(plan.owed)} owed: {', '.join(parts)}"


def headline(plan: Plan) -> str:
    """The first line of every view: did it crash, where, how many to check."""
    glyph = STATUS_GLYPHS[plan.status]
    if plan.status == "clean":
        return f"{glyph} CLEAN  nothing to repair"
    if plan.status == "doubtful":
        return f"{glyph} DOUBTFUL  nothing to repair that can be read, and not clean either"
    turns = plan.open_turns
    where = f"{len(turns)} turns" if len(turns) > 1 else turn_name(plan)
    return f"{glyph} CRASHED  {where} · {owed_in_words(plan)} · died in {plan.boundary.name}"


def turn_name(plan: Plan) -> str:
    """The innermost open turn by its number, else by its line."""
    turn = plan.open_turns[0]
    return f"turn {turn.turn}" if turn.turn is not None else f"the turn of line {turn.line:,}"


def plan_in_words(plan: Plan) -> str:
    """What would be appended: `3 results + 1 turn end`."""
    kinds = {"tool_result": "result", "turn_end": "turn end"}
    count: dict[str, int] = {}
    for repair in plan.repairs:
        kind = kinds.get(repair.type, "closed request")
        count[kind] = count.get(kind, 0) + 1
    return " + ".join(counted(number, kind) for kind, number in count.items()) or "nothing to append"


def owed_row(owed: Owed) -> str:
    """Glyph and word of an owed call's risk: `▲ UNKNOWN`."""
    return f"{GLYPHS[owed.label]} {owed.label}"


def acks_in_words(owed: Sequence[Owed]) -> str:
    """The `--ack` arguments that a set of entries still needs, quoted for a shell."""
    return " ".join(
        "--ack=" + shlex.quote(f"{o.key}={'deny' if o.rule == 'W1' else 'FINDING'}") for o in owed
    )


def applied_in_words(path: str, records: int, size: int, line: int, status: str) -> str:
    """One line on what an append did. `size` in bytes, `line` the first appended one (from 1)."""
    what = f"{counted(records, 'record')} ({size_in_words(size)}) from line {line:,} on"
    return f"{path}: appended {what}; the log is {status} now"


def hint_in_words(hint: Hint) -> Sequence[str]:
    """What a playbook says about one call, a line each, uncleaned."""
    lines = [f"check: {hint.check}"] if hint.check else []
    if hint.missing:
        names = ", ".join(f"{{{name}}}" for name in hint.missing)
        lines.append(f"this call has no argument for {names}: fill it in yourself")
    lines += [f"playbook: {hint.note}"] if hint.note else []  # an operator's own is a note
    return [*lines, "by the playbook, this tool only looks"] if hint.read_only else lines


def size_in_words(size: int) -> str:
    """A size in bytes as a person reads it: `812 bytes`, `1.0 MB`."""
    if size < 1000:
        return counted(size, "byte")
    for unit, bytes_each in (("kB", 1e3), ("MB", 1e6)):
        if size < bytes_each * 999.5:
            return f"{size / bytes_each:.1f} {unit}"
    return f"{size / 1e9:.1f} GB"


def scan_in_words(read: int, found: int, whole: bool, skipped: int, *, over: bool) -> str:
    """How far a scan is: `scanning 312 of 10,000 …`; once it is over, how many sessions it found."""
    if not over:
        return f"scanning {read:,} " + (f"of {found:,} …" if whole else f"… {found:,} files so far")
    if whole and read >= found:
        return counted(read - skipped, "session")
    return f"stopped at {read:,} of {found:,} files"


def corrupt_in_the_way(lines: Sequence[int]) -> str:
    """For a crashed log: which unreadable lines of the open turns made its calls doubtful, or ""."""
    if not lines:
        return ""
    shown = ", ".join(f"{line:,}" for line in lines[:5]) + (" …" if len(lines) > 5 else "")
    what = "Line" if len(lines) == 1 else "Lines"
    return (
        f"{what} {shown} can't be read and may have been anything: calls named before are taken as unknown, "
        "and one that nothing else names may be missing here."
    )


def time_in_words(value: object) -> str:
    """A record's time as it was written, uncleaned; a number as the UTC time that it stands for."""
    time = None if isinstance(value, str) else parse_time(value)
    if time is not None:
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value if isinstance(value, str) else dumps(value)  # which may be nested as deep as a log likes


def parse_time(value: object) -> datetime | None:
    """The time that a record wrote, in UTC: ISO 8601, or a number of ms (or s) since 1970; else None."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
        else:
            return None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
