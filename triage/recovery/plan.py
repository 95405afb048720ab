"""What a repair would append, in order, and why. Pure: a plan is computed, never carried out here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from triage.log.events import (
    APPROVAL_DECIDED,
    INPUT_RESOLVED,
    TOOL_RESULT,
    TURN_END,
)
from triage.recovery.boundary import Boundary, find_boundary
from triage.recovery.rules import OUTCOME_UNKNOWN, Asked, Judgement, Records, Risk, Rule, judge, unreadable
from triage.recovery.state import Anomaly, Call, Request, State, Turn
from triage.recovery.verdict import native_decision


class Evidence(NamedTuple):
    """One line of the log (from 1) and what it says about a call."""

    line: int
    says: str


class Owed(NamedTuple):
    """A call of an open turn that has no result, with its risk, the rule that gave it and the proof.

    `key` names it in answers: the id, or `TURN_SEQ/ID` where the plan holds that id twice.
    `label` is the word that the screens show: UNKNOWN, NOT STARTED, WAITING or DENIED.
    """

    key: str
    tool_call_id: str
    name: str | None
    arguments: Any
    risk: Risk
    rule: Rule
    turn_seq: int
    turn_line: int
    step_seq: int | None
    line: int
    time: Any
    finished: str | None
    evidence: tuple[Evidence, ...]
    trace: tuple[Asked, ...]

    @property
    def needs_acknowledgement(self) -> bool:
        """True for every unknown outcome, and for a waiting call: closing it denies the request."""
        return self.risk == OUTCOME_UNKNOWN or self.rule == "W1"

    @property
    def label(self) -> str:
        if self.risk == OUTCOME_UNKNOWN:
            return "UNKNOWN"
        return {"W1": "WAITING", "W2": "DENIED"}.get(str(self.rule), "NOT STARTED")

    @property
    def why(self) -> str:
        """What the deciding rule says, with its lines."""
        return next(row.says for row in self.trace if row.held)


class Left(NamedTuple):
    """A call that owes a result and is no part of an orphan: shown, not repaired."""

    tool_call_id: str
    name: str | None
    why: str
    line: int


class OpenTurn(NamedTuple):
    seq: int
    line: int
    turn: int | None


class Repair(NamedTuple):
    """One event of a repair in the native vocabulary; `key` is the owed call that it belongs to, or ""."""

    type: str
    data: Mapping[str, Any]
    key: str = ""


class Refusal(NamedTuple):
    """Why nothing may be appended: a stable code, one sentence, and whether trying again can help."""

    code: str
    says: str
    boundary: str | None = None
    ids: tuple[str, ...] = ()
    retryable: bool = False


class Plan(NamedTuple):
    """Everything that triage says about a log. `status` is clean, crashed or doubtful."""

    status: str
    open_turns: tuple[OpenTurn, ...]
    boundary: Boundary
    owed: tuple[Owed, ...]
    left: tuple[Left, ...]
    repairs: tuple[Repair, ...]
    anomalies: tuple[Anomaly, ...]
    verdict: Mapping[str, Any] | None = None
    doubt: str = ""
    refusal: Refusal | None = None

    @property
    def unknown(self) -> int:
        return sum(owed.risk == OUTCOME_UNKNOWN for owed in self.owed)


def make_plan(state: State, records: Records) -> Plan:
    """The plan for what a scan left, by the rule table and what the format records."""
    judged = [
        (turn, call, judge(call, turn, records, state.latest_ms))
        for turn in state.open_turns
        for call in state.owed[turn]
    ]
    keys = _keys(judged) if judged else {}
    entries = {call: _owed(turn, call, judgement, keys[call]) for turn, call, judgement in judged}
    repairs: list[Repair] = []
    for turn in state.open_turns:
        for call in state.owed[turn]:
            repairs += _close_requests(call.requests, repairs, entries[call].key)
            repairs.append(_result(entries[call]))
        if not state.owed[turn]:
            repairs += [_carried(call) for call in turn.again]
        repairs += _close_requests(_unclaimed(turn, state.open_turns), repairs)
        if not turn.implicit:
            repairs.append(_turn_end(turn))
    doubt = _doubt(state)
    return Plan(
        status="crashed" if state.open_turns else "doubtful" if doubt else "clean",
        open_turns=tuple(OpenTurn(t.seq, t.line, t.number) for t in state.open_turns),
        boundary=find_boundary(state, judged),
        owed=tuple(entries.values()),
        left=tuple(_left(call) for call in state.left),
        repairs=tuple(repairs),
        anomalies=state.anomalies,
        verdict=_verdict(state, judged),
        doubt=doubt,
    )


def _verdict(state: State, judged: Sequence[tuple[Turn, Call, Judgement]]) -> dict[str, Any] | None:
    """The native log's verdict on an open turn, with the reasons that run records would give."""
    if not state.open_turns:
        return None
    inner = state.open_turns[0]
    last = state.significant.type if state.significant else None
    return native_decision(
        inner.id,
        last,
        owes=bool(judged),
        waiting=any(r.decision is None for turn in state.open_turns for r in turn.loose_requests),
        request_open=inner.attempt is not None,
        corrupt=bool(state.corrupt),
    )


