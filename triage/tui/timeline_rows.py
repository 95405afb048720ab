"""What the rows of the timeline say. A row is made when it is drawn, from at most a few lines of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from triage.log.codes import CODES, TYPES
from triage.log.events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    ASSISTANT_MESSAGE,
    INPUT_REQUESTED,
    INPUT_RESOLVED,
    REQUEST_HEADER,
    STEP_END,
    STEP_START,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    TURN_END,
    TURN_START,
    USER_MESSAGE,
    Event,
    call_id,
)
from triage.text import clean
from triage.tui.calls import LARGE_LINE, Calls
from triage.tui.row import Row, Span, mark
from triage.tui.short import arguments_in_short, content_in_short, record_in_short, synthetic_in_short
from triage.tui.theme import LABEL_STYLES
from triage.tui.timeline import Timeline, call_of, line_of
from triage.tui.times import span
from triage.words import GLYPHS, counted, size_in_words

NAME_WIDTH = 12  # cells in which the names of tools line up
PROMPT_LINES = 40  # lines of a turn in which its first prompt is looked for
CONTENT = (ASSISTANT_MESSAGE, USER_MESSAGE, TOOL_RESULT, TOOL_CALL)
DEEPEST = 8  # levels of indentation that are drawn


class TimelineRows:
    """The timeline as a source of rows."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.calls: Calls = timeline.calls
        self.journal = timeline.journal
        self._digits = max(3, len(f"{self.journal.lines:,}"))
        self._says = {a.line: a for a in reversed(timeline.plan.anomalies) if a.line}
        self.marked = ""  # the text of the search that is on
        self._row = lru_cache(maxsize=4096)(self._make)
        self._makers: dict[str, Callable[[Event], tuple[Span, list[Span], str]]] = {
            TURN_END: self._turn_end,
            STEP_END: self._step_end,
            ASSISTANT_MESSAGE: self._assistant,
            USER_MESSAGE: self._user,
            SYSTEM_MESSAGE: self._system,
            TOOL_CALL: self._dispatch,
            TOOL_RESULT: self._result,
            REQUEST_HEADER: self._request,
            APPROVAL_REQUESTED: self._asked,
            INPUT_REQUESTED: self._asked,
            APPROVAL_DECIDED: self._decided,
            INPUT_RESOLVED: self._decided,
        }

    # ---- the source

    def count(self, upto: int, width: int) -> int:
        return len(self.timeline.rows)

    def row(self, index: int, width: int) -> Row:
        row = self.timeline.rows[index]
        if row == self.timeline.end:
            return Row((("─" * (self._digits - 1) + "─── end of log ───────", "frame"),))
        line = line_of(row)
        timeline = self.timeline
        folded = not call_of(row) and timeline.foldable(line) and timeline.folded(line)
        folded = folded and timeline.filter == "all"
        made = self._row(row, folded)
        return made if not self.marked else Row(tuple(mark(made.spans, self.marked)), made.right)

    def stops(self, index: int) -> bool:
        return True

    def _make(self, row: int, folded: bool) -> Row:
        line, call = line_of(row), call_of(row)
        depth = min(self.journal.depths[line - 1], DEEPEST)
        if call:
            glyph, spans = self._call(line, call)
            return Row(((" " * (self._digits + 1), "dim"), glyph, (" " + "  " * (depth + 1), "text"), *spans))
        glyph, spans, right = self._line(line, folded)
        start: list[Span] = [(f"{line:>{self._digits},} ", "dim"), glyph, (" " + "  " * depth, "text")]
        return Row((*start, *spans), ((right, "dim"),) if right else ())

    # ---- lines

    def _line(self, line: int, folded: bool) -> tuple[Span, list[Span], str]:
        """A line's glyph, what it says, and what stands at the right."""
        type = TYPES[self.journal.codes[line - 1]]
        if type == "corrupt":
            return self._corrupt(line)
        if type == "blank":
            return (" ", "dim"), [("(blank line)", "dim")], ""
        if self.calls.size(line) > LARGE_LINE:
            says = f"{clean(type)}  {size_in_words(self.calls.size(line))} on one line, enter to read it"
            return ("·", "dim"), [(says, "dim")], ""
        events = self.calls.events(line)
        if not events:
            return ("·", "dim"), [("a record that is no event", "dim")], ""
        event = next((event for event in events if event.type == type), events[0])
        if type == TURN_START:
            return self._turn(event, folded)
        if type == STEP_START:
            glyph, spans, right = self._step(event, folded)
            return glyph, spans if folded else [*spans, *self._message_in(events)], right
        glyph, spans, right = self._plain(event, events)
        more = sum(other.type == event.type for other in events) - 1
        if more and event.type == TOOL_RESULT:
            spans = [*spans, (f"  and {counted(more, 'more result')}", "dim")]
        if folded:
            spans = [("▸ ", "dim"), *spans]
        if type == "damaged":
            says = self._says[line].says if line in self._says else "damaged: not all of it can be read"
            return ("✖", "bad"), [(clean(says) + " · ", "bad"), *spans], right
        if line in self._says and glyph[0] in "·✓ ":
            glyph = ("!", "unknown")
            spans = [(f"{clean(self._says[line].code)} ", "unknown"), *spans]
        return glyph, spans, right

    def _plain(self, event: Event, events: tuple[Event, ...]) -> tuple[Span, list[Span], str]:
        """A line that opens nothing; one that ends a turn or a step says first what else it holds."""
        if event.type in (TURN_END, STEP_END):
            other = next((one for one in events if one.type in CONTENT), None)
            if other is not None:
                glyph, spans, _ = self._makers[other.type](other)
                return glyph, spans, event.type.replace("_", " ")
        return self._makers.get(event.type, self._other)(event)

    def _message_in(self, events: tuple[Event, ...]) -> list[Span]:
        """What the model says on a line that also opens a step."""
        event = next((event for event in events if event.type == ASSISTANT_MESSAGE), None)
        return [("  ", "text"), *self._assistant(event)[1]] if event else []

    def _corrupt(self, line: int) -> tuple[Span, list[Span], str]:
        anomaly = self._says.get(line)
        word = "torn" if anomaly and anomaly.code == "torn_tail" else "corrupt"
        start, stop = self.journal.offsets[line - 1], self.journal.offsets[line]
        says = anomaly.says if anomaly else f"can't be read: bytes {start:,} to {stop:,}"
        return ("✖", "bad"), [(f"{word}  ", "bad"), (clean(says), "text")], ""

    def _turn(self, event: Event, folded: bool) -> tuple[Span, list[Span], str]:
        line, timeline = event.line, self.timeline
        name = event.data.get("turn", event.data.get("turn_id"))
        title = f"turn {clean(str(name), limit=12)}" if isinstance(name, str | int) else "turn"
        spans: list[Span] = [("▸ " if folded else "▾ ", "dim"), (title, "head")]
        prompt = self._prompt(line)
        if prompt:
            spans.append((f"  “{prompt}”", "text"))
        last = timeline.last_of(line)
        steps = self.journal.codes.count(CODES[STEP_START], line, last)
        right = counted(steps, "step") if steps else ""
        if timeline.is_open(line):
            return ("✖", "bad"), spans, "cut short" if not folded else f"{right}  cut short".strip()
        problems = timeline.problems_in(line, last)
        if problems and folded:
            spans.insert(2, (f"  {counted(problems, 'problem')}", "unknown"))
        took = self._took(event, last) if self.journal.mates[line - 1] else ""
        return ("!", "unknown") if problems else ("✓", "ok"), spans, f"{right}  {took}".strip()

    def _took(self, start: Event, last: int) -> str:
        """How long a closed turn took; an interrupted one took no time that anybody knows."""
        end = next((event for event in self.calls.events(last) if event.type == TURN_END), None)
        if end is not None and end.data.get("reason") == "interrupted":
            return "interrupted"
        return span(start.time, self._time(last))

    def _step(self, event: Event, folded: bool) -> tuple[Span, list[Span], str]:
        line = event.line
        last = self.timeline.last_of(line)
        spans: list[Span] = [("▸ " if folded else "▾ ", "dim"), (f"step {self._step_number(event)}", "head")]
        if not self.journal.mates[line - 1]:
            return (" ", "dim"), spans, "not closed"
        if folded:
            spans += self._step_in_short(line, last)
        return ("✓", "ok"), spans, span(event.time, self._time(last))

    def _step_number(self, event: Event) -> str:
        for name in ("step", "step_id"):
            if isinstance(event.data.get(name), str | int):
                return clean(str(event.data[name]), limit=24)
        start = self.journal.codes.rfind(CODES[TURN_START], 0, event.line - 1) + 1
        return str(self.journal.codes.count(CODES[STEP_START], start, event.line))

    def _step_in_short(self, first: int, last: int) -> list[Span]:
        """What a folded step did: the calls that its message names."""
        at = self.journal.codes.find(CODES[ASSISTANT_MESSAGE], first, min(last, first + PROMPT_LINES)) + 1
        calls = self.calls.named(first) or (self.calls.named(at) if at else [])
        if not calls and not at:
            return []
        if not calls:
            return [("  the model spoke", "dim")]
        names = ", ".join(clean(call.name or "?", limit=30) for call in calls[:6])
        return [(f"  {counted(len(calls), 'call')}: {names}", "dim")]

    def _prompt(self, line: int) -> str:
        """The first prompt of a turn: just before its start, or a few lines into it."""
        codes, user = self.journal.codes, CODES[USER_MESSAGE]
        at = line - 1 if line > 1 and codes[line - 2] == user else 0
        later = codes.find(user, line, min(self.timeline.last_of(line), line + PROMPT_LINES)) + 1
        for place in (line, at, later):  # some formats open a turn with the prompt itself
            for event in self.calls.events(place) if place and self.calls.size(place) <= LARGE_LINE else ():
                if event.type == USER_MESSAGE:
                    return content_in_short(event.data.get("content"))
        return ""

    def _time(self, line: int) -> Any:
        if self.calls.size(line) > LARGE_LINE:
            return None
        events = self.calls.events(line)
        return events[0].time if events else None

    # ---- calls and plain events: glyph, spans, right

    def _call(self, line: int, number: int) -> tuple[Span, list[Span]]:
        named = self.calls.named(line)
        if number > len(named):
            return (" ", "dim"), []
        call = named[number - 1]
        spans = _tool(call.name, arguments_in_short(call.arguments))
        owed, left = self.calls.owed_at(line, call.id), self.calls.left_at(line, call.id)
        if owed:
            style = LABEL_STYLES[owed.label]
            return (GLYPHS[owed.label], style), [(spans[0][0], style), *spans[1:]]
        if left:
            return ("○", "started"), [*spans, ("  no result, left as it is", "dim")]
        result = self.calls.result(call)
        says = synthetic_in_short(result) if result is not None else ""
        if says:
            return ("+", "waiting"), [spans[0], (says, "waiting"), *spans[1:]]
        return ("✓", "ok"), spans

    def _dispatch(self, event: Event) -> tuple[Span, list[Span], str]:
        id = call_id(event.data)
        name = self.calls.name_of(event)
        spans = [("dispatch ", "dim"), *_tool(name, arguments_in_short(event.data.get("arguments")))]
        owed = self.calls.owed_at(event.line, id) if id is not None else None
        if owed:
            style = LABEL_STYLES[owed.label]
            return (GLYPHS[owed.label], style), [spans[0], (spans[1][0], style), *spans[2:]], ""
        if id is not None and self.calls.left_at(event.line, id):
            return ("○", "started"), spans, ""
        return ("·", "dim"), spans, ""

    def _result(self, event: Event) -> tuple[Span, list[Span], str]:
        data = event.data
        spans = [("result ", "dim"), *_tool(self.calls.name_of(event), content_in_short(data.get("content")))]
        says = synthetic_in_short(data)
        if says:
            return ("+", "waiting"), [spans[0], (says, "waiting"), *spans[1:]], ""
        if data.get("is_error") is True:
            return ("✖", "bad"), [("error ", "bad"), *spans[1:]], ""
        return ("✓", "ok"), spans, ""

    def _assistant(self, event: Event) -> tuple[Span, list[Span], str]:
        calls = self.calls.named(event.line)
        spans: list[Span] = [("model ", "dim")]
        says = content_in_short(event.data.get("content"), kinds=not calls)
        if says:
            spans.append((says + " ", "text"))
        if calls:
            spans.insert(1, (f"→ {counted(len(calls), 'call')}  ", "text"))
        return ("·", "dim"), spans, ""

    def _user(self, event: Event) -> tuple[Span, list[Span], str]:
        says = content_in_short(event.data.get("content"))
        return ("·", "dim"), [("user ", "dim"), (f"“{says}”", "text")], ""

    def _system(self, event: Event) -> tuple[Span, list[Span], str]:
        return ("·", "dim"), [("system ", "dim"), (content_in_short(event.data.get("content")), "dim")], ""

    def _turn_end(self, event: Event) -> tuple[Span, list[Span], str]:
        return _end("turn end", event.data)

    def _step_end(self, event: Event) -> tuple[Span, list[Span], str]:
        return _end("step end", event.data)

    def _request(self, event: Event) -> tuple[Span, list[Span], str]:
        return ("·", "dim"), [("request to the model ", "dim"), (arguments_in_short(event.data), "dim")], ""

    def _asked(self, event: Event) -> tuple[Span, list[Span], str]:
        what = "approval" if event.type == APPROVAL_REQUESTED else "input"
        says = content_in_short(event.data.get("reason", event.data.get("prompt")))
        id = call_id(event.data, "tool_call_id")
        owed = self.calls.owed_at(event.line, id) if id is not None else None
        style = LABEL_STYLES[owed.label] if owed else "dim"
        return (
            (GLYPHS[owed.label] if owed else "◇", style),
            [(f"{what} asked for ", style), (says, "text")],
            "",
        )

    def _decided(self, event: Event) -> tuple[Span, list[Span], str]:
        what = "approval" if event.type == APPROVAL_DECIDED else "input"
        found = event.data.get("decision", "answered" if what == "input" else "?")
        return ("◇", "dim"), [(f"{what} decided: ", "dim"), (clean(str(found), limit=40), "text")], ""

    def _other(self, event: Event) -> tuple[Span, list[Span], str]:
        says = record_in_short(event.type, event.data)
        return ("·", "dim"), [(clean(event.type, limit=40) + " ", "text"), (says, "dim")], ""


def _tool(name: str | None, says: str) -> list[Span]:
    shown = clean(name, limit=40) if name else "(no name)"
    return [(f"{shown:<{NAME_WIDTH}}  ", "text"), (says, "dim")]


def _end(what: str, data: Mapping[str, Any]) -> tuple[Span, list[Span], str]:
    for name in ("reason", "outcome", "status", "finish_reason"):
        if isinstance(data.get(name), str):
            return ("·", "dim"), [(f"{what}  {clean(data[name], limit=60)}", "dim")], ""
    return ("·", "dim"), [(what, "dim")], ""
