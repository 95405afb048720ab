"""One pass over the events of a log: turns, steps, calls and what the log says about each call.

The pass keeps only what is still open or unanswered, so its memory follows what a log owes, not how
long it is. It judges nothing: `rules` reads what is left here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASSISTANT_MESSAGE,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
    KNOWN_TYPES,
    REQUEST_HEADER,
    STEP_END,
    STEP_START,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    Corrupt,
    Event,
    call_id,
)

KEPT_PER_CODE = 20  # anomalies of one code that are listed one by one; the rest are counted
KEPT_CORRUPT = 1000  # unreadable stretches kept for the log as a whole
KEPT_LINES = 50  # lines kept as proof per turn and kind
LARGEST_SEQ = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something wrong with the log itself. `line` counts from 1; None where it is about the whole log."""

    code: str
    line: int | None
    says: str


@dataclass(slots=True)
class Request:
    """An approval or an input that a call waits for."""

    id: str | None
    kind: str  # "approval" or "input"
    line: int
    says: str
    call_id: str | None
    decision: str | None = None  # "allow", "deny" or "answered"
    decided: int | None = None  # line
    command_id: str | None = None


@dataclass(slots=True, eq=False)
class Step:
    """A `step_start`, and the line of its `step_end` once it was seen."""

    line: int
    seq: int
    ended: int | None = None  # line


@dataclass(slots=True, eq=False)
class Call:
    """A tool call, named once per turn; every later sighting is the same call."""

    id: str
    name: str | None
    arguments: Any
    line: int
    seq: int
    order: int  # among the calls of its line
    turn: Turn | None
    step: Step | None
    time: Any
    by_dispatch: bool = False
    dispatches: list[int] = field(default_factory=list)
    result: int | None = None
    requests: list[Request] = field(default_factory=list)
    inconsistent: list[tuple[int, str]] = field(default_factory=list)
    shadowed: bool = False


@dataclass(slots=True, eq=False)
class Turn:
    """A `turn_start` and what followed while it was open."""

    line: int
    seq: int
    number: int | None
    id: str | None = None
    steps: int = 0
    calls: dict[str, Call] = field(default_factory=dict)
    dispatches: dict[str, list[int]] = field(default_factory=dict)
    nameless_dispatches: list[int] = field(default_factory=list)
    early_results: dict[str, int] = field(default_factory=dict)
    early_requests: dict[str, list[Request]] = field(default_factory=dict)
    corrupt: list[Corrupt] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    loose_requests: list[Request] = field(default_factory=list)
    moved_on: int = 0  # last line that shows the loop went on: a message, a dispatch, a result
    spoke: int | None = None  # line of the last assistant_message
    attempt: Event | None = None  # a request_header nobody answered yet
    step_attempt: Event | None = None  # the same, by step_start, for logs without request headers
    rounds: int = 0
    input_tokens: int = 0
    max_input_tokens: int | None = None
    deadline: Any = None


@dataclass(frozen=True, slots=True)
class State:
    """What the pass left: everything that `rules`, `boundary` and `plan` need."""

    open_turns: tuple[Turn, ...]  # innermost first
    owed: Mapping[int, tuple[Call, ...]]  # by the line of the open turn, in the order of first sighting
    left: tuple[Call, ...]  # unanswered, but in no open turn; in the order of the file
    anomalies: tuple[Anomaly, ...]
    corrupt: tuple[Corrupt, ...]
    events: int
    next_seq: int
    has_request_headers: bool
    last: Event | None
    significant: Event | None  # the last one that neither ends something nor is unknown


