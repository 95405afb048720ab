"""Builders of native logs, so that a test reads as a sentence: events → bytes → journal → plan.

plan = plan_of(turn_start(), names("a", "b"), dispatch("b"))
assert rule(plan, "a") == 2
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from triage.log import formats
from triage.log.formats.native import RECORDS
from triage.log.journal import Journal, read_journal
from triage.recovery.plan import Owed, Plan, Repair, make_plan
from triage.recovery.rules import Asked, Records, Rule

Happening = Mapping[str, Any] | bytes  # an event, or a line of the log as its bytes (without a newline)
Call = str | int | tuple[Any, ...] | Mapping[str, Any]


def event(type: str, /, **data: Any) -> dict[str, Any]:
    return {"type": type, "data": data}


def turn_start(number: Any = None, **data: Any) -> dict[str, Any]:
    return event("turn_start", **({} if number is None else {"turn": number}), **data)


def turn_end(**data: Any) -> dict[str, Any]:
    return event("turn_end", **data)


def step_start(**data: Any) -> dict[str, Any]:
    return event("step_start", **data)


def step_end(**data: Any) -> dict[str, Any]:
    return event("step_end", **data)


def names(*calls: Call, **data: Any) -> dict[str, Any]:
    """An assistant message that names calls: an id, an `(id, name)`, an `(id, name, arguments)` or a dict."""
    return event("assistant_message", content="", tool_calls=[_call(call) for call in calls], **data)


def _call(call: Call) -> Mapping[str, Any]:
    if isinstance(call, Mapping):
        return call
    parts = call if isinstance(call, tuple) else (call, "bash")
    return dict(zip(("id", "name", "arguments"), parts, strict=False))


def speaks(content: str = "hello", **data: Any) -> dict[str, Any]:
    return event("assistant_message", content=content, **data)


def dispatch(id: Any, name: str = "bash", **data: Any) -> dict[str, Any]:
    return event("tool_call", tool_call_id=id, name=name, **data)


def result(id: Any, content: str = "ok", **data: Any) -> dict[str, Any]:
    return event("tool_result", tool_call_id=id, content=content, **data)


def asks(request: Any, call: Any = None, **data: Any) -> dict[str, Any]:
    """An approval request."""
    return event("approval_requested", request_id=request, **_of(call), **data)


def allows(request: Any, capability: Any = "signed", **data: Any) -> dict[str, Any]:
    proof = {} if capability is None else {"capability": capability}
    return event("approval_decided", request_id=request, decision="allow", **proof, **data)


def denies(request: Any, **data: Any) -> dict[str, Any]:
    return event("approval_decided", request_id=request, decision="deny", **data)


def asks_input(request: Any, call: Any = None, **data: Any) -> dict[str, Any]:
    return event("input_requested", request_id=request, **_of(call), **data)


def gives_input(request: Any, value: Any = "yes", **data: Any) -> dict[str, Any]:
    return event("input_resolved", request_id=request, value=value, **data)


def _of(call: Any) -> dict[str, Any]:
    return {} if call is None else {"tool_call_id": call}


def request_header(**data: Any) -> dict[str, Any]:
    return event("request_header", **data)


def user(content: str = "hello") -> dict[str, Any]:
    return event("user_message", content=content)


GARBAGE = b"\xff\x00 not a record \x00"  # a line that may have been anything


def torn(happening: Mapping[str, Any]) -> bytes:
    """The line of an event whose end was lost: its own type can be read, its data can't."""
    return encoded(happening)[: -len("}}")]


def encoded(happening: Happening, seq: int = 0) -> bytes:
    """The line of an event, without its newline; bytes as they are."""
    if isinstance(happening, bytes):
        return happening
    record = {"seq": seq, "time": f"2026-05-20T09:00:{seq % 60:02}.000Z", **happening}
    ordered = {key: record[key] for key in ("seq", "type", "time", "data")}
    return json.dumps(ordered, separators=(",", ":")).encode()


def log(*happenings: Happening) -> bytes:
    """A native log, one line an event; `seq` is the line's index from 0."""
    return b"".join(encoded(happening, seq) + b"\n" for seq, happening in enumerate(happenings))


def read(text: bytes) -> Journal:
    """The journal of a log that holds these bytes. Its file is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_bytes(text)
        return read_journal(str(path))


def plan_of(*happenings: Happening, records: Records = RECORDS) -> Plan:
    return plan_of_text(log(*happenings), records)


def plan_of_text(text: bytes, records: Records = RECORDS) -> Plan:
    return make_plan(read(text).scan.state(), records)


def with_repair(text: bytes, repairs: Sequence[Repair]) -> bytes:
    """The log after a repair was appended by the book: on a line of its own, seqs counted on."""
    journal = read(text)
    lead = b"" if not text or text.endswith(b"\n") else b"\n"
    lines = [
        encoded({"type": repair.type, "data": repair.data}, journal.base.last_seq + 1 + index) + b"\n"
        for index, repair in enumerate(repairs)
    ]
    return text + lead + b"".join(lines)


def owed(plan: Plan, id: str) -> Owed:
    """The one owed call of this id."""
    (entry,) = [entry for entry in plan.owed if entry.tool_call_id == id]
    return entry


def ids(plan: Plan) -> list[str]:
    """The ids of the owed calls, in the plan's order."""
    return [entry.tool_call_id for entry in plan.owed]


def rule(plan: Plan, id: str) -> Rule:
    return owed(plan, id).rule


def risk(plan: Plan, id: str) -> str:
    """`unknown` or `not started`: the risk without its prefix."""
    return owed(plan, id).risk.removeprefix("tool_").removeprefix("outcome_").replace("_", " ")


def row(plan: Plan, id: str, asked: Rule) -> Asked:
    """The row of a call's trace for a rule."""
    return next(row for row in owed(plan, id).trace if row.rule == asked)


def evidence(plan: Plan, id: str) -> list[int]:
    """The lines that prove a call's risk."""
    return [line.line for line in owed(plan, id).evidence]


def codes(plan: Plan) -> list[str]:
    """The codes of the anomalies, in the plan's order."""
    return [anomaly.code for anomaly in plan.anomalies]


def kinds(plan: Plan) -> list[tuple[str, str | None]]:
    """The repairs as (type, id of the call or of the request)."""
    return [(r.type, r.data.get("tool_call_id", r.data.get("request_id"))) for r in plan.repairs]


def recognise(records: Sequence[Mapping[str, Any]]) -> formats.Format | None:
    """The first format that is sure of one of the records, else None."""
    return next((f for f in formats.in_order() if any(map(f.recognise, records))), None)
