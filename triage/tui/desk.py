"""What the screens share: the open session, the answers given so far, and who gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from triage import draft
from triage.playbook import BadPlaybook
from triage.recovery.acknowledge import Answer, BadAnswer, check_answer, keep_valid, missing
from triage.recovery.plan import Owed, Plan
from triage.session import Activity, Session
from triage.tui.times import moment
from triage.words import counted, hint_in_words

Clock = Callable[[], datetime]
Look = Callable[[Session], Activity]


def utc_clock() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Desk:
    """One operator at one log. `said` becomes the line on stdout after the screen closed."""

    session: Session
    read_only: bool = False
    operator: str = ""
    clock: Clock = utc_clock
    redact: bool = False  # take secrets out of what leaves the screen
    look: Look = Session.activity  # whether somebody else has the log in hand
    picked: bool = False  # from the list of sessions, to which leaving goes back
    answers: dict[str, Answer] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    said: str = ""
    kept: bool = False  # whether the answers outlive the screen
    asked_to_leave: bool = False  # since the last answer
    drafted: str = ""  # whose answers were taken over
    told: str = ""  # what the screen below has to say when this one is left
    _hints: dict[str, Sequence[str]] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        return self.session.plan

    @property
    def asked(self) -> list[Owed]:
        """The entries that need a person, in plan order."""
        return [owed for owed in self.plan.owed if owed.needs_acknowledgement]

    @property
    def missing(self) -> tuple[str, ...]:
        """The keys of the entries that still need an answer."""
        return missing(self.plan, self.answers)

    def answer(self, owed: Owed, finding: str) -> None:
        """Record what the operator found about one entry, with the note written for it so far."""
        at = self.clock().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.answers[owed.key] = Answer(finding, self.notes.get(owed.key, ""), self.operator, at)

    def note(self, owed: Owed, note: str) -> None:
        """Keep a note for one entry; where it is answered already, write it into its answer."""
        self.notes[owed.key] = note
        if owed.key in self.answers:
            self.answer(owed, self.answers[owed.key].finding)

    def hints(self, owed: Owed) -> Sequence[str]:
        """What the playbook says of an owed call, uncleaned; what is wrong with the playbook, if anything."""
        if owed.key not in self._hints:
            try:
                hint = self.session.hint(owed)
            except BadPlaybook as error:
                self._hints[owed.key] = [str(error)]
            else:
                self._hints[owed.key] = [] if hint is None else hint_in_words(hint)
        return self._hints[owed.key]

    def greeting(self) -> tuple[str, str]:
        """What to say first, uncleaned: whose draft was taken over, and what is wrong with the playbook."""
        whose = "" if self.read_only or not self.asked else self.adopt_drafts()
        draft = f"draft: {whose}, not appended: a shows them" if whose else ""
        try:
            for owed in self.plan.owed[:1]:  # where nothing is owed no hint is missed
                self.session.hint(owed)
        except BadPlaybook as error:
            return draft, f"no hints on how to check: {error}"
        return draft, ""

    # ---- drafts: answers that outlive the screen, for the next person

    def adopt_drafts(self) -> str:
        """Take over the answers that others gave and did not append. Returns whose they are, or ""."""
        whose = []
        for kept in draft.load(self.session):
            fitting = {key: answer for key, answer in kept.answers.items() if self._fits(key, answer)}
            if fitting:
                self.answers |= fitting
                self.notes |= {key: answer.note for key, answer in fitting.items()}
                at = moment(kept.at, self.clock())
                whose.append(f"{kept.operator or 'somebody'} gave {counted(len(fitting), 'answer')} at {at}")
        self.kept = self.asked_to_leave = bool(whose)
        self.drafted = "; ".join(whose)
        return self.drafted

    def _fits(self, key: str, answer: Answer) -> bool:
        try:
            check_answer(self.plan, key, answer.finding)
        except BadAnswer:
            return False
        return key in {owed.key for owed in self.asked}

    def keep(self) -> str:
        """Keep the answers as a draft. Returns why that failed, or ""."""
        self.asked_to_leave = False
        try:
            draft.save(self.session, self.operator, self.answers)
        except OSError as error:
            self.kept = False
            return error.strerror or "unknown error"
        self.kept = True
        return ""

    def forget(self) -> None:
        """The answers are appended: they and all drafts of this log have done their work."""
        try:
            draft.drop(self.session)
        except OSError:
            pass  # a draft of another state of the log is never taken over
        self.answers, self.notes, self.kept, self.drafted = {}, {}, False, ""

    def renew(self, session: Session) -> int:
        """Go on with a session that was read again. Returns how many answers no longer hold."""
        kept = keep_valid(self.answers, self.plan.owed, session.plan.owed)
        lost = len(self.answers) - len(kept)
        self.answers = kept
        notes = {key: Answer("", note) for key, note in self.notes.items()}
        self.notes = {k: a.note for k, a in keep_valid(notes, self.plan.owed, session.plan.owed).items()}
        self.session = session
        self._hints = {}
        return lost


def leaving_in_words(desk: Desk) -> str:
    """What becomes of the answers when the operator leaves now."""
    return "kept as a draft, nothing is appended" if desk.kept else "lost when you quit, nothing is appended"
