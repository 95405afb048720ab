"""What a log says about single calls: who names them, and where they were dispatched and answered.

Read on demand from the journal, a bounded number of lines around a call. It judges nothing: whether a
call is owed or left is the plan's word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from triage.log.codes import CODES
from triage.log.events import (
    ASSISTANT_MESSAGE,
    STEP_END,
    STEP_START,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    Event,
    call_id,
)
from triage.log.source import Unreadable
from triage.recovery.plan import Left, Owed
from triage.session import Session

NEAR_LINES = 2000  # lines around a call in which its dispatch and result are looked for
NEAR_READ = 400  # lines that are read for that
NEAR_BYTES = 4 << 20  # bytes that are read for that
KEPT_LINE = 1 << 15  # bytes of a line whose events are kept
LARGE_LINE = 1 << 20  # bytes of a line that is not read just to draw its row
# Lines that may name calls. In some formats a message also opens or closes a turn or a step.
NAMING = tuple(
    CODES[name] for name in ("damaged", ASSISTANT_MESSAGE, TURN_START, TURN_END, STEP_START, STEP_END)
)
EARLIER = 3  # earlier calls of a tool that evidence shows


@dataclass(frozen=True, slots=True)
class Named:
    """A call that a message names."""

    id: str
    name: str | None
    arguments: Any
    line: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier call of a tool, and its result's line and data where they were found nearby."""

    call: Named
    result: int | None
    data: Mapping[str, Any]


class Calls:
    """Looks up calls of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.journal = session.journal
        plan = session.plan
        self._left = {(left.line, left.tool_call_id): left for left in plan.left}
        self._owed: dict[str, list[Owed]] = {}
        for owed in plan.owed:
            self._owed.setdefault(owed.tool_call_id, []).append(owed)
        self._kept = lru_cache(maxsize=512)(self._read)

    def size(self, line: int) -> int:
        """The bytes of a line; in a one-document log, where they aren't known, 0."""
        if self.journal.one_document:
            return 0
        offsets = self.journal.offsets
        return int(offsets[line] - offsets[line - 1])

    def events(self, line: int) -> tuple[Event, ...]:
        """The events of a line; those of short lines are kept for the next look."""
        return self._kept(line) if self.size(line) <= KEPT_LINE else self._read(line)

    def _read(self, line: int) -> tuple[Event, ...]:
        try:
            return tuple(self.journal.events(line))
        except Unreadable:  # the file was cut or has gone: the header says so
            return ()

    def named(self, line: int) -> list[Named]:
        """The calls that the messages of a line name."""
        if self.size(line) > LARGE_LINE:
            return []
        found = []
        for event in self.events(line):
            entries = event.data.get("tool_calls") if event.type == ASSISTANT_MESSAGE else None
            for entry in entries if isinstance(entries, list) else ():
                id = call_id(entry, "id", "tool_call_id") if isinstance(entry, Mapping) else None
                if id is not None:
                    name = entry.get("name")
                    found.append(
                        Named(id, name if isinstance(name, str) else None, entry.get("arguments"), line)
                    )
        return found

    def owed_at(self, line: int, id: str) -> Owed | None:
        """The owed call of an id that a line is evidence for, or names once more."""
        known = self._owed.get(id, ())
        for owed in known:
            if owed.line == line or any(evidence.line == line for evidence in owed.evidence):
                return owed
        turn = self._turn_around(line) if known else 0
        return next((owed for owed in known if owed.turn_line == turn and line >= owed.line), None)

    def left_at(self, line: int, id: str) -> Left | None:
        """The call that a line names and that owes a result outside any crash."""
        return self._left.get((line, id))

    def _turn_around(self, line: int) -> int:
        """The line of the innermost turn that began before a line and isn't closed before it; 0: none."""
        codes, mates, at = self.journal.codes, self.journal.mates, line
        for _ in range(NEAR_READ):
            at = codes.rfind(CODES[TURN_START], 0, at - 1) + 1
            if at == 0 or mates[at - 1] == 0 or mates[at - 1] > line:
                return at
        return 0

    def after(self, line: int, type: str, id: str) -> int | None:
        """The next line of a type that carries a call's id, not far after a line."""
        return next((found for found, _ in self._near(line, type, id, 1)), None)

    def result(self, call: Named) -> Mapping[str, Any] | None:
        """The data of the result that answers a call, where it lies not far behind it."""
        return next((event.data for _, event in self._near(call.line, TOOL_RESULT, call.id, 1)), None)

    def before(self, line: int, type: str, id: str) -> int | None:
        """The last line of a type that carries a call's id, not far before a line."""
        return next((found for found, _ in self._near(line, type, id, -1)), None)

    def _near(self, line: int, type: str, id: str, step: int) -> Iterator[tuple[int, Event]]:
        for found in self._lines(line, (CODES[type],), step):
            for event in self.events(found):
                if event.type == type and call_id(event.data) == id:
                    yield found, event

    def _lines(self, line: int, codes: tuple[int, ...], step: int) -> Iterator[int]:
        """Lines with one of `codes` near a line, nearest first, until enough was read."""
        lines, read, size = self.journal.lines, 0, 0
        index = self.journal.codes
        stop = min(lines, line + NEAR_LINES) + 1 if step > 0 else max(0, line - NEAR_LINES)
        for at in range(line + step, stop, step):
            if index[at - 1] in codes:
                read += 1
                size += self.size(at)
                if read > NEAR_READ or size > NEAR_BYTES:
                    return
                yield at

    def earlier(self, owed: Owed) -> list[Earlier]:
        """The last few calls of the same tool before an owed one, with their results."""
        found: list[Earlier] = []
        seen = {owed.tool_call_id}
        for line in self._lines(owed.line, (*NAMING, CODES[TOOL_CALL]), -1):
            for call in [*self.named(line), *self._dispatched(line)]:
                if call.name != owed.name or call.id in seen:
                    continue
                seen.add(call.id)
                result = next(self._near(line, TOOL_RESULT, call.id, 1), None)
                found.append(Earlier(call, result[0] if result else None, result[1].data if result else {}))
            if len(found) >= EARLIER:
                break
        return found[:EARLIER]

    def _dispatched(self, line: int) -> list[Named]:
        found = []
        for event in self.events(line):
            id = call_id(event.data) if event.type == TOOL_CALL else None
            if id is not None:
                name = event.data.get("name")
                arguments = event.data.get("arguments")
                found.append(Named(id, name if isinstance(name, str) else None, arguments, line))
        return found

    def name_of(self, event: Event) -> str | None:
        """The tool of a dispatch or a result: its own word, else that of what named the call before."""
        name = event.data.get("name")
        if isinstance(name, str):
            return name
        id = call_id(event.data)
        if id is None:
            return None
        for line in self._lines(event.line, (*NAMING, CODES[TOOL_CALL]), -1):
            for call in [*self._dispatched(line), *self.named(line)]:
                if call.id == id and call.name:
                    return call.name
        return None
