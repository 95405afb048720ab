"""Orchestral run checkpoints: one JSON document a run, a `registration` and its `records`.

Its owner replaces the file whole, so this module must never offer a line to append to it. Where the run
died in a model attempt, the one line of a plan is the closing event that its owner takes; for every
other phase the refusal says what the owner's own recovery may do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from triage.log import beside
from triage.log.decoder import BaseDecoder
from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASSISTANT_MESSAGE,
    EVIDENCE,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
    REQUEST_HEADER,
    STEP_END,
    STEP_START,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    Event,
    call_id,
)
from triage.log.formats import orchestral_phases as phases
from triage.log.formats.orchestral_commands import Commands, command_of, kind_of
from triage.log.formats.orchestral_effects import Effects, read_effects
from triage.log.formats.orchestral_phases import Phase
from triage.log.json_text import Malformed, Unfinished, dumps, parse
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.rules import Records
from triage.recovery.seqs import LARGEST_SEQ
from triage.recovery.state import Anomaly, State

NAME = "orchestral"
RECORDS = Records(dispatches="all", step_ends=False)
FIRST_KEYS: tuple[str, ...] = ("checkpoint_seq", "event_id", "registration")

LARGEST = 256 << 20  # bytes of a checkpoint that are read
_REGISTERED = ("request", "execution", "admission", "config_digest")
_TERMINAL = ("delivery_committed", "run_incomplete", "run_failed", "run_cancelled")
_APPLIES = ("input_committed", "request_resolved", "stop_requested")

Data = Mapping[str, Any]
Found = list[tuple[str, Data]]  # events of one record: type and data


def recognise(record: Data) -> bool:
    """Whether a record is certainly of an Orchestral checkpoint."""
    return "checkpoint_seq" in record and isinstance(record.get("payload"), dict)


def document(value: Data) -> Sequence[Data] | None:
    """The records of a checkpoint; of one that has none yet, its registration.

    The host's own journal of a run (`run-….json`) looks alike, but its records hold public events.
    """
    registration, records = value.get("registration"), value.get("records", [])
    if not isinstance(registration, dict) or not isinstance(records, list) or "schema_version" in value:
        return None
    public = any(isinstance(record, dict) and "event" in record for record in records)
    if public or not any(key in registration for key in _REGISTERED):
        return None
    return records or [{"registration": registration}]


def weigh(record: Data) -> tuple[bool, bool, bool]:
    """Nothing can be told of a cut record: (moved no call, may name a call, may open a turn)."""
    return False, True, True


class Decoder(BaseDecoder):
    """Follows the phases of one run, and remembers its registration, effects and commands."""

    def __init__(self) -> None:
        self._path = ""
        self._registration: Data = {}
        self._run: str | None = None
        self._named: set[str] = set()
        self._effects = Effects()
        self._begun = False
        self._phase = Phase()
        self._calls: list[str] = []  # those of the last observation that are not answered
        self._seq = 0
        self._ids: set[str] = set()
        self._provided_ids: set[str] = set()  # of the provider's events, which may share a record's id
        self._commands = Commands()
        self._invalid: list[tuple[int, str]] = []
        self._used = 0
        self._closing: str | None = None  # the id of the event that closed the run as interrupted

    def read_beside(self, path: str) -> None:
        """Read the registration of the checkpoint at `path`, and the effects that lie beside it."""
        self._path = path
        value = _load(path)
        registration, records = value.get("registration"), value.get("records")
        self._registration = registration if isinstance(registration, dict) else {}
        payloads = [_payload(record) for record in records] if isinstance(records, list) else []
        self._run = call_id(_at(self._registration, "execution"), "run_id") or call_id(self._spec, "run_id")
        if self._run is None and isinstance(records, list):
            self._run = next((call_id(r, "run_id") for r in records if isinstance(r, dict)), None)
        self._named = {call["id"] for payload in payloads for call in _calls(payload)}
        workflows = any(payload.get("type") == "workflow_attempt_started" for payload in payloads)
        self._effects = read_effects(os.path.dirname(path), self._run, self._named, workflows=workflows)

    @property
    def _spec(self) -> Data:
        request = _at(self._registration, "request")
        return _at(_at(request, "run"), "spec") or _at(request, "run") or request

    # ---- records

    def decode(self, record: Data, line: int) -> Sequence[Event] | None:
        """The events that a record of a line (its index from 1) holds; None where it is no record."""
        payload = _payload(record)
        kind = payload.get("type")
        if "registration" not in record and not isinstance(kind, str):
            return None
        seq = record.get("checkpoint_seq")
        found = self._begin(line)
        if isinstance(kind, str):
            found += self._checked(record, line, kind)
            handler = _HANDLERS.get(kind)
            events = handler(self, payload, line) if handler is not None else []
            # An anomaly is no event of its own: a record without any other is shown as what it is.
            found += events if any(type != EVIDENCE for type, _ in events) else [(kind, payload), *events]
        own = seq if type(seq) is int and 0 <= seq <= LARGEST_SEQ else None
        plain = kind in _HANDLERS
        return [
            Event(type, data, line, own, None, plain=plain, part=index > 0)
            for index, (type, data) in enumerate(found)
        ]

    def _begin(self, line: int) -> Found:
        """The registration opens the run; what a workflow started, nothing names."""
        if self._begun or (line > 1 and not self._path):  # without a path, one record is shown by itself
            return []
        self._begun = True
        limits = self._limits
        turn = {"turn_id": self._run, "deadline": limits.get("deadline_unix_ms")}
        return [(TURN_START, turn), *self._effects.unnamed(self._run, self._named)]

    @property
    def _limits(self) -> Data:
        return _at(self._spec, "limits") or _at(self._registration, "limits")

    def _checked(self, record: Data, line: int, kind: str) -> Found:
        """What is wrong with a record's place in the sequence, as evidence."""
        seq, id, run = record.get("checkpoint_seq"), call_id(record, "event_id"), call_id(record, "run_id")
        wrong: list[tuple[str, str]] = []
        if seq != self._seq + 1:
            says = f"checkpoint_seq {seq} where {self._seq + 1} was due: a record is missing or repeated"
            # A jump between two records is an anomaly of any log; only the first record's is told here.
            wrong.append(("" if self._seq and type(seq) is int else "seq_gap", says))
        self._seq = seq if type(seq) is int else self._seq + 1
        if id is not None and id in self._ids:
            wrong.append(("event_id_repeated", f"event {id!r} is recorded twice"))
        self._ids.add(id or "")
        if run is not None and self._run is not None and run != self._run:
            wrong.append(("other_run", f"the record is of run {run!r}, the checkpoint of {self._run!r}"))
        says = self._phase.forbids(kind, _payload(record))
        if says:
            ended = self._phase.name == phases.TERMINAL
            wrong.append(("record_after_terminal" if ended else "phase_skipped", says))
        return [self._wrong(line, code, says) for code, says in wrong]

    def _wrong(self, line: int, code: str, says: str) -> tuple[str, Data]:
        self._invalid.append((line, says))
        return EVIDENCE, {**({"anomaly": code} if code else {}), "says": says, "contradicts": True}

    def _boundary(self, payload: Data, line: int) -> Found:
        """A boundary is written after the round's calls were exchanged: only an invoked one still owes."""
        effects = self._effects.by_call
        done = [id for id in self._calls if id not in effects or not effects[id].invoked]
        results: Found = [(TOOL_RESULT, {"tool_call_id": id}) for id in done]
        ends: Found = [(STEP_END, {})] if self._phase.round is not None else []
        self._calls = []
        used = _tokens(payload)
        self._used = self._used if used is None else used
        self._phase = Phase(phases.STABLE, line, next_round=payload.get("next_model_round"))
        return [*results, *ends]

    def _attempt(self, payload: Data, line: int) -> Found:
        ends: Found = [(STEP_END, {})] if self._phase.round is not None else []
        self._phase = Phase(
            phases.OPEN,
            line,
            payload.get("round"),
            call_id(payload, "request_id"),
            has_budget="max_output_tokens" in payload,
        )
        request = {
            "request_id": payload.get("request_id"),
            "max_output_tokens": payload.get("max_output_tokens"),
        }
        return [*ends, (STEP_START, {}), (REQUEST_HEADER, request)]

    def _observed(self, payload: Data, line: int) -> Found:
        observation = _at(payload, "observation")
        calls = _calls(payload)
        self._phase = Phase(
            phases.OBSERVED,
            line,
            payload.get("round"),
            call_id(payload, "request_id"),
            ended=[call["ended"] for call in calls],
            finish=observation.get("finish_reason"),
            ids=[call["id"] for call in calls],
        )
        self._calls = [call["id"] for call in calls]
        self._used += _tokens(observation) or 0
        named = [{key: call[key] for key in ("id", "name", "arguments")} for call in calls]
        found: Found = [(ASSISTANT_MESSAGE, {"content": observation.get("response"), "tool_calls": named})]
        for call in calls:
            found += self._effects.of(call["id"], call["name"], call["arguments"])
        return found

    def _workflow(self, payload: Data, line: int) -> Found:
        call = call_id(payload, "call_id")
        self._phase = replace(self._phase, name=phases.WORKFLOW, line=line, call=call)
        return [(TOOL_CALL, {"tool_call_id": call})]

    def _command(self, payload: Data, line: int) -> Found:
        command = command_of(payload, line)
        if self._commands.add(command):
            return [self._wrong(line, "command_repeated", f"command {command.id!r} is recorded twice")]
        if not command.accepted or command.kind not in ("approval", "input"):
            return []
        data: dict[str, Any] = {"request_id": command.request, "command_id": command.id}
        if command.capability is not None:
            data["capability"] = command.capability
        if command.kind == "input":
            return [(INPUT_RESOLVED, data)]
        return [(APPROVAL_DECIDED, {**data, "decision": command.decision})]

    def _provider(self, payload: Data, line: int) -> Found:
        events = payload.get("events")
        events = [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
        found: Found = []
        for index, event in enumerate(events):
            inner, id = _payload(event), call_id(event, "event_id")
            type = inner.get("type")
            if type in _TERMINAL and index < len(events) - 1:
                says = f"{type} is not the last event of its batch"
                found.append(self._wrong(line, "terminal_not_last", says))
            if id is not None and id in self._provided_ids:
                found.append(self._wrong(line, "event_id_repeated", f"event {id!r} is recorded twice"))
            found += self._provided(type, inner, event, line)
            self._provided_ids.add(id or "")
        return found

    def _provided(self, type: object, inner: Data, event: Data, line: int) -> Found:
        id, phase = call_id(event, "event_id"), self._phase
        if type in _APPLIES:
            self._commands.apply(call_id(event, "causation_id"), call_id(inner, "request_id"))
        if type == "request_opened":
            return self._asked(_at(inner, "request"), line)
        if type == "request_closed":
            request = call_id(inner, "request_id")
            says = f"request {request!r} was closed, and nothing says how: {inner.get('reason')}"
            call = self._commands.call_of(request)
            return [(EVIDENCE, {"tool_call_id": call, "says": says, "contradicts": call is not None})]
        if type == "output_committed" and phase.name == phases.WORKFLOW:
            self._phase = replace(phase, has_output=True)
            return [(TOOL_RESULT, {"tool_call_id": phase.call})]
        if type in _TERMINAL:
            closing = f"generic-{self._run}-model-attempt-interrupted-"
            self._closing = id if id is not None and id.startswith(closing) else None
            self._phase = replace(phase, name=phases.TERMINAL, line=line)
            return [(TURN_END, {"reason": type})]
        return []

    def _asked(self, request: Data, line: int) -> Found:
        id, payload = call_id(request, "request_id"), _payload(request)
        kind = kind_of(payload, id)
        call = _call_of_request(id, self._phase.ids)
        self._commands.ask(id, call)
        data = {"request_id": id, "tool_call_id": call}
        if kind == "approval":
            return [(APPROVAL_REQUESTED, {**data, "reason": payload.get("reason")})]
        return [(INPUT_REQUESTED, {**data, "prompt": _text_of(payload.get("prompt")) or payload.get("name")})]

    # ---- the run as a whole

    def complete(self, plan: Plan, state: State) -> Plan:
        """The plan with the phase, its figures, and what the owner's recovery would refuse."""
        steers = self._commands.undelivered
        if steers and self._phase.name != phases.TERMINAL:
            ids = ", ".join(repr(steer.id) for steer in steers[:5])
            count = (
                "a steering message was" if len(steers) == 1 else f"{len(steers):,} steering messages were"
            )
            says = f"{count} accepted and never delivered: {ids}"
            plan = plan._replace(
                anomalies=(*plan.anomalies, Anomaly("steering_undelivered", steers[0].line, says))
            )
        plan = self._with_boundary(plan)
        if plan.status != "clean":
            return plan._replace(refusal=self.refusal(plan))
        doubt = self._doubt(state)
        if doubt:
            plan = plan._replace(status="doubtful", doubt=doubt)
            return plan._replace(refusal=self.refusal(plan))
        return plan._replace(refusal=self._unheard())

    def _doubt(self, state: State) -> str:
        """Why a checkpoint without an open turn can't be called clean, or ""."""
        if self._invalid:
            line, says = self._invalid[0]
            return f"record {line:,}: {says}"
        if self._phase.name != phases.TERMINAL:
            return "no record that ends the run can be read"
        return state.corrupt[0].says if state.corrupt else ""

    def _with_boundary(self, plan: Plan) -> Plan:
        boundary, phase = plan.boundary, self._phase
        limit = self._limits.get("max_input_tokens")
        left = max(0, limit - self._used) if type(limit) is int else None
        if boundary.name == "terminal":
            return plan
        name, line = boundary.name, boundary.line
        if name == "resolution_pending" and self._commands.applied(boundary.command_id):
            name = "calls_named" if plan.owed else "stable"
        if name in ("prepared", "stable", "model_attempt_open", "calls_named") and phase.boundary:
            name, line = phase.boundary, phase.line or line
        round = phase.round if type(phase.round) is int else boundary.round
        return plan._replace(
            boundary=boundary._replace(name=name, line=line, round=round, input_tokens_left=left)
        )

    def refusal(self, plan: Plan) -> Refusal | None:
        """Always: what its owner's recovery would refuse, else that the owner replaces the file whole."""
        owned = (
            f"{self._path} is replaced whole by Orchestral, which owns it, so nothing is appended: check "
            "each call, export the plan or the summary, and let Orchestral close the run"
        )
        found = self._refused()
        code, says, ids = found or ("not_append_only", self._may, ())
        ids = ids or tuple(owed.tool_call_id for owed in plan.owed)
        return Refusal(code, f"{owned}. {says}", boundary=plan.boundary.name, ids=ids)

    @property
    def _may(self) -> str:
        effects = [self._effects.by_call.get(id) for id in self._phase.ids]
        if self._phase.name == phases.OBSERVED and any(e and e.invoked and not e.settled for e in effects):
            return f"{self._phase.where}: its call's effect is unknown, and the call is never run again"
        return self._phase.says

    def _refused(self) -> tuple[str, str, tuple[str, ...]] | None:
        """Code, sentence and ids of what recovery refuses at this phase, else None."""
        if self._invalid:
            line, says = self._invalid[0]
            says = f"Record {line:,} makes the checkpoint invalid, so that recovery can't trust it: {says}"
            return "invalid_digest", says, ()
        return self._commands.refused() or self._phase.refused()

    def _unheard(self) -> Refusal | None:
        """The closing of an attempt that landed, and of which the host's own journal knows nothing."""
        if self._closing is None or self._heard():
            return None
        says = (
            f"{self._path}: the closing of round {self._phase.round}, request {self._phase.request!r}, "
            f"landed (record {self._phase.line:,}), and nothing shows that anyone heard of it: ask "
            f"Orchestral again; {self._closing} is the same event each time"
        )
        ids = (self._phase.request,) if self._phase.request is not None else ()
        return Refusal("provider_unavailable", says, "model_attempt_open", ids, retryable=True)

    def _heard(self) -> bool:
        name = f"run-{phases.digest(self._run or '')}.json"
        try:
            journal = beside.read(os.path.join(os.path.dirname(self._path), name))
        except (OSError, ValueError):
            return False
        return dumps(self._closing).encode() in journal

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Data]],
    ) -> list[str]:
        """The closing event of an open model attempt, for its owner to append; else nothing."""
        if not repairs or self._phase.name != phases.OPEN or self._refused() or self._run is None:
            return []
        return [dumps(phases.closing_event(self._run, self._phase.round, self._seq))]

    def facts(self) -> Mapping[str, str]:
        """Agent, protocol version, and the first words of the input as title, uncleaned."""
        version, input = _at(self._spec, "protocol_version"), self._spec.get("input")
        known = {"agent": "Orchestral", "phase": self._phase.name}
        if "major" in version:
            known["version"] = f"{version.get('major')}.{version.get('minor')}"
        title = _text_of(input)
        return {**known, "title": title} if title else known


