"""Maka run ledgers: a folder a run, `run.json` (the header) beside `events.jsonl` (append-only).

The header is rewritten in place by the app that owns it, so this module must never offer a line to
append: it shows the calls, the plan and the verdict that the app's own recovery would reach.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import orjson

from triage.log import beside
from triage.log.decoder import BaseDecoder
from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASSISTANT_MESSAGE,
    EVIDENCE,
    IMPLICIT,
    REQUEST_HEADER,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    Event,
    call_id,
)
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.rules import Records
from triage.recovery.state import Anomaly, State
from triage.recovery.verdict import RUN_ENDS, decide

NAME = "maka"
RECORDS = Records(dispatches="all", step_ends=False)
FIRST_KEYS: tuple[str, ...] = ("type", "id", "runId", "sessionId", "turnId", "ts")

HEADER, EVENTS = "run.json", "events.jsonl"
_REQUESTS = ("sandbox-boundary.json", "sandbox-boundary.jsonl")
_OPENS = ("run_started", "turn_started")
_ENDED = ("completed", "failed", "cancelled")
_CORRUPT = "event_corrupt"
# What the app's own readers know. Other types are a newer app's: shown, ignored by the rules, counted.
_FAMILIES = (
    "run_", "turn_", "model_", "tool_", "permission_", "sandbox_", "plan_", "skill_", "approval_routed",
    "auto_review_", "usage_recorded", "provider_request_", "history_compact_", "active_full_compact_",
    "semantic_compact_", "task_gate_", "graph_supervisor_", "abort_requested", "trace_write_failed",
)  # fmt: skip
_HARMLESS = ("run_", "turn_", "model_")  # they certainly moved no call
_CALLS = ("tool_", "permission_")
_INSIDE = (*_CALLS, "model_stream_")
_BEGINS_A_CALL = ("tool_started", "permission_requested")


def recognise(record: Mapping[str, Any]) -> bool:
    """Whether a record is certainly an event of a Maka run."""
    return isinstance(record.get("type"), str) and all(
        isinstance(record.get(key), str) for key in ("runId", "sessionId", "turnId")
    )


def events_file(path: str) -> str | None:
    """The events file of the run that `path` names, its folder or that file itself; None for no run."""
    if os.path.basename(path) != EVENTS:
        folder = path
        if not os.path.isdir(path):
            return None
    else:
        folder = os.path.dirname(path)
    header = _load_header(folder)
    ours = isinstance(header, str) or (header is not None and ("runId" in header or "turnId" in header))
    return os.path.join(folder, EVENTS) if ours else None


def _load_header(folder: str) -> Mapping[str, Any] | str | None:
    """The header in a run's folder; why it can't be read; None where there is none."""
    try:
        header = beside.load(os.path.join(folder, HEADER))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        return f"{HEADER} can't be read: {error}"
    return header if isinstance(header, dict) else f"{HEADER} holds no object"


def weigh(record: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """What a cut event may have been: (moved no call, may name a call, may open a turn)."""
    type = record.get("type")
    if not isinstance(type, str) or not type.startswith(_FAMILIES):
        return False, True, True
    return type.startswith(_HARMLESS), type.startswith(_CALLS), type in _OPENS


class Decoder(BaseDecoder):
    """Remembers the header, which turns are open, and what the verdict asks of the events."""

    def __init__(self) -> None:
        self._folder = ""
        self._header: Mapping[str, Any] | None = None
        self._closures: Sequence[Mapping[str, Any]] = ()
        self._anomalies: list[Anomaly] = []
        self._turns: list[str] = []
        self._requests: dict[str, str] = {}  # call → its request that is not decided
        self._ends: set[str] = set()
        self._last: Mapping[str, Any] | None = None

    def read_beside(self, path: str) -> None:
        """Read the header and the sandbox requests of the run whose events are in the file `path`."""
        self._folder = os.path.dirname(path)
        header = _load_header(self._folder)
        if isinstance(header, str):
            self._anomalies.append(Anomaly("header_unreadable", None, header))
        elif header is not None:
            self._header = header
        self._closures = self._requests_beside()

    def _requests_beside(self) -> Sequence[Mapping[str, Any]]:
        """The sandbox requests, each in its last state."""
        rows: dict[object, Mapping[str, Any]] = {}
        for path in _request_files(self._folder):
            try:
                found, damaged = _parse_rows(beside.read(path))
                says = f"{damaged:,} lines can't be read" if damaged else ""
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                found, says = [], str(error)
            if says:
                says = f"{path}: {says}; a closed request may be missing here"
                self._anomalies.append(Anomaly("sandbox_boundary_unreadable", None, says))
            for row in found:
                id = row.get("requestId")
                rows[id if isinstance(id, str | int) else (len(rows),)] = row
        return list(rows.values())

    # ---- events

    def decode(self, record: Mapping[str, Any], line: int) -> Sequence[Event] | None:
        """The events that a record of a line (from 1) holds; None where it has no type or is no event."""
        type = record.get("type")
        if not isinstance(type, str) or type == _CORRUPT:
            return None
        self._last = record
        if type in RUN_ENDS:
            self._ends.add(type)
        data = record.get("data")
        data = data if isinstance(data, dict) else {}
        found = [*self._turn(type, record), *self._events(type, record, data)]
        if not found:
            found = [(type, data)]
        ts = record.get("ts")
        ms = int(ts) if isinstance(ts, int | float) and isfinite(ts) and not isinstance(ts, bool) else None
        plain = type.startswith(_FAMILIES)
        return [
            Event(kind, values, line, None, ts, ms=ms, plain=plain, part=index > 0)
            for index, (kind, values) in enumerate(found)
        ]

    def _turn(self, type: str, record: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        """The turns that an event opens or closes; an event inside one shows that its start was lost."""
        turn = str(record.get("turnId"))
        if type in RUN_ENDS:
            self._requests.clear()
            open, self._turns = self._turns, []
            return [(TURN_END, {"reason": type}) for _ in open]
        # A call shows that its turn is open, whatever became of the start; a late result does not.
        inside = type in _BEGINS_A_CALL or (type.startswith(_INSIDE) and not self._ends)
        if turn in self._turns or not (type in _OPENS or (inside and not self._turns)):
            return []
        self._turns.append(turn)
        # A run that has ended by its header lacks nothing but what it still owes.
        return [(TURN_START, {"turn_id": turn, IMPLICIT: self._status in _ENDED})]

    def _events(
        self, type: str, record: Mapping[str, Any], data: Mapping[str, Any]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        call = call_id(data, "toolCallId", "callId")
        named = {"name": _text(data, "toolName", "name", "tool"), "arguments": _first(data, _ARGUMENTS)}
        if type == "tool_started":
            return [(TOOL_CALL, {"tool_call_id": call, **named})]
        if type in ("tool_completed", "tool_failed"):
            failed = {"is_error": True, "error": data.get("error") or record.get("message")}
            return [
                (TOOL_RESULT, {**data, **(failed if type == "tool_failed" else {}), "tool_call_id": call})
            ]
        if type == "model_stream_started":
            request = {"request_id": data.get("requestId"), "max_output_tokens": data.get("maxOutputTokens")}
            return [(REQUEST_HEADER, request)]
        if type == "model_stream_completed":
            return [(ASSISTANT_MESSAGE, {"usage": _usage(data)})]
        if type.startswith("permission_"):
            return self._permission(type, record, data, call, named)
        return []

    def _permission(
        self,
        type: str,
        record: Mapping[str, Any],
        data: Mapping[str, Any],
        call: str | None,
        named: Mapping[str, Any],
    ) -> list[tuple[str, Mapping[str, Any]]]:
        request = call_id(data, "requestId", "permissionId") or self._requests.get(call or "", call)
        if type == "permission_requested":
            if call is None:
                return [(APPROVAL_REQUESTED, {"request_id": request, "reason": record.get("message")})]
            self._requests[call] = request or call
            asked = {"request_id": request, "tool_call_id": call, "reason": record.get("message"), **named}
            return [(ASSISTANT_MESSAGE, {"tool_calls": [{"id": call, **named}]}), (APPROVAL_REQUESTED, asked)]
        if type == "permission_decided":
            self._requests.pop(call or "", None)
            decided = {"request_id": request, "decision": _decision(data), "command_id": record.get("id")}
            # The event itself is what shows that an allow was issued: Maka writes nothing besides.
            proof = {"capability": record.get("id") or True} if decided["decision"] == "allow" else {}
            return [(APPROVAL_DECIDED, {**decided, **({"tool_call_id": call} if call else {}), **proof})]
        says = f"{type}: {record.get('message') or 'the permission was not settled'}"
        return [(type, data), (EVIDENCE, {"tool_call_id": call, "says": says})]

    # ---- the run as a whole

    @property
    def _status(self) -> object:
        return None if self._header is None else self._header.get("status")

    def complete(self, plan: Plan, state: State) -> Plan:
        """The plan with the decision that the app's own recovery would reach.

        A run that has not ended by its header is never clean, whatever its events show.
        """
        verdict = self._decision(state, plan)
        plan = plan._replace(verdict=verdict, anomalies=(*plan.anomalies, *self._anomalies))
        if plan.status == "clean" and verdict is not None:
            doubt = (
                f"{HEADER} says that the run is {self._status}, and the events show no open turn: the run "
                "was never closed, or its events were lost"
            )
            plan = plan._replace(status="doubtful", doubt=doubt)
        return plan if plan.status == "clean" else plan._replace(refusal=self.refusal(plan))

    def _decision(self, state: State, plan: Plan) -> Mapping[str, Any] | None:
        header = self._header
        if header is None:
            if self._last is None or self._ends:
                return None
            header = {key: self._last.get(key) for key in ("runId", "turnId")}
        # All that the verdict asks of the events: which run ends there are, the last one, any corrupt one.
        glued = any(anomaly.code == "glued_records" for anomaly in plan.anomalies)
        corrupt = glued or any(not stretch.torn for stretch in state.corrupt)
        types = [*([_CORRUPT] if corrupt else []), *sorted(self._ends)]
        if self._last is not None:
            types.append(self._last["type"])
        return decide(header, [{"type": type} for type in types], self._closures)

    def refusal(self, plan: Plan) -> Refusal | None:
        """Always: the header is rewritten by the app that owns the run."""
        return Refusal(
            "run_header_owned",
            f"{os.path.join(self._folder, HEADER)} is rewritten in place by Maka, which owns this run, so "
            "nothing is appended to its events: check each call, export the plan or the summary, and let "
            "Maka close the run when it starts again",
            boundary=plan.boundary.name,
            ids=tuple(owed.tool_call_id for owed in plan.owed),
        )

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Mapping[str, Any]]],
    ) -> list[str]:
        """No line: nothing can be appended to a run that its app owns."""
        return []

    def facts(self) -> Mapping[str, str]:
        """Agent, model, cwd, and when the run was created (ms since 1970), uncleaned."""
        header = self._header or {}
        names = {"model": "modelId", "cwd": "cwd", "started": "createdAt"}
        known = {name: str(header[key]) for name, key in names.items() if header.get(key) is not None}
        return {"agent": "Maka", **known}


def decoder() -> Decoder:
    """A decoder for one run."""
    return Decoder()


def document(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """None: the events are lines."""
    return None


_ARGUMENTS = ("args", "arguments", "input")
_ALLOWS = ("allow", "approve", "grant", "accept")
_DENIES = ("deny", "denied", "reject", "decline", "refuse", "cancel", "expire", "timeout", "timed_out")


def _request_files(folder: str) -> list[str]:
    """Where the sandbox requests of a run may lie: its own folder and its session's."""
    up = os.path.dirname(os.path.abspath(folder))
    session = os.path.dirname(up) if os.path.basename(up) == "runs" else up
    return [os.path.join(place, name) for place in (folder, session) for name in _REQUESTS]


