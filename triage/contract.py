"""The JSON rows that other programs read: `triage.plan/1`, `triage.applied/1`, `triage.refusal/1`.

The names in them are a contract: they are listed in the README and stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triage.log.append import Applied
from triage.log.source import Base, Unreadable
from triage.recovery.acknowledge import Answer
from triage.recovery.plan import Owed, Plan, Refusal
from triage.session import Session

PLAN = "triage.plan/1"
APPLIED = "triage.applied/1"
REFUSAL = "triage.refusal/1"


def plan_row(session: Session) -> dict[str, Any]:
    """The plan of one log as the object that `triage plan --json` prints."""
    journal, plan = session.journal, session.plan
    return {
        "schema": PLAN,
        "log": {
            "path": session.path,
            "format": journal.format.NAME,
            "bytes": journal.size,
            "events": journal.scan.events,
            "next_seq": journal.base.last_seq + 1,
        },
        "base": journal.base._asdict(),
        "status": plan.status,
        "interrupted": bool(plan.open_turns),
        "open_turns": [{"seq": t.seq, "line": t.line, "turn": t.turn} for t in plan.open_turns],
        "boundary": _boundary(plan),
        "verdict": plan.verdict,
        "owed": [_owed(owed) for owed in plan.owed],
        "left": [left._asdict() for left in plan.left],
        "repairs": [{"type": r.type, "data": r.data} for r in plan.repairs],
        "lines": journal.decoder.encode(plan.repairs, journal.base.last_seq + 1, None, journal.records),
        "refusal": None if plan.refusal is None else _refusal(plan.refusal),
        "anomalies": [{"code": a.code, "line": a.line, "says": a.says} for a in plan.anomalies],
    }


def _boundary(plan: Plan) -> dict[str, Any]:
    b = plan.boundary
    return {
        "name": b.name,
        "line": b.line,
        "round": b.round,
        "request_id": b.request_id,
        "output_tokens_reserved": b.output_tokens_reserved,
        "input_tokens_left": b.input_tokens_left,
    }


def _owed(owed: Owed) -> dict[str, Any]:
    return {
        "key": owed.key,
        "tool_call_id": owed.tool_call_id,
        "name": owed.name,
        "arguments": owed.arguments,
        "risk": owed.risk,
        "rule": owed.rule,
        "needs_acknowledgement": owed.needs_acknowledgement,
        "turn_seq": owed.turn_seq,
        "step_seq": owed.step_seq,
        "evidence": [evidence._asdict() for evidence in owed.evidence],
        "trace": [{**row._asdict(), "lines": list(row.lines)} for row in owed.trace],
    }


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {**refusal._asdict(), "ids": list(refusal.ids)}


def error_row(path: str, error: Unreadable) -> dict[str, Any]:
    """The row of a log that can't be read."""
    return {"schema": PLAN, "log": {"path": path}, "error": {"code": error.code, "says": str(error)}}


def applied_row(path: str, applied: Applied, answers: Mapping[str, Answer]) -> dict[str, Any]:
    """What `triage apply --json` prints after an append."""
    return {
        "schema": APPLIED,
        "path": path,
        "appended": [
            {
                "line": landed.line,
                "type": landed.type,
                "tool_call_id": data.get("tool_call_id"),
                "risk": data.get("metadata", {}).get("risk"),
                "finding": answers[landed.key].finding if landed.key in answers else None,
            }
            for landed in applied.landed
            for data in [landed.repair.data if landed.repair else {}]
        ],
        "bytes_before": applied.bytes_before,
        "bytes_after": applied.bytes_after,
    }


def refusal_row(path: str, refusal: Refusal, missing: tuple[str, ...] = ()) -> dict[str, Any]:
    """What `triage apply --json` prints where nothing was appended; `missing` are keys without an answer."""
    return {"schema": REFUSAL, "path": path, **_refusal(refusal), "missing": list(missing)}


def base_of(row: object) -> Base:
    """The base in a plan row that was saved to a file. Raises ValueError where it holds none."""
    base = row.get("base") if isinstance(row, dict) else None
    if not isinstance(base, dict) or set(base) != set(Base._fields):
        raise ValueError("it holds no plan of this version: save the output of `triage plan LOG --json`")
    return Base(**base)
