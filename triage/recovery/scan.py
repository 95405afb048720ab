"""One pass over the events of a log: turns, steps, calls and what the log says about each call.

The pass keeps only what is still open or unanswered, so its memory follows what a log owes, not how
long it is. It judges nothing: `rules` reads what is left here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASKS,
    ASSISTANT_MESSAGE,
    DISPATCHED,
    EVIDENCE,
    GATED,
    IMPLICIT,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
    KNOWN_TYPES,
    REQUEST_HEADER,
    SETTLE,
    STEP_END,
    STEP_START,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    WITHDRAWN,
    Corrupt,
    Event,
    call_id,
)
from triage.recovery.board import KEPT_PER_CODE, Board, keep, keep_ends
from triage.recovery.requests import inconsistencies, is_same
from triage.recovery.seqs import Seqs
from triage.recovery.state import Anomaly, Call, Request, State, Step, Turn

KEPT_CORRUPT = 1000  # unreadable stretches kept for the log as a whole
KEPT_LINES = 50  # lines kept as proof per turn and kind


class Scan(Board):
    """Feed it the events and corrupt stretches of a log in file order, then ask for `state()`."""

    def __init__(self) -> None:
        super().__init__()
        self.events = 0
        self._latest_ms: int | None = None
        self._last_turn: Turn | None = None
        self._last: Event | None = None
        self._last_time: Any = None
        self._significant: Event | None = None
        self._requests: dict[str, tuple[Request, Call | None, Turn | None]] = {}
        self._of_last_turn: list[Anomaly] = []  # those that say nothing once another turn has begun
        self._corrupt: list[Corrupt] = []
        self._unknown: dict[str, int] = {}
        self._seqs = Seqs()
        self._headers = False

    # ---- what the reader calls

    def feed(self, event: Event) -> int:
        """Take the next event of the file.

        Returns the line of the start that this event closes (a turn's or a step's), else 0.
        """
        says = self._seqs.check(event, self.events)
        if says:
            self.anomaly(says[0], event.line, says[1])
        type = event.type
        if event.lane != self._lane_name:
            self.enter(event.lane)
        if type is not EVIDENCE and type is not SETTLE:
            self.events += 1
            self._last = event
            if event.time is not None:
                self._last_time = event.time
        if event.ms is not None:
            self._latest_ms = max(event.ms, self._latest_ms or 0)
        if type in KNOWN_TYPES:
            if type not in (STEP_END, TURN_END):
                self._significant = event
        elif type not in _HANDLERS and not event.plain:
            self._unknown[type] = self._unknown.get(type, 0) + 1
        handler = _HANDLERS.get(type)
        return 0 if handler is None else handler(self, event)

    @property
    def next_seq(self) -> int:
        """The seq of the first event of a repair."""
        return self._seqs.next(self.events)

    @property
    def last_time(self) -> Any:
        """The time of the last event that carries one, as the log wrote it; None where none does."""
        return self._last_time

    @property
    def expected_seq(self) -> int | None:
        """The seq that the next event should carry; None where any would do."""
        return self._seqs.expected

    def pass_over(self, events: int, end: Event, headers: bool) -> None:
        """Take a stretch of events that ends in a `turn_end`.

        For stretches that leave nothing behind: every call answered once, steps paired, seqs counting up.
        """
        self.events += events
        self._last, self._last_time = end, end.time
        self._seqs.pass_over(end.seq or 0)
        self._headers |= headers
        self._last_turn = None
        self._of_last_turn.clear()

    def corrupt(self, corrupt: Corrupt) -> None:
        """Take a stretch that is no event. It may have been anything, so each open turn remembers it."""
        self.anomaly("torn_tail" if corrupt.torn else "corrupt_line", corrupt.line, corrupt.says)
        self._seqs.forgive()
        keep(self._corrupt, corrupt, KEPT_CORRUPT)
        for turn in self._open():
            if not corrupt.harmless or len(turn.corrupt) < KEPT_LINES:
                keep(turn.corrupt, corrupt, KEPT_LINES)
        if corrupt.may_name and self._last_turn is not None:
            self._last_turn.may_hide = corrupt.line

    def state(self) -> State:
        """What is open, owed, left and wrong as of the last event. May be asked again after more."""
        open_turns = self._open()
        strays = {
            call
            for turn in open_turns
            for id, lines in turn.early_results.items()
            for line in lines
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
        owed = {
            turn: tuple(c for c in turn.calls.values() if c.owes and c not in strays) for turn in open_turns
        }
        left = [c for c in waiting if c.settled is not None or c.turn is None or c.turn.ended is not None]
        return State(
            open_turns=tuple(t for t in open_turns if owed[t] or t.again or not t.closes_itself),
            owed=owed,
            left=tuple(sorted(left, key=lambda c: (c.line, c.order))),
            anomalies=(*self._anomalies, *self._of_last_turn, *counted, *unknown, *self._seqs.missing()),
            corrupt=tuple(self._corrupt),
            events=self.events,
            next_seq=self.next_seq,
            has_request_headers=self._headers,
            last=self._last,
            last_time=self._last_time,
            significant=self._significant,
            latest_ms=self._latest_ms,
            last_turn=self._last_turn,
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
            lane=event.lane,
            implicit=event.data.get(IMPLICIT) is True,
            asks=event.data.get(ASKS) is True,
            moved_on=event.line,
        )
        turns = self._lane.turns
        closed = self._end(turns.pop(), event.line) if turns and turns[-1].implicit else 0
        turns.append(turn)
        if not event.lane or self._last_turn is None or self._last_turn.lane:
            self._last_turn = turn
            self._of_last_turn.clear()
        return closed

    def _turn_end(self, event: Event) -> int:
        if not self._lane.turns:
            self.anomaly("turn_end_without_start", event.line, "a turn_end that closes nothing")
            return 0
        return self._end(self._lane.turns.pop(), event.line)

    def _end(self, turn: Turn, line: int) -> int:
        turn.ended = line
        for id, results in turn.early_results.items():
            for result in results:
                self._answer(self._latest(id, result), result)
        for id in turn.requests:
            owner = self._requests[id][2] if id in self._requests else None
            if owner is not None and owner.ended is None:
                owner.requests.append(id)  # asked here, for a call of a turn around
            else:
                self._requests.pop(id, None)
        for call in turn.calls.values():
            if call.result is not None:
                self._forget(call)
        return turn.line

    def _step_start(self, event: Event) -> int:
        self._lane.steps.append(Step(event.line, event.seq or 0))
        if self._lane.turns:
            turn = self._lane.turns[-1]
            turn.steps += 1
            turn.step_attempt = event
        return 0

    def _step_end(self, event: Event) -> int:
        if not self._lane.steps:
            self.anomaly("step_end_without_start", event.line, "a step_end that closes nothing")
            return 0
        step = self._lane.steps.pop()
        step.ended = event.line
        if self._lane.turns:
            self._lane.turns[-1].attempt = self._lane.turns[-1].step_attempt = None
        return step.line

    # ---- calls

    def _assistant_message(self, event: Event) -> int:
        if self._lane.turns:
            turn = self._lane.turns[-1]
            turn.attempt = turn.step_attempt = None
            turn.spoke = turn.moved_on = event.line
            usage = event.data.get("usage")
            if isinstance(usage, dict):
                turn.input_tokens += _count(usage.get("input_tokens")) or 0
        named = event.data.get("tool_calls")
        if named is None:
            return 0
        if not isinstance(named, list):
            self.anomaly("odd_data", event.line, "tool_calls is not a list: no call could be read from it")
            return 0
        for order, entry in enumerate(named):
            id = call_id(entry, "id", "tool_call_id") if isinstance(entry, dict) else None
            if id is None:
                self.anomaly(
                    "call_without_id", event.line, "a call that carries no id: nothing can answer it"
                )
            else:
                self._name(event, id, entry, order)
        return 0

    def _name(self, event: Event, id: str, data: Mapping[str, Any], order: int = 0) -> Call:
        """The call of this id in the innermost turn: the one known already, or a new one."""
        turn = self._lane.turns[-1] if self._lane.turns else None
        calls = turn.calls if turn else self._lane.outside
        name = data.get("name")
        name = name if isinstance(name, str) else None
        known = calls.get(id)
        if known is not None:
            known.settled = None  # named again after it was settled: owed anew
            if name is not None and known.name is not None and name != known.name:
                self.anomaly(
                    "id_reused",
                    event.line,
                    f"line {event.line:,} names {id!r} as {name!r}, line {known.line:,} as {known.name!r}: "
                    "one call, by the first sighting",
                )
            return known
        step = self._lane.steps[-1] if self._lane.steps else None
        call = Call(
            id,
            name,
            data.get("arguments"),
            event.line,
            event.seq or 0,
            order,
            turn,
            step,
            event.time,
            event.ms,
        )
        calls[id] = call
        self._by_id.setdefault(id, []).append(call)
        if turn is not None:
            if id in turn.dispatches:
                call.dispatches.extend(turn.dispatches[id])
            for request in turn.early_requests.pop(id, ()):
                self._attach(request, call)
            if id in turn.early_contradictions:
                call.inconsistent.extend(turn.early_contradictions.pop(id))
            if id in turn.early_results:
                self._answer(call, turn.early_results.pop(id)[0])
        return call

    def _tool_call(self, event: Event) -> int:
        id = call_id(event.data)
        turn = self._lane.turns[-1] if self._lane.turns else None
        if turn:
            turn.moved_on = event.line
        if id is None:
            self.anomaly("call_without_id", event.line, "a dispatch that carries no id: it may be any call's")
            if turn:
                turn.nameless_dispatches.append(event.line)
            return 0
        call = (turn.calls if turn else self._lane.outside).get(id) or self._around(id)
        if call is None:
            call = self._name(event, id, event.data)
            call.by_dispatch = True
        for request in call.requests:
            if request.decision is None:
                says = f"request {request.id!r} is still pending, and its call was dispatched"
                self._contradict(event, call, says)
        keep(call.dispatches, event.line, KEPT_LINES)
        if turn:
            keep(turn.dispatches.setdefault(id, []), event.line, KEPT_LINES)
        return 0

    def _tool_result(self, event: Event) -> int:
        id = call_id(event.data)
        turn = self._lane.turns[-1] if self._lane.turns else None
        if turn:
            turn.moved_on = event.line
        if id is None:
            self.anomaly("result_without_id", event.line, "a result that carries no id: it answers nothing")
            return 0
        call = (turn.calls if turn else self._lane.outside).get(id)
        if call is None and turn is not None:
            keep(turn.early_results.setdefault(id, []), event.line, KEPT_LINES)
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

    # ---- what a format knows besides

    def _evidence(self, event: Event) -> int:
        data, says = event.data, str(event.data.get("says", ""))
        if "anomaly" in data and data.get("last_turn") is True:
            keep(self._of_last_turn, Anomaly(str(data["anomaly"]), event.line, says), KEPT_PER_CODE)
        elif "anomaly" in data:
            self.anomaly(str(data["anomaly"]), event.line, says)
        if data.get("contradicts") and self._lane.turns:
            for waiting in self._lane.turns[-1].calls.values():
                if waiting.owes and call_id(data) in (None, waiting.id):
                    keep(waiting.inconsistent, (event.line, says), KEPT_LINES)
        if "turn_finished" in data and self._lane.turns:
            self._lane.turns[-1].finished = event.line if data["turn_finished"] else None
        if data.get("writer_gone") is True:
            self._writer_gone()
        id = call_id(data)
        call = None if id is None else self._call_here(id) or self._latest(id, event.line)
        if call is not None and "again" in data:
            call.again = data["again"] is True
        if call is None or call.result is not None:
            return 0
        if call.notes and call.notes[-1][0] == data.get("instead"):
            call.notes.pop()
        keep_ends(call.notes, (event.line, says), KEPT_LINES)
        stage, of_turn = data.get("stage"), {} if call.turn is None else call.turn.dispatches
        if stage == DISPATCHED:
            call.gate = None
            keep(call.dispatches, event.line, KEPT_LINES)
            keep(of_turn.setdefault(call.id, []), event.line, KEPT_LINES)
        elif stage in (GATED, WITHDRAWN):
            call.gate, call.ms = (event.line, event.ms) if stage == GATED else (None, call.ms)
            call.dispatches.clear()
            of_turn.pop(call.id, None)
        if isinstance(data.get("finished"), str):
            call.finished = data["finished"]
        return 0

    def _writer_gone(self) -> None:
        for call in (call for calls in self._by_id.values() for call in calls):
            if call.result is None and call.heard_ms is None:
                call.heard_ms = self._latest_ms

    def _settle(self, event: Event) -> int:
        only, says = call_id(event.data), str(event.data.get("says", ""))
        inner = event.data.get("innermost") is True
        turns = self._lane.turns[-1:] if inner else self._lane.turns
        calls = [c for turn in turns for c in turn.calls.values()]
        for call in (*calls, *(() if inner else self._lane.outside.values())):
            call.again = call.again and only not in (None, call.id)
            if call.owes and only in (None, call.id):
                call.settled = says
        return 0

    # ---- requests to the model, approvals and inputs

    def _request_header(self, event: Event) -> int:
        self._headers = True
        if self._lane.turns:
            turn = self._lane.turns[-1]
            turn.rounds += 1
            turn.attempt = event
            turn.moved_on = event.line
            limit = _count(event.data.get("max_input_tokens"))
            turn.max_input_tokens = turn.max_input_tokens if limit is None else limit
        return 0

    def _requested(self, event: Event) -> int:
        data, turn = event.data, self._lane.turns[-1] if self._lane.turns else None
        kind = "approval" if event.type == APPROVAL_REQUESTED else "input"
        says = data.get("reason" if kind == "approval" else "prompt")
        id, asked_by = call_id(data, "request_id"), call_id(data, "tool_call_id")
        request = Request(id, kind, event.line, says if isinstance(says, str) else "", asked_by)
        known = self._requests.get(id) if id is not None else None
        call = self._call_here(asked_by)
        if known is not None and known[0].decision is not None:
            says = f"request {id!r} is opened again after it was decided"
            self._contradict(event, known[1], says, known[0])
        elif known is not None and is_same(known[0], request) and (known[1] or known[2]) is (call or turn):
            return 0  # logged again
        elif known is not None and known[2] in self._lane.turns:
            says = f"request {id!r} is opened again, and for something else; first on line {known[0].line:,}"
            self._contradict(event, known[1], says, known[0])
            self._contradict(event, call, says, request)
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
        call.inconsistent.extend(request.inconsistent)
        if request.id is not None and request.id in self._requests:
            self._requests[request.id] = (request, call, call.turn)

    def _decided(self, event: Event) -> int:
        data = event.data
        id, other = call_id(data, "request_id"), call_id(data, "tool_call_id")
        known = self._requests.get(id) if id is not None else None
        if known is None:
            says = f"a decision for request {id!r}, which was never opened"
            call = self._call_here(other)
            self._contradict(event, call, says)
            if call is None and other is not None and self._lane.turns:
                early = self._lane.turns[-1].early_contradictions.setdefault(other, [])
                keep(early, (event.line, says), KEPT_LINES)
            return 0
        request, call, _ = known
        for says in inconsistencies(event, request, other):
            self._contradict(event, call, says, request)
            if other is not None and call is not None and other != call.id:
                self._contradict(event, self._call_here(other), says)
        if request.decision is None:
            request.decided = event.line
            request.command_id = call_id(data, "command_id")
            request.decision = "deny" if data.get("decision") == "deny" else "allow"
            if event.type == INPUT_RESOLVED:
                request.decision = "answered"
        return 0

    def _contradict(self, event: Event, call: Call | None, says: str, request: Request | None = None) -> None:
        """Evidence that can't be right makes its call unknown, or each waiting call where it names none.

        `request` carries it to the call that it turns out to be for.
        """
        self.anomaly("inconsistent_approval", event.line, says)
        if call is not None:
            keep(call.inconsistent, (event.line, says), KEPT_LINES)
            return
        early = [request] if request is not None else []
        if self._lane.turns:
            early += [r for requests in self._lane.turns[-1].early_requests.values() for r in requests]
            for waiting in self._lane.turns[-1].calls.values():
                if waiting.result is None:
                    keep(waiting.inconsistent, (event.line, says), KEPT_LINES)
        for asked in early:
            keep(asked.inconsistent, (event.line, says), KEPT_LINES)


_HANDLERS: dict[str, Callable[[Scan, Event], int]] = {
    TURN_START: Scan._turn_start,
    TURN_END: Scan._turn_end,
    STEP_START: Scan._step_start,
    STEP_END: Scan._step_end,
    ASSISTANT_MESSAGE: Scan._assistant_message,
    TOOL_CALL: Scan._tool_call,
    TOOL_RESULT: Scan._tool_result,
    REQUEST_HEADER: Scan._request_header,
    APPROVAL_REQUESTED: Scan._requested,
    INPUT_REQUESTED: Scan._requested,
    APPROVAL_DECIDED: Scan._decided,
    INPUT_RESOLVED: Scan._decided,
    EVIDENCE: Scan._evidence,
    SETTLE: Scan._settle,
}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
