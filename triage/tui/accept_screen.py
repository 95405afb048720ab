"""The accept screen: one answer at a time, and an append that stays locked until each one is given.

The gate itself is in the core; this screen shows it and asks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from triage.log.source import Unreadable
from triage.recovery.acknowledge import DENY, Answer, BadAnswer, Unanswered, findings_for
from triage.recovery.plan import Owed
from triage.session import Applied, Refused, Session
from triage.text import clean
from triage.tui.accept_rows import AcceptRows
from triage.tui.calls import Calls
from triage.tui.choice import Choice, ChoiceScreen
from triage.tui.desk import Desk, leaving_in_words
from triage.tui.done_screen import DoneScreen, applied_in_words
from triage.tui.evidence import Evidence, Subject
from triage.tui.keybar import KeyBar
from triage.tui.keys import ANSWERS, Command, bindings
from triage.tui.preview import preview, preview_paper
from triage.tui.row import Span
from triage.tui.rows import Rows
from triage.tui.text_screen import EvidenceScreen, TextScreen
from triage.tui.timeline import key
from triage.tui.view import View
from triage.words import counted

ANSWERING = ("answer", "comment")  # actions for which a log has to be one that can be appended to
MAYBE_WRITTEN = ("write_failed", "not_synced", "read_back")  # refusals after the writing began


class Seen(Message):
    """What goes on with the log, where that matters to an append."""

    def __init__(self, says: Span) -> None:
        super().__init__()
        self.says = says


class Ended(Message):
    """An append came to its end: what was written, or why nothing was, and the log read again."""

    def __init__(self, outcome: Applied | Exception, session: Session | Unreadable | None) -> None:
        super().__init__()
        self.outcome = outcome
        self.session = session


class AcceptScreen(View[bool]):
    """Asks for the answers and appends. Its result says whether the desk has another session now."""

    COMMANDS_HERE: ClassVar[tuple[Command, ...]] = ANSWERS
    TITLE_HERE = "accept"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ANSWERS)]

    def __init__(self, desk: Desk, evidence: Evidence) -> None:
        super().__init__(desk)
        self._writer = evidence
        self._notice: list[Span] = []
        self._seen: list[Span] = []
        self._appending = False
        self._renewed = False
        self._rows = Rows(id="accept")

    def compose(self) -> ComposeResult:
        yield self._rows
        yield KeyBar(self.commands, self._locked, most=2, words=self._words)

    @property
    def commands(self) -> Sequence[Command]:
        """Where nothing can be appended, no key for an answer or a note is offered."""
        if self.desk.plan.refusal is None:
            return super().commands
        return [one for one in super().commands if one.action.partition("(")[0] not in ANSWERING]

    def on_mount(self) -> None:
        self.set_focus(self._rows)
        self._fill(self._first())
        self.run_worker(self._look, thread=True, group="activity", exit_on_error=False)

    def _look(self) -> None:
        """Whether somebody else has the log in hand: known before the answers are given, not after."""
        try:
            activity = self.desk.look(self.desk.session)
        except (Unreadable, OSError) as error:
            self.post_message(Seen((str(error), "bad")))
            return
        if activity.refuses:
            self.post_message(Seen((f"An append would be refused now: {activity.refuses}", "bad")))
        elif activity.warns:
            self.post_message(Seen((activity.warns, "unknown" if activity.lately else "dim")))

    def on_seen(self, event: Seen) -> None:
        self._seen = [event.says]
        self._fill(None)

    def resized(self) -> None:
        self._fill(None)

    # ---- what is shown

    def _fill(self, entry: str | None) -> None:
        """Show the plan and the answers, with the cursor on the entry of a key (None: where it is)."""
        entry = entry or (self._owed.key if self._owed else None)
        notice = [*self._notice, *self._seen]
        width = self._rows.room
        source = AcceptRows(self.desk, preview(self.desk), notice, width)
        at = source.index_of(entry) if entry else None
        if at is None:
            at = next(iter(source.entries), 0)
        top = self._rows.top if self._rows.size.height and isinstance(self._rows.source, AcceptRows) else 0
        self._rows.show(source, at, top=top)
        name = clean(self.desk.session.path.rpartition("/")[2], limit=40)
        self._rows.label((("accept", "title"),), ((name, "dim"),), self._state())
        for bar in self.query(KeyBar):
            bar.refresh()

    def _state(self) -> tuple[tuple[str, str], ...]:
        asked, missing = len(self.desk.asked), len(self.desk.missing)
        if self._appending:
            return (("appending…", "unknown"),)
        if self.desk.plan.refusal is not None:
            return (("append is locked: this log can't be appended to", "bad"),)
        given = f"{asked - missing} of {asked} answered" if asked else "nothing needs an answer"
        if missing:
            return ((f"{given} · append is locked", "unknown"),)
        return ((f"{given} · A appends", "title"),)

    def _locked(self) -> dict[str, str]:
        locked = {"append": "locked"} if self._why_locked() else {}
        owed = self._owed
        if owed is None or not owed.needs_acknowledgement or self.desk.plan.refusal is not None:
            return {
                **locked,
                **{f"answer('{finding}')": "" for finding in ("ran", "did-not-run", "could-not-tell")},
            }
        if findings_for(owed) == (DENY,):
            return {**locked, "answer('ran')": "", "answer('could-not-tell')": ""}
        return locked

    def _words(self) -> dict[str, str]:
        """A waiting call takes one finding only, and its key says which."""
        owed = self._owed
        waits = owed is not None and findings_for(owed) == (DENY,)
        return {"answer('did-not-run')": "Deny"} if waits else {}

    def _why_locked(self) -> str:
        """Why A does nothing now, or ""."""
        plan, missing = self.desk.plan, self.desk.missing
        if self._appending:
            return "the append is under way"
        if plan.refusal is not None:
            return plan.refusal.says
        if missing:
            return f"{counted(len(missing), 'answer')} still missing: n goes to the next"
        return "" if plan.repairs else "nothing to append"

    # ---- where we are

    @property
    def _owed(self) -> Owed | None:
        """The entry under the cursor."""
        source = self._rows.source
        return source.entries.get(self._rows.cursor) if isinstance(source, AcceptRows) else None

    def _first(self) -> str | None:
        """The first entry without an answer, in the order of the screen; else the first."""
        source = AcceptRows(self.desk, b"", [], 80)
        missing = self.desk.missing
        return next((owed.key for owed in source.entries.values() if owed.key in missing), None)

    def subject(self) -> Subject | None:
        owed = self._owed
        return Subject(key(owed.line), owed) if owed else None

    def evidence(self) -> Evidence | None:
        return self._writer

    def on_rows_moved(self) -> None:
        for bar in self.query(KeyBar):
            bar.refresh()

    def action_next(self, step: int) -> None:
        source, missing = self._rows.source, self.desk.missing
        if not isinstance(source, AcceptRows):
            return
        open_rows = [at for at, owed in source.entries.items() if owed.key in missing]
        if not open_rows:  # they are gone through once more: somebody else may have given them
            self.say("every answer is given: A appends" if not self._why_locked() else self._why_locked())
            open_rows = [at for at, owed in source.entries.items() if owed.needs_acknowledgement]
        if not open_rows:
            return
        here = self._rows.cursor
        ahead = [at for at in open_rows if (at > here if step > 0 else at < here)]
        around = open_rows if step > 0 else open_rows[::-1]
        self._rows.move_to((ahead if step > 0 else ahead[::-1] or around)[0] if ahead else around[0])

    async def action_open(self) -> None:
        subject = self.subject()
        if subject is not None:
            await self.app.push_screen(EvidenceScreen(self.desk, self._writer, subject, self._step))

    def _step(self, step: int) -> Subject | None:
        self.action_next(step)
        return self.subject()

    # ---- answers

    def action_answer(self, finding: str) -> None:
        owed = self._owed
        if owed is None or self._appending:
            return
        if self.desk.plan.refusal is not None:
            self.say("no answer needed: this log can't be appended to")
            return
        if not owed.needs_acknowledgement:
            self.say("no answer needed here: this call did not run")
            return
        if findings_for(owed) == (DENY,):
            if finding != "did-not-run":
                self.say("it waits, it did not run: D denies the request, nothing else fits")
                return
            finding = DENY
        self.desk.answer(owed, finding)
        self._changed(owed)

    async def action_comment(self) -> None:
        owed = self._owed
        if self.desk.plan.refusal is not None:
            self.say("no note needed: this log can't be appended to")
            return
        if owed is None or not owed.needs_acknowledgement:
            self.say("notes belong to an answer: none is needed here")
            return
        await self.ask(
            "note", f"note on {clean(owed.key, limit=24)}", clean(self.desk.notes.get(owed.key, ""))
        )

    def answered(self, asks: str, value: str | None) -> None:
        self.set_focus(self._rows)
        owed = self._owed
        if value is None or owed is None:
            return
        self.desk.note(owed, value.strip())
        self._changed(owed)

    def _changed(self, owed: Owed) -> None:
        self._notice = []
        problem = self.desk.keep()
        if problem:
            self._notice = [(f"the answers could not be kept as a draft: {problem}", "unknown")]
        self._fill(owed.key)

    # ---- the append

    async def action_preview(self) -> None:
        await self.app.push_screen(TextScreen(self.desk, "preview of the append", preview_paper(self.desk)))

    def action_append(self) -> None:
        why = self._why_locked()
        if why:
            self.say(f"append is locked: {why}", bad=True)
            return
        self._appending = True
        self._fill(None)
        session, answers = self.desk.session, dict(self.desk.answers)

        def work() -> None:
            self.post_message(_append(session, answers))

        self.run_worker(work, thread=True, exclusive=True, group="append")

    def on_ended(self, event: Ended) -> None:
        self._appending = False
        if isinstance(event.outcome, Applied):
            self._done(event.outcome, event.session)
        else:
            self._refused(event.outcome, event.session)

    def _done(self, applied: Applied, session: Session | Unreadable | None) -> None:
        self.desk.said = applied_in_words(self.desk.session.path, applied, session)
        answers = dict(self.desk.answers)
        self.desk.forget()
        if isinstance(session, Session):
            self.desk.renew(session)
        self.dismiss(True)
        self.app.push_screen(DoneScreen(self.desk, applied, answers, session))

    def _refused(self, error: Exception, session: Session | Unreadable | None) -> None:
        """Nothing was appended: say why; where the log moved, go on with the plan of what it is now."""
        self._notice = [(f"{_what_happened(error)}: {error}", "bad")]
        if isinstance(session, Session):
            before = len(self.desk.answers)
            lost = self.desk.renew(session)
            self._renewed = True
            self._writer = Evidence(Calls(session), self.desk.clock(), self.desk.hints)
            self.desk.keep()
            changed = "; the other entries changed" if lost else ""
            kept = f"{before - lost} of {counted(before, 'answer')} kept{changed}"
            self._notice.append((f"The plan was made again from the log as it is now. {kept}.", "unknown"))
            if not session.plan.repairs:
                self.desk.told = f"nothing was appended: {error}; the log owes nothing now"
                self.dismiss(True)
                return
        elif isinstance(session, Unreadable):
            self._notice.append((f"The log can't be read any more: {session}", "bad"))
        elif isinstance(error, Refused) and error.refusal.retryable:
            self._notice.append(("A tries again.", "unknown"))
        self._seen = []
        self.run_worker(self._look, thread=True, group="activity", exit_on_error=False)
        self._fill(self._first())
        self._rows.show(self._rows.source, top=0)

    # ---- leaving

    async def action_back(self) -> None:
        if self._appending:
            self.say("the append is under way")
        elif self.desk.answers and not self.desk.asked_to_leave:
            await self._ask_before_leaving()
        else:
            self.dismiss(self._renewed)

    async def _ask_before_leaving(self) -> None:
        count = counted(len(self.desk.answers), "answer")
        choices = [
            Choice("stay", "Stay", "go on with the answers"),
            Choice("leave", "Leave", f"{count}: {leaving_in_words(self.desk)}"),
        ]

        def chosen(name: str | None) -> None:
            if name == "leave":
                self.desk.asked_to_leave = True
                self.dismiss(self._renewed)

        await self.app.push_screen(
            ChoiceScreen(self.desk, "leave", f"{count} given, nothing appended yet.", choices), chosen
        )


def _what_happened(error: Exception) -> str:
    written = isinstance(error, Refused) and error.refusal.code in MAYBE_WRITTEN
    return "THE APPEND DID NOT END WELL" if written else "NOTHING WAS APPENDED"


def _append(session: Session, answers: dict[str, Answer]) -> Ended:
    """Append in a thread. Whatever happens comes back as a message, with the log as it is then."""
    try:
        applied = session.apply(answers)
    except Refused as error:
        moved = error.refusal.code == "log_moved"
        return Ended(error, _read_on(session) if moved else None)
    except (Unanswered, BadAnswer, Unreadable, OSError) as error:
        return Ended(error, None)
    return Ended(applied, _read_on(session))


def _read_on(session: Session) -> Session | Unreadable:
    try:
        return session.read_on()
    except Unreadable as error:
        return error
