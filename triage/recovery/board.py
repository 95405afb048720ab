"""What is open and unanswered while a log is scanned: lanes, their turns and steps, and calls by their id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from triage.recovery.state import Anomaly, Call, Step, Turn

KEPT_PER_CODE = 20  # anomalies of one code that are listed one by one; the rest are counted


class Lane:
    """One conversation: its stack of open turns, its stack of steps, its calls outside any turn."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.steps: list[Step] = []
        self.outside: dict[str, Call] = {}


class Board:
    """The lanes of a log and the calls that are still open or unanswered in them."""

    def __init__(self) -> None:
        self._lane_name = ""
        self._lane = Lane()
        self._lanes = {"": self._lane}
        self._by_id: dict[str, list[Call]] = {}
        self._anomalies: list[Anomaly] = []
        self._per_code: dict[str, int] = {}

    @property
    def idle(self) -> bool:
        """Whether no turn is open, so that a turn that opens and closes well leaves nothing behind."""
        return not self._lane_name and not any(lane.turns for lane in self._lanes.values())

    @property
    def owes_outside(self) -> bool:
        """Whether no turn is open and a call outside every turn has no result."""
        calls = (call for calls in self._by_id.values() for call in calls)
        return self.idle and any(call.turn is None and call.result is None for call in calls)

    @property
    def calls(self) -> int:
        """How many calls are kept: those of open turns, answered or not, and what is unanswered elsewhere."""
        return len(self._by_id) + sum(len(turn.calls) for turn in self._open())

    @property
    def remembers(self) -> bool:
        """Whether any unanswered call is remembered."""
        return bool(self._by_id)

    def knows(self, ids: Iterable[str]) -> bool:
        """Whether an unanswered call of one of these ids is remembered."""
        return bool(self._by_id) and any(id in self._by_id for id in ids)

    def enter(self, lane: str) -> None:
        """Go on in another lane, a new one or one that is known."""
        self._lane_name = lane
        self._lane = self._lanes.setdefault(lane, Lane())

    def anomaly(self, code: str, line: int | None, says: str) -> None:
        """Note something wrong with the log; past `KEPT_PER_CODE` of one code they are counted only."""
        seen = self._per_code[code] = self._per_code.get(code, 0) + 1
        if seen <= KEPT_PER_CODE:
            self._anomalies.append(Anomaly(code, line, says))

    @property
    def depth(self) -> int:
        """How deep the timeline stands: 0 outside, one more for each open turn and for a step in it."""
        turns, steps = self._lane.turns, self._lane.steps
        aside = 1 if self._lane_name else 0
        if not turns:
            return aside
        return aside + len(turns) + bool(steps and steps[-1].line >= turns[-1].line)

    def _open(self) -> list[Turn]:
        """The turns that no record ended: those of side lanes before the main one's, innermost first."""
        return [turn for lane in reversed(self._lanes.values()) for turn in reversed(lane.turns)]

    def _call_here(self, id: str | None) -> Call | None:
        if id is None:
            return None
        own = (self._lane.turns[-1].calls if self._lane.turns else self._lane.outside).get(id)
        return own or self._around(id)

    def _around(self, id: str) -> Call | None:
        """An unanswered call of this id in a turn around the innermost that is still open, or in none."""
        for turn in reversed(self._lane.turns[:-1]):
            call = turn.calls.get(id)
            if call is not None and call.result is None:
                return call
        return self._lane.outside.get(id)

    def _answer(self, call: Call | None, line: int | None) -> None:
        if call is None or line is None or call.result is not None:
            return
        call.result = line
        call.arguments = None
        if call.turn is None or call.turn.ended is not None:
            self._forget(call)

    def _forget(self, call: Call) -> None:
        """Drop an answered call. Older ones of its id can then no longer be meant by a bare id."""
        calls = self._by_id.get(call.id, [])
        if call not in calls:
            return
        at = calls.index(call)
        for older in calls[:at]:
            older.shadowed = min(older.shadowed or call.line, call.line)
        del calls[at]
        if not calls:
            del self._by_id[call.id]
        for lane in self._lanes.values():
            if lane.outside.get(call.id) is call:
                del lane.outside[call.id]

    def _latest(self, id: str, line: int) -> Call | None:
        """The latest call with this id that was seen up to `line`; None where it was answered and dropped."""
        for call in reversed(self._by_id.get(id, ())):
            if call.line <= line:
                return None if call.shadowed is not None and call.shadowed <= line else call
        return None


def keep(kept: list[Any], item: Any, limit: int) -> None:
    """Append, but past the limit only remember the latest: a flood must not fill the memory."""
    if len(kept) < limit:
        kept.append(item)
    else:
        kept[-1] = item


def keep_ends(kept: list[Any], item: Any, limit: int) -> None:
    """Append, but past the limit drop from the middle: how it began and how it ended tell the most."""
    if len(kept) >= limit:
        del kept[limit // 2]
    kept.append(item)
