"""DeepSeek Harness sessions: a header line, then `{"type", "seq", "time", "data"}`, plain or in zstd frames.

A repair is what the harness's own closers write, in its own words where it checks them. Nothing is ever
appended where its loader would refuse the log for it: there the reason is said instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any, TypeGuard

from triage.log import compressed
from triage.log.decoder import BaseDecoder
from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASSISTANT_MESSAGE,
    KNOWN_TYPES,
    SETTLE,
    STEP_END,
    STEP_START,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    USER_MESSAGE,
    Event,
    call_id,
)
from triage.log.formats import dsh_result
from triage.log.formats.dsh_refusals import Oddities, refuse
from triage.log.json_text import dumps
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.rules import Records

NAME = "dsh"
RECORDS = Records(dispatches="all", step_ends=True)
FIRST_KEYS: tuple[str, ...] = ("type",)

LEFT = (
    "its turn was closed on line {line:,}, and the loader of DeepSeek Harness wants the result inside the "
    "turn: no append can mend it"
)
LARGEST_ROW = 100_000  # chunks in one packed row
TITLE = 1000  # characters of a first prompt that are kept

_FAMILIES = frozenset(
    {
        "agent", "agent-preset", "approval", "assistant", "command", "compact", "compaction", "developer",
        "feedback", "goal", "hook", "llm", "permission", "plan", "request", "sandbox", "session", "step",
        "subagent", "system", "team", "todo", "tool", "tool-workflow", "turn", "user", "web", "workspace",
    }
)  # fmt: skip
_ROWS = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
_MOVES = frozenset({"tool/call", "tool/result", "turn/start", "turn/end", "step/start", "step/end"})


def recognise(record: Mapping[str, Any]) -> bool:
    """Whether a record is certainly of this format: its header, an event of its families or a packed row."""
    type, data = record.get("type"), record.get("data")
    if type == "session":
        return "createdAt" in record and "version" in record
    return isinstance(type, str) and isinstance(data, dict) and (_family(type) or type in _ROWS)


def _family(type: str) -> bool:
    family, slash, rest = type.partition("/")
    return bool(slash and rest) and family in _FAMILIES


def document(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """None: a session is no single JSON document."""
    return None


def weigh(record: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """What a cut record may have been: (moved no call, may name a call, may open a turn).

    A cut turn or step mark is not taken as harmless: what follows it may stand elsewhere than it seems.
    """
    type = record.get("type")
    if not isinstance(type, str) or not (_family(type) or type in _ROWS or type == "session"):
        return False, True, True
    moves = type in _MOVES or type.startswith("approval/")
    return not moves, type in ("assistant/message", "tool/call"), type == "turn/start"


def frame(text: bytes) -> bytes:
    """The bytes of one zstd frame that holds a text, as the harness appends them."""
    return compressed.frame(text)


@dataclass(slots=True)
class _Turn:
    """An open turn: its number, its open step and where each unanswered call stands."""

    number: Any
    step: Any = None
    calls: dict[str, dsh_result.Place] = field(default_factory=dict)


class Decoder(BaseDecoder):
    """Keeps the open turns with their unanswered calls, the next seq, the last time and the facts."""

    def __init__(self) -> None:
        self._facts: dict[str, str] = {}
        self._prompt = ""
        self._version: Any = None
        self._turns: list[_Turn] = []
        self._time: Any = None  # of the last event
        self._tool_role = False  # results are messages of role tool
        self._odd = Oddities()

    # ---- reading

    def decode(self, record: Mapping[str, Any], line: int) -> Sequence[Event] | None:
        """The events that a record of a line (from 1) holds: none for the header. None: it is no record."""
        type, data = record.get("type"), record.get("data")
        if not isinstance(type, str):
            return None
        self._odd.line(line)
        if type == "session" and "data" not in record:
            self._header(record, line)
            return ()
        self._odd.event(line)
        data = data if isinstance(data, dict) else {}
        if type in _ROWS and "seq" not in record:
            return self._row(type, record, data, line)
        seq = record.get("seq")
        seq = seq if _is_int(seq) and seq >= 0 else None
        self._odd.seq(seq, record.get("time"), line)
        self._time = record.get("time")
        event = Event(f"dsh/{type}" if type in KNOWN_TYPES else type, data, line, seq, self._time)
        event.plain = _family(type) or type in _ROWS or record.get("ignorable") is True
        return self._judge(event, record)

    def _row(
        self, type: str, record: Mapping[str, Any], data: Mapping[str, Any], line: int
    ) -> Sequence[Event]:
        """The chunks of a packed row: each is an event with a seq of its own."""
        members, gaps = data.get(_ROWS[type]), data.get("dt")
        if not isinstance(members, list) or not 0 < len(members) <= LARGEST_ROW:
            return (Event(type, data, line, None, record.get("time0")),)
        first, start = record.get("seq0"), record.get("time0")
        gaps = gaps if isinstance(gaps, list) and all(map(_is_int, gaps)) else []
        times: list[Any] = list(accumulate(gaps, initial=start)) if _is_int(start) else []
        events = []
        for index in range(len(members)):
            seq = first + index if _is_int(first) and first >= 0 else None
            self._time = times[index] if index < len(times) else start
            self._odd.seq(seq, self._time, line)
            events.append(Event("assistant/chunk", data, line, seq, self._time, plain=True))
        return events

    def _judge(self, event: Event, record: Mapping[str, Any]) -> list[Event]:
        """An event in our own vocabulary, where it has a word for it."""
        type, data = event.type, event.data
        turn = self._turns[-1] if self._turns else None
        if type == "turn/start":
            self._turns.append(_Turn(data.get("turn")))
            event.type = TURN_START
        elif type == "turn/end":
            return self._turn_ends(event)
        elif type == "step/start":
            event.type = STEP_START
            if turn is not None:
                turn.step = data.get("step")
        elif type == "step/end":
            event.type = STEP_END
            if turn is not None:
                turn.step = None
        elif type == "assistant/message":
            self._named(event, turn)
        elif type == "tool/call":
            self._dispatched(event, turn)
        elif type == "tool/result":
            self._answered(event, turn, record.get("surfaceOp"))
        else:
            self._other(event)
        return [event]

    def _turn_ends(self, event: Event) -> list[Event]:
        if self._turns:
            self._turns.pop()
        event.type = TURN_END
        says = {"says": LEFT.format(line=event.line), "innermost": True}
        settled = Event(SETTLE, says, event.line, event.seq, event.time)
        event.part = True
        return [settled, event]

    # ---- calls

    def _named(self, event: Event, turn: _Turn | None) -> None:
        message = event.data.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else []
        calls = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool-call"]
        for block in calls:
            self._place(call_id(block, "id"), event, turn)
        usage = event.data.get("usage")
        tokens = usage.get("inputTokens") if isinstance(usage, dict) else None
        source = message.get("source") if isinstance(message, dict) else None
        if isinstance(source, dict) and isinstance(source.get("model"), str):
            self._facts["model"] = source["model"]
        event.type = ASSISTANT_MESSAGE
        event.data = {"content": content, "tool_calls": calls, "usage": {"input_tokens": tokens}}

    def _place(self, id: str | None, event: Event, turn: _Turn | None) -> dsh_result.Place | None:
        if id is None or turn is None:
            return None
        return turn.calls.setdefault(id, dsh_result.Place(event.data.get("step", turn.step)))

    def _dispatched(self, event: Event, turn: _Turn | None) -> None:
        data = event.data
        id = call_id(data, "callId")
        around = next((t for t in reversed(self._turns) if id in t.calls), turn)
        place = self._place(id, event, around)
        if place is not None and place.dispatched is None:
            place.dispatched = self._odd.index
        event.type = TOOL_CALL
        event.data = {"tool_call_id": id, "name": data.get("name"), "arguments": data.get("arguments")}

    def _answered(self, event: Event, turn: _Turn | None, operation: Any) -> None:
        if isinstance(operation, dict):
            return  # it rewrites a result that is there: no second one
        message = event.data.get("message")
        message = message if isinstance(message, dict) else {}
        self._tool_role = message.get("role") == "tool"
        id = _result_id(message, event.data)
        for open_turn in reversed(self._turns):
            if id is not None and open_turn.calls.pop(id, None) is not None:
                break
        event.type = TOOL_RESULT
        error = event.data.get("error")
        event.data = {
            "tool_call_id": id, "content": message.get("content"),
            "error": error, "is_error": isinstance(error, dict),
        }  # fmt: skip

    def _other(self, event: Event) -> None:
        type, data = event.type, event.data
        if type == "user/message":
            event.type = USER_MESSAGE
            self._prompt = self._prompt or _text(data.get("content"))[:TITLE].strip()
        elif type == "system/message":
            event.type = SYSTEM_MESSAGE
        elif type == "session/title" and isinstance(data.get("title"), str):
            self._facts["title"] = data["title"]
        elif type == "request/context" and isinstance(data.get("model"), str):
            self._facts["model"] = data["model"]
        elif type == "approval/asked":
            event.type = APPROVAL_REQUESTED
            event.data = {
                "request_id": call_id(data, "id"),
                "tool_call_id": call_id(data, "callId"),
                "name": data.get("toolName"),
                "reason": data.get("reason"),
            }
        elif type == "approval/decided":
            event.type = APPROVAL_DECIDED
            event.data = _decision(data)

    # ---- the header and the facts

    def _header(self, record: Mapping[str, Any], line: int) -> None:
        self._odd.header(record, line)
        if self._version is not None:
            return
        self._version = record.get("version")
        found = {"cwd": record.get("cwd"), "started": _moment(record.get("createdAt"))}
        self._facts.update({key: value for key, value in found.items() if isinstance(value, str)})
        self._facts["version"] = f"session format {self._version}"

    def facts(self) -> Mapping[str, str]:
        """Agent, format version, cwd, model, start and title (or first prompt), where there, uncleaned."""
        title = {"title": self._prompt} if self._prompt else {}
        return {"agent": "DeepSeek Harness", **title, **self._facts}

    # ---- repairing

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Mapping[str, Any]]],
    ) -> list[str]:
        """The lines to append, without newlines. Their time is the last event's: none is made up."""
        turns, lines = list(self._turns), list[str]()

        def write(type: str, data: Mapping[str, Any], **envelope: Any) -> None:
            seq = next_seq + len(lines)
            lines.append(dumps({"type": type, "seq": seq, "time": self._time, "data": data, **envelope}))

        flat = self._tool_role or (_is_int(self._version) and self._version >= dsh_result.FLAT_SINCE)
        for repair in repairs:
            turn = turns[-1] if turns else _Turn(repair.data.get("turn"))
            if repair.type == TOOL_RESULT:
                place = turn.calls.get(repair.data["tool_call_id"], dsh_result.Place(turn.step))
                message = dsh_result.message(repair.data, next_seq + len(lines), flat=flat)
                data = {"turn": turn.number, "step": place.step, "message": message}
                sources = {} if place.dispatched is None else {"sourceEventSeqs": [place.dispatched]}
                write("tool/result", {**data, "error": dsh_result.error(repair.data)}, **sources,
                      surfaceOp="append")  # fmt: skip
            elif repair.type == TURN_END:
                if turn.step is not None:
                    write("step/end", {"turn": turn.number, "step": turn.step})
                write("turn/end", {"turn": turn.number, "reason": {"kind": "interrupted"}})
                del turns[-1:]
        return lines

    def refusal(self, plan: Plan) -> Refusal | None:
        """Why nothing may be appended: what the harness's own loader would refuse the log for."""
        return refuse(self._odd, plan)


