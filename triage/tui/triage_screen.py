"""The main screen: what happened, the timeline, what is owed, and the evidence of the selected row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from triage.session import Session, open_session
from triage.tui import watch
from triage.tui.calls import Calls
from triage.tui.desk import Desk
from triage.tui.evidence import Evidence, Subject
from triage.tui.finder import Finder, Found
from triage.tui.header import header_rows
from triage.tui.keybar import KeyBar, run_action
from triage.tui.keys import TRIAGE, Command, bindings
from triage.tui.lines import Lines
from triage.tui.owed_rows import ORDER, OwedRows
from triage.tui.row import Row
from triage.tui.rows import Rows
from triage.tui.text_screen import EvidenceScreen, where
from triage.tui.timeline import FILTERS, Timeline, key, line_of
from triage.tui.timeline_rows import TimelineRows
from triage.tui.view import View
from triage.words import counted

WATCH_SECONDS = 2.0  # between two looks whether the log grew
JUMPS = 200  # jumps that ctrl-o remembers
PANES = ("timeline", "owed", "evidence")


class TriageScreen(View[None]):
    """Everything about one session on one screen."""

    COMMANDS_HERE: ClassVar[tuple[Command, ...]] = TRIAGE
    TITLE_HERE = "triage"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(TRIAGE)]
    AUTO_FOCUS = None

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.news = ""
        self._in_use = ""
        self.following_log = False
        self._jumps: list[int] = []
        self._wrapped = True
        self._finder = Finder(self)
        self._load()
        self._header = Lines(self._header_rows, id="header")
        self._timeline = Rows(TimelineRows(self.timeline), id="timeline")
        self._owed = Rows(id="owed")
        self._evidence = Rows(page=True, id="evidence")

    def _load(self) -> None:
        """Everything that is made of the session."""
        self.calls = Calls(self.desk.session)
        self.timeline = Timeline(self.calls)
        self._writer = Evidence(self.calls, self.desk.clock(), self.desk.hints)
        self._subject: Subject | None = None

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._timeline
        yield self._owed
        yield self._evidence
        yield KeyBar(self.commands, self._locked, words=self._words)

    def on_mount(self) -> None:
        self._fill(self._first_row())
        self.set_focus(self._timeline)
        self.set_interval(WATCH_SECONDS, self._watch)
        self.call_after_refresh(self._greet)

    def _greet(self) -> None:
        """Say what was here before: answers that somebody gave, which count on; a playbook with a fault."""
        draft, broken = self.desk.greeting()
        if draft or broken:
            self.say(" · ".join(part for part in (draft, broken) if part), bad=bool(broken))
            self.refresh_owed()

    def resized(self) -> None:
        self.refresh_owed()
        self._show_evidence()

    def _header_rows(self, width: int) -> list[Row]:
        news = " · ".join(part for part in (self._in_use, self.news) if part)
        return header_rows(self.desk, news, width)

    def _locked(self) -> dict[str, str]:
        """Commands that have nothing to do here, greyed in the key bar."""
        locked = {} if self._finder.matches or self.timeline.problems else {"next(1)": ""}
        if self.desk.read_only:
            locked["accept"] = "read-only"
        elif not self.desk.plan.repairs:
            locked["accept"] = "nothing to append"
        return locked

    def _words(self) -> dict[str, str]:
        """Commands that are called otherwise now."""
        return {"next(1)": "Next match"} if self._finder.text else {}

    # ---- filling the panes

    def _first_row(self) -> int:
        """Where to start: the most dangerous owed call, else the first problem, else the end."""
        ordered = sorted(self.desk.plan.owed, key=lambda owed: ORDER.index(owed.label))
        if ordered:
            return self.timeline.row_of_call(ordered[0].line, ordered[0].tool_call_id)
        return self.timeline.problems[0] if self.timeline.problems else self.timeline.end

    def _fill(self, row: int) -> None:
        """Show the session in all panes, with the cursor on a row of the timeline."""
        index = self.timeline.reveal(row)
        source = TimelineRows(self.timeline)
        self._timeline.show(source, index, top=max(0, len(self.timeline.rows)))
        self.refresh_owed()
        self._select(self._writer.subject(self.timeline.rows[index]))
        self._header.refresh()
        self.refresh_bar()

    def refresh_bar(self) -> None:
        """The key bar's greyed words may have changed."""
        for bar in self.query(KeyBar):
            bar.refresh()

    def refresh_owed(self) -> None:
        """List the owed calls again, with the answers given so far."""
        rows = self._owed
        source = OwedRows(self.desk, rows.room)
        owed = self._subject.owed if self._subject else None
        rows.show(source, source.index_of(owed) if owed else None)
        rows.refresh(layout=True)
        plan = self.desk.plan
        title = f"[2] owed {len(plan.owed)}"
        if plan.left:
            title += f" · {len(plan.left):,} left"
        if plan.anomalies:
            title += f" · {counted(len(plan.anomalies), 'anomaly', 'anomalies')}"
        self._owed.label(((title, "title"),))

    def _select(self, subject: Subject) -> None:
        """Make a row the one that everything is about."""
        if subject == self._subject:
            self._label_timeline()
            return
        self._subject = subject
        self._label_timeline()
        self._show_evidence()

    def _show_evidence(self) -> None:
        if self._subject is None or not self._evidence.size.width:
            return
        paper = self._writer.paper(self._subject, whole=False)
        paper.set_wrapped(self._wrapped)
        paper.marked = self._finder.text
        self._evidence.show(paper, top=0)
        title = f"[3] evidence  {self._writer.title(self._subject)}"
        self._evidence.label(((title, "title"),), where(self._evidence))

    def _label_timeline(self) -> None:
        rows, lines = self._timeline, self.desk.session.journal.lines
        title = "[1] timeline"
        if self.timeline.filter != "all":
            title += f" · {self.timeline.filter} only"
        title += self._finder.in_words(self.row)
        if self.following_log:
            title += " · following"
        at = min(line_of(self.row), lines) if len(self.timeline.rows) > rows.cursor else lines
        self._timeline.label(((title, "title"),), ((f"{at:,}/{lines:,}", "dim"),))

    # ---- where we are

    @property
    def row(self) -> int:
        """The row of the timeline under the cursor."""
        return self.timeline.rows[min(self._timeline.cursor, len(self.timeline.rows) - 1)]

    def subject(self) -> Subject:
        """What is under the cursor now, in the pane that has the keys."""
        entry = self._entry_row() if self._owed.has_focus else None
        return entry or self._writer.subject(self.row)

    def evidence(self) -> Evidence | None:
        return self._writer

    def go(self, row: int, *, jump: bool = True) -> None:
        """Move the timeline's cursor to a row, unfolding what hides it."""
        if jump:
            self._jumps = [*self._jumps[-JUMPS:], self.row]
        before, filtered = len(self.timeline.rows), self.timeline.filter
        index = self.timeline.reveal(row)
        if filtered != self.timeline.filter:
            self.say("that row is outside the filter: all rows are shown again")
        rows = self._timeline
        if len(self.timeline.rows) != before:
            rows.show(rows.source, index)
        rows.move_to(index)

    # ---- messages from the panes

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows is self._timeline:
            self._select(self._writer.subject(self.row))
            self._follow_in_owed()
        elif event.rows is self._owed:
            self._show_entry()
        else:
            self._evidence.label(info=where(self._evidence))

    def _follow_in_owed(self) -> None:
        owed, source = self._subject.owed if self._subject else None, self._owed.source
        if owed is not None and isinstance(source, OwedRows):
            index = source.index_of(owed)
            if index is not None and index != self._owed.cursor:
                self._owed.show(source, index)

    def _entry_row(self) -> Subject | None:
        """The entry under the cursor of the owed list, as a row of the timeline."""
        source = self._owed.source
        entry = source.entries.get(self._owed.cursor) if isinstance(source, OwedRows) else None
        if entry is None:
            return None
        if entry.anomaly is not None:
            return self._writer.subject(key(entry.anomaly.line)) if entry.anomaly.line else None
        call = entry.owed or entry.left
        if call is None:
            return None
        row = self.timeline.row_of_call(call.line, call.tool_call_id)
        return Subject(row, entry.owed)

    def _show_entry(self) -> None:
        """The entry under the cursor of the owed list is what everything is about."""
        subject = self._entry_row()
        if subject is None:
            return
        if subject.row != self.row:
            index = self.timeline.reveal(subject.row)
            self._timeline.show(self._timeline.source, index)
        self._select(subject)

    async def action_open(self) -> None:
        await self._open_evidence(self.subject())

    async def _open_evidence(self, subject: Subject) -> None:
        screen = EvidenceScreen(self.desk, self._writer, subject, self._step_in_evidence, self._finder.text)
        await self.app.push_screen(screen)

    def _step_in_evidence(self, step: int) -> Subject | None:
        finder = self._finder
        row = finder.next(self.row, step) if finder.text else self.timeline.next_problem(self.row, step)
        if row is None:
            return None
        self.go(row)
        return self._writer.subject(self.row)

    def action_fold(self) -> None:
        self._fold(self.timeline.fold)

    def action_unfold(self) -> None:
        self._fold(self.timeline.unfold)

    def _fold(self, fold: Callable[[int], int]) -> None:
        if not self._timeline.has_focus:
            return
        if self.timeline.filter != "all":
            self.say("rows fold only where all are shown: f changes the filter")
            return
        row = fold(self.row)
        rows = self._timeline
        rows.show(rows.source, self.timeline.index_of(row))
        rows.move_to(rows.cursor)

    # ---- problems and matches

    def action_next(self, step: int) -> None:
        if self._finder.text:
            row = self._finder.next(self.row, step)
            if row is None:
                self.say(f"no match for {self._finder.text}")
            else:
                self.go(row)
        else:
            self.action_problem(step)

    def action_problem(self, step: int) -> None:
        row = self.timeline.next_problem(self.row, step)
        if row is None:
            self.say("no problem in this log")
            return
        if (row <= self.row) if step > 0 else (row >= self.row):
            self.say(
                "that was the last problem: on from the other end" if row != self.row else "the only problem"
            )
        self.go(row)

    def action_jump_back(self) -> None:
        if self._jumps:
            self.go(self._jumps.pop(), jump=False)
        else:
            self.say("no jump to go back from")

    # ---- find

    def action_filter(self) -> None:
        name = FILTERS[(FILTERS.index(self.timeline.filter) + 1) % len(FILTERS)]
        row = self.row
        self.timeline.set_filter(name)
        rows = self._timeline
        rows.show(rows.source, self.timeline.index_of(row))
        rows.move_to(rows.cursor)
        shown = {"all": "all rows", "calls": "calls and their results only", "problems": "problems only"}
        self.say(f"timeline: {shown[name]}")

    async def action_search(self) -> None:
        await self.ask("search", self._finder.label)

    async def action_goto(self) -> None:
        await self.ask("line", "go to line")

    def answered(self, asks: str, value: str | None) -> None:
        self.set_focus(self._timeline)
        if value is None:
            return
        if asks == "search":
            self._finder.start(value)
        elif asks == "line":
            self._go_to_line(value)

    def _go_to_line(self, text: str) -> None:
        digits = "".join(text.replace(",", "").split())
        lines = self.desk.session.journal.lines
        if not digits.isdecimal() or not 1 <= int(digits[:18]) <= lines:
            self.say(f"{text!r} is no line of this log: it has {lines:,}", bad=True)
            return
        self.go(key(int(digits)))

    def on_found(self, event: Found) -> None:
        self._finder.take(event)

    def searched(self) -> None:
        """The search began, found more, or ended: its text is marked wherever it shows."""
        source = self._timeline.source
        if isinstance(source, TimelineRows) and source.marked != self._finder.text:
            source.marked = self._finder.text
            self._timeline.repaint()
            self._show_evidence()
        self._label_timeline()
        self.refresh_bar()

    # ---- panes

    def _panes(self) -> list[Rows]:
        return [self._timeline, self._owed, self._evidence]

    async def action_to_pane(self, step: int) -> None:
        shown = [n for n, pane in enumerate(self._panes(), 1) if n < 3 or self.has_class("-wide")]
        now = next((n for n, pane in enumerate(self._panes(), 1) if pane.has_focus), 1)
        await self.action_pane(shown[(shown.index(now) + step) % len(shown)] if now in shown else 1)

    async def action_pane(self, number: int) -> None:
        if number == 4:
            await self._open_errors()
            return
        pane = self._panes()[number - 1]
        if number == 3 and not self.has_class("-wide"):
            await self._open_evidence(self.subject())
            return
        if self.has_class("-zoomed") or self.has_class("-short") or self.has_class("-tiny"):
            self._zoom(pane)
        self.set_focus(pane)

    async def _open_errors(self) -> None:
        from triage.tui.errors_screen import ErrorsScreen

        async def chosen(line: int | None) -> None:
            if line is not None:
                await self.action_pane(1)
                self._go_to_line(str(line))

        await self.app.push_screen(ErrorsScreen(self.desk), chosen)

    def _zoom(self, pane: Rows | None) -> None:
        self.set_class(pane is not None, "-zoomed")
        for one in self._panes():
            one.set_class(one is pane, "-zoom")
        self.call_after_refresh(self.resized)

    def action_zoom(self) -> None:
        if self.has_class("-zoomed"):
            self._zoom(None)
        else:
            self._zoom(next((pane for pane in self._panes() if pane.has_focus), self._timeline))

    def action_wrap(self) -> None:
        self._wrapped = not self._wrapped
        self._show_evidence()
        self.say("evidence: long lines are wrapped" if self._wrapped else "evidence: long lines are cut")

    async def action_escape(self) -> None:
        if self._finder.text:
            self._finder.stop()
            self.searched()
        elif self.has_class("-zoomed"):
            self._zoom(None)
            self.set_focus(self._timeline)
        elif self.timeline.filter != "all":
            row = self.row
            self.timeline.set_filter("all")
            self.go(row, jump=False)
        elif not self._timeline.has_focus:
            self.set_focus(self._timeline)
        elif self.desk.picked:
            await run_action(self.app, "app.leave")
        else:
            self.say("q quits")

    # ---- accept, reload, follow

    async def action_accept(self) -> None:
        if self.desk.read_only:
            self.say("opened read-only: nothing can be appended")
            return
        if not self.desk.plan.repairs:
            self.say("nothing to append: this log owes nothing")
            return
        from triage.tui.accept_screen import AcceptScreen

        await self.app.push_screen(AcceptScreen(self.desk, self._writer), self._accepted)

    def _accepted(self, changed: bool | None) -> None:
        """Back from the accept screen; `changed` says that there is another session now."""
        if changed:
            self.renewed()
        else:
            self.refresh_owed()
        if self.desk.told:
            self.say(self.desk.told, bad=True)
            self.desk.told = ""

    def renewed(self) -> None:
        """The desk has a new session: show it, as near as possible to where we were."""
        row, at_end = self.row, self.row == self.timeline.end
        self._finder.stop()
        self._jumps = []
        self._load()
        self.news = ""
        lines = self.timeline.journal.lines
        if at_end or self.following_log or not lines:
            row = self.timeline.end
        elif line_of(row) > lines:
            row = key(lines)
        self._fill(row)

    def action_reload(self) -> None:
        """Read all of the log again."""
        self._read(partial(open_session, self.desk.session.path))

    def _read(self, read: watch.Read) -> None:
        self.news = "reading…"
        self._header.refresh()
        watch.reload(self, read)

    def on_reloaded(self, event: watch.Reloaded) -> None:
        if isinstance(event.session, Session):
            differs = event.session.differs(self.desk.session, self.desk.answers)
            lost = self.desk.renew(event.session)
            self.renewed()
            if lost:
                self.say(
                    f"{counted(lost, 'answer')} no longer hold: those entries changed. {differs}".strip()
                )
        else:
            self.news = f"can't be read: {event.session}"
            self._header.refresh()

    def on_reading(self, event: watch.Reading) -> None:
        self.news = f"reading {event.part:.0%}"
        self._header.refresh()

    def action_follow(self) -> None:
        self.following_log = not self.following_log
        self.say(
            "following: the log is read again as it grows" if self.following_log else "no longer following"
        )
        self._label_timeline()
        if self.following_log:
            self.go(self.timeline.end)
            self._watch()

    def on_in_use(self, event: watch.InUse) -> None:
        if event.says != self._in_use:
            self._in_use = event.says
            self._header.refresh()

    def _watch(self) -> None:
        watch.look(self, self.desk.session, self.desk.look)
        news = watch.changed(self.desk.session)
        if news and self.following_log and not self.news.startswith("reading"):
            self._read(self.desk.session.read_on)
        elif not self.news.startswith("reading") and news != self.news:
            self.news = news
            self._header.refresh()