class Scan:
    """Feed it the events and corrupt stretches of a log in file order, then ask for `state()`."""

    def __init__(self) -> None:
        self.events = 0
        self.turns: list[Turn] = []
        self._last: Event | None = None
        self._significant: Event | None = None
        self._steps: list[Step] = []
        self._outside: dict[str, Call] = {}
        self._by_id: dict[str, list[Call]] = {}
        self._requests: dict[str, tuple[Request, Call | None, Turn | None]] = {}
        self._anomalies: list[Anomaly] = []
        self._per_code: dict[str, int] = {}
        self._corrupt: list[Corrupt] = []
        self._unknown: dict[str, int] = {}
        self._seqs = _Seqs()
        self._headers = False
        self._handlers = {
            TURN_START: self._turn_start,
            TURN_END: self._turn_end,
            STEP_START: self._step_start,
            STEP_END: self._step_end,
            ASSISTANT_MESSAGE: self._assistant_message,
            TOOL_CALL: self._tool_call,
            TOOL_RESULT: self._tool_result,
            REQUEST_HEADER: self._request_header,
            APPROVAL_REQUESTED: self._requested,
            INPUT_REQUESTED: self._requested,
            APPROVAL_DECIDED: self._decided,
            INPUT_RESOLVED: self._decided,
        }

    # ---- what the reader calls

    def feed(self, event: Event) -> int:
        """Take the next event of the file.

        Returns the line of the start that this event closes (a turn's or a step's), else 0.
        """
        says = self._seqs.check(event, self.events)
        if says:
            self.anomaly(says[0], event.line, says[1])
        self.events += 1
        self._last = event
        if event.type in KNOWN_TYPES and event.type not in (STEP_END, TURN_END):
            self._significant = event
        handler = self._handlers.get(event.type)
        if handler is not None:
            return handler(event)
        if event.type not in KNOWN_TYPES:
            self._unknown[event.type] = self._unknown.get(event.type, 0) + 1
        return 0

    def corrupt(self, corrupt: Corrupt) -> None:
        """Take a stretch that is no event. It may have been anything, so each open turn remembers it."""
        self.anomaly("torn_tail" if corrupt.torn else "corrupt_line", corrupt.line, corrupt.says)
        self._seqs.forgive()
        _keep(self._corrupt, corrupt, KEPT_CORRUPT)
        for turn in self.turns:
            _keep(turn.corrupt, corrupt, KEPT_LINES)

    def anomaly(self, code: str, line: int | None, says: str) -> None:
        """Note something wrong with the log; past `KEPT_PER_CODE` of one code they are counted only."""
        seen = self._per_code[code] = self._per_code.get(code, 0) + 1
        if seen <= KEPT_PER_CODE:
            self._anomalies.append(Anomaly(code, line, says))

    @property
    def depth(self) -> int:
        """How deep the timeline stands: 0 outside, one more for each open turn and for a step in it."""
        if not self.turns:
            return 0
        return len(self.turns) + bool(self._steps and self._steps[-1].line > self.turns[-1].line)

    def state(self) -> State:
        """What is open, owed, left and wrong as of the last event. May be asked again after more."""
        strays = {
            call
            for turn in self.turns
            for id, line in turn.early_results.items()
            if (call := self._latest(id, line)) is not None
        }
        waiting = [
            call
            for calls in self._by_id.values()
            for call in calls
            if call.result is None and call not in strays
        ]
        counted = [
            Anomaly(code, None, f"and {count - KEPT_PER_CODE:,} more like these")
            for code, count in self._per_code.items()
            if count > KEPT_PER_CODE
        ]
        unknown = [
            Anomaly("unknown_type", None, f"{count:,} of type {name!r}: shown, not judged")
            for name, count in sorted(self._unknown.items())[:KEPT_PER_CODE]
        ]
        return State(
            open_turns=tuple(reversed(self.turns)),
            owed={
                turn.line: tuple(c for c in turn.calls.values() if c.result is None and c not in strays)
                for turn in self.turns
            },
            left=tuple(
                sorted((c for c in waiting if c.turn not in self.turns), key=lambda c: (c.line, c.order))
            ),
            anomalies=(*self._anomalies, *counted, *unknown, *self._seqs.missing()),
            corrupt=tuple(self._corrupt),
            events=self.events,
            next_seq=self._seqs.next(self.events),
            has_request_headers=self._headers,
            last=self._last,
            significant=self._significant,
        )

    # ---- turns and steps, paired by a stack, never by their numbers

    def _turn_start(self, event: Event) -> int:
        number = event.data.get("turn")
        turn = Turn(
            line=event.line,
            seq=event.seq or 0,
            number=number if isinstance(number, int) and not isinstance(number, bool) else None,
            max_input_tokens=_count(event.data.get("max_input_tokens")),
            deadline=event.data.get("deadline"),
            id=call_id(event.data, "turn_id", "turnId"),
        )
        self.turns.append(turn)
        return 0

    def _turn_end(self, event: Event) -> int:
        if not self.turns:
            self.anomaly("turn_end_without_start", event.line, "a turn_end that closes nothing")
            return 0
        turn = self.turns.pop()
        for id, line in turn.early_results.items():
            self._answer(self._latest(id, line), line)
        for id in turn.requests:
            self._requests.pop(id, None)
        for call in turn.calls.values():
            if call.result is not None:
                self._forget(call)
        return turn.line

    def _step_start(self, event: Event) -> int:
        self._steps.append(Step(event.line, event.seq or 0))
        if self.turns:
            turn = self.turns[-1]
            turn.steps += 1
            turn.step_attempt = event
        return 0

    def _step_end(self, event: Event) -> int:
        if not self._steps:
            self.anomaly("step_end_without_start", event.line, "a step_end that closes nothing")
            return 0
        step = self._steps.pop()
        step.ended = event.line
        if self.turns:
            self.turns[-1].attempt = self.turns[-1].step_attempt = None
        return step.line

    # ---- calls

    def _assistant_message(self, event: Event) -> int:
        if self.turns:
            turn = self.turns[-1]
            turn.attempt = turn.step_attempt = None
            turn.spoke = turn.moved_on = event.line
            usage = event.data.get("usage")
            if isinstance(usage, Mapping):
                turn.input_tokens += _count(usage.get("input_tokens")) or 0
        named = event.data.get("tool_calls")
        if named is None:
            return 0
        if not isinstance(named, list):
            self.anomaly("odd_data", event.line, "tool_calls is not a list: no call could be read from it")
            return 0
        for order, entry in enumerate(named):
            id = call_id(entry, "id", "tool_call_id") if isinstance(entry, Mapping) else None
            if id is None:
                self.anomaly(
                    "call_without_id", event.line, "a call that carries no id: nothing can answer it"
                )
            else:
                self._name(event, id, entry, order)
        return 0

    def _name(self, event: Event, id: str, data: Mapping[str, Any], order: int = 0) -> Call:
        """The call of this id in the innermost turn: the one known already, or a new one."""
        turn = self.turns[-1] if self.turns else None
        calls = turn.calls if turn else self._outside
        name = data.get("name")
        name = name if isinstance(name, str) else None
        known = calls.get(id)
        if known is not None:
            if name is not None and known.name is not None and name != known.name:
                self.anomaly(
                    "id_reused",
                    event.line,
                    f"line {event.line:,} names {id!r} as {name!r}, line {known.line:,} as {known.name!r}: "
                    "one call, by the first sighting",
                )
            return known
        step = self._steps[-1] if self._steps else None
        call = Call(
            id, name, data.get("arguments"), event.line, event.seq or 0, order, turn, step, event.time
        )
        calls[id] = call
        self._by_id.setdefault(id, []).append(call)
        if turn is not None:
            call.dispatches.extend(turn.dispatches.get(id, ()))
            for request in turn.early_requests.pop(id, ()):
                self._attach(request, call)
            self._answer(call, turn.early_results.pop(id, None))
        return call

    def _tool_call(self, event: Event) -> int:
        id = call_id(event.data)
        turn = self.turns[-1] if self.turns else None
        if turn:
            turn.moved_on = event.line
        if id is None:
            self.anomaly("call_without_id", event.line, "a dispatch that carries no id: it may be any call's")
            if turn:
                turn.nameless_dispatches.append(event.line)
            return 0
        call = (turn.calls if turn else self._outside).get(id) or self._around(id)
        if call is None:
            call = self._name(event, id, event.data)
            call.by_dispatch = True
        _keep(call.dispatches, event.line, KEPT_LINES)
        if turn:
            _keep(turn.dispatches.setdefault(id, []), event.line, KEPT_LINES)
        return 0

    def _around(self, id: str) -> Call | None:
        """An unanswered call of this id in a turn around the innermost that is still open, or in none."""
        for turn in reversed(self.turns[:-1]):
            call = turn.calls.get(id)
            if call is not None and call.result is None:
                return call
        return self._outside.get(id)

    def _tool_result(self, event: Event) -> int:
        id = call_id(event.data)
        turn = self.turns[-1] if self.turns else None
        if turn:
            turn.moved_on = event.line
        if id is None:
            self.anomaly("result_without_id", event.line, "a result that carries no id: it answers nothing")
            return 0
        call = (turn.calls if turn else self._outside).get(id)
        if call is None and turn is not None:
            turn.early_results.setdefault(id, event.line)
            return 0
        if call is None:
            call = self._latest(id, event.line)
        if call is not None and call.result is not None:
            self.anomaly(
                "duplicate_result",
                event.line,
                f"a second result for {id!r}; the first is on line {call.result:,}",
            )
            return 0
        self._answer(call, event.line)
        return 0

    def _answer(self, call: Call | None, line: int | None) -> None:
        if call is None or line is None or call.result is not None:
            return
        call.result = line
        call.arguments = None
        if call.turn is None or call.turn not in self.turns:
            self._forget(call)

    def _forget(self, call: Call) -> None:
        """Drop an answered call. Older ones of its id can then no longer be meant by a bare id."""
        calls = self._by_id.get(call.id, [])
        if call not in calls:
            return
        at = calls.index(call)
        for older in calls[:at]:
            older.shadowed = True
        del calls[at]
        if not calls:
            del self._by_id[call.id]
        if self._outside.get(call.id) is call:
            del self._outside[call.id]

    def _latest(self, id: str, line: int) -> Call | None:
        """The latest call with this id that was seen up to `line`; None where it was answered and dropped."""
        for call in reversed(self._by_id.get(id, ())):
            if call.line <= line:
                return None if call.shadowed else call
        return None

    # ---- requests to the model, approvals and inputs

    def _request_header(self, event: Event) -> int:
        self._headers = True
        if self.turns:
            turn = self.turns[-1]
            turn.rounds += 1
            turn.attempt = event
            turn.moved_on = event.line
            limit = _count(event.data.get("max_input_tokens"))
            turn.max_input_tokens = turn.max_input_tokens if limit is None else limit
        return 0

    def _requested(self, event: Event) -> int:
        data, turn = event.data, self.turns[-1] if self.turns else None
        kind = "approval" if event.type == APPROVAL_REQUESTED else "input"
        says = data.get("reason" if kind == "approval" else "prompt")
        id, asked_by = call_id(data, "request_id"), call_id(data, "tool_call_id")
        request = Request(id, kind, event.line, says if isinstance(says, str) else "", asked_by)
        known = self._requests.get(id) if id is not None else None
        if known is not None and known[0].decision is not None:
            self._contradict(event, known[1], f"request {id!r} is opened again after it was decided")
        call = self._call_here(asked_by)
        if id is not None:
            self._requests[id] = (request, call, turn)
        if turn is not None:
            turn.loose_requests.append(request)
            if id is not None:
                turn.requests.append(id)
        if call is not None:
            self._attach(request, call)
        elif turn is not None and asked_by is not None:
            turn.early_requests.setdefault(asked_by, []).append(request)
        return 0

    def _attach(self, request: Request, call: Call) -> None:
        call.requests.append(request)
        if request.id is not None and request.id in self._requests:
            self._requests[request.id] = (request, call, call.turn)

    def _call_here(self, id: str | None) -> Call | None:
        if id is None:
            return None
        own = (self.turns[-1].calls if self.turns else self._outside).get(id)
        return own or self._around(id)

    def _decided(self, event: Event) -> int:
        data = event.data
        id, other = call_id(data, "request_id"), call_id(data, "tool_call_id")
        known = self._requests.get(id) if id is not None else None
        if known is None:
            says = f"a decision for request {id!r}, which was never opened"
            self._contradict(event, self._call_here(other), says)
            return 0
        request, call, _ = known
        for says in _inconsistencies(event, request, other):
            self._contradict(event, call, says)
            if other is not None and call is not None and other != call.id:
                self._contradict(event, self._call_here(other), says)
        if request.decision is None:
            request.decided = event.line
            request.command_id = call_id(data, "command_id")
            request.decision = "deny" if data.get("decision") == "deny" else "allow"
            if event.type == INPUT_RESOLVED:
                request.decision = "answered"
        return 0

    def _contradict(self, event: Event, call: Call | None, says: str) -> None:
        """Evidence that can't be right makes its call unknown, or each waiting call where it names none."""
        self.anomaly("inconsistent_approval", event.line, says)
        if call is not None:
            call.inconsistent.append((event.line, says))
        elif self.turns:
            for waiting in self.turns[-1].calls.values():
                if waiting.result is None:
                    waiting.inconsistent.append((event.line, says))


