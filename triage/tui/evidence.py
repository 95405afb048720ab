"""What is known about one row: an owed call with every rule that was asked, or a record as it stands.

Made of what the plan and the log say; nothing here judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from triage.log.codes import CODES, TYPES
from triage.log.events import TOOL_CALL, TOOL_RESULT
from triage.log.source import Unreadable
from triage.recovery.plan import Left, Owed
from triage.recovery.rules import Asked
from triage.text import clean
from triage.tui.calls import LARGE_LINE, Calls, Named
from triage.tui.fields import fields, pieces, read_json
from triage.tui.paper import Line, Paper
from triage.tui.row import Span
from triage.tui.short import arguments_in_short, content_in_short, synthetic_in_short
from triage.tui.theme import LABEL_STYLES
from triage.tui.timeline import call_of, line_of
from triage.tui.times import ago, moment, span
from triage.words import RISKS, at_the_end, headline, owed_row, size_in_words, what_next

PANE_ROWS = 300  # rows of evidence in the pane; the page has all of them
PANE_TEXT = 400  # characters of one text in the pane; the page has all of them
PANE_ARGUMENTS = 12  # lines of arguments in the pane; the page has all of them
PANE_RECORD = 1 << 20  # bytes of a record that is read as fields in the pane
WHOLE_RECORD = 8 << 20  # bytes of a record that is read as fields on the page; a larger one is shown raw
PANE_RAW = 4000  # bytes of a larger one that are shown there


@dataclass(frozen=True, slots=True)
class Subject:
    """What evidence is about: a row of the timeline, and the owed call that it belongs to, if any."""

    row: int
    owed: Owed | None = None

    @property
    def line(self) -> int:
        return line_of(self.row)


class Evidence:
    """Writes the evidence of any row of one session."""

    def __init__(self, calls: Calls, now: datetime, hints: Callable[[Owed], Sequence[str]]) -> None:
        self.calls = calls
        self.hints = hints
        self.journal = calls.journal
        self.session = calls.session
        self._now = now

    def subject(self, row: int) -> Subject:
        """What the evidence of a timeline row is about."""
        line, number = line_of(row), call_of(row)
        if line > self.journal.lines:
            return Subject(row)
        if number:
            named = self.calls.named(line)
            call = named[number - 1] if number <= len(named) else None
            return Subject(row, self.calls.owed_at(line, call.id) if call else None)
        if self.journal.codes[line - 1] == CODES[TOOL_CALL] and self.calls.size(line) <= LARGE_LINE:
            for event in self.calls.events(line):
                id = event.data.get("tool_call_id", event.data.get("id"))
                owed = self.calls.owed_at(line, str(id))
                if owed is not None:
                    return Subject(row, owed)
        return Subject(row)

    def title(self, subject: Subject) -> str:
        """What the evidence is about, in a few words."""
        if subject.owed is not None:
            return clean(f"{subject.owed.key}  {subject.owed.name or '(no name)'}", limit=60)
        if subject.line > self.journal.lines:
            return "end of log"
        return f"line {subject.line:,}"

    def paper(self, subject: Subject, *, whole: bool) -> Paper:
        """The evidence as a text: all of it (`whole`), or folded for a pane."""
        limit = None if whole else PANE_TEXT
        if subject.owed is not None:
            owed = subject.owed
            return Paper(lambda: self._owed(owed, limit), most=None if whole else PANE_ROWS)
        line = subject.line
        if line > self.journal.lines or line < 1:
            return Paper(self._end)
        size = self.calls.size(line)

        def more(at: int) -> str:
            left = size_in_words(size - at) + " more" if at else f"more of {size_in_words(size)}"
            return f"… {left}, enter to page" if not whole else f"… {left}, space to page"

        if not whole and size > PANE_RECORD:
            return Paper(lambda: self._head_only(line), more, most=PANE_ROWS)
        return Paper(lambda: self._row(subject, limit), more, most=None if whole else PANE_ROWS)

    def raw(self, subject: Subject) -> Paper:
        """The record's own bytes, cleaned, nothing else."""
        size = self.calls.size(subject.line)
        return Paper(
            lambda: self._raw(subject.line),
            lambda at: f"… {size_in_words(max(0, size - at))} more, space to page",
        )

    # ---- an owed call

    def _owed(self, owed: Owed, limit: int | None) -> Iterator[Line]:
        style = LABEL_STYLES[owed.label]
        yield _line(
            (owed_row(owed), style),
            (f"  rule {owed.rule}  ", "text"),
            (f"line {owed.line:,}, in the turn of line {owed.turn_line:,}", "dim"),
        )
        yield _line(
            (clean(owed.name or "(no name)"), "head"), ("  ", "text"), (clean(owed.tool_call_id), "text")
        )
        yield _line((RISKS[owed.label], "text"))
        yield from _heading("arguments")
        yield from _at_most(self._arguments(owed.arguments, limit), PANE_ARGUMENTS if limit else None)
        hints = self.hints(owed)
        if hints:
            yield from _heading("playbook (shown, never run)")
            yield from (_line((clean(says), "text"), hang=7) for says in hints)
        yield from _heading("rules, in the order they were asked")
        yield from (_rule(asked) for asked in owed.trace if asked.asked)
        unasked = [str(asked.rule) for asked in owed.trace if not asked.asked]
        if unasked:
            yield _line(("  – ", "dim"), (f"not asked: {', '.join(unasked)}", "dim"), hang=4)
        yield from _heading("lines that show it")
        for evidence in owed.evidence:
            yield _line((f"{evidence.line:>9,}  ", "dim"), (clean(evidence.says), "text"), hang=11)
        yield from self._when(owed)
        yield from self._earlier(owed)

    def _arguments(self, arguments: Any, limit: int | None) -> Iterator[Line]:
        if arguments is None or arguments == {}:
            yield _line(("none recorded", "dim"))
        else:
            yield from fields(arguments, 0, limit)

    def _when(self, owed: Owed) -> Iterator[Line]:
        end = self.session.last_time
        yield from _heading("when")
        times = [("named", owed.line)]
        times += [("dispatched", e.line) for e in owed.evidence if e.says.startswith("dispatched")]
        for what, line in dict(times).items():
            time = owed.time if line == owed.line else self._time(line)
            before = span(time, end)
            before = "at the very end" if before == "0ms" else f"{before} before the end" if before else ""
            says = ", ".join(part for part in (moment(time, self._now) or "no time recorded", before) if part)
            yield _line((f"{what:<12} ", "field"), (says, "text"), (f"  line {line:,}", "dim"), hang=13)
        past = ago(end, self._now)
        says = (moment(end, self._now) or "no time recorded") + (f", {past}" if past else "")
        yield _line((f"{'last record':<12} ", "field"), (says, "text"), hang=13)

    def _time(self, line: int) -> Any:
        events = self.calls.events(line)
        return events[0].time if events else None

    def _earlier(self, owed: Owed) -> Iterator[Line]:
        yield from _heading(f"earlier calls of {clean(owed.name or '(no name)', limit=40)}")
        earlier = self.calls.earlier(owed)
        if not earlier:
            yield _line(("none nearby", "dim"))
        for one in earlier:
            yield _line(
                (f"{one.call.line:>9,}  ", "dim"), (arguments_in_short(one.call.arguments), "text"), hang=11
            )
            if one.result is None:
                yield _line(("           no result found nearby", "dim"), hang=11)
                continue
            closed = synthetic_in_short(one.data)
            error = one.data.get("is_error") is True
            glyph = (f"+ {closed}", "waiting") if closed else ("✖ error  ", "bad") if error else ("✓ ", "ok")
            says = content_in_short(one.data.get("content"))
            yield _line((f"{one.result:>9,}  ", "dim"), glyph, (says, "text"), hang=11)

    # ---- any other row

    def _row(self, subject: Subject, limit: int | None) -> Iterator[Line]:
        number = call_of(subject.row)
        named = self.calls.named(subject.line) if number else []
        if number and number <= len(named):
            yield from self._call(named[number - 1], limit)
            return
        yield from self._about(subject.line)
        try:
            raw = self.journal.raw(subject.line)
        except Unreadable as error:
            yield _line((clean(str(error)), "bad"))
            return
        try:
            value = read_json(raw) if len(raw) <= WHOLE_RECORD else None
        except ValueError:
            value = None
        if value is None:
            yield from _raw_lines(raw)
            return
        total = 0
        for line in fields(value, 0, limit):
            total += sum(len(content.encode("utf-8", "replace")) for content, _ in line.spans)
            yield line._replace(at=total)

    def _about(self, line: int) -> Iterator[Line]:
        type = TYPES[self.journal.codes[line - 1]]
        size = f"  {size_in_words(self.calls.size(line))}" if self.calls.size(line) else ""
        yield _line((clean(type), "head"), (f"  line {line:,}{size}", "dim"))
        if not self.journal.one_document and type in ("corrupt", "damaged"):
            start, stop = self.journal.offsets[line - 1], self.journal.offsets[line]
            yield _line((f"bytes {start:,} to {stop:,} of the file, kept as they are", "text"))
        for anomaly in self.session.plan.anomalies:
            if anomaly.line == line:
                yield _line((f"! {clean(anomaly.code)}  ", "unknown"), (clean(anomaly.says), "text"), hang=2)
        yield _line()

    def _head_only(self, line: int) -> Iterator[Line]:
        """A record that is too large for the pane: its first bytes."""
        yield from self._about(line)
        yield from _raw_lines(self.journal.raw(line)[:PANE_RAW])
        left = size_in_words(self.calls.size(line) - PANE_RAW)
        yield _line((f"… {left} more, enter to page", "unknown"))

    def _call(self, call: Named, limit: int | None) -> Iterator[Line]:
        yield _line((clean(call.name or "(no name)"), "head"), ("  ", "text"), (clean(call.id), "text"))
        left = self.calls.left_at(call.line, call.id)
        if left is not None:
            yield from self._left(left)
        result = self.calls.after(call.line, TOOL_RESULT, call.id)
        dispatch = self.calls.after(call.line, TOOL_CALL, call.id)
        yield _line((f"{'named':<12} ", "field"), (f"line {call.line:,}", "text"))
        if dispatch is not None:
            yield _line((f"{'dispatched':<12} ", "field"), (f"line {dispatch:,}", "text"))
        if result is not None:
            yield _line((f"{'answered':<12} ", "field"), (f"line {result:,}", "text"))
        yield from _heading("arguments")
        yield from self._arguments(call.arguments, limit)
        if result is not None:
            yield from _heading("result")
            for event in self.calls.events(result):
                if event.type == TOOL_RESULT:
                    data: Mapping[str, Any] = event.data
                    yield from fields(dict(data), 0, limit)

    def _left(self, left: Left) -> Iterator[Line]:
        yield _line(("○ LEFT  ", "started"), (clean(left.why), "text"), hang=2)

    def _end(self) -> Iterator[Line]:
        """The end of the log: where it died, what may happen next, and what the log says of its session."""
        plan, boundary = self.session.plan, self.session.plan.boundary
        yield _line((clean(headline(plan)), "head"), hang=2)
        yield _line((clean(what_next(boundary)), "text"))
        yield from (_line((clean(says), "text")) for says in at_the_end(plan, self._now))
        yield _line()
        known = {"died in": boundary.name, "proven by": f"line {boundary.line:,}" if boundary.line else ""}
        last = self.session.last_time
        known["last record"] = ", ".join(
            part for part in (moment(last, self._now), ago(last, self._now)) if part
        )
        known["size"] = f"{self.journal.lines:,} lines, {self.journal.size:,} bytes"
        known |= self.journal.decoder.facts()
        for name, value in known.items():
            if value:
                yield _line((f"{clean(name, limit=20):<12} ", "field"), (clean(str(value)), "text"), hang=13)

    def _raw(self, line: int) -> Iterator[Line]:
        try:
            raw = self.journal.raw(line)
        except Unreadable as error:
            yield _line((clean(str(error)), "bad"))
            return
        yield from _raw_lines(raw)


