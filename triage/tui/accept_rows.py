"""The rows of the accept screen: what would be appended, and each question with its answer."""

from __future__ import annotations

from triage.recovery.plan import Owed
from triage.text import clean
from triage.tui.desk import Desk
from triage.tui.owed_rows import ORDER
from triage.tui.row import Row, Span, row, wrap
from triage.tui.rows import Fixed
from triage.tui.short import arguments_in_short
from triage.tui.theme import LABEL_STYLES
from triage.tui.times import moment
from triage.words import FOUND, GLYPHS, RISKS, counted, size_in_words

BOXES = {"": "[   ]", "ran": "[ran]", "did-not-run": "[not]", "could-not-tell": "[ ? ]", "deny": "[deny]"}
INDENT = "        "


class AcceptRows(Fixed):
    """The screen's text as a source of rows; `entries` says which owed call stands on a row.

    `notice` are sentences about the log or an append, in the style "bad" or "unknown".
    """

    def __init__(self, desk: Desk, text: bytes, notice: list[Span], width: int) -> None:
        """`text` is what would be appended."""
        self.entries: dict[int, Owed] = {}
        self._rows_so_far: list[Row] = []
        plan = desk.plan
        lines = sum(bool(line) for line in text.split(b"\n"))
        self._sentences(desk, lines, len(text), notice, width)
        asked = sorted(desk.asked, key=lambda owed: ORDER.index(owed.label))
        for owed in asked:
            self._entry(desk, owed, width)
        verb = "planned" if plan.refusal is not None else "appended"
        heading = f"Also {verb}" if asked else verb.capitalize()
        self._add(row((f"{heading} (no answer needed)", "title")))
        before = len(self._rows_so_far)
        for owed in (owed for owed in plan.owed if not owed.needs_acknowledgement):
            self._plain(owed)
        self._closings(desk)
        if plan.refusal is None and lines > len(plan.repairs):
            copies = counted(lines - len(plan.repairs), "copy", "copies")
            says = f"{copies} of recorded results, which the agent looks for here: v shows them"
            self._add(*wrap([("       + ", "dim"), (says, "dim")], width, 9))
        if len(self._rows_so_far) == before:
            self._rows_so_far.pop()  # the heading of nothing
        super().__init__(self._rows_so_far, frozenset(self.entries))

    def index_of(self, key: str) -> int | None:
        """The row of the entry with a key."""
        return next((at for at, owed in self.entries.items() if owed.key == key), None)

    def _add(self, *rows: Row) -> None:
        self._rows_so_far.extend(rows)

    def _sentences(self, desk: Desk, lines: int, size: int, notice: list[Span], width: int) -> None:
        plan = desk.plan
        self._notices(notice, "bad", width)
        if plan.refusal is not None:
            says = f"CAN'T BE APPENDED: {plan.refusal.says}"
            self._add(*wrap([("✖ ", "bad"), (clean(says), "bad")], width, 2))
            what = "Y copies the summary, x exports the plan: hand them to the owner of the log."
            self._add(*wrap([("  ", "text"), (what, "text")], width, 2))
        count = counted(lines if plan.refusal is None else len(plan.repairs), "record")
        after = f"after line {desk.session.journal.lines:,}"
        says = f"Appends {count} ({size_in_words(size)}) {after}. Nothing is rewritten."
        if plan.refusal is not None:
            says = f"The plan has {count} to come {after}: the log's owner has to add what they say."
        self._add(*wrap([(says, "head")], width))
        labels = {owed.label for owed in plan.owed if owed.needs_acknowledgement}
        for label in ("UNKNOWN", "WAITING"):
            if label in labels:
                self._add(*wrap([(RISKS[label], "text")], width))
        self._notices(notice, "unknown", width)
        self._notices(notice, "dim", width)
        if desk.drafted:
            says = f"Draft: {desk.drafted}. Check them: R, D or U changes one."
            self._add(*wrap([("! ", "unknown"), (clean(says), "text")], width, 2))
        warning = plan.doubt or desk.session.corrupt_in_the_way
        if warning:
            self._add(*wrap([("! ", "unknown"), (clean(warning), "unknown")], width, 2))

    def _notices(self, notice: list[Span], style: str, width: int) -> None:
        glyph = "✖ " if style == "bad" else "! "
        for says in (says for says, its in notice if its == style):
            self._add(*wrap([(glyph, style), (clean(says), style)], width, 2))

    def _entry(self, desk: Desk, owed: Owed, width: int) -> None:
        answer, note = desk.answers.get(owed.key), desk.notes.get(owed.key, "")
        self.entries[len(self._rows_so_far)] = owed
        style = LABEL_STYLES[owed.label]
        box: Span = (f"{BOXES[answer.finding if answer else '']:<6} ", "key" if answer else "head")
        where = f"turn of line {owed.turn_line:,}  " if owed.key != owed.tool_call_id else ""
        self._add(Row((box, *_call(owed, style)), ((f"{where}rule {owed.rule}", "dim"),)))
        self._add(*wrap([(INDENT, "text"), (clean(owed.why), "dim")], width, len(INDENT)))
        for says in desk.hints(owed):
            self._add(*wrap([(INDENT, "text"), (clean(says), "text")], width, len(INDENT)))
        if answer is not None:
            by = " ".join(part for part in (answer.operator, moment(answer.at, desk.clock())) if part)
            who = f" ({clean(by, limit=60)})" if by else ""
            found: list[Span] = [
                (INDENT, "text"),
                ("found: ", "dim"),
                (FOUND[answer.finding], "head"),
                (who, "dim"),
            ]
            self._add(Row(tuple(found)))
        if note:
            self._add(*wrap([(INDENT, "text"), ("note: ", "dim"), (clean(note), "text")], width, len(INDENT)))

    def _plain(self, owed: Owed) -> None:
        self.entries[len(self._rows_so_far)] = owed
        spans = (("       ", "text"), *_call(owed, LABEL_STYLES[owed.label]))
        self._add(Row(spans, ((f"rule {owed.rule}", "dim"),)))

    def _closings(self, desk: Desk) -> None:
        """What is appended besides the results: decisions of open requests, ends of turns."""
        for repair in desk.plan.repairs:
            if repair.type == "tool_result":
                continue
            data = repair.data
            about = f"turn {data['turn']}" if "turn" in data else data.get("request_id") or ""
            what = data.get("reason") or data.get("decision") or ("no value" if "value" in data else "")
            says = clean(f"{repair.type}  {about}  {what}", limit=120)
            self._add(row(("       + ", "dim"), (says, "dim")))


def _call(owed: Owed, style: str) -> tuple[Span, ...]:
    return (
        (f"{GLYPHS[owed.label]} ", style),
        (f"{clean(owed.key, limit=28)}  ", "text"),
        (f"{clean(owed.name or '(no name)', limit=20)}  ", "head"),
        (arguments_in_short(owed.arguments), "dim"),
    )