def _keys(judged: Sequence[tuple[Turn, Call, Judgement]]) -> dict[Call, str]:
    count = Counter(call.id for _, call, _ in judged)
    keys = {call: call.id for _, call, _ in judged if count[call.id] == 1}
    taken = set(keys.values())
    # Two turns may carry one seq or share a line, and an id may look like a key: no two may be alike, or
    # one answer would pass for two calls.
    twice = Counter((turn.seq, call.id) for turn, call, _ in judged)
    for turn, call, _ in judged:
        if call in keys:
            continue
        key = f"{turn.seq}/{call.id}"
        if twice[turn.seq, call.id] > 1 or key in taken:
            key = f"{turn.seq}@{turn.line}/{call.id}"
        while key in taken:
            key = f"@{key}"
        keys[call] = key
        taken.add(key)
    return keys


def _owed(turn: Turn, call: Call, judgement: Judgement, key: str) -> Owed:
    return Owed(
        key=key,
        tool_call_id=call.id,
        name=call.name,
        arguments=call.arguments,
        risk=judgement.risk,
        rule=judgement.rule,
        turn_seq=turn.seq,
        turn_line=turn.line,
        step_seq=call.step.seq if call.step else None,
        line=call.line,
        time=call.time,
        finished=call.finished,
        evidence=_evidence(turn, call, judgement),
        trace=judgement.trace,
    )


def _evidence(turn: Turn, call: Call, judgement: Judgement) -> tuple[Evidence, ...]:
    """The lines that prove the risk, in the order of the file."""
    found = {(call.line, "dispatched, and never named before" if call.by_dispatch else "named")}
    found |= set(call.notes)
    known = {line for line, _ in found}
    found |= {(line, "dispatched: handed to its tool") for line in call.dispatches if line not in known}
    found |= {(line, says) for line, says in call.inconsistent}
    noted = {line for line, _ in call.notes}
    for request in call.requests:
        if request.line not in noted:
            found.add((request.line, f"{request.kind} requested"))
        if request.decided is not None and request.decided not in noted:
            found.add((request.decided, f"{request.kind} decided: {request.decision}"))
    known = {line for line, _ in found}
    found |= {(line, _AS_PROOF[judgement.rule]) for line in judgement.proof.lines if line not in known}
    found |= {(line, "can't be read: it may have been about this call") for line in unreadable(call, turn)}
    return tuple(Evidence(line, says) for line, says in sorted(found))


_AS_PROOF: dict[Rule, str] = {
    1: "dispatched: handed to its tool",
    "W1": "asked for, never decided",
    "W2": "denied",
    2: "another call was dispatched",
    3: "the step around the call",
    4: "named",
}


def _left(call: Call) -> Left:
    if call.settled is not None:
        why = call.settled
    elif call.turn is None:
        why = "recorded outside any turn, so no open turn owes it: left as it is"
    else:
        why = f"its turn (line {call.turn.line:,}) was closed, which is no crash: left as it is"
    if call.finished is not None:
        why += f". The log shows that it finished: {call.finished}"
    return Left(call.id, call.name, why, call.line)


