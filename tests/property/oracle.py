"""The rules a second time, as plainly as they can be said: quadratic, and every call is remembered.

It reads undamaged logs without approvals or inputs, and knows nothing of how triage keeps its memory
small. Where the two disagree, one of them is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Step:
    closed: bool = False


@dataclass(eq=False)
class Turn:
    at: int
    number: int | None
    open: bool = True
    steps: int = 0
    dispatched: list[str | None] = field(default_factory=list)


@dataclass(eq=False)
class Call:
    id: str
    name: str | None
    at: int
    turn: Turn | None
    step: Step | None
    dispatched: bool = False
    answered: bool = False


@dataclass(eq=False)
class Result:
    id: str
    at: int
    turn: Turn


class Oracle:
    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.open: list[Turn] = []
        self.steps: list[Step] = []
        self.calls: list[Call] = []
        self.undecided: list[Result] = []  # results of a turn that has no call of their id so far
        for at, event in enumerate(events):
            self._take(at, event["type"], event["data"])

    def _take(self, at: int, type: str, data: Mapping[str, Any]) -> None:
        turn = self.open[-1] if self.open else None
        if type == "turn_start":
            number = data.get("turn")
            self.open.append(Turn(at, number if isinstance(number, int) else None))
        elif type == "turn_end" and turn is not None:
            self._settle(turn)
            turn.open = False
            self.open.pop()
        elif type == "step_start":
            self.steps.append(Step())
            if turn is not None:
                turn.steps += 1
        elif type == "step_end" and self.steps:
            self.steps.pop().closed = True
        elif type == "assistant_message":
            for named in data.get("tool_calls") or ():
                self._sight(at, turn, _id(named), named.get("name"))
        elif type == "tool_call":
            self._dispatch(at, turn, _id(data), data.get("name"))
        elif type == "tool_result" and _id(data) is not None:
            self._result(at, turn, str(_id(data)))

    def _sight(self, at: int, turn: Turn | None, id: str | None, name: str | None) -> Call | None:
        if id is None:
            return None
        known = self._of(turn, id)
        if known is not None:
            return known
        call = Call(id, name, at, turn, self.steps[-1] if self.steps else None)
        self.calls.append(call)
        if turn is not None and id in turn.dispatched:
            call.dispatched = True
        for result in [r for r in self.undecided if r.turn is turn and r.id == id]:
            call.answered = True
            self.undecided.remove(result)
        return call

    def _of(self, turn: Turn | None, id: str) -> Call | None:
        """The call of this id in this turn; outside every turn, the one there that is unanswered."""
        here = [c for c in self.calls if c.turn is turn and c.id == id]
        if turn is None:
            here = [c for c in here if not c.answered]
        return here[0] if here else None

    def _dispatch(self, at: int, turn: Turn | None, id: str | None, name: str | None) -> None:
        if id is not None:
            around = [self._of(t, id) for t in reversed(self.open[:-1])]
            outer = [c for c in (*around, self._of(None, id)) if c is not None and not c.answered]
            call = self._of(turn, id) or (outer[0] if outer else self._sight(at, turn, id, name))
            assert call is not None
            call.dispatched = True
        if turn is not None:
            turn.dispatched.append(id)

    def _result(self, at: int, turn: Turn | None, id: str) -> None:
        own = self._of(turn, id)
        if own is not None:
            own.answered = True
        elif turn is not None:
            self.undecided.append(Result(id, at, turn))
        else:
            self._answer_latest(id, at)

    def _answer_latest(self, id: str, at: int) -> Call | None:
        before = [c for c in self.calls if c.id == id and c.at < at]
        if before:
            before[-1].answered = True
            return before[-1]
        return None

    def _settle(self, turn: Turn) -> None:
        """Nothing in this turn can claim these results any more: each answers the latest call of its id."""
        for result in [r for r in self.undecided if r.turn is turn]:
            self._answer_latest(result.id, result.at)
            self.undecided.remove(result)

    def plan(self) -> list[dict[str, Any]]:
        """The repairs: per open turn, innermost first, its results with their risks and then its end."""
        for turn in reversed(self.open):
            self._settle(turn)
        planned: list[dict[str, Any]] = []
        for turn in reversed(self.open):
            for call in self.calls:
                if call.turn is turn and not call.answered:
                    rule = self.rule(call, turn)
                    planned.append({"type": "tool_result", "id": call.id, "name": call.name, "rule": rule})
            planned.append({"type": "turn_end", "steps": turn.steps, "turn": turn.number})
        return planned

    def left(self) -> list[tuple[str, int]]:
        """Unanswered calls of no open turn, as (id, index of the event that named them)."""
        for turn in reversed(self.open):
            self._settle(turn)
        return [(c.id, c.at) for c in self.calls if not c.answered and not (c.turn and c.turn.open)]

    @staticmethod
    def rule(call: Call, turn: Turn) -> int:
        if call.dispatched:
            return 1
        if any(id not in (None, call.id) for id in turn.dispatched):
            return 2
        if not turn.dispatched and call.step is not None and call.step.closed:
            return 3
        return 4


def _id(data: Mapping[str, Any]) -> str | None:
    for key in ("tool_call_id", "id"):
        value = data.get(key)
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
    return None
