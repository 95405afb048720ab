"""Where in the agent loop the process died, and what may happen next.

The first row of the boundary table that holds wins, and the table is total: `terminal`, `tool_open`,
`awaiting_approval`, `awaiting_input`, `resolution_pending`, `model_attempt_open`, `calls_named`,
`stable`, `prepared`. The rows up to `resolution_pending` look at all open turns, so that a quiet inner
turn never hides an outer unknown; the others at the innermost.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from triage.log.events import call_id
from triage.recovery.rules import OUTCOME_UNKNOWN, Judgement
from triage.recovery.state import Call, Request, State, Turn


class Boundary(NamedTuple):
    """The boundary's name, the line that proves it (from 1), and the figures the log has, else None.

    `round` counts the model requests of the turn, tokens are counted in tokens. `command_id` names the
    decision of a pending resolution. `deadline` is what the log wrote, unparsed.
    """

    name: str
    line: int | None = None
    round: int | None = None
    request_id: str | None = None
    output_tokens_reserved: int | None = None
    input_tokens_left: int | None = None
    command_id: str | None = None
    deadline: Any = None


def find_boundary(state: State, judged: Sequence[tuple[Turn, Call, Judgement]]) -> Boundary:
    """The boundary of a log from what the scan left and the judgement of each owed call."""
    if not state.open_turns:
        last = state.last_turn
        if last is not None and last.asks and last.ended is None and last.moved_on > (last.spoke or 0):
            return Boundary("model_attempt_open", last.moved_on)
        return Boundary("terminal", state.last.line if state.last else None)
    inner = state.open_turns[0]
    name, line, request = _across_turns(state, judged) or _innermost(inner, state, judged)
    attempt = inner.attempt
    reserved = attempt.data.get("max_output_tokens") if attempt else None
    left = None
    if inner.max_input_tokens is not None:
        left = max(0, inner.max_input_tokens - inner.input_tokens)
    own = call_id(attempt.data, "request_id") if attempt else None
    return Boundary(
        name,
        line,
        round=inner.rounds if state.has_request_headers else None,
        request_id=request.id if request else own,
        output_tokens_reserved=reserved if type(reserved) is int else None,
        input_tokens_left=left,
        command_id=request.command_id if request else None,
        deadline=inner.deadline,
    )


Found = tuple[str, int, Request | None]


def _across_turns(state: State, judged: Sequence[tuple[Turn, Call, Judgement]]) -> Found | None:
    for _, call, judgement in judged:
        if judgement.risk == OUTCOME_UNKNOWN:
            return "tool_open", (judgement.proof.lines or (call.line,))[0], None
    owed = {call for _, call, _ in judged}
    owners = {id(r): call for turn in state.open_turns for call in turn.calls.values() for r in call.requests}
    requests = [(turn, r, owners.get(id(r))) for turn in state.open_turns for r in turn.loose_requests]
    for _, request, owner in requests:
        if request.decision is None and (owner is None or owner in owed):
            return f"awaiting_{request.kind}", request.line, request
    for turn, request, owner in requests:
        decided = request.decided
        if decided is not None and not _applied(decided, turn, owner, owed):
            return "resolution_pending", decided, request
    return None


def _applied(decided: int, turn: Turn, owner: Call | None, owed: AbstractSet[Call]) -> bool:
    """Whether something after the line of a decision shows that it took effect."""
    if owner is None:
        return turn.moved_on > decided
    return owner not in owed or any(line > decided for line in owner.dispatches)


def _innermost(turn: Turn, state: State, judged: Sequence[tuple[Turn, Call, Judgement]]) -> Found:
    attempt = turn.attempt if state.has_request_headers else turn.step_attempt
    if attempt is not None:
        return "model_attempt_open", attempt.line, None
    named = [call for owner, call, _ in judged if owner is turn]
    if named:
        return "calls_named", named[0].line, None
    if turn.spoke is not None:
        return "stable", turn.spoke, None
    return "prepared", turn.line, None
