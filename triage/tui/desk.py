"""What the screens share: the open session, the answers given so far, and who gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from triage.recovery.acknowledge import Answer, keep_valid, missing
from triage.recovery.plan import Owed, Plan
from triage.session import Session

Clock = Callable[[], datetime]


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
    answers: dict[str, Answer] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    said: str = ""

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

    @property
    def kept(self) -> bool:
        """Whether the answers outlive this screen (as a draft for the next person)."""
        return False

    def keep(self) -> None:
        """Called after each change of the answers: the place to keep them as a draft."""

    def renew(self, session: Session) -> int:
        """Go on with a session that was read again. Returns how many answers no longer hold."""
        kept = keep_valid(self.answers, self.plan.owed, session.plan.owed)
        lost = len(self.answers) - len(kept)
        self.answers = kept
        notes = {key: Answer("", note) for key, note in self.notes.items()}
        self.notes = {k: a.note for k, a in keep_valid(notes, self.plan.owed, session.plan.owed).items()}
        self.session = session
        return lost
