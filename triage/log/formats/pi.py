"""pi sessions: a header, then one entry a line; from version 2 on a tree whose leaf is the last entry.

Only the way from the leaf to the root counts, so an entry that forks off earlier leaves the calls of the
branch behind it. Starts are never recorded: nothing here may call a call not started. A repair hangs
results under the leaf, and only where the leaf's own way still holds the message that names the call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from secrets import token_hex
from typing import Any

from triage.log.decoder import BaseDecoder
from triage.log.events import (
    ASSISTANT_MESSAGE,
    EVIDENCE,
    IMPLICIT,
    KNOWN_TYPES,
    SETTLE,
    SYSTEM_MESSAGE,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    USER_MESSAGE,
    Event,
    call_id,
)
from triage.log.json_text import dumps
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.rules import Records

NAME = "pi"
RECORDS = Records(dispatches="none", step_ends=False)
FIRST_KEYS: tuple[str, ...] = ("type",)

DEEP = "deep: later messages follow it, and the agent closes it by itself on replay, so resuming works"
BRANCH = "on a branch that was left: only the way from the leaf to the root counts"
DROPPED = "in a message that was {reason}: dropped on replay"
NO_STARTS = "this format does not record starts"
TITLE = 1000  # characters of a first prompt that are kept
KEPT_ENTRIES = 200_000  # latest entries that a fork may go back to
KEPT_ARGUMENTS = 100  # latest messages whose calls' arguments a fork may bring back

# What each type of entry has beside a timestamp that no other format's records have.
_KEYS = {
    "model_change": "modelId",
    "thinking_level_change": "thinkingLevel",
    "compaction": "summary",
    "branch_summary": "fromId",
    "custom": "customType",
    "custom_message": "customType",
    "label": "targetId",
    "session_info": "parentId",
}
_MESSAGES = ("custom_message", "branch_summary")  # entries that are replayed as messages
_ROLES = ("user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage")


def recognise(record: Mapping[str, Any]) -> bool:
    """Whether a record is certainly of this format: its header, or an entry."""
    type = record.get("type")
    if not isinstance(type, str) or not isinstance(record.get("timestamp"), str):
        return False
    if type == "session":
        return isinstance(record.get("id"), str) and "createdAt" not in record
    if type == "message":
        return _message(record).get("role") in _ROLES
    return type in _KEYS and _KEYS[type] in record


def document(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """None: a session is no single JSON document."""
    return None


def weigh(record: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """What a cut record may have been: (moved no call, may name a call, may open a turn)."""
    type, role = record.get("type"), _message(record).get("role")
    if not isinstance(type, str):
        return False, True, True
    if type == "message" and isinstance(role, str) and role in _ROLES:
        return role != "toolResult", role == "assistant", role in ("user", "assistant")
    if type == "session" or type in _KEYS:
        return True, False, False
    return False, True, True


def decoder() -> Decoder:
    """A decoder for one log."""
    return Decoder()


@dataclass(slots=True, eq=False)
class _Reply:
    """An assistant message that names calls. Shared by every branch that goes through it."""

    line: int
    depth: int
    index: int  # among the records of the file, from 0
    names: dict[str, str | None]
    arguments: dict[str, Any]
    without: frozenset[str]  # calls whose arguments are null
    results: dict[str, int] = field(default_factory=dict)  # call → line, on whatever branch


@dataclass(frozen=True, slots=True)
class _Way:
    """What the way from the root to an entry ends in: its last reply, as long as only results follow."""

    depth: int = 0
    reply: _Reply | None = None
    answered: frozenset[str] = frozenset()
    compacted: bool = False  # a compaction after the reply dropped it from what is replayed

    @property
    def owes(self) -> list[str]:
        """The reply's calls, in order, without a result on this way."""
        return [id for id in self.reply.names if id not in self.answered] if self.reply else []