def _inconsistencies(event: Event, request: Request, other: str | None) -> list[str]:
    """Each way in which a decision does not fit its request (the table of waiting calls)."""
    data, found = event.data, []
    name = f"request {request.id!r}"
    capability = data.get("capability") is not None
    if request.decision is not None:
        found.append(f"{name} is decided twice; the first decision is on line {request.decided:,}")
    if event.type == INPUT_RESOLVED:
        if request.kind != "input":
            found.append(f"{name} asked for an approval and got an input answer")
        if capability:
            found.append(f"the answer to {name} carries a capability; only an approval does")
    else:
        if request.kind != "approval":
            found.append(f"{name} asked for an input and got an approval decision")
        if data.get("decision") not in ("allow", "deny"):
            found.append(f"{name} is decided as neither allow nor deny")
        if data.get("decision") == "allow" and not capability:
            found.append(f"{name} is allowed without a capability: nothing shows that it was issued")
        if data.get("decision") == "deny" and capability:
            found.append(f"{name} is denied with a capability: it says both")
    if other is not None and request.call_id is not None and other != request.call_id:
        found.append(f"{name} is call {request.call_id!r}'s, and the decision names {other!r}")
    return found


class _Seqs:
    """Checks that `seq` counts up by one. Position in the file is the order, whatever it says."""

    def __init__(self) -> None:
        self._largest = -1
        self._previous: int | None = None
        self._missing = 0
        self._first_missing = 0

    def check(self, event: Event, index: int) -> tuple[str, str] | None:
        seq, previous = event.seq, self._previous
        if seq is None:
            event.seq = index
            self._missing += 1
            self._first_missing = self._first_missing or event.line
            return None
        if seq <= LARGEST_SEQ:
            self._largest = max(self._largest, seq)
        self._previous = seq
        if previous is None or seq == previous + 1:
            return None
        if seq == previous:
            return "seq_duplicate", f"seq {seq} stands here again"
        if seq < previous:
            return "seq_out_of_order", f"seq {seq} after {previous}; the order of the file counts"
        return "seq_gap", f"seq jumps from {previous} to {seq}"

    def forgive(self) -> None:
        """An unreadable stretch may have held any seq: don't report the gap that it leaves."""
        self._previous = None

    def missing(self) -> list[Anomaly]:
        if self._largest < 0 or not self._missing:
            return []
        return [Anomaly("seq_missing", self._first_missing, f"{self._missing:,} events carry no usable seq")]

    def next(self, events: int) -> int:
        return self._largest + 1 if self._largest >= 0 else events


def _keep(kept: list[Any], item: Any, limit: int) -> None:
    """Append, but past the limit only remember the latest: a flood must not fill the memory."""
    if len(kept) < limit:
        kept.append(item)
    else:
        kept[-1] = item


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
