"""The rule table: which risk an owed call carries, which rule gave it, and the lines that prove it.

Asked in the order 1, W1, W2, 2, 3, 4; the first that holds wins. Rule 4 always holds: whatever is not
proven is unknown.

| rule | what the log shows | risk |
|---|---|---|
| 1 | a dispatch for this id, and no result | tool_outcome_unknown |
| W1 | a request for this call that nobody decided | tool_not_started, closing it denies the request |
| W2 | the approval was denied | tool_not_started |
| 2 | no dispatch for this id, but this turn recorded one for another id | tool_not_started |
| 3 | this turn recorded no dispatch at all, and the step around the call closed | tool_not_started |
| 4 | anything else | tool_outcome_unknown |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from triage.log.events import STEP_END, STEP_START, TURN_END, TURN_START
from triage.recovery.state import Call, Turn

NOT_STARTED: Final = "tool_not_started"
OUTCOME_UNKNOWN: Final = "tool_outcome_unknown"

Risk = Literal["tool_not_started", "tool_outcome_unknown"]
Rule = Literal[1, 2, 3, 4, "W1", "W2"]

PROOF_LINES = 20  # lines named as proof for one rule; more add nothing for a reader


class Records(NamedTuple):
    """What a format writes down. Absence is evidence only in a log that is known to record the thing."""

    dispatches: Literal["all", "some", "none"] = "all"
    step_ends: bool = True
    hole_ms: int = (
        0  # what its writer may have had unwritten at a crash: so long before the end, absence is none
    )


Answer = tuple[bool, list[int], str]  # whether the rule holds, the lines it looked at, why
Ask = Callable[[Call, Turn, Records], Answer]


class Asked(NamedTuple):
    """One row of a trace: a rule, whether it was asked, whether it held, and the lines it looked at."""

    rule: Rule
    asked: bool
    held: bool
    lines: tuple[int, ...]
    says: str


class Judgement(NamedTuple):
    """The risk of one call with the whole way to it."""

    risk: Risk
    rule: Rule
    trace: tuple[Asked, ...]

    @property
    def proof(self) -> Asked:
        """The row of the trace that decided."""
        return next(row for row in self.trace if row.held)


def judge(call: Call, turn: Turn, records: Records, latest_ms: int | None = None) -> Judgement:
    """The judgement of an owed call of an open turn. `latest_ms`: the latest time in the log."""
    asks: dict[Rule, Ask] = {
        1: _dispatched,
        "W1": _waits,
        "W2": _denied,
        2: _others_were_dispatched,
        3: _step_closed,
        4: _anything_else,
    }
    trace: list[Asked] = []
    found: Rule | None = None
    for rule, ask in asks.items():
        if found is not None:
            trace.append(Asked(rule, False, False, (), "not asked"))
            continue
        held, lines, says = ask(call, turn, records)
        if held and rule in (2, 3) and records.hole_ms:
            held, says = _past_the_hole(call, records, latest_ms, says)
        trace.append(Asked(rule, True, held, tuple(lines[:PROOF_LINES]), says))
        if held:
            found = rule
    assert found is not None, "rule 4 always holds"
    return Judgement(OUTCOME_UNKNOWN if found in (1, 4) else NOT_STARTED, found, tuple(trace))


def _dispatched(call: Call, turn: Turn, records: Records) -> Answer:
    if call.dispatches:
        return True, call.dispatches, f"dispatched on {_lines(call.dispatches)}, and no result follows"
    return False, [call.line], "no dispatch of this call is recorded"


def _waits(call: Call, turn: Turn, records: Records) -> Answer:
    waiting = [r for r in call.requests if r.decision is None]
    lines = [r.line for r in waiting]
    if not waiting:
        return False, [], "no request for this call is open"
    barred = _barred(call, turn)
    if barred:
        return False, lines + barred[0], barred[1]
    return True, lines, f"{waiting[0].kind} asked for on {_lines(lines)}, and nobody decided"


def _denied(call: Call, turn: Turn, records: Records) -> Answer:
    denied = [r for r in call.requests if r.decision == "deny"]
    lines = [r.decided for r in denied if r.decided is not None]
    if not denied:
        return False, [], "no approval of this call was denied"
    barred = _barred(call, turn)
    if barred:
        return False, lines + barred[0], barred[1]
    if len(denied) != len(call.requests):
        lines = [r.decided or r.line for r in call.requests]
        return False, lines, f"one request was denied and another was not ({_lines(lines)})"
    return True, [denied[0].line, *lines], f"denied on {_lines(lines)}"


def _others_were_dispatched(call: Call, turn: Turn, records: Records) -> Answer:
    if records.dispatches != "all":
        return False, [], "does not apply: this format does not record every dispatch"
    if call.gate is not None:
        barred = _barred(call, turn)
        if barred:
            return False, barred[0], barred[1]
        return True, [call.gate], f"it stood before a gate that never let it through (line {call.gate:,})"
    others = [line for id, lines in turn.dispatches.items() if id != call.id for line in lines]
    if not others:
        return False, [turn.line], "this turn recorded no dispatch of another call"
    barred = _barred(call, turn)
    if barred:
        return False, barred[0], barred[1]
    lost = _lost_boundaries(turn, min(others), call.line)
    others = [line for line in others if not any(line < boundary for boundary in lost) or line > call.line]
    if not others:
        says = f"{_lines(lost)} can't be read: the dispatches before it may be another turn's"
        return False, lost, says
    moved = _cut(turn, (TURN_START, TURN_END), call.line, max(others))
    others = [line for line in others if not moved or line < moved[0]]
    if not others:
        says = f"{_lines(moved)} can't be read: the dispatches after it may be another turn's"
        return False, moved, says
    return True, others, f"this turn recorded dispatches ({_lines(others)}), and none is for this call"


def _step_closed(call: Call, turn: Turn, records: Records) -> Answer:
    if not records.step_ends or records.dispatches != "all":
        return False, [], "does not apply: this format does not record every dispatch and step end"
    if turn.dispatches:
        return False, [turn.line], "this turn did record a dispatch"
    if turn.nameless_dispatches:
        lines = turn.nameless_dispatches
        return False, lines, f"a dispatch without an id on {_lines(lines)} may be this call's"
    if call.step is None:
        return False, [call.line], "no step is recorded around this call"
    if call.step.ended is None:
        return False, [call.step.line], f"the step of line {call.step.line:,} did not close"
    allowed = [r.decided for r in call.requests if r.decision in ("allow", "answered") and r.decided]
    if allowed:
        return False, allowed, f"it was allowed on {_lines(allowed)}, so it may have started"
    barred = _barred(call, turn)
    if barred:
        return False, barred[0], barred[1]
    lost = _lost_boundaries(turn, call.step.line, call.line)
    if lost:
        says = f"{_lines(lost)} can't be read: the step around this call may be another"
        return False, lost, says
    moved = _cut(turn, (STEP_START,), call.line, call.step.ended)
    if moved:
        says = f"{_lines(moved)} can't be read: the step that closed after it may be another"
        return False, moved, says
    steps = [call.step.line, call.step.ended]
    return True, steps, f"the step around it closed on line {call.step.ended:,}, and nothing was dispatched"


def _anything_else(call: Call, turn: Turn, records: Records) -> Answer:
    return True, [call.line], "nothing in the log proves that this call did not run"


def _barred(call: Call, turn: Turn) -> tuple[list[int], str] | None:
    """Why no rule may call this one not started: contradictory evidence, or lines that nobody can read."""
    if call.inconsistent:
        return [line for line, _ in call.inconsistent], f"contradictory: {call.inconsistent[0][1]}"
    lines = unreadable(call, turn)
    if lines:
        return lines, f"{_lines(lines)} can't be read and may have been its dispatch or its allow"
    return None


def unreadable(call: Call, turn: Turn) -> list[int]:
    """The lines of a turn that can't be read and may have been about this call, from its first trace on."""
    since = min([call.line, *(request.line for request in call.requests)])
    return [c.line for c in turn.corrupt if c.line >= since and not c.harmless]


