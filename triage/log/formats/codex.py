"""Codex CLI rollouts: an object a line, `{"timestamp", "type", "payload"}`, and `"ordinal"` where paginated.

A call is written before its tool starts, and its start never is: only an end record shows that it ran, so
nothing here may ever call one not started. End records name no call. No record of a type of our own is
ever written: it would break the agent's numbering.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from triage.log.decoder import BaseDecoder
from triage.log.events import (
    ASSISTANT_MESSAGE,
    DISPATCHED,
    EVIDENCE,
    IMPLICIT,
    KNOWN_TYPES,
    SETTLE,
    STEP_END,
    STEP_START,
    SYSTEM_MESSAGE,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    USER_MESSAGE,
    Event,
    call_id,
)
from triage.log.formats.codex_text import content_of, outcome_of, quoted, text_of
from triage.log.json_text import dumps
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.rules import Records

NAME = "codex"
RECORDS = Records(dispatches="some", step_ends=False)
FIRST_KEYS: tuple[str, ...] = ("timestamp",)

LEFT = "unanswered calls of earlier turns are left: the agent answers them as aborted by itself"
COMPACTED = "settled by the compaction on line {line:,}: the agent's history begins anew there"
ROLLED_BACK = "settled by the rollback on line {line:,}"
MARKER = "<turn_aborted>"
ABORTED = (
    f"{MARKER}\nThe session ended in the middle of the previous turn; its log does not say why. Commands "
    "that were running may have run in part or in whole, or may still be running in the background."
    "\n</turn_aborted>"
)
TITLE = 1000  # characters of a first prompt that are kept

_CALLS = {  # item type → the item that answers it
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "function_call_output",
    "tool_search_call": "tool_search_output",
}
_OUTPUTS = frozenset(_CALLS.values())
_OTHER_MODEL_ITEMS = frozenset({"reasoning", "web_search_call", "image_generation_call"})
_OTHER_ITEMS = frozenset(
    {
        "additional_tools", "agent_message", "compaction", "compaction_summary", "compaction_trigger",
        "context_compaction", "ghost_snapshot", "other",
    }
)  # fmt: skip
_THREAD_ID = re.compile(r"[0-9A-Za-z-]{1,100}")  # it becomes a file's name
_SESSION_FOLDERS = ("sessions", "archived_sessions")
_STARTS = ("task_started", "turn_started")
_ENDS = ("task_complete", "turn_complete", "turn_aborted")
_RECORD_TYPES = frozenset(
    {
        "session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state",
        "token_usage_record", "inter_agent_communication", "inter_agent_communication_metadata",
    }
)  # fmt: skip


def recognise(record: Mapping[str, Any]) -> bool:
    """Whether a record is certainly of this format: one of its record types around a payload."""
    type = record.get("type")
    return isinstance(type, str) and type in _RECORD_TYPES and isinstance(record.get("payload"), dict)


def document(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """None: a rollout is no single JSON document."""
    return None


def weigh(record: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """What a cut record may have been: (moved no call, may name a call, may open a turn)."""
    type, payload = record.get("type"), record.get("payload")
    kind = payload.get("type") if isinstance(payload, dict) else None
    if type == "response_item":
        if not isinstance(kind, str) or not _is_known_item(kind):
            return False, True, False
        return kind not in _OUTPUTS, kind in _CALLS, False
    if type == "event_msg":
        if not isinstance(kind, str):
            return False, False, True
        return not _may_end_a_call(kind), False, kind in (*_STARTS, "user_message")
    if isinstance(type, str) and type in _RECORD_TYPES:
        return True, False, False
    return False, True, True


def _is_known_item(kind: str) -> bool:
    return kind == "message" or kind in _CALLS or kind in _OUTPUTS | _OTHER_MODEL_ITEMS | _OTHER_ITEMS


def _may_end_a_call(kind: str) -> bool:
    return kind == "item_completed" or kind.endswith("_end")


@dataclass(slots=True)
class _Turn:
    """The turn that is open. `explicit`: a start record opened it, so an end record is wanted."""

    id: str | None
    explicit: bool
    finished: bool = False  # its last item is a final answer
    step: bool = False  # a step is open
    run: bool = False  # the last item was the model's


class Decoder(BaseDecoder):
    """Keeps the open turn, the kinds of its unanswered calls, the last ordinal and the session's facts."""

    def __init__(self) -> None:
        self._head: tuple[int, bool] | None = None  # line of the first record; whether it is a sound header
        self._facts: dict[str, str] = {}
        self._id: str | None = None  # the thread's
        self._prompt = ""  # the first that an end user wrote
        self._message_text = ""  # the first message of role user: it may be the agent's own
        self._paginated = False
        self._ordinal: int | None = None
        self._started = False  # a start record was seen: from now on nothing else opens a turn
        self._turn: _Turn | None = None
        self._kinds: dict[str, str] = {}  # unanswered call → the type of its item
        self._marked = False  # the turn's <turn_aborted> message was the last record, outputs aside
        self._line = 0
        self._time: Any = None
        self._seq: int | None = None

    # ---- reading

    def decode(self, record: Mapping[str, Any], line: int) -> Sequence[Event] | None:
        """The events that a record of a line (from 1) holds; None where it is no record."""
        type, payload = record.get("type"), record.get("payload")
        if not isinstance(type, str):
            return None
        if not isinstance(payload, dict):
            payload = {}
        ordinal = record.get("ordinal")
        self._seq = ordinal if _is_count(ordinal) else None
        self._ordinal = self._ordinal if self._seq is None else self._seq
        self._line, self._time = line, record.get("timestamp")
        if self._head is None:
            self._head = line, type == "session_meta" and bool(text_of(payload, "id"))
        kind = payload.get("type")
        if not (type == "response_item" and kind in _OUTPUTS):
            self._marked = False
        events = self._record(type, kind if isinstance(kind, str) else "", payload)
        for event in events[1:]:
            event.part = True
        return events

    def _record(self, type: str, kind: str, payload: Mapping[str, Any]) -> list[Event]:
        if type == "response_item":
            return self._item(kind, payload)
        if type == "event_msg":
            return self._message(kind, payload)
        if type == "session_meta":
            self._meta(payload)
        elif type == "turn_context":
            self._context(payload)
        elif type == "compacted":
            self._run_ends()
            return [*self._settle(COMPACTED), self._plain(type, payload)]
        return [self._plain(type, payload, known=type in _RECORD_TYPES)]

    def _event(self, type: str, data: Mapping[str, Any]) -> Event:
        return Event(type, data, self._line, self._seq, self._time)

    def _plain(self, type: str, payload: Mapping[str, Any], known: bool = True, of: str = "") -> Event:
        """A record that is shown and not judged. `of` is the kind of record around it."""
        if type in KNOWN_TYPES or not type:
            type = f"{of}/{type}" if of else f"codex/{type}"
        event = self._event(type, payload)
        event.plain = known
        return event

    # ---- turns

    def _open(self, id: str | None, *, explicit: bool) -> list[Event]:
        """The start of a turn, and before it the end of the one that it closes."""
        events = self._close()
        self._turn = _Turn(id, explicit)
        data: dict[str, Any] = {} if id is None else {"turn_id": id}
        if not explicit:
            data[IMPLICIT] = True
        return [*events, self._event(TURN_START, data)]

    def _close(self) -> list[Event]:
        """The end of the open turn, if there is one: what its calls owe, the agent answers by itself."""
        turn, self._turn = self._turn, None
        if turn is None:
            return []
        events = self._settle(LEFT)
        if turn.step:
            events.append(self._event(STEP_END, {}))
        return [*events, self._event(TURN_END, {})]

    def _settle(self, says: str) -> list[Event]:
        self._kinds.clear()
        return [self._event(SETTLE, {"says": says.format(line=self._line)})]

    def _ends(self, kind: str, payload: Mapping[str, Any]) -> list[Event]:
        id, turn = call_id(payload, "turn_id"), self._turn
        if turn is None:
            return [self._event(TURN_END, payload)]  # it closes nothing: an anomaly
        if id is not None and turn.id is not None and id != turn.id:
            return [self._plain(kind, payload)]
        return self._close()

    def _step(self) -> list[Event]:
        """A step begins where a run of the model's items does."""
        turn = self._turn
        if turn is None or turn.run:
            return []
        ended = [self._event(STEP_END, {})] if turn.step else []
        turn.run = turn.step = True
        return [*ended, self._event(STEP_START, {})]

    def _run_ends(self) -> None:
        if self._turn is not None:
            self._turn.run = False

    def _finish(self, finished: bool) -> list[Event]:
        """Note whether the turn's last item is a final answer, where that changes."""
        turn = self._turn
        if turn is None or not turn.explicit or turn.finished == finished:
            return []
        turn.finished = finished
        return [self._event(EVIDENCE, {"turn_finished": finished})]

    # ---- event_msg

    def _message(self, kind: str, payload: Mapping[str, Any]) -> list[Event]:
        if kind in _STARTS:
            self._started = True
            return self._open(call_id(payload, "turn_id"), explicit=True)
        if kind in _ENDS:
            return self._ends(kind, payload)
        plain = self._plain(kind, payload, of="event_msg")
        if kind == "user_message":
            self._run_ends()
            self._says_first(payload.get("message"))
            opened = [] if self._started else self._open(None, explicit=False)
            return [*opened, self._event(USER_MESSAGE, payload)]
        if kind == "thread_rolled_back":
            return [*self._settle(ROLLED_BACK), plain]
        if kind == "thread_name_updated":
            self._facts["title"] = text_of(payload, "thread_name", "name") or self._facts.get("title", "")
        if _may_end_a_call(kind):
            return [*self._ended(kind, payload), plain]
        return [plain]

    def _ended(self, kind: str, payload: Mapping[str, Any]) -> list[Event]:
        """What an end record says of a call: that it ran, and how it ended."""
        source: Mapping[str, Any] = payload
        id = call_id(payload, "call_id")
        if kind == "item_completed":
            item = payload.get("item")
            source = item if isinstance(item, dict) else {}
            id = call_id(source, "id")
            if source.get("type") == "UserMessage":
                self._says_first(content_of(source.get("content")))
        if id is None:
            return []
        says = f"finished: {kind}"
        return [self._ran(id, says, outcome_of(source))]

    def _ran(self, id: str, says: str, finished: str) -> Event:
        data = {"tool_call_id": id, "says": says, "stage": DISPATCHED, "finished": finished}
        return self._event(EVIDENCE, data)

    # ---- response_item

    def _item(self, kind: str, payload: Mapping[str, Any]) -> list[Event]:
        role = payload.get("role")
        if kind == "message" or (not kind and isinstance(role, str)):
            return self._spoken(payload, role)
        events = self._finish(False)
        if kind in _CALLS:
            return [*events, *self._call(kind, payload)]
        if kind in _OUTPUTS:
            self._run_ends()
            return [*events, *self._output(kind, payload)]
        plain = self._plain(kind, payload, known=_is_known_item(kind), of="response_item")
        if kind in _OTHER_MODEL_ITEMS:
            return [*events, *self._step(), plain]
        self._run_ends()
        return [*events, plain]

    def _spoken(self, payload: Mapping[str, Any], role: Any) -> list[Event]:
        events = self._finish(payload.get("phase") == "final_answer")
        if role == "assistant":
            return [*events, *self._step(), self._event(ASSISTANT_MESSAGE, _without_calls(payload))]
        self._run_ends()
        text = content_of(payload.get("content"))
        if role != "user":
            return [*events, self._event(SYSTEM_MESSAGE, payload)]
        events.append(self._event(USER_MESSAGE, payload))
        if text.lstrip().startswith(MARKER):
            if self._turn is not None and self._turn.explicit and self._turn.id is None:
                return [*events, *self._close()]  # without an id it can have no other end
            self._marked = True
        elif not text.lstrip().startswith(("<", "# AGENTS.md")):
            self._message_text = self._message_text or text[:TITLE]
        return events

    def _call(self, kind: str, payload: Mapping[str, Any]) -> list[Event]:
        # A shell call may carry only its item's id: no call is dropped for the spelling of its id.
        id = call_id(payload, "call_id", *(("id",) if kind == "local_shell_call" else ()))
        if id is None and kind == "tool_search_call":
            return [*self._step(), self._plain(kind, payload)]  # the provider ran it: it is no call here
        opened = [] if self._turn or self._started else self._open(None, explicit=False)
        if id is not None:
            self._kinds.setdefault(id, kind)
        name = text_of(payload, "name") or kind.removesuffix("_call")
        arguments = next((payload[k] for k in ("arguments", "input", "action") if k in payload), None)
        call = {"id": id, "name": name, "arguments": arguments}
        return [*opened, *self._step(), self._event(ASSISTANT_MESSAGE, {"tool_calls": [call]})]

    def _output(self, kind: str, payload: Mapping[str, Any]) -> list[Event]:
        id, output = call_id(payload, "call_id"), payload.get("output", payload.get("tools"))
        known = self._kinds.get(id) if id is not None else None
        if id is not None and known is not None and _CALLS[known] != kind:
            says = f"a {kind} for a {known}: the agent ignores it and answers the call as aborted"
            event = self._ran(id, says, quoted(content_of(output)))
            return [self._event(EVIDENCE, {**event.data, "anomaly": "wrong_output_kind"}),
                    self._plain(kind, payload)]  # fmt: skip
        if id is not None:
            self._kinds.pop(id, None)
        data = {"tool_call_id": id, "content": output}
        return [self._event(TOOL_RESULT, data)]

    # ---- facts

    def _meta(self, payload: Mapping[str, Any]) -> None:
        if "agent" in self._facts:
            return  # of a fork
        self._facts["agent"] = "Codex CLI"
        self._id = text_of(payload, "id") or None
        self._paginated = payload.get("history_mode") == "paginated"
        found = {
            "version": text_of(payload, "cli_version"),
            "cwd": text_of(payload, "cwd"),
            "started": text_of(payload, "timestamp") or (self._time if isinstance(self._time, str) else ""),
        }
        self._facts.update({key: text for key, text in found.items() if text})

    def _context(self, payload: Mapping[str, Any]) -> None:
        model = text_of(payload, "model")
        if model:
            self._facts["model"] = model
        if self._turn is not None and self._turn.id is None:
            self._turn.id = call_id(payload, "turn_id")

    def _says_first(self, text: Any) -> None:
        if not self._prompt and isinstance(text, str):
            self._prompt = text[:TITLE].strip()

    def facts(self) -> Mapping[str, str]:
        """Agent, version, cwd, model, start and title (or first prompt), where the log says so, uncleaned."""
        title = self._facts.get("title") or self._prompt or self._message_text
        found = {"agent": "Codex CLI", **self._facts, "title": title}
        return {key: text for key, text in found.items() if text}

    # ---- repairing

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Mapping[str, Any]]],
    ) -> list[str]:
        """The lines to append, without newlines. `now` is the time of the append; None in a plan."""
        found: list[tuple[str, dict[str, Any]]] = []
        for repair in repairs:
            if repair.type == TOOL_RESULT:
                found.append(("response_item", self._answer(repair.data)))
            elif repair.type == TURN_END:
                found += self._abort(now)
        ordinal = next_seq if self._ordinal is None else self._ordinal + 1
        lines = []
        for index, (type, payload) in enumerate(found):
            number = {"ordinal": ordinal + index} if self._paginated else {}
            lines.append(dumps({"timestamp": now, **number, "type": type, "payload": payload}))
        return lines

    def _answer(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The output of the kind that the call's own kind wants; who wrote it is said in its text."""
        id = data["tool_call_id"]
        kind = _CALLS[self._kinds.get(id, "function_call")]
        if kind == "tool_search_output":
            return {"type": kind, "call_id": id, "status": "completed", "execution": "client", "tools": []}
        metadata = data["metadata"]
        who = f"[Added by triage, not by the tool: {metadata['risk']}, rule {metadata['rule']}.]"
        return {"type": kind, "call_id": id, "output": f"{data['content']}\n{who}"}

    def _abort(self, now: str | None) -> list[tuple[str, dict[str, Any]]]:
        """The message and the end record that close the open turn."""
        found: list[tuple[str, dict[str, Any]]] = []
        if not self._marked:
            content = [{"type": "input_text", "text": ABORTED}]
            found.append(("response_item", {"type": "message", "role": "user", "content": content}))
        id = self._turn.id if self._turn else None
        if id is not None:
            at = None if now is None else int(datetime.fromisoformat(now).timestamp())
            end = {"type": "turn_aborted", "turn_id": id, "reason": "interrupted", "completed_at": at}
            found.append(("event_msg", end))
        return found

    def locks(self, path: str) -> Sequence[str]:
        """The lock file that Codex holds while it writes the session: under its home, by the thread's id."""
        if self._id is None or not _THREAD_ID.fullmatch(self._id):
            return ()
        above = [folder for folder in Path(path).absolute().parents if folder.name in _SESSION_FOLDERS]
        home = above[-1].parent if above else Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        return (str(home / "thread-writer-locks" / f"{self._id}.lock"),)

    def refusal(self, plan: Plan) -> Refusal | None:
        """A rollout whose first record is no sound `session_meta`: the agent can't open it at all."""
        line, sound = self._head or (1, False)
        if sound and not any(a.line is not None and a.line <= line for a in _unreadable(plan)):
            return None
        says = (
            f"line {line:,} should hold the session_meta that a rollout begins with, and can't be read as "
            "one: Codex itself can't resume such a session. Restore the first line from a backup first"
        )
        return Refusal(
            "broken_session_meta",
            says,
            boundary=plan.boundary.name,
            ids=tuple(owed.tool_call_id for owed in plan.owed),
        )


def decoder() -> Decoder:
    """A decoder for one log."""
    return Decoder()


def _unreadable(plan: Plan) -> list[Any]:
    return [a for a in plan.anomalies if a.code in ("corrupt_line", "torn_tail")]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _without_calls(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message names no call, whatever its keys are."""
    return {key: value for key, value in payload.items() if key != "tool_calls"}