_HANDLERS: Mapping[str, Callable[[Decoder, Data, int], Found]] = {
    "loop_boundary_committed": Decoder._boundary,
    "model_attempt_started": Decoder._attempt,
    "model_attempt_observed": Decoder._observed,
    "workflow_attempt_started": Decoder._workflow,
    "command_committed": Decoder._command,
    "provider_events_committed": Decoder._provider,
}


def decoder() -> Decoder:
    """A decoder for one checkpoint."""
    return Decoder()


def _load(path: str) -> Data:
    try:
        text = beside.read(path, LARGEST).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    except (OSError, ValueError):
        return {}
    try:
        value = parse(text)[0]
    except Unfinished as cut:
        value = cut.root
    except Malformed:
        return {}
    return value if isinstance(value, dict) else {}


def _at(value: Data, key: str) -> Data:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _payload(record: Any) -> Data:
    return _at(record, "payload") if isinstance(record, dict) else {}


def _calls(payload: Data) -> list[dict[str, Any]]:
    """The calls that an observation names: `id`, `name`, `arguments`, `ended`."""
    calls = _at(payload, "observation").get("tool_calls")
    return [
        {
            "id": id,
            "name": call.get("name"),
            "arguments": call.get("arguments"),
            "ended": call.get("ended") is True,
        }
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict) and (id := call_id(call, "call_id", "id")) is not None
    ]


def _tokens(value: Data) -> int | None:
    tokens = _at(value, "usage").get("input_tokens")
    return tokens if type(tokens) is int else None


def _call_of_request(id: str | None, calls: Sequence[str]) -> str | None:
    """The call that a request is for: `approval:<run>:<round>:<call>`, else the only call there is."""
    named = [call for call in calls if id is not None and id.endswith(f":{call}")]
    return max(named, key=len) if named else calls[0] if len(calls) == 1 else None


def _text_of(content: Any) -> str:
    """The first text of a list of content parts, or a text as it is."""
    for part in content if isinstance(content, list) else [content]:
        value = _at(part, "body").get("value", part.get("text")) if isinstance(part, dict) else part
        if isinstance(value, str) and value:
            return value
    return ""
