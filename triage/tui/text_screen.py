"""A full screen of text: evidence with everything in it, the raw record, the bytes of a repair."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from triage.tui.desk import Desk
from triage.tui.evidence import Evidence, Subject
from triage.tui.keybar import KeyBar
from triage.tui.keys import EVIDENCE, TEXT, Command, bindings
from triage.tui.paper import Paper
from triage.tui.row import Span
from triage.tui.rows import Rows
from triage.tui.view import View

CONTEXT = 5  # rows above a match that stay in view
PAN = 8  # cells for one press of ← or →


class TextScreen(View[None]):
    """Shows a paper; `w` wraps it, arrows move it where it isn't wrapped."""

    COMMANDS_HERE: ClassVar[tuple[Command, ...]] = TEXT
    TITLE_HERE = "text"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(TEXT)]

    def __init__(self, desk: Desk | None, title: str, paper: Paper) -> None:
        super().__init__(desk)
        self._title = title
        self.paper = paper
        self.rows = Rows(paper, page=True)

    def compose(self) -> ComposeResult:
        yield self.rows
        yield KeyBar(self.COMMANDS_HERE)

    def on_mount(self) -> None:
        self.set_focus(self.rows)
        self.show(self.paper, self._title)

    def show(self, paper: Paper, title: str) -> None:
        """Show another paper from its first row."""
        self.paper, self._title = paper, title
        match = paper.first_match(self.rows.room) if paper.marked else None
        self.rows.show(paper, top=max(0, (match or 0) - CONTEXT))
        self._label()

    def resized(self) -> None:
        self._label()

    def on_rows_moved(self) -> None:
        self._label()

    def _label(self) -> None:
        self.rows.label(((self._title, "title"),), where(self.rows))

    def action_wrap(self) -> None:
        self.paper.set_wrapped(not self.paper.wrapped)
        self.rows.show(self.paper, top=0)
        self._label()
        self.say("long lines are wrapped" if self.paper.wrapped else "long lines are cut: ←/→ move the text")

    def action_fold(self) -> None:
        self._pan(-PAN)

    def action_unfold(self) -> None:
        self._pan(PAN)

    def _pan(self, cells: int) -> None:
        if self.paper.wrapped:
            self.say("long lines are wrapped: w cuts them, then ←/→ move the text")
            return
        self.paper.pan = max(0, self.paper.pan + cells)
        self.rows.repaint()

    def action_back(self) -> None:
        self.dismiss(None)


class EvidenceScreen(TextScreen):
    """All of the evidence of a row. Enter shows the raw record, n and N go on to the next problem."""

    COMMANDS_HERE = EVIDENCE
    TITLE_HERE = "evidence"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(EVIDENCE)]

    def __init__(
        self,
        desk: Desk,
        evidence: Evidence,
        subject: Subject,
        step: Callable[[int], Subject | None] | None = None,
        marked: str = "",
    ) -> None:
        self._marked = marked
        self._evidence = evidence
        self._subject = subject
        self._step = step
        self._raw = False
        super().__init__(desk, self._heading(), evidence.paper(subject, whole=True))
        self.paper.marked = marked

    def _heading(self) -> str:
        kind = "raw record of " if self._raw else "evidence  "
        about = f"line {self._subject.line:,}" if self._raw else self._evidence.title(self._subject)
        return kind + about

    def subject(self) -> Subject | None:
        return self._subject

    def evidence(self) -> Evidence | None:
        return self._evidence

    async def action_open(self) -> None:
        if self._subject.line > self._evidence.journal.lines:
            self.say("the end of the log is no record")
            return
        self._raw = not self._raw
        paper = (
            self._evidence.raw(self._subject)
            if self._raw
            else self._evidence.paper(self._subject, whole=True)
        )
        paper.set_wrapped(self.paper.wrapped)
        paper.marked = self._marked
        self.show(paper, self._heading())

    def action_next(self, step: int) -> None:
        subject = self._step(step) if self._step else None
        if subject is None:
            self.say("no other entry here" if self._step is None else "no other problem in this log")
            return
        self._subject, self._raw = subject, False
        paper = self._evidence.paper(subject, whole=True)
        paper.set_wrapped(self.paper.wrapped)
        paper.marked = self._marked
        self.show(paper, self._heading())


def where(rows: Rows) -> tuple[Span, ...]:
    """Which rows of a page are in view: `1-20 of 45`, or `1-20 of many` while not all were read."""
    count = rows.count()
    last = min(count, rows.top + rows.in_view)
    return ((f"{min(rows.top + 1, last):,}-{last:,} of {count:,}", "dim"),)