def _raw_lines(raw: bytes) -> Iterator[Line]:
    """Bytes as text; those that are no UTF-8 show as what they are."""
    text = raw.decode("utf-8", "surrogateescape").removesuffix("\n")
    at = 0
    for piece in pieces(text):
        at += len(piece)
        yield Line(((piece, "text"),), 0, min(len(raw), at))


def _at_most(lines: Iterator[Line], most: int | None) -> Iterator[Line]:
    """The first `most` lines, and a line that says that there are more."""
    yield from islice(lines, most)
    if most is not None and next(lines, None) is not None:
        yield _line(("… more arguments, enter to page", "unknown"))


def _line(*spans: Span, hang: int = 0) -> Line:
    return Line(spans, hang)


def _heading(says: str) -> Iterator[Line]:
    yield Line(())
    yield Line(((says, "title"),))


def _rule(asked: Asked) -> Line:
    mark: Span = ("✓ held  ", "head") if asked.held else ("– no  ", "dim")
    shown = ", ".join(f"{line:,}" for line in asked.lines)
    where = f"  [{'line' if len(asked.lines) == 1 else 'lines'} {shown}]" if shown else ""
    style = "text" if asked.held else "dim"
    rule = (f"{f'rule {asked.rule}':<8}", "head" if asked.held else "text")
    return _line(rule, mark, (clean(asked.says), style), (where, "dim"), hang=8)