def _parse_rows(text: bytes) -> tuple[list[Mapping[str, Any]], int]:
    """The request rows of a file (an array, one object or JSON lines) and how many lines can't be read."""
    try:
        value = orjson.loads(text)
        value = value.get("requests", value) if isinstance(value, dict) else value
        return [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)], 0
    except ValueError:
        pass
    rows: list[Mapping[str, Any]] = []
    damaged = 0
    for line in filter(bytes.strip, text.split(b"\n")):
        try:
            row = orjson.loads(line)
        except ValueError:
            damaged += 1
            continue
        rows += [row] if isinstance(row, dict) else []
    return rows, damaged


def _decision(data: Mapping[str, Any]) -> object:
    decision = data.get("decision")
    if isinstance(decision, dict):
        decision = decision.get("decision", decision.get("behavior"))
    if decision is None:
        decision = next((data[key] for key in ("allowed", "approved", "granted") if key in data), None)
    if isinstance(decision, bool):
        return "allow" if decision else "deny"
    word = decision.lower() if isinstance(decision, str) else ""
    return "allow" if word.startswith(_ALLOWS) else "deny" if word.startswith(_DENIES) else decision


def _usage(data: Mapping[str, Any]) -> Mapping[str, Any]:
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else data
    return {"input_tokens": usage.get("inputTokens", usage.get("input_tokens"))}


def _text(data: Mapping[str, Any], *keys: str) -> str | None:
    return next((data[key] for key in keys if isinstance(data.get(key), str)), None)


def _first(data: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((data[key] for key in keys if key in data), None)
