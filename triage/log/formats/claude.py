"""Claude Code sessions: one object a line, chained by `parentUuid`; a reply is one line a content block.

The format belongs to the agent and changes: what is not known is shown and not judged. A call is written
before any permission prompt, so a named call is not a started one, and starts are recorded only in part:
nothing here may call one not started, save a question that waits for a person. A repair writes `user` lines
of results and no other kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage.log.decoder import BaseDecoder
from triage.log.events import (
    ASKS,
    ASSISTANT_MESSAGE,
    EVIDENCE,
    IMPLICIT,
    INPUT_REQUESTED,
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
from triage.log.formats import claude_live
from triage.log.formats.claude_evidence import (
    ASKS_A_PERSON,
    closed_by_the_agent,
    of_hook,
    of_progress,
    text_of,
)
from triage.log.formats.claude_repair import Named, Reply, Times, result_lines
from triage.recovery.plan import Plan, Refusal, Repair
from triage.recovery.rules import Records

NAME = "claude"
RECORDS = Records(dispatches="some", step_ends=False)
FIRST_KEYS: tuple[str, ...] = ("parentUuid",)

DEEP = "deep: later messages follow it; every version drops it from the request by itself, so resuming works"
SIDE = f"{DEEP}; the Task that started its sidechain is answered"
LIVES_ON = "a shell command: after a kill it often lives on and finishes its work, so look at its effect"
MARKER = "[Request interrupted by user"
LOCAL_COMMANDS = ("<command-name>", "<local-command-", "<bash-")
SPAWNING = ("Task", "Agent")
TITLE = 1000  # characters of a first prompt that are kept
KEPT_LINKS = 50_000  # latest records of sidechains whose lane is remembered
KEPT_TASKS = 1000  # unanswered Tasks whose prompt is remembered
KEPT_ANSWERS = 10_000  # latest answered calls that are known again when their reply is logged again

# Types that are shown and not judged. Others are, too, but count as those of a newer version.
_PLAIN = frozenset(
    {
        "agent-color", "agent-name", "agent-setting", "ai-title", "api-request", "api-request-blob",
        "api-request-shape", "atis-latch", "attachment", "attribution-snapshot", "bridge-session",
        "content-replacement", "cost-state", "custom-title", "file-history-snapshot", "frame-link",
        "last-prompt", "mode", "permission-mode", "pr-link", "progress", "queue-operation", "relocated",
        "result", "speculation-accept", "started", "summary", "system", "tag", "task-summary", "tools-used",
        "worktree-state",
    }
)  # fmt: skip


def recognise(record: Mapping[str, Any]) -> bool:
    """Whether a record is certainly of this format: chained by `parentUuid`, or of one of its own shapes."""
    type = record.get("type")
    if "parentUuid" in record:
        return "type" not in record or isinstance(type, str)
    if not isinstance(type, str) or "payload" in record or "runId" in record:
        return False
    if type in ("user", "assistant"):
        return isinstance(record.get("message"), dict)
    if type == "summary":
        return isinstance(record.get("leafUuid"), str)
    if type == "file-history-snapshot":
        return "snapshot" in record
    if type == "attachment":
        return isinstance(record.get("attachment"), dict)
    return type in _PLAIN and isinstance(record.get("sessionId"), str)


def document(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """None: a session is no single JSON document."""
    return None


def weigh(record: Mapping[str, Any]) -> tuple[bool, bool, bool]:
    """What a cut record may have been: (moved no call, may name a call, may open a turn).

    A reply's line says its type only after its message, so a message without a type is one.
    """
    type, message = record.get("type"), record.get("message")
    message = message if isinstance(message, dict) else {}
    content = message.get("content")
    if type == "assistant" or (type is None and ("model" in message or message.get("role") == "assistant")):
        whole = isinstance(content, list) and "stop_reason" in message  # which comes after the content
        blocks = content if isinstance(content, list) else []
        names = any(isinstance(b, dict) and b.get("type") == "tool_use" for b in blocks)
        return True, names or not whole, True
    if type == "user":
        return isinstance(content, str), False, True
    if type in ("progress", "attachment"):
        return False, False, False
    return (True, False, False) if isinstance(type, str) and type in _PLAIN else (False, True, True)


def decoder() -> Decoder:
    """A decoder for one log."""
    return Decoder()


@dataclass(slots=True, eq=False)
class _Lane:
    """The main conversation (its name is "") or a sidechain: whether a turn is open, and its last reply."""

    name: str
    open: bool = False
    step: bool = False
    answered: bool = False  # a result came after the last reply's latest line
    reply: Reply = field(default_factory=Reply)
    starters: set[str] = field(default_factory=set)  # unanswered Tasks, one of which started it
    agent: str | None = None
    over: bool = False  # the Task that started it is answered


class Decoder(BaseDecoder):
    """Keeps each lane's last reply, which sidechain a record belongs to, and the session's facts."""

    def __init__(self) -> None:
        self._main = _Lane("")
        self._lanes = {"": self._main}
        self._links: dict[str, _Lane] = {}  # uuid of a sidechain's record → its lane
        self._tasks: dict[str, str] = {}  # unanswered Task → its prompt
        self._answers: dict[tuple[str, str], None] = {}  # (message id, call id)
        self._times = Times()
        self._facts: dict[str, str] = {"agent": "Claude Code"}
        self._titles: dict[str, str] = {}
        self._line = 0
        self._time: Any = None

    def processes(self, path: str) -> Sequence[int]:
        """The living processes that say that they run the session of the log at `path`."""
        return claude_live.processes(path)

    # ---- reading

    def decode(self, record: Mapping[str, Any], line: int) -> Sequence[Event] | None:
        """The events that a record of a line (from 1) holds; None where it has no type."""
        type = record.get("type")
        if not isinstance(type, str):
            return None
        self._line, self._time = line, record.get("timestamp")
        self._times.see(record)
        self._note(record)
        lane = self._lane_of(record)
        read = {
            "assistant": self._assistant,
            "user": self._user,
            "system": self._system,
            "progress": self._progress,
            "attachment": self._attachment,
        }.get(type)
        events = read(record, lane) if read else [self._plain(type, record, lane)]
        if lane.over:
            events += self._leave(lane, SIDE, ends=True)
        for event in events[1:]:
            event.part = True
        return events

    def _event(self, type: str, lane: _Lane, data: Mapping[str, Any] | None = None) -> Event:
        return Event(type, data or {}, self._line, None, self._time, lane.name)

    def _plain(self, type: str, record: Mapping[str, Any], lane: _Lane) -> Event:
        """A record that is shown and not judged."""
        foreign = type in KNOWN_TYPES
        event = self._event(f"claude/{type}" if foreign else type, lane, record)
        event.plain = type in _PLAIN or type in ("user", "assistant")
        return event

    # ---- lanes

    def _lane_of(self, record: Mapping[str, Any]) -> _Lane:
        """The lane of a record: a sidechain's is found by its parent, else by its agent, else it is new.

        A record that is logged again is found by its own uuid.
        """
        if record.get("isSidechain") is not True:
            return self._main
        uuid, agent = record.get("uuid"), record.get("agentId")
        links = (record.get("parentUuid"), record.get("logicalParentUuid"), uuid)
        lane = next(
            (found for link in links if isinstance(link, str) and (found := self._links.get(link))), None
        )
        if lane is None and isinstance(agent, str):
            lane = next((known for known in self._lanes.values() if known.agent == agent), None)
        if lane is None:
            lane = _Lane(f"sidechain {uuid if isinstance(uuid, str) else self._line}")
            lane.agent = agent if isinstance(agent, str) else None
            prompt = text_of(_message(record).get("content"))
            same = {id for id, asked in self._tasks.items() if asked == prompt}
            lane.starters = same or set(self._tasks)
            lane = self._lanes.setdefault(lane.name, lane)
        if isinstance(uuid, str):
            self._links[uuid] = lane
            if len(self._links) > KEPT_LINKS:
                del self._links[next(iter(self._links))]
        return lane

    def _leave(self, lane: _Lane, says: str, *, ends: bool = False) -> list[Event]:
        """Go on from the last reply: what it still owes is settled. `ends`: the turn is over, too."""
        events = [self._event(SETTLE, lane, {"says": says})] if lane.reply.open else []
        if lane.step:
            events.append(self._event(STEP_END, lane))
        if lane.open and ends:
            events.append(self._event(TURN_END, lane))
            lane.open = False
        lane.step, lane.reply = False, Reply()
        return events

    def _open(self, lane: _Lane) -> Event:
        lane.open = True
        return self._event(TURN_START, lane, {IMPLICIT: True, ASKS: True})

    # ---- replies

    def _assistant(self, record: Mapping[str, Any], lane: _Lane) -> list[Event]:
        message = _message(record)
        key = call_id(message, "id") or ""
        # Without an id, the lines of a reply are those between two of the user's.
        if not lane.step or key != lane.reply.key or (not key and lane.answered):
            events = self._leave(lane, DEEP)
            lane.reply.key = key
        else:
            events = []
        if not lane.open:
            events.append(self._open(lane))
        if not lane.step:
            events.append(self._event(STEP_START, lane))
            lane.step = True
        lane.answered = False
        content = message.get("content")
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        uses = [b for b in blocks if b.get("type") == "tool_use" and not self._logged_again(key, b, lane)]
        calls = [{"id": b.get("id"), "name": b.get("name"), "arguments": b.get("input")} for b in uses]
        data = {"content": content, "tool_calls": calls, "usage": message.get("usage")}
        events.append(self._event(ASSISTANT_MESSAGE, lane, data))
        for block in uses:
            events += self._named(record, block, lane)
        lane.reply.trace(record, ())
        return events

    def _logged_again(self, key: str, block: Mapping[str, Any], lane: _Lane) -> bool:
        """Whether a call of this reply was answered before, or is named in another lane already."""
        id = call_id(block, "id")
        if not key or id is None:
            return False
        reply = self._reply_of(id, lane)
        return (key, id) in self._answers or (
            reply is not None and reply is not lane.reply and reply.key == key
        )

    def _named(self, record: Mapping[str, Any], block: Mapping[str, Any], lane: _Lane) -> Iterator[Event]:
        """Remember a call that a reply names, and say what its tool alone tells."""
        id, name = call_id(block, "id"), block.get("name")
        if id is None:
            return
        lane.reply.name(id, name if isinstance(name, str) else None, record, self._line)
        arguments = block.get("input")
        if name in SPAWNING and len(self._tasks) < KEPT_TASKS:
            asked = arguments.get("prompt") if isinstance(arguments, Mapping) else None
            self._tasks[id] = asked if isinstance(asked, str) else ""
        elif name in ASKS_A_PERSON:
            yield self._event(INPUT_REQUESTED, lane, {"tool_call_id": id, "prompt": str(name)})
        elif name == "Bash":
            yield self._event(EVIDENCE, lane, {"tool_call_id": id, "says": LIVES_ON})

    # ---- the user's lines: results, prompts, interrupts

    def _user(self, record: Mapping[str, Any], lane: _Lane) -> list[Event]:
        content = _message(record).get("content")
        blocks = content if isinstance(content, list) else []
        results = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"]
        text = text_of(content)
        shown = self._event(SYSTEM_MESSAGE, lane, {"content": content})
        if results:
            events = [event for result in results for event in self._result(record, result, lane)]
            lane.reply.trace(record, [id for b in results if (id := call_id(b, "tool_use_id")) is not None])
            lane.answered = True
            return events
        if text.startswith(MARKER):
            return [*self._leave(lane, DEEP, ends=True), shown]
        if not _is_prompt(record, content, text):
            lane.reply.trace(record, ())
            return [shown]
        if lane is self._main or not self._main.open:
            self._titles.setdefault("prompt", text[:TITLE])
        events = self._leave(lane, DEEP)
        return [*events, self._open(lane), self._event(USER_MESSAGE, lane, {"content": content})]

    def _result(self, record: Mapping[str, Any], result: Mapping[str, Any], lane: _Lane) -> list[Event]:
        id = call_id(result, "tool_use_id")
        data = {"tool_call_id": id, "content": result.get("content"), "is_error": result.get("is_error")}
        answered = self._event(TOOL_RESULT, lane, data)
        if id is None:
            return [answered]
        reply = self._reply_of(id, lane)
        step = reply.take_result(id, record, result, self._line) if reply else None
        if step == "copied":
            says = {"tool_call_id": id, "again": False}
            return [self._plain("user", record, lane), self._event(EVIDENCE, lane, says)]
        events = [answered, *self._closing(id, record, result, lane), *self._task_answered(id, record)]
        if reply and reply.key:
            self._answers[reply.key, id] = None
            if len(self._answers) > KEPT_ANSWERS:
                del self._answers[next(iter(self._answers))]
        if reply and step == "chained":
            uncopied = [{"tool_call_id": other, "again": True} for other in reply.to_copy()]
            events += [self._event(EVIDENCE, lane, says) for says in uncopied]
        return events

    def _reply_of(self, id: str, lane: _Lane) -> Reply | None:
        """The last reply that names a call: that of its own lane, else of another."""
        lanes = (lane, *self._lanes.values())
        return next((other.reply for other in lanes if id in other.reply.calls), None)

    def _closing(
        self, id: str, record: Mapping[str, Any], result: Mapping[str, Any], lane: _Lane
    ) -> Iterator[Event]:
        how = closed_by_the_agent(record, result)
        if how == "generically":
            says = f"call {id}: closed generically, outcome never checked"
            yield self._event(EVIDENCE, lane, {"anomaly": "closed_generically", "says": says})
        elif how is not None:
            says = f"call {id}: closed as rejected; may have run"
            data = {"anomaly": "closed_as_rejected", "says": says, "last_turn": True}
            yield self._event(EVIDENCE, lane, data)

    def _task_answered(self, id: str, record: Mapping[str, Any]) -> list[Event]:
        """The end of the sidechains that an answered Task started: they owe nothing any more."""
        if self._tasks.pop(id, None) is None:
            return []
        outcome = record.get("toolUseResult")
        agent = outcome.get("agentId") if isinstance(outcome, Mapping) else None
        events = []
        for lane in list(self._lanes.values()):
            if id not in lane.starters and (agent is None or lane.agent != agent):
                continue
            lane.starters.discard(id)
            if not lane.starters or (agent is not None and lane.agent == agent):
                lane.over = True
                events += self._leave(lane, SIDE, ends=True)
                del self._lanes[lane.name]
        return events

    # ---- what says something of a call besides

    def _progress(self, record: Mapping[str, Any], lane: _Lane) -> list[Event]:
        shown = self._plain("progress", record, lane)
        lane.reply.trace(record, ())
        id = call_id(record, "parentToolUseID", "toolUseID")
        named = self._unanswered(id, lane)
        if named is None:
            return [shown]
        events = [shown]
        for found in of_progress(record, named.tool, named.subcalls):
            if found.pop("latest", False):
                found["instead"], named.progress = named.progress, self._line
            events.append(self._event(EVIDENCE, lane, {"tool_call_id": id, **found}))
        return events

    def _attachment(self, record: Mapping[str, Any], lane: _Lane) -> list[Event]:
        shown = self._plain("attachment", record, lane)
        lane.reply.trace(record, ())
        hook = record.get("attachment")
        if not isinstance(hook, Mapping) or not str(hook.get("type")).startswith("hook_"):
            return [shown]
        id = call_id(hook, "toolUseID")
        named = self._unanswered(id, lane)
        if named is None:
            return [shown]
        return [shown, self._event(EVIDENCE, lane, {"tool_call_id": id, **of_hook(hook, named.tool)})]

    def _unanswered(self, id: str | None, lane: _Lane) -> Named | None:
        reply = None if id is None else self._reply_of(id, lane)
        named = reply.calls[id] if reply and id is not None else None
        return named if named is not None and named.result is None else None

    def _system(self, record: Mapping[str, Any], lane: _Lane) -> list[Event]:
        data = {"content": record.get("content"), "subtype": record.get("subtype")}
        shown = self._event(SYSTEM_MESSAGE, lane, data)
        if record.get("subtype") == "compact_boundary":
            return [*self._leave(lane, DEEP), shown]
        lane.reply.trace(record, ())
        return [shown]

    # ---- facts

    def _note(self, record: Mapping[str, Any]) -> None:
        for key in ("version", "cwd"):
            value = record.get(key)
            if isinstance(value, str):
                self._facts[key] = value
        started = record.get("timestamp")
        if isinstance(started, str):
            self._facts.setdefault("started", started)
        model = _message(record).get("model")
        if isinstance(model, str) and model != "<synthetic>":
            self._facts["model"] = model
        for key in ("customTitle", "aiTitle", "summary"):
            value = record.get(key)
            if isinstance(value, str):
                self._titles[key] = value

    def facts(self) -> Mapping[str, str]:
        """What the log says of its session, uncleaned: agent, version, cwd, model, started, title."""
        titles = (self._titles.get(key) for key in ("customTitle", "aiTitle", "prompt", "summary"))
        title = next((title for title in titles if title), None)
        return self._facts if title is None else {**self._facts, "title": title}

    # ---- repairing

    def encode(
        self,
        repairs: Sequence[Repair],
        next_seq: int,
        now: str | None,
        read: Callable[[int], Sequence[Mapping[str, Any]]],
    ) -> list[str]:
        """The lines to append, without newlines. `now` is the time of the append; None in a plan."""
        times = self._times.after(now)
        lines: list[str] = []
        for reply, contents in self._by_reply(repairs):
            lines += result_lines(reply, contents, times, read)
        return lines

    def _by_reply(self, repairs: Sequence[Repair]) -> list[tuple[Reply, dict[str, Any]]]:
        """The replies that a repair belongs to, in its order, each with the contents of its results."""
        found: dict[str, tuple[Reply, dict[str, Any]]] = {}
        for repair in repairs:
            id = call_id(repair.data)
            lane = next((lane for lane in self._lanes.values() if id in lane.reply.missing()), None)
            if repair.type == TOOL_RESULT and id is not None and lane is not None:
                contents = found.setdefault(lane.name, (lane.reply, {}))[1]
                contents[id] = repair.data.get("content")
        return list(found.values())

    def refusal(self, plan: Plan) -> Refusal | None:
        """Refuses where a call's line has no uuid: no result can be chained to it."""
        for reply, contents in self._by_reply(plan.repairs):
            rootless = reply.rootless(contents)
            if rootless is not None:
                says = (
                    f"line {rootless.line:,} of this log names a call and has no uuid, so no result can be "
                    "chained to it: nothing was appended. Claude Code drops such a call by itself when it "
                    "resumes, so write down elsewhere what you found"
                )
                return Refusal("call_without_uuid", says, plan.boundary.name, tuple(contents))
        return None


def _message(record: Mapping[str, Any]) -> Mapping[str, Any]:
    message = record.get("message")
    return message if isinstance(message, dict) else {}


def _is_prompt(record: Mapping[str, Any], content: object, text: str) -> bool:
    """Whether a user's line that holds no result and no interrupt marker is a prompt."""
    if record.get("isMeta") is True or record.get("isCompactSummary") is True:
        return False
    if text.startswith(LOCAL_COMMANDS):
        return False
    return isinstance(content, str) or (
        isinstance(content, list) and any(isinstance(b, dict) for b in content)
    )
