"""klbr event exports: JSONL, a row an event, `{"id", "session_id", "kind", "payload", "created_ms"}`.

An execution is a call that was dispatched when it started and answered when it completed. klbr records
no turns, so each execution is a turn of its own that is open only while it owes. The rows come out of
a database that klbr owns: this module must never offer a line to append.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from triage.log.decoder import BaseDecoder
from triage.log.events import EVIDENCE, IMPLICIT, TOOL_CALL, TOOL_RESULT, TURN_START, Event, call_id
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.rules import Records
from triage.recovery.seqs import LARGEST_SEQ

NAME = "klbr"
RECORDS = Records(dispatches="all", step_ends=False)
FIRST_KEYS: tuple[str, ...] = ("id", "session_id", "kind", "payload", "created_ms")

STARTED = "execution.started"
COMPLETED = "execution.completed"
RESULTS = ("scratchpad", "tool.result")

_EXECUTION = "cell.execution"  # what an execution is called where its row does not say


def recognise(record: Mapping[str, Any]) -> bool:
    """Whether a record is certainly a row of a klbr export."""
    return (
        isinstance(record.get("kind"), str)
        and isinstance(record.get("payload"), dict)
        and ("session_id" in record or "created_ms" in record)
    )


def weigh(record: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """What a cut row may have been: (moved no call, may name a call, may open a turn)."""
    kind = record.get("kind")
    if not isinstance(kind, str):
        return False, True, True
    return kind not in (STARTED, COMPLETED), kind == STARTED, kind == STARTED


def row(record: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], Any] | None:
    """The kind, payload and time (ms since 1970) of a row, for the errors view; None for no row."""
    kind, payload = record.get("kind"), record.get("payload")
    if not isinstance(kind, str):
        return None
    return kind, payload if isinstance(payload, dict) else {}, record.get("created_ms")


class Decoder(BaseDecoder):
    """Remembers only which executions run, and what the first of them says of the session."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], int] = {}  # (session, execution) → its lane
        self._free: list[int] = []  # lanes, a heap, in which no execution runs any more
        self._facts: dict[str, str] = {"agent": "klbr"}

    def decode(self, record: Mapping[str, Any], line: int) -> Sequence[Event] | None:
        """The events that a row of a line (from 1) holds; None where it has no kind."""
        found = row(record)
        if found is None:
            return None
        kind, payload, created = found
        session, execution = str(record.get("session_id")), call_id(payload, "execution_id")
        seq = record.get("id")
        seq = seq if type(seq) is int and 0 <= seq <= LARGEST_SEQ else None
        ms = created if type(created) is int else None
        self._learn(kind, payload, created)

        def event(type: str, data: Mapping[str, Any], lane: str, *, part: bool = False) -> Event:
            return Event(type, data, line, seq, created, lane, ms, plain=kind in RESULTS, part=part)

        known = self._running.get((session, execution)) if execution is not None else None
        lane = _lane(known or 0)
        if kind == STARTED and (known is not None or execution is None):
            return (event(TOOL_CALL, _call(execution, payload), lane),)
        if kind == STARTED and execution is not None:
            lane = _lane(self._start(session, execution))
            return (
                event(TURN_START, {IMPLICIT: True}, lane),
                event(TOOL_CALL, _call(execution, payload), lane, part=True),
            )
        if kind == COMPLETED:
            if known is not None and execution is not None:
                heappush(self._free, self._running.pop((session, execution)))
            return (event(TOOL_RESULT, {**payload, "tool_call_id": execution}, lane),)
        shown = event(kind, payload, lane)
        if kind in RESULTS and execution is not None:
            says = f"a {kind} of this execution, status {payload.get('status')!r}"
            return shown, event(EVIDENCE, {"tool_call_id": execution, "says": says}, lane, part=True)
        return (shown,)

    def _start(self, session: str, execution: str) -> int:
        """A lane in which no execution runs: a start there closes no turn that still owes."""
        lane = heappop(self._free) if self._free else len(self._running)
        self._running[session, execution] = lane
        return lane

    def _learn(self, kind: str, payload: Mapping[str, Any], created: Any) -> None:
        if "started" not in self._facts and created is not None:
            self._facts["started"] = str(created)
        workspace = payload.get("workspace") or payload.get("workspace_path")
        if kind == STARTED and "cwd" not in self._facts and isinstance(workspace, str):
            self._facts["cwd"] = workspace

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Mapping[str, Any]]],
    ) -> list[str]:
        """No line: nothing can be appended to an export."""
        return []

    def refusal(self, plan: Plan) -> Refusal | None:
        """Always: the rows are a copy of a database that klbr owns."""
        return Refusal(
            "database_owned",
            "these rows are an export of a database that klbr owns, so nothing can be appended here: export "
            "the plan or the summary, check each open execution, and close them in klbr itself",
            boundary=plan.boundary.name,
            ids=tuple(owed.tool_call_id for owed in plan.owed),
        )

    def facts(self) -> Mapping[str, str]:
        """Agent, workspace (cwd) and the first row's time (ms since 1970), uncleaned."""
        return self._facts


def decoder() -> Decoder:
    """A decoder for one log."""
    return Decoder()


def document(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """None: an export is never one JSON document."""
    return None


def _lane(number: int) -> str:
    return f"execution {number + 1}" if number else ""


def _call(execution: str | None, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    name = payload.get("name")
    return {
        "tool_call_id": execution,
        "name": name if isinstance(name, str) else _EXECUTION,
        "arguments": {key: value for key, value in payload.items() if key != "execution_id"},
    }
