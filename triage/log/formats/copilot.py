"""Copilot CLI event logs: an object a line, `{"type", "data", "id", "timestamp", "parentId", "agentId"?}`.

`tool.execution_start` is no dispatch: the hook and the permission prompt come after it. Nothing here may
take a call for not started because a hook or a permission *might* be its own, and no line is written that
the agent's loader would not take: it refuses unknown keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triage.log.decoder import BaseDecoder
from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASSISTANT_MESSAGE,
    DISPATCHED,
    EVIDENCE,
    GATED,
    IMPLICIT,
    KNOWN_TYPES,
    STEP_END,
    STEP_START,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    USER_MESSAGE,
    WITHDRAWN,
    Event,
    call_id,
)
from triage.log.formats import copilot_live
from triage.log.formats.copilot_calls import Call, Lane, asked, finished, gated, outcome
from triage.log.formats.copilot_repair import Agent, Hook, Open, Request, records, split_record
from triage.log.formats.copilot_text import FOLLOWED, facts_in, hints, is_uuid, ms, named, quoted, text
from triage.log.formats.copilot_types import TYPES, recognise, weigh
from triage.log.json_text import dumps
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.rules import Records

__all__ = ["FIRST_KEYS", "NAME", "RECORDS", "Decoder", "decoder", "document", "recognise", "weigh"]

Record = Mapping[str, Any]

NAME = "copilot"
RECORDS = Records(dispatches="all", step_ends=True, hole_ms=1000)
FIRST_KEYS: tuple[str, ...] = ("type",)

TITLE = 1000  # characters of a first prompt that are kept
_INJECTED = ("skill-", "agent-")  # how the source of a message begins that nobody typed


def document(value: Record) -> Sequence[Record] | None:
    """None: an event log is no single JSON document."""
    return None


class Decoder(BaseDecoder):
    """Keeps what is open: lanes with their turns, steps and calls, requests, hooks and sub-agents."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {"": Lane("")}
        self._requests: dict[str, Request] = {}
        self._hooks: dict[str, Hook] = {}
        self._agents: dict[str, Agent] = {}  # by lane
        self._facts: dict[str, str] = {}
        self._prompt = ""
        self._last_id: str | None = None
        self._seen = False  # a record was decoded
        self._alone = False  # a single record from the middle of a log is decoded, to be shown
        self._line = 0
        self._time: Any = None
        self._ms: int | None = None
        self._handlers: dict[str, Callable[[Record, Record], list[Event]]] = {
            "session.start": self._session,
            "session.resume": self._session,
            "session.shutdown": self._ends,
            "session.task_complete": self._ends,
            "abort": self._ends,
            "session.model_change": self._changed,
            "session.context_changed": self._changed,
            "session.title_changed": self._changed,
            "system.message": self._system,
            "user.message": self._user,
            "assistant.turn_start": self._step_start,
            "assistant.turn_end": self._step_end,
            "assistant.message": self._message,
            "tool.execution_start": self._start,
            "tool.execution_complete": self._complete,
            "external_tool.requested": self._external,
            "permission.requested": self._requested,
            "permission.completed": self._decided,
            "hook.start": self._hook_start,
            "hook.end": self._hook_end,
            "subagent.started": self._agent_started,
            "subagent.completed": self._agent_ended,
            "subagent.failed": self._agent_ended,
        }

    def processes(self, path: str) -> Sequence[int]:
        """The living processes that say that they run the session of the log at `path`."""
        return copilot_live.processes(path)

    # ---- reading

    def decode(self, record: Record, line: int) -> Sequence[Event] | None:
        """The events that a record of a line (from 1) holds; None where it is no record."""
        type, data, id = record.get("type"), record.get("data"), record.get("id")
        if not isinstance(type, str):
            return None
        data = data if isinstance(data, dict) else {}
        self._alone, self._seen = not self._seen and line > 1, True
        self._line, self._time = line, record.get("timestamp")
        self._ms = ms(self._time)
        if isinstance(id, str) and is_uuid(id):
            self._last_id = id
        handler = self._handlers.get(type)
        events = handler(record, data) if handler else [self._plain(record, data)]
        for event in events[1:]:
            event.part = True
        return events

    def _event(self, type: str, data: Record, lane: str = "") -> Event:
        return Event(type, data, self._line, None, self._time, lane, self._ms)

    def _plain(self, record: Record, data: Record, lane: str = "") -> Event:
        """A record that is shown and not judged."""
        type = record["type"]
        name = f"copilot/{type}" if type in KNOWN_TYPES else type
        event = self._event(name, data, lane)
        event.plain = type in TYPES
        return event

    def _says(self, call: Call, says: str, stage: str = "", **more: Any) -> Event:
        """Something about a call; `stage` where it moves it."""
        data = {"tool_call_id": call.id, "says": says, **more}
        if stage:
            data["stage"] = stage
        return self._event(EVIDENCE, data, call.lane)

    def _marker(self) -> Event:
        """Another process goes on with the log: what the one before it still had to write is lost."""
        return Event(EVIDENCE, {"writer_gone": True}, self._line, None, self._time)

    def _lane(self, record: Record, data: Record) -> Lane:
        """The lane of a record: of its `agentId`, in older versions of the call that started the agent."""
        name = text(record, "agentId")
        if name is None:
            parent = text(data, "parentToolCallId") or ""
            name = next((lane for lane, agent in self._agents.items() if agent.call == parent), parent)
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(name, spawned_by=name)
        return lane

    def _calls(self, lane: str | None = None) -> list[Call]:
        lanes = [self._lanes[lane]] if lane in self._lanes else reversed(self._lanes.values())
        return [call for one in lanes for call in one.calls.values()]

    def _find(self, id: str | None, lane: str = "") -> Call | None:
        """The unanswered call of an id: of this lane, else of any."""
        if id is None:
            return None
        own = self._lanes[lane].calls.get(id) if lane in self._lanes else None
        return own or next((call for call in self._calls() if call.id == id), None)

    # ---- turns: their interactions; steps: their turns

    def _go_on(self, lane: Lane) -> list[Event]:
        """A turn goes on. Where none is open, one that needs no end begins: a log may begin anywhere."""
        if lane.open:
            goes_on = [self._event(EVIDENCE, {"turn_finished": False})] if lane.finished else []
            lane.finished = lane.rests = False
            return goes_on
        if self._alone:
            return []
        lane.open = True
        return [self._event(TURN_START, {IMPLICIT: True}, lane.name)]

    def _close(self, lane: Lane, reason: str) -> list[Event]:
        """The end of a lane's turn; the calls that it still owes are left."""
        events = [self._event(TURN_END, {"reason": reason}, lane.name)] if lane.open else []
        lane.clear()
        if lane.name:
            del self._lanes[lane.name]
            self._agents.pop(lane.name, None)
        self._requests = {id: r for id, r in self._requests.items() if r.lane != lane.name}
        self._hooks = {id: hook for id, hook in self._hooks.items() if hook.lane != lane.name}
        return events

    def _close_all(self, reason: str, everything: bool = False) -> list[Event]:
        """The end of the interaction, and of the sub-agents that can't outlive it.

        A sub-agent in the background can: its call was answered when it began.
        """
        dying = {""}
        size = 0
        while size != len(dying):
            size = len(dying)
            ids = {id for name in dying for id in self._lanes[name].calls}
            dying |= {lane.name for lane in self._lanes.values() if lane.cold or lane.spawned_by in ids}
        lanes = [lane for lane in reversed(self._lanes.values()) if everything or lane.name in dying]
        return [event for lane in lanes for event in self._close(lane, reason)]

    def _user(self, record: Record, data: Record) -> list[Event]:
        lane = self._lane(record, data)
        shown = self._event(USER_MESSAGE, data, lane.name)
        injected = (text(data, "source") or "").startswith(_INJECTED)
        if injected and lane.open and not lane.finished:
            return [shown]
        start: dict[str, Any] = {"turn_id": data.get("interactionId")}
        if lane.name:
            events = []
            start[IMPLICIT] = True
            lane.clear()
        else:
            events = self._close_all("the next user.message")
            if not injected:
                self._prompt = self._prompt or quoted(text(data, "content") or "", TITLE)
        lane.open = True
        return [*events, self._event(TURN_START, start, lane.name), shown]

    def _ends(self, record: Record, data: Record) -> list[Event]:
        type, lane = record["type"], self._lane(record, data)
        if self._alone:
            return [self._event(TURN_END, {**data, "reason": type}, lane.name)]
        if lane.name:
            return [*self._close(lane, type), self._plain(record, data)]
        return [*self._close_all(type, everything=type == "session.shutdown"), self._plain(record, data)]

    def _step_start(self, record: Record, data: Record) -> list[Event]:
        lane = self._lane(record, data)
        events = self._go_on(lane)
        lane.steps.append((call_id(data, "turnId") or "", text(record, "agentId")))
        return [*events, self._event(STEP_START, data, lane.name)]

    def _step_end(self, record: Record, data: Record) -> list[Event]:
        lane = self._lane(record, data)
        if lane.steps:
            lane.steps.pop()
        lane.rests = True
        return [self._event(STEP_END, data, lane.name), *self._finish(lane)]

    def _finish(self, lane: Lane) -> list[Event]:
        """A turn whose last step has ended is over as soon as it owes nothing."""
        if lane.name or not lane.open or not lane.rests or lane.calls or lane.finished:
            return []
        lane.finished = True
        return [self._event(EVIDENCE, {"turn_finished": True})]

    # ---- calls

    def _message(self, record: Record, data: Record) -> list[Event]:
        lane = self._lane(record, data)
        events = self._go_on(lane)
        message, requests = text(data, "messageId"), data.get("toolRequests")
        calls: Any = requests
        before = [c for c in lane.calls.values() if not c.followed and not (message and c.message == message)]
        if isinstance(requests, list):
            calls = [named(entry) for entry in requests]
            for entry in calls:
                id = entry["id"] if isinstance(entry, dict) else None
                if id is not None:
                    call = self._learn(lane, id, record, data, entry["name"], entry["arguments"])
                    call.message = call.message or message
        said = {"content": data.get("content"), "tool_calls": calls}
        events.append(self._event(ASSISTANT_MESSAGE, said, lane.name))
        for call in before:
            call.followed = True
            events.append(self._says(call, FOLLOWED))
        return events

    def _learn(self, lane: Lane, id: str, record: Record, data: Record, name: Any, arguments: Any) -> Call:
        """The call of an id in a lane, known or new; one that this turn has answered is not kept again."""
        call = lane.calls.get(id) or Call(id, lane.name)
        if id not in lane.answered:
            lane.calls[id] = call
        call.name = call.name or (name if isinstance(name, str) else None)
        call.arguments = arguments if call.arguments is None else call.arguments
        call.learn(record, data)
        return call

    def _start(self, record: Record, data: Record) -> list[Event]:
        id = call_id(data, "toolCallId")
        known = self._find(id, self._lane(record, data).name)
        lane = self._lanes[known.lane] if known else self._lane(record, data)
        events = self._go_on(lane) if lane.open or lane.name else []
        name, arguments = data.get("toolName"), data.get("arguments")
        taken = {"tool_call_id": id, "name": name, "arguments": arguments}
        if id is None:
            return [*events, self._event(TOOL_CALL, taken, lane.name)]
        call = self._learn(lane, id, record, data, name, arguments)
        call.started = True
        says = self._says(call, "tool.execution_start: its hook and its permission come after this")
        if known and (call.gates or call.pending or call.denied):
            return [*events, self._plain(record, data, lane.name), says]
        return [*events, self._event(TOOL_CALL, taken, lane.name), says]

    def _complete(self, record: Record, data: Record) -> list[Event]:
        id = call_id(data, "toolCallId")
        lane = self._lane(record, data)
        call = self._find(id, lane.name)
        if call is not None:
            lane = self._lanes[call.lane]
            del lane.calls[call.id]
        if id is not None and lane.open:
            lane.answered.add(id)
        error = text(data.get("error"), "message")
        result = data.get("result")
        content = result.get("content") if isinstance(result, dict) else result
        answer = {"tool_call_id": id, "content": error if content is None else content, "error": error}
        answer["is_error"] = data.get("success") is False
        telemetry = data.get("toolTelemetry")
        if isinstance(telemetry, dict) and telemetry.get("synthetic") is True:
            answer["metadata"] = telemetry
            return [self._marker(), self._event(TOOL_RESULT, answer, lane.name)]  # a repair ends with an end
        return [self._event(TOOL_RESULT, answer, lane.name), *self._finish(lane)]

    def _external(self, record: Record, data: Record) -> list[Event]:
        events = self._start(record, data)
        call = self._find(call_id(data, "toolCallId"), self._lane(record, data).name)
        if call is not None:
            call.ran = True
            events[-1] = self._says(call, "handed to an external tool, no completion", DISPATCHED)
        return events

    # ---- permissions

    def _requested(self, record: Record, data: Record) -> list[Event]:
        asks = data.get("permissionRequest")
        asks = asks if isinstance(asks, dict) else {}
        id, own = call_id(data, "requestId"), call_id(asks, "toolCallId")
        lane = self._lane(record, data)
        open_calls = self._calls(text(record, "agentId"))
        call = self._find(own, lane.name) if own is not None else asked(asks, open_calls)
        own, name = (call.id, call.lane) if call else (own, lane.name)
        asked_for = {"request_id": id, "tool_call_id": own, "reason": hints(asks)}
        events = [self._event(APPROVAL_REQUESTED, asked_for, name)]
        if id is not None:
            self._requests[id] = Request(own, text(record, "agentId"), name)
        if call is None:
            return events
        resolved = data.get("resolvedByHook") is True
        says = f"permission requested ({asked_for['reason']})"
        if resolved:
            events.append(self._says(call, f"{says}, and resolved by a hook", DISPATCHED))
        else:
            call.pending.add(id)
            events.append(self._says(call, says, "" if call.ran else WITHDRAWN))
        return events

    def _decided(self, record: Record, data: Record) -> list[Event]:
        id, own = call_id(data, "requestId"), call_id(data, "toolCallId")
        request = self._requests.pop(id, None) if id is not None else None
        lane = request.lane if request else self._lane(record, data).name
        call = self._find(own or (request.call if request else None), lane)
        result = data.get("result")
        kind = text(result, "kind") or (result if isinstance(result, str) else "completed, not saying how")
        denied = kind.startswith(("denied", "cancel"))
        decided = {"request_id": id, "decision": "deny" if denied else "allow"}
        if own is not None:
            decided["tool_call_id"] = own
        if not denied:
            decided["capability"] = "permission.completed"
        events = [self._event(APPROVAL_DECIDED, decided, call.lane if call else lane)]
        if call is None:
            return events
        call.pending.discard(id)
        how = "" if kind == "approved" else f" ({kind})"
        if denied:
            call.denied = True
            says = f"permission {'cancelled' if kind.startswith('cancel') else 'denied'}{how}"
            events.append(self._says(call, says, "" if call.ran else WITHDRAWN))
        else:
            call.ran = True
            events.append(self._says(call, f"permission approved{how}, no completion", DISPATCHED))
        return events

    # ---- hooks and sub-agents

    def _hook_start(self, record: Record, data: Record) -> list[Event]:
        id, type, input = text(data, "hookInvocationId"), text(data, "hookType") or "", data.get("input")
        agent = text(record, "agentId")
        calls: Sequence[Call] = ()
        events = [self._plain(record, data, agent or "")]
        if type.lower() == "pretooluse" and id is not None:
            calls = gated(input, self._calls(agent))
            for call in calls:
                call.hooked = True
                call.gates.add(id)
                holds = not (call.ran or call.pending or call.denied)
                events.append(self._says(call, "its preToolUse hook started", GATED if holds else ""))
        elif type.lower().startswith("posttooluse"):
            events += self._finished(input, agent, type)
        if id is not None:
            self._hooks[id] = Hook(type, agent, calls[0].lane if calls else agent or "", calls)
        return events

    def _finished(self, input: Any, agent: str | None, type: str) -> list[Event]:
        calls, certain = finished(input, self._calls(agent))
        events = []
        for call in calls:
            call.ran = True
            if certain:
                call.finished = True
                says = f"its {type} hook started: the tool had finished, only its result was lost"
                events.append(self._says(call, says, DISPATCHED, finished=outcome(input)))
            else:
                says = f"a {type} hook started that is for this call or for another of the same tool"
                events.append(self._says(call, says, DISPATCHED))
        return events

    def _hook_end(self, record: Record, data: Record) -> list[Event]:
        id = text(data, "hookInvocationId")
        hook = self._hooks.pop(id, None) if id is not None else None
        events = [self._plain(record, data, text(record, "agentId") or "")]
        for call in hook.calls if hook else ():
            call.gates.discard(id or "")
            if call.lane not in self._lanes or self._lanes[call.lane].calls.get(call.id) is not call:
                continue
            free = not (call.ran or call.gates or call.pending or call.denied)
            says = "its preToolUse hook ended" + (", and no permission is open" if free else "")
            events.append(self._says(call, says, DISPATCHED if free else ""))
        return events

    def _agent_started(self, record: Record, data: Record) -> list[Event]:
        id, agent = text(data, "toolCallId"), text(record, "agentId")
        name = agent or id
        if name is None:
            return [self._plain(record, data)]
        spawn = self._find(id)
        lane = self._lanes.setdefault(name, Lane(name))
        lane.spawned_by = id or name
        shown = text(data, "agentName") or ""
        self._agents[name] = Agent(id or name, shown, text(data, "agentDisplayName") or shown, agent)
        events = []
        if not lane.open:
            lane.open = True
            events.append(self._event(TURN_START, {IMPLICIT: True}, name))
        events.append(self._plain(record, data, name))
        if spawn is not None:
            spawn.ran = True
            events.append(self._says(spawn, "its sub-agent was started", DISPATCHED))
        return events

    def _agent_ended(self, record: Record, data: Record) -> list[Event]:
        id = text(data, "toolCallId")
        name = text(record, "agentId") or next((n for n, a in self._agents.items() if a.call == id), id)
        lane, spawn = self._lanes.get(name or ""), self._find(id)
        events = self._close(lane, record["type"]) if lane is not None and lane.name else []
        events.append(self._plain(record, data, name or ""))
        if spawn is not None:
            how = "completed" if record["type"] == "subagent.completed" else "failed"
            events.append(self._says(spawn, f"its sub-agent {how}, no completion of the call"))
        return events

    # ---- the session

    def _session(self, record: Record, data: Record) -> list[Event]:
        """A process begins to write: the first one, or one that goes on with a log."""
        events = self._changed(record, data)
        if data.get("sessionWasActive") is True:
            return events
        for lane in self._lanes.values():
            lane.cold = lane.name != ""
        return [self._marker(), *events] if self._calls() else events

    def _changed(self, record: Record, data: Record) -> list[Event]:
        self._facts = {**self._facts, **facts_in(data)}
        return [self._plain(record, data)]

    def _system(self, record: Record, data: Record) -> list[Event]:
        return [self._event(SYSTEM_MESSAGE, data, self._lane(record, data).name)]

    def facts(self) -> Mapping[str, str]:
        """Agent, version, cwd, model, start and title (or first prompt), where the log says so, uncleaned."""
        found = {"agent": "Copilot CLI", "title": self._prompt, **self._facts}
        return {key: value for key, value in found.items() if value}

    # ---- repairing

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Record]],
    ) -> list[str]:
        """The lines to append, without newlines. `now` is the time of the append; None in a plan."""
        steps = [step for lane in self._lanes.values() for step in lane.steps]
        left = Open(self._calls(), self._requests, self._hooks, [*self._agents.values()], steps)
        return [dumps(record) for record in records(repairs, left, self._last_id, now)]

    def refusal(self, plan: Plan) -> Refusal | None:
        """A record that is broken over several lines: nothing that is appended makes them one again."""
        return split_record(plan)


def decoder() -> Decoder:
    """A decoder for one log."""
    return Decoder()
