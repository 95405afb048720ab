"""A log that was opened: its journal and its plan. Every command and every screen starts here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from triage import playbook, words
from triage.log import append as appending
from triage.log.append import Applied, Refused
from triage.log.formats import TakesFrames
from triage.log.journal import Journal, extend_journal, read_journal
from triage.log.source import Base, Unreadable, open_for_reading, read_base
from triage.log.writers import Holder, in_hand, written_lately
from triage.playbook import Hint
from triage.recovery.acknowledge import Answer
from triage.recovery.plan import Owed, Plan, Refusal, make_plan

__all__ = ["Applied", "Refused", "Session", "differs", "open_session"]


@dataclass(frozen=True, slots=True)
class Session:
    """One opened log. It is never changed: after an append or a reload there is a new one."""

    path: str
    journal: Journal
    plan: Plan

    @property
    def last_time(self) -> Any:
        """The time of the last event that carries one, as the log wrote it; None where none does."""
        return self.journal.scan.last_time

    def hint(self, owed: Owed) -> Hint | None:
        """What the playbook says of an owed call, else None. Raises BadPlaybook."""
        return playbook.hint_for(owed, playbook.load(self.path))

    @property
    def title(self) -> str | None:
        """The session's title, else its first prompt, uncleaned; None where the log has neither."""
        title = self.journal.decoder.facts().get("title")
        return title or self.journal.first_prompt()

    @property
    def corrupt_in_the_way(self) -> str:
        """For a crashed log with lines in its open turns that can't be read: one sentence on it, else ""."""
        return words.corrupt_in_the_way(self.corrupt_lines) if self.plan.open_turns else ""

    @property
    def corrupt_lines(self) -> tuple[int, ...]:
        """The lines (from 1) inside open turns that can't be read and may have been anything."""
        turns = self.journal.scan.state().open_turns
        return tuple(sorted({c.line for turn in turns for c in turn.corrupt if not c.harmless}))

    def holds(self, base: Base, repairs: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the log is the one of `base` with each of `repairs` landed after it. Raises Unreadable."""
        from triage.log.history import landed

        descriptor = open_for_reading(self.journal.path)
        try:
            same = read_base(descriptor, base.last_seq, base.size) == base
        finally:
            os.close(descriptor)
        return same and landed(self.journal, base.size, repairs)

    def preview(self) -> bytes:
        """The bytes that an append would write now, with values that are made at the append as null."""
        return appending.text_to_append(self.journal, self.plan.repairs, None)

    def apply(self, answers: Mapping[str, Answer]) -> Applied:
        """Append the repair. Raises as `triage.log.append.append` does.

        Where somebody else's repair came first and found otherwise, the refusal says what each one found.
        """
        try:
            return appending.append(self.journal, self.plan, answers)
        except Refused as error:
            says = self._differs_now(answers) if error.refusal.code == "log_moved" else ""
            if not says:
                raise
            raise Refused(error.refusal._replace(says=f"{error}. {says}")) from error

    def _differs_now(self, answers: Mapping[str, Answer]) -> str:
        with suppress(Unreadable):
            return self.read_on().differs(self, answers) if answers else ""
        return ""

    def differs(self, before: Session, answers: Mapping[str, Answer]) -> str:
        """Where repairs that came after `before` say of a call what its answer doesn't: both, else "".

        Calls whose id is owed twice are left out: a repair doesn't say which of the two it answers.
        """
        findings = {
            owed.tool_call_id: answers[owed.key].finding
            for owed in before.plan.owed
            if owed.key == owed.tool_call_id and owed.key in answers
        }
        return differs(self.journal, before.journal.base.size, findings)

    def read_on(self, progress: Callable[[int, int], None] | None = None) -> Session:
        """The log as it is now. Only its new bytes are read, where it merely grew.

        `progress` gets bytes read and bytes in all. Raises Unreadable.
        """
        journal = extend_journal(self.journal, progress)
        if journal is None:
            return open_session(self.path, progress)
        return Session(self.path, journal, _plan(self.path, journal))

    def activity(self) -> Activity:
        """Whether the log is in use or has changed since it was opened. Raises Unreadable if it has gone."""
        descriptor = open_for_reading(self.journal.path)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        base = self.journal.base
        found = in_hand(self.journal.decoder, self.journal.path, status)
        return Activity(
            found.holders,
            grown=status.st_size - base.size,
            replaced=(status.st_dev, status.st_ino) != (base.device, base.inode),
            lately=written_lately(status),
            unchecked=found.unchecked,
        )


class Activity(NamedTuple):
    """What goes on with an open log. `grown` in bytes since it was read (negative: it was cut)."""

    holders: tuple[Holder, ...]
    grown: int
    replaced: bool
    lately: bool
    unchecked: str

    @property
    def refuses(self) -> str:
        """Why an append would be refused now, else ""."""
        if self.holders:
            return "in use: " + "; ".join(map(str, self.holders))
        if self.replaced:
            return "the file was replaced since it was opened: reload it"
        if self.grown:
            does = "grew" if self.grown > 0 else "was cut"
            return f"the log {does} by {words.size_in_words(abs(self.grown))} since it was opened: reload it"
        return ""

    @property
    def warns(self) -> str:
        """What to keep in mind besides: written just now, or what could not be checked; else ""."""
        parts = ["written in the last seconds: is its agent still alive?"] if self.lately else []
        return " ".join([*parts, self.unchecked] if self.unchecked else parts)


def open_session(path: str, progress: Callable[[int, int], None] | None = None) -> Session:
    """Read a log and plan its repair. `progress` gets bytes read and bytes in all.

    Raises triage.log.journal.Unreadable.
    """
    journal = read_journal(path, progress)
    return Session(path, journal, _plan(path, journal))


def differs(journal: Journal, size: int, findings: Mapping[str, str]) -> str:
    """Where a repair behind `size` bytes found of a call not what `findings` (by id) say: both, else ""."""
    from triage.log.history import answered_after  # a log is seldom repaired by two

    try:
        theirs = {past.tool_call_id or "": past for past in answered_after(journal, size)}
    except Unreadable:
        return ""
    both = [
        f"on {id}: {theirs[id].operator or 'somebody'} found “{_found(theirs[id].finding)}” "
        f"(line {theirs[id].line:,}), you “{_found(finding)}”"
        for id, finding in findings.items()
        if id in theirs and theirs[id].finding != finding
    ]
    return f"You disagree {'; '.join(both)}" if both else ""


def _found(finding: str | None) -> str:
    return words.FOUND.get(str(finding), str(finding))


def _plan(path: str, journal: Journal) -> Plan:
    state = journal.scan.state()
    plan = make_plan(state, journal.format.RECORDS)
    if plan.repairs:
        refusal = journal.decoder.refusal(plan)
        if refusal is not None and path not in refusal.says:
            refusal = refusal._replace(says=f"{path}: {refusal.says}")
        if refusal is None and journal.one_document:
            refusal = _one_document(path, plan)
        if journal.text is not None and not isinstance(journal.format, TakesFrames):
            refusal = _compressed(path, plan)
        plan = plan._replace(refusal=refusal)
    return journal.decoder.complete(plan, state)


def _compressed(path: str, plan: Plan) -> Refusal:
    return Refusal(
        "compressed",
        f"{path} is compressed (zstd), and its agent never appends to it so: unpack it (zstd -d) and repair "
        "what that gives, or resume the session in its agent, which unpacks it itself",
        boundary=plan.boundary.name,
        ids=tuple(owed.tool_call_id for owed in plan.owed),
    )


def _one_document(path: str, plan: Plan) -> Refusal:
    return Refusal(
        "not_append_only",
        f"{path} is one JSON document, not an append-only log: its owner has to add the planned records",
        boundary=plan.boundary.name,
        ids=tuple(owed.tool_call_id for owed in plan.owed),
    )