class Decoder(BaseDecoder):
    """Keeps the way to the leaf, those to the other entries for a fork, and the session's facts."""

    def __init__(self) -> None:
        self._way = _Way()
        self._ways: dict[str, _Way] = {}
        self._leaf: str | None = None
        self._version: int | None = None
        self._records = -1
        self._open = False
        self._latest: deque[_Reply] = deque()
        self._facts: dict[str, str] = {"agent": "pi"}
        self._prompt = ""
        self._line = 0
        self._time: Any = None

    # ---- reading

    def decode(self, record: Mapping[str, Any], line: int) -> Sequence[Event] | None:
        """The events that a record of a line (from 1) holds; None where it has no type."""
        type = record.get("type")
        if not isinstance(type, str):
            return None
        self._line, self._time = line, record.get("timestamp")
        self._records += 1
        if type == "session":
            self._header(record)
            return [self._plain(type, record)]
        events = self._move(record)
        if type == "message":
            events += self._read_message(_message(record))
        else:
            events += self._entry(type, record)
        id = record.get("id")
        if isinstance(id, str):
            self._leaf = id
            self._ways[id] = self._way
            if len(self._ways) > KEPT_ENTRIES:
                del self._ways[next(iter(self._ways))]
        for event in events[1:]:
            event.part = True
        return events

    def _event(self, type: str, data: Mapping[str, Any] | None = None, line: int = 0) -> Event:
        return Event(type, data or {}, line or self._line, None, self._time)

    def _plain(self, type: str, record: Mapping[str, Any]) -> Event:
        """A record that is shown and not judged."""
        foreign = type in KNOWN_TYPES
        event = self._event(f"pi/{type}" if foreign else type, record)
        event.plain = type in _KEYS or type == "session"
        return event

    def _header(self, record: Mapping[str, Any]) -> None:
        version = record.get("version", 1)
        self._version = version if isinstance(version, int) else None
        for key, name in (("cwd", "cwd"), ("timestamp", "started"), ("modelId", "model")):
            value = record.get(key)
            if isinstance(value, str):
                self._facts.setdefault(name, value)

    # ---- the tree

    def _move(self, record: Mapping[str, Any]) -> list[Event]:
        """Go on to an entry: where its parent is not the leaf, the way to that parent is taken up again."""
        parent = record.get("parentId")
        events: list[Event] = []
        # A parent that was never read is lost: as far as anybody knows, it came after the leaf.
        known = parent in self._ways if isinstance(parent, str) else True
        if isinstance(record.get("id"), str) and "parentId" in record and parent != self._leaf and known:
            events = self._settle(BRANCH)
            way = self._ways.get(parent) if isinstance(parent, str) else None
            self._way = way or _Way()
            events += self._take_up()
        self._way = replace(self._way, depth=self._way.depth + 1)
        return events

    def _take_up(self) -> list[Event]:
        """A fork under a reply whose results lie on the branch that was left: its calls are owed anew."""
        events, reply = self._end(), self._way.reply
        if reply is None or not self._way.owes:
            return events
        calls = [self._call(id, reply) for id in self._way.owes]
        events += [self._start(), self._event(ASSISTANT_MESSAGE, {"tool_calls": calls}, reply.line)]
        for id in self._way.owes:
            events.append(self._says(id, NO_STARTS, reply.line))
            if id in reply.results:
                where = f"its result on a branch that was left (line {reply.results[id]:,})"
                events.append(self._says(id, where, reply.results[id]))
        return events

    def _call(self, id: str, reply: _Reply) -> dict[str, Any]:
        return {"id": id, "name": reply.names[id], "arguments": reply.arguments.get(id)}

    def _says(self, id: str, says: str, line: int = 0) -> Event:
        return self._event(EVIDENCE, {"tool_call_id": id, "says": says}, line)

    def _settle(self, says: str) -> list[Event]:
        """What the way owes so far is owed no more."""
        return [self._event(SETTLE, {"says": says})] if self._way.owes else []

    def _leave(self) -> list[Event]:
        """A message follows the last reply: what it owes is deep."""
        events = self._settle(DEEP)
        self._way = _Way(self._way.depth)
        return events

    def _start(self) -> Event:
        self._open = True
        return self._event(TURN_START, {IMPLICIT: True})

    def _end(self) -> list[Event]:
        events = [self._event(TURN_END)] if self._open else []
        self._open = False
        return events

    # ---- entries

    def _entry(self, type: str, record: Mapping[str, Any]) -> list[Event]:
        shown = self._plain(type, record)
        if type in _MESSAGES:
            return [*self._leave(), shown]
        if type == "compaction" and self._way.reply is not None:
            kept = self._keeps(record, self._way.reply)
            self._way = replace(self._way, compacted=self._way.compacted or not kept)
        model, name = record.get("modelId"), record.get("name")
        if type == "model_change" and isinstance(model, str):
            self._facts["model"] = model
        if type == "session_info" and isinstance(name, str):
            self._facts["title"] = name
        return [shown]

    def _keeps(self, compaction: Mapping[str, Any], reply: _Reply) -> bool:
        """Whether a reply is still replayed after a compaction."""
        first, index = compaction.get("firstKeptEntryId"), compaction.get("firstKeptEntryIndex")
        if isinstance(first, str):
            return first in self._ways and self._ways[first].depth <= reply.depth
        return isinstance(index, int) and index <= reply.index

    def _read_message(self, message: Mapping[str, Any]) -> list[Event]:
        role = message.get("role")
        if role == "assistant":
            return self._assistant(message)
        if role == "toolResult":
            return self._result(message)
        events = self._leave()
        data = {"content": message.get("content")}
        if role != "user":
            return [*events, self._event(SYSTEM_MESSAGE, {**data, "role": role})]
        self._prompt = self._prompt or _text(message.get("content"))[:TITLE]
        return [*events, self._start(), self._event(USER_MESSAGE, data)]

    def _assistant(self, message: Mapping[str, Any]) -> list[Event]:
        events = self._leave()
        if not self._open:
            events.append(self._start())
        content, model = message.get("content"), message.get("model")
        if isinstance(model, str):
            self._facts["model"] = model
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        calls = [b for b in blocks if b.get("type") == "toolCall"]
        named = [{"id": b.get("id"), "name": b.get("name"), "arguments": b.get("arguments")} for b in calls]
        events.append(self._event(ASSISTANT_MESSAGE, {"content": content, "tool_calls": named}))
        reason = message.get("stopReason")
        if reason in ("aborted", "error"):
            says = DROPPED.format(reason=reason)
            dropped = [self._event(SETTLE, {"says": says})] if calls else []
            return [*events, *dropped, *self._end()]
        if calls:
            return [*events, *self._named(calls)]
        return events if reason == "toolUse" else [*events, *self._end()]

    def _named(self, calls: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        """Remember the calls of the way's last reply. A reply that names calls goes on, whatever it says."""
        found: dict[str, Mapping[str, Any]] = {}
        for block in calls:
            id = call_id(block, "id")
            if id is not None:
                found.setdefault(id, block)
                yield self._says(id, NO_STARTS)
        names = {id: b["name"] if isinstance(b.get("name"), str) else None for id, b in found.items()}
        arguments = {id: b.get("arguments") for id, b in found.items()}
        without = frozenset(id for id, value in arguments.items() if value is None)
        reply = _Reply(self._line, self._way.depth, self._records, names, arguments, without)
        self._way = _Way(self._way.depth, reply)
        self._latest.append(reply)
        if len(self._latest) > KEPT_ARGUMENTS:
            self._latest.popleft().arguments = {}

    def _result(self, message: Mapping[str, Any]) -> list[Event]:
        id = call_id(message, "toolCallId")
        data = {
            "tool_call_id": id,
            "content": message.get("content"),
            "is_error": message.get("isError"),
        }
        reply = self._way.reply
        if id is not None and reply is not None and id in reply.names:
            reply.results.setdefault(id, self._line)
            self._way = replace(self._way, answered=self._way.answered | {id})
        return [self._event(TOOL_RESULT, data)]

    def facts(self) -> Mapping[str, str]:
        """What the log says of its session, uncleaned: agent, cwd, model, started, title."""
        return {"title": self._prompt, **self._facts} if self._prompt else self._facts

    # ---- repairing

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Mapping[str, Any]]],
    ) -> list[str]:
        """The lines to append, without newlines. `now` is the time of the append; None in a plan."""
        ms = None if now is None else int(datetime.fromisoformat(now).timestamp() * 1000)
        tree = self._version > 1 if self._version is not None else self._leaf is not None
        lines, parent = [], self._leaf
        for repair in (repair for repair in repairs if repair.type == TOOL_RESULT):
            record: dict[str, Any] = {"type": "message"}
            if tree:
                id = None if now is None else self._new_id()
                record |= {"id": id, "parentId": parent}
                parent = id
            lines.append(dumps({**record, "timestamp": now, "message": _tool_result(repair, ms)}))
        return lines

    def _new_id(self) -> str:
        while (id := token_hex(4)) in self._ways:
            pass
        return id

    def refusal(self, plan: Plan) -> Refusal | None:
        """Refuses where a compaction dropped the calls' message, and where a call's arguments are null."""
        reply, ids = self._way.reply, tuple(owed.tool_call_id for owed in plan.owed)
        if reply is None:
            return None
        if self._way.compacted:
            says = (
                f"a compaction after line {reply.line:,} of this log drops the message that names the calls, "
                "so a result appended now would answer nothing: nothing was appended. pi resumes from the "
                "compaction's summary, without these calls: write down elsewhere what you found"
            )
            return Refusal("compacted_away", says, plan.boundary.name, ids)
        without = [id for id in ids if id in reply.without]
        if without:
            says = (
                f"line {reply.line:,} of this log names a call whose arguments are null, which no model "
                "accepts back: nothing was appended. Fork the session before that message in pi to go on"
            )
            return Refusal("null_arguments", says, plan.boundary.name, tuple(without))
        return None


def _tool_result(repair: Repair, ms: int | None) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": repair.data.get("tool_call_id"),
        "toolName": repair.data.get("name"),
        "content": [{"type": "text", "text": repair.data.get("content")}],
        "isError": True,
        "timestamp": ms,
    }


def _message(record: Mapping[str, Any]) -> Mapping[str, Any]:
    message = record.get("message")
    return message if isinstance(message, dict) else {}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = [b.get("text") for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    return " ".join(part for part in parts if isinstance(part, str))
