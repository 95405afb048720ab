"""What one sees while a large log is read: how far it is, and the way out."""

from __future__ import annotations

import os
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from triage.log.source import Unreadable
from triage.session import Session, open_session
from triage.text import clean
from triage.tui import watch
from triage.tui.lines import Lines
from triage.tui.row import BLANK, Row

BAR = 40  # cells of the bar at most


class Opened(Message):
    """The log was read, or can't be."""

    def __init__(self, session: Session | Unreadable) -> None:
        super().__init__()
        self.session = session


class OpeningScreen(Screen[None]):
    """Reads a log in a thread and tells the app when it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,escape", "app.leave", "Quit", show=False)]
    DEFAULT_CSS = "OpeningScreen > Lines { height: 4; }"

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._part = 0.0
        self._lines = Lines(self._rows)

    def compose(self) -> ComposeResult:
        yield self._lines

    def on_mount(self) -> None:
        watch.reload(self, partial(open_session, self._path))

    def on_reading(self, event: watch.Reading) -> None:
        self._part = event.part
        self._lines.refresh()

    def on_reloaded(self, event: watch.Reloaded) -> None:
        self.app.post_message(Opened(event.session))

    def _rows(self, width: int) -> list[Row]:
        name = clean(os.path.basename(self._path) or self._path)
        cells = max(1, min(BAR, width - 10))
        done = round(self._part * cells)
        bar = ("█" * done, "focus"), ("░" * (cells - done), "frame"), (f" {self._part:.0%}", "text")
        return [
            Row(((" reading ", "dim"), (name, "head"))),
            Row(((" ", "text"), *bar)),
            BLANK,
            Row(((" q", "key"), (" Quit", "text"))),
        ]
