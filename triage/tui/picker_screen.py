"""The list of many sessions, to pick from: the worst first, while they are still being read."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.worker import get_current_worker

from triage.fleet.listing import FILTERS, ORDERS, Listing
from triage.fleet.row import NEEDS_REPAIR, in_use, read_row, row_of
from triage.fleet.row import Row as Entry
from triage.fleet.scan import Part, Read, Scan
from triage.log.writers import all_writers
from triage.session import Session
from triage.text import clean
from triage.tui.clipboard import copy
from triage.tui.desk import Clock
from triage.tui.keybar import KeyBar
from triage.tui.keys import PICKER, Command, bindings
from triage.tui.lines import Lines
from triage.tui.picker_rows import SessionRows, heading
from triage.tui.row import Row, Span, row, text, width_of
from triage.tui.rows import EDGES, FRAME, Fixed, Rows
from triage.tui.view import View
from triage.tui.watch import changed
from triage.words import counted, scan_in_words

BATCH_SECONDS = 0.25  # between two times that rows come into the list

Pick = Callable[[str, int], Awaitable[str]]  # a path and its size in bytes; why it can't be opened, or ""


class Scanned(Message):
    """Rows that were read, and how far the scan is. `over`: this is the last of it."""

    def __init__(self, part: Part, *, over: bool) -> None:
        super().__init__()
        self.part = part
        self.over = over


class ReadAgain(Message):
    """One session as it is now; None where it is no session any more."""

    def __init__(self, path: str, row: Entry | None) -> None:
        super().__init__()
        self.path = path
        self.row = row


class PickerScreen(View[None]):
    """Lists the sessions of a scan; `pick` opens one above the list."""

    COMMANDS_HERE: ClassVar[tuple[Command, ...]] = PICKER
    TITLE_HERE = "sessions"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(PICKER)]

    def __init__(self, scan: Scan, clock: Clock, pick: Pick) -> None:
        super().__init__(None)
        self._scan = scan
        self._pick = pick
        self.listing = Listing()
        self.scanning = False
        self._stop = threading.Event()
        self._seen: dict[str, bool] = {}  # the paths of this scan, and which of them are sessions
        self._found, self._whole = 0, False
        self._chosen = ""  # the path that the cursor stays with; until it is moved, it stays on the first row
        self._last = ""  # what was searched for
        self._source = SessionRows(self.listing, scan.starts, clock)
        self._header = Lines(self._header_rows, id="header")
        self.rows = Rows(self._source)
        self._below = Lines(self._picked_rows, id="picked")

    def compose(self) -> ComposeResult:
        yield self._header
        yield self.rows
        yield self._below
        yield KeyBar(PICKER, self._locked)

    def on_mount(self) -> None:
        self.set_focus(self.rows)
        self.action_rescan()

    def resized(self) -> None:
        self._show()

    def _locked(self) -> dict[str, str]:
        """Commands that have nothing to do now."""
        return {"rescan": ""} if self.scanning else {"stop": ""}

    # ---- the scan

    def action_rescan(self) -> None:
        if self.scanning:
            self.say("still scanning: S stops it")
            return
        self.scanning = True
        self._stop.clear()
        self._seen = {}
        self._found, self._whole = 0, False
        self.run_worker(self._work, thread=True, group="scan")
        self._show()

    def action_stop(self) -> None:
        if self.scanning:
            self._stop.set()
        else:
            self.say("no scan is running: r scans again")

    def _work(self) -> None:
        """Read in a thread; what comes is sent on a few times a second."""
        worker = get_current_worker()
        rows: list[Read] = []
        sent, part = 0.0, Part([], 0, False)
        for part in self._scan.parts(lambda: self._stop.is_set() or worker.is_cancelled):
            rows += part.rows
            if time.monotonic() - sent > BATCH_SECONDS:
                self.post_message(Scanned(Part(rows, part.found, part.whole), over=False))
                rows, sent = [], time.monotonic()
        self.post_message(Scanned(Part(rows, part.found, part.whole), over=True))

    def on_scanned(self, event: Scanned) -> None:
        self._choose()
        for file, session in event.part.rows:
            self._seen[file] = session is not None
            if session is None:
                self.listing.drop([file])
            else:
                self.listing.put(session)
        self._found = max(self._found, event.part.found)
        self._whole = self._whole or event.part.whole
        if event.over:
            self.scanning = False
            if self._whole and len(self._seen) >= self._found:
                self.listing.keep(self._seen)
        self._show()

    # ---- what is shown

    @property
    def picked(self) -> Entry | None:
        """The session under the cursor."""
        shown = self.listing.shown
        return shown[min(self.rows.cursor, len(shown) - 1)] if shown else None

    def _choose(self, *, moved: bool = False) -> None:
        """The cursor stays with the session that it is on, if it was ever moved."""
        if self.picked is not None and (moved or self._chosen or self.rows.cursor):
            self._chosen = self.picked.path

    def _show(self) -> None:
        """Show the list again, with the cursor and the view where the chosen session is now."""
        rows = self.rows
        if self.listing.shown:
            at = self.listing.index_of(self._chosen)
            index = at if at is not None else rows.cursor
            rows.show(self._source, index, top=max(0, rows.top + index - rows.cursor))
        else:
            rows.show(Fixed([row(text(self._nothing(), "dim"))], frozenset()), 0, top=0)
        self._label()
        self._header.refresh()
        for bar in self.query(KeyBar):
            bar.refresh()

    def _label(self) -> None:
        listing, shown = self.listing, len(self.listing.shown)
        title = f"sessions · {listing.order} first" if listing.order != "path" else "sessions · by path"
        title += f" · {listing.filter} only" if listing.filter != "all" else ""
        title += f" · /{clean(listing.text, limit=24)}" if listing.text else ""
        at = min(self.rows.cursor + 1, shown)
        self.rows.label(((title, "title"),), ((f"{at:,}/{shown:,}", "dim"),))
        self._below.refresh()

    def _nothing(self) -> str:
        """Why the list is empty."""
        if self.listing.rows:
            so_far = " so far" if self.scanning else ""
            return f"no session is like that{so_far}: esc shows all again"
        where = ", ".join(self._scan.starts)
        return "scanning …" if self.scanning else f"no session log was found in {where}"

    def _header_rows(self, width: int) -> list[Row]:
        skipped = len(self._seen) - sum(self._seen.values())
        over = not self.scanning
        said = scan_in_words(len(self._seen), self._found, self._whole, skipped, over=over)
        spans: list[Span] = [(" ", "text"), (said, "head" if over else "unknown")]
        rows = self.listing.rows.values()
        repairs = sum(session.status in NEEDS_REPAIR for session in rows)
        unknown = sum(session.unknown for session in rows)
        for count, part in (
            (repairs, f"{repairs:,} to repair"),
            (unknown, counted(unknown, "unknown outcome")),
            (skipped, f"{skipped:,} skipped"),
        ):
            if count and width_of(spans) + len(part) + 3 <= width:
                spans += [(" · ", "dim"), (part, "head")]
        names = heading(max(1, width - EDGES - FRAME))
        return [Row(tuple(spans)), Row((("  ", "dim"), *names.spans))]

    def _picked_rows(self, width: int) -> list[Row]:
        """The path of the session under the cursor, its end where not all fits, and what is with it."""
        session = self.picked
        if session is None:
            return []
        path = clean(session.path)
        path = path if len(path) < width - 1 else "…" + path[-max(1, width - 3) :]
        about = " · ".join(part for part in (session.why, session.title) if part)
        return [row((f" {path}", "text")), row(" ", text(about, "dim", limit=width))]

    # ---- keys

    def on_rows_moved(self) -> None:
        self._choose(moved=True)
        self._label()

    async def action_open(self) -> None:
        session = self.picked
        if session is None:
            return
        self._choose(moved=True)
        failed = await self._pick(session.path, session.bytes or 0)
        if failed:
            self.say(failed, bad=True)

    def came_back(self, session: Session) -> None:
        """A session was left: its row may be another one now."""
        self.run_worker(lambda: self.post_message(ReadAgain(session.path, _again(session))), thread=True)

    def on_read_again(self, event: ReadAgain) -> None:
        self._choose()
        if event.row is None:
            self.listing.drop([event.path])
        else:
            self.listing.renew(event.row)
        self._show()

    def action_filter(self) -> None:
        names = list(FILTERS)
        self._arrange(filter=names[(names.index(self.listing.filter) + 1) % len(names)])

    def action_sort(self) -> None:
        names = list(ORDERS)
        self._arrange(order=names[(names.index(self.listing.order) + 1) % len(names)])

    async def action_search(self) -> None:
        last = f" (empty: {clean(self._last, limit=24)})" if self._last else ""
        await self.ask("search", f"search{last}")

    def answered(self, asks: str, value: str | None) -> None:
        self.set_focus(self.rows)
        if value is not None and (value or self._last):
            self._last = value or self._last
            self._arrange(text=self._last)
            self._choose(moved=True)

    def action_escape(self) -> None:
        if self.listing.text:
            self._arrange(text="")
        elif self.listing.filter != "all":
            self._arrange(filter="all")
        else:
            self.say("q quits")

    def _arrange(self, **how: str) -> None:
        self._choose()
        self.listing.arrange(**how)
        self._show()

    def action_next(self, step: int) -> None:
        shown = self.listing.shown
        at = self.rows.cursor + step
        while 0 <= at < len(shown) and shown[at].status not in NEEDS_REPAIR:
            at += step
        if 0 <= at < len(shown):
            self.rows.move_to(at)
        else:
            self.say("no other session that needs repair in this direction")

    def action_copy(self) -> None:
        session = self.picked
        if session is None:
            self.say("nothing to copy here")
            return
        note = copy(self.app, session.path)
        self.say(f"copied the path: {session.path}{f' ({note})' if note else ''}")


def _again(session: Session) -> Entry | None:
    """The row of a session as it is now; the log is read once more only where it changed."""
    row = read_row(session.path) if changed(session) else row_of(session)
    return None if row is None else in_use(row, all_writers())
