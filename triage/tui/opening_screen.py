"""What one sees while a large log is read: how far it is, the way out, and the log's end as it stands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from triage.log.formats import locate
from triage.log.source import Unreadable
from triage.log.tail import last_records
from triage.session import Session, open_session
from triage.text import clean
from triage.tui import watch
from triage.tui.lines import Lines
from triage.tui.row import BLANK, Row
from triage.tui.short import LIMIT, arguments_in_short, record_in_short
from triage.words import size_in_words

BAR = 40  # cells of the bar at most
MOST = 200  # records that are looked at; no screen has more rows
TYPE = 18  # cells of a record's type


class Opened(Message):
    """The log was read, or can't be, by a screen that may have been left meanwhile."""

    def __init__(self, session: Session | Unreadable, screen: OpeningScreen) -> None:
        super().__init__()
        self.screen = screen
        self.session = session


class OpeningScreen(Screen[None]):
    """Reads a log in a thread and tells the app when it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,escape", "app.leave", "Quit", show=False)]
    DEFAULT_CSS = "OpeningScreen > Lines { height: 1fr; }"

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._read = watch.Reading(0, 0)
        self._last: list[Row] = []
        self._lines = Lines(self._rows)

    def compose(self) -> ComposeResult:
        yield self._lines

    def on_mount(self) -> None:
        try:
            self._last = [_row(record) for record in last_records(locate(self._path)[0], MOST)]
        except Unreadable:
            pass  # which the reading finds too, and tells
        watch.reload(self, partial(open_session, self._path))

    def on_reading(self, event: watch.Reading) -> None:
        self._read = event
        self._lines.refresh()

    def on_reloaded(self, event: watch.Reloaded) -> None:
        self.app.post_message(Opened(event.session, self))

    def _rows(self, width: int) -> list[Row]:
        name = clean(os.path.basename(self._path) or self._path)
        cells, read = max(1, min(BAR, width - 30)), self._read
        done = round(read.part * cells)
        says = (
            f" {size_in_words(read.done)} of {size_in_words(read.size)}, {read.part:.0%}" if read.size else ""
        )
        rows = [
            Row(((" reading ", "dim"), (name, "head"))),
            Row(((" ", "text"), ("█" * done, "focus"), ("░" * (cells - done), "frame"), (says, "text"))),
            BLANK,
            Row(((" q", "key"), (" Quit", "text"))),
            BLANK,
            Row(((" the end of the log; no verdict yet", "dim"),)),
        ]
        room = self.size.height - len(rows)
        return [*rows, *self._last[-room:]] if self._last and room > 0 else rows[:4]


def _row(record: Mapping[str, Any] | bytes) -> Row:
    """A record by its type and what it holds; what can't be read, as it stands."""
    if isinstance(record, bytes):
        start = record[:LIMIT].decode("utf-8", "replace").rstrip("\r\n")
        return Row(((f" {'unreadable':<{TYPE}} ", "bad"), (clean(start), "text")))
    kind, data = record.get("type"), record.get("data")
    kind = kind if isinstance(kind, str) else ""
    says = arguments_in_short(data) if isinstance(data, dict) else record_in_short(kind, record)
    return Row(((f" {clean(kind, limit=TYPE):<{TYPE}} ", "dim"), (says, "text")))
