"""A search that is on: its text, its matches so far, and the worker that finds them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from textual.message import Message
from textual.worker import get_current_worker

from triage.log.source import Unreadable
from triage.text import clean
from triage.tui.search import search
from triage.tui.timeline import following, key, line_of

if TYPE_CHECKING:
    from triage.tui.triage_screen import TriageScreen


class Found(Message):
    """What a search found so far; `part` is how much of the log it saw (1: all)."""

    def __init__(self, text: str, matches: array[int], part: float, failed: str = "") -> None:
        super().__init__()
        self.text = text
        self.matches = matches
        self.part = part
        self.failed = failed


class Finder:
    """Runs one search at a time for the triage screen and remembers the last one."""

    def __init__(self, screen: TriageScreen) -> None:
        self._screen = screen
        self.text = ""  # of the search that is on
        self.matches: array[int] = array("q")
        self._last = ""
        self._part = 1.0
        self._moved = False

    @property
    def label(self) -> str:
        """What the question for a search is called; it names the last one."""
        return f"search (empty: {clean(self._last, limit=24)})" if self._last else "search"

    def start(self, text: str) -> None:
        """Search for a text; an empty one is the last one again."""
        text = text or self._last
        if not text:
            self._screen.say("nothing was searched for yet")
            return
        self.stop()
        self.text = self._last = text
        self._part = 0.0
        self._moved = False
        self._screen.run_worker(lambda: self._work(text), thread=True, exclusive=True, group="search")
        self._screen.searched()

    def stop(self) -> None:
        """End the search that is on."""
        self._screen.workers.cancel_group(self._screen, "search")
        self.text = ""
        self.matches = array("q")
        self._part = 1.0

    def _work(self, text: str) -> None:
        worker = get_current_worker()
        journal = self._screen.desk.session.journal

        def report(matches: array[int], part: float) -> None:
            self._screen.post_message(Found(text, matches[:], part))

        try:
            matches = search(journal, text, lambda: worker.is_cancelled, report)
            failed = ""
        except Unreadable as error:
            matches, failed = array("q"), str(error)
        if not worker.is_cancelled:
            self._screen.post_message(Found(text, matches, 1.0, failed))

    def take(self, found: Found) -> None:
        """Take what the worker found; the first match is gone to at once."""
        if found.text != self.text:
            return
        self.matches, self._part = found.matches, found.part
        if found.failed:
            self._screen.say(found.failed, bad=True)
        if self.matches and not self._moved:
            self._moved = True
            here = line_of(self._screen.row)
            row = key(here) if here in self.matches else self.next(self._screen.row, 1)
            if row is not None:
                self._screen.go(row)
        elif self._part >= 1 and not self.matches:
            self._screen.say(f"no match for {self.text}")
            self.text = ""
        self._screen.searched()

    def next(self, row: int, step: int) -> int | None:
        """The next match after (`step` 1) or before (-1) a row of the timeline."""
        line = following(self.matches, line_of(row), step)
        return None if line is None else key(line)

    def in_words(self, row: int) -> str:
        """The search for the timeline's title: ` · /text 3/17 (40%)`."""
        if not self.text:
            return ""
        at = bisect_right(self.matches, line_of(row))
        some = f" {at:,}/{len(self.matches):,}" if self.matches else ""
        part = "" if self._part >= 1 else f" ({self._part:.0%} searched)"
        return f" · /{clean(self.text, limit=24)}{some}{part}"