def _unclaimed(turn: Turn, open_turns: Sequence[Turn]) -> list[Request]:
    """Open requests of a turn that no call of an open turn claims: they are closed before the turn."""
    claimed = {id(r) for t in open_turns for call in t.calls.values() for r in call.requests}
    return [r for r in turn.loose_requests if id(r) not in claimed]


def _close_requests(requests: Sequence[Request], planned: Sequence[Repair], key: str = "") -> list[Repair]:
    """What closes the open ones of these requests: each id once, in however many places it was opened."""
    closed = {(repair.type, repair.data.get("request_id")) for repair in planned}
    open_ones = [r for r in requests if r.decision is None and r.id is not None]
    repairs = [_close_request(request, key) for request in open_ones]
    return [repair for repair in repairs if (repair.type, repair.data["request_id"]) not in closed]


def _close_request(request: Request, key: str = "") -> Repair:
    metadata = {"synthetic": True}
    if request.kind == "approval":
        data = {"request_id": request.id, "decision": "deny", "metadata": metadata}
        return Repair(APPROVAL_DECIDED, data, key)
    return Repair(INPUT_RESOLVED, {"request_id": request.id, "value": None, "metadata": metadata}, key)


def _result(owed: Owed) -> Repair:
    data = {
        "tool_call_id": owed.tool_call_id,
        "name": owed.name,
        "content": synthetic_content(owed),
        "metadata": {"synthetic": True, "risk": owed.risk, "rule": owed.rule},
    }
    return Repair(TOOL_RESULT, data, owed.key)


def _carried(call: Call) -> Repair:
    """The recorded result of an answered call once more: an earlier repair was cut off before it."""
    data = {
        "tool_call_id": call.id,
        "name": call.name,
        "content": f"The result of line {call.result}, once more.",
        "metadata": {"synthetic": False, "copy_of_line": call.result},
    }
    return Repair(TOOL_RESULT, data)


def _turn_end(turn: Turn) -> Repair:
    data: dict[str, Any] = {"reason": "interrupted", "steps": turn.steps}
    if turn.number is not None:
        data["turn"] = turn.number
    return Repair(TURN_END, data)


def synthetic_content(owed: Owed, found: str = "") -> str:
    """The plain words of a synthetic result, for whoever reads the history next: a model or a person.

    `found` is what the operator found, one sentence, or "".
    """
    words = {
        "UNKNOWN": "The session was interrupted while this call may have been running. It may have taken "
        "effect: do not run it again before its effect has been checked.",
        "NOT STARTED": "The session was interrupted before this call was handed to its tool. It did not "
        "run and had no effect.",
        "WAITING": "The session was interrupted while this call waited for a person to decide. It did not "
        "run; the request was closed as denied.",
        "DENIED": "This call was denied before the session was interrupted. It did not run and had no "
        "effect.",
    }[owed.label]
    if owed.finished is not None:
        words += f" The log shows that it finished; only its result was lost: {owed.finished}"
    return f"{words} {found}" if found else words


def _doubt(state: State) -> str:
    """Why a log with nothing to repair can't be called clean, or ""."""
    if state.open_turns:
        return ""
    last = state.last_turn
    unended = last is not None and (last.implicit or (last.finished is not None and last.ended is None))
    if last is not None and unended and (last.may_hide or 0) > (last.finished or 0):
        return (
            f"line {last.may_hide:,} can't be read and lies in the last turn: it may have named a call that "
            "nothing else shows"
        )
    starts = [c.line for c in state.corrupt if c.may_start]
    if not starts:
        return ""
    outside = [c.line for c in state.left if c.turn is None and c.line >= starts[0]]
    if not outside:
        return ""
    line = max(s for s in starts if s <= outside[0])
    return (
        f"line {line:,} can't be read and may have opened a turn: the call named on line {outside[0]:,} "
        "has no result, and may be owed"
    )