def _lost_boundaries(turn: Turn, start: int, stop: int) -> list[int]:
    """The lines between two others that can't be read and may have begun or ended a turn or a step."""
    kinds = (TURN_START, TURN_END, STEP_START, STEP_END)
    return [c.line for c in turn.corrupt if start < c.line < stop and (c.may_start or c.type in kinds)]


def _cut(turn: Turn, types: tuple[str, ...], start: int, stop: int) -> list[int]:
    """The lines from `start` up to `stop` on which a record of one of these types is cut short.

    Such a line moved no call, but what follows it may stand in another turn or step than it seems to.
    """
    return [c.line for c in turn.corrupt if c.type in types and start <= c.line < stop]


def _past_the_hole(call: Call, records: Records, latest_ms: int | None, says: str) -> tuple[bool, str]:
    """Whether a record was written long enough after the call for its silence to mean anything."""
    latest_ms = latest_ms if call.heard_ms is None else call.heard_ms
    if call.ms is not None and latest_ms is not None and latest_ms - call.ms > records.hole_ms:
        return True, says
    hole = f"{records.hole_ms:,} ms"
    return False, f"{says}; but no record was written more than {hole} later, and the writer buffers"


def _lines(lines: list[int]) -> str:
    shown = ", ".join(f"{line:,}" for line in lines[:3])
    more = f" and {len(lines) - 3:,} more" if len(lines) > 3 else ""
    return f"{'line' if len(lines) == 1 else 'lines'} {shown}{more}"
