"""After an append: the lines that were written, and what the log says now that it was read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from triage import words
from triage.log.source import Unreadable
from triage.recovery.acknowledge import Answer
from triage.session import Applied, Session
from triage.text import clean
from triage.tui.desk import Desk
from triage.tui.fields import pieces
from triage.tui.keybar import KeyBar
from triage.tui.keys import DONE, Command, bindings
from triage.tui.paper import Line, Paper
from triage.tui.rows import Rows
from triage.tui.view import View
from triage.words import FOUND, headline


def applied_in_words(path: str, applied: Applied, session: Session | Unreadable | None) -> str:
    """One line on what an append did, for stdout."""
    count, size = len(applied.landed), len(applied.text)
    says = words.applied_in_words(path, count, size, applied.first_line, applied.status)
    return clean(says if isinstance(session, Session) else f"{says}; it could not be read again")


class DoneScreen(View[None]):
    """Shows what was appended."""

    COMMANDS_HERE: ClassVar[tuple[Command, ...]] = DONE
    TITLE_HERE = "done"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(DONE)]

    def __init__(
        self,
        desk: Desk,
        applied: Applied,
        answers: Mapping[str, Answer],
        session: Session | Unreadable | None,
    ) -> None:
        super().__init__(desk)
        self._applied = applied
        self._answers = answers
        self._session = session
        self._rows = Rows(Paper(self._lines), page=True)

    def compose(self) -> ComposeResult:
        yield self._rows
        yield KeyBar(self.commands)

    def on_mount(self) -> None:
        self._rows.label(
            (("appended", "title"),), ((clean(self.desk.session.path.rpartition("/")[2], limit=40), "dim"),)
        )
        self.set_focus(self._rows)

    def _lines(self) -> Iterator[Line]:
        applied = self._applied
        last = applied.first_line + len(applied.landed) - 1
        yield Line(
            (("✓ ", "title"), (applied_in_words(self.desk.session.path, applied, self._session), "head")), 2
        )
        if isinstance(self._session, Session):
            yield Line((("  read again: ", "dim"), (clean(headline(self._session.plan)), "head")), 2)
        elif self._session is not None:
            yield Line((("✖ ", "bad"), (clean(str(self._session)), "bad")), 2)
        yield Line(
            (
                (
                    f"  {applied.bytes_before:,} bytes before, {applied.bytes_after:,} now, none rewritten",
                    "text",
                ),
            )
        )
        yield Line(())
        yield Line(((f"lines {applied.first_line:,} to {last:,}", "title"),))
        records = applied.text.decode("utf-8", "replace").strip("\n").split("\n")
        for landed in applied.landed:
            data = landed.repair.data if landed.repair else {}
            about = clean(
                landed.key or str(data.get("tool_call_id") or data.get("request_id") or ""), limit=60
            )
            answer = self._answers.get(landed.key)
            found = f"  {FOUND[answer.finding]}" if answer else ""
            line = f"{landed.line:>9,}  "
            kind = clean(f"{landed.type}  ", limit=60)
            yield Line(((line, "dim"), (kind, "head"), (about, "text"), (found, "title")), 11)
        yield Line(())
        yield Line((("the records as they were written", "title"),))
        for record in records:
            yield from (Line(((piece, "dim"),)) for piece in pieces(record))

    def action_back(self) -> None:
        self.dismiss(None)