def decoder() -> Decoder:
    """A decoder for one log."""
    return Decoder()


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _result_id(message: Mapping[str, Any], data: Mapping[str, Any]) -> str | None:
    """The call that a result answers, in the shape of any version."""
    content = message.get("content")
    block = content[0] if isinstance(content, list) and content else None
    for holder, key in (
        (message.get("source"), "callId"),
        (message, "toolCallId"),
        (block, "toolCallId"),
        (data, "callId"),
    ):
        id = call_id(holder, key) if isinstance(holder, dict) else None
        if id is not None:
            return id
    return None


def _decision(data: Mapping[str, Any]) -> dict[str, Any]:
    """A decision in our own words. The harness issues no capability: its record is the evidence."""
    outcome = data.get("outcome")
    decision: Any = outcome
    if isinstance(outcome, str):
        decision = "allow" if outcome.startswith("allow") else "deny"
    allowed = {"capability": outcome} if decision == "allow" else {}
    return {"request_id": call_id(data, "id"), "decision": decision, **allowed}


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return next((text for text in texts if isinstance(text, str)), "")


def _moment(ms: Any) -> str | None:
    """An instant in ms since 1970 as ISO 8601, UTC; None where it is none."""
    try:
        moment = datetime.fromtimestamp(ms / 1000, UTC) if _is_int(ms) else None
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None
