"""A log that was opened: its journal and its plan. Every command and every screen starts here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triage import words
from triage.log import append as appending
from triage.log.append import Applied, Refused
from triage.log.events import call_id
from triage.log.journal import Base, Journal, read_journal
from triage.recovery.acknowledge import Answer
from triage.recovery.plan import Plan, Refusal, make_plan

__all__ = ["Applied", "Refused", "Session", "open_session"]


@dataclass(frozen=True, slots=True)
class Session:
    """One opened log. It is never changed: after an append or a reload there is a new one."""

    path: str
    journal: Journal
    plan: Plan

    @property
    def last_time(self) -> Any:
        """The time that the last event carries, as the log wrote it; None where there is none."""
        last = self.journal.scan.state().last
        return last.time if last else None

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
        """Whether the log is the one of `base` with each of `repairs` landed after it."""
        if (base.device, base.inode) != (self.journal.base.device, self.journal.base.inode):
            return False
        landed = {
            (event.type, call_id(event.data))
            for line in range(self.journal.lines, 0, -1)
            if self.journal.offsets[line] > base.size
            for event in self.journal.events(line)
        }
        return bool(repairs) and all(
            (repair.get("type"), call_id(repair.get("data", {}))) in landed for repair in repairs
        )

    def preview(self) -> bytes:
        """The bytes that an append would write now, with values that are made at the append as null."""
        return appending.text_to_append(self.journal, self.plan.repairs, None)

    def apply(self, answers: Mapping[str, Answer], base: Base | None = None) -> Applied:
        """Append the repair. Raises as `triage.log.append.append` does."""
        return appending.append(self.journal, self.plan, answers, base)


def open_session(path: str, progress: Callable[[int, int], None] | None = None) -> Session:
    """Read a log and plan its repair. `progress` gets bytes read and bytes in all.

    Raises triage.log.journal.Unreadable.
    """
    journal = read_journal(path, progress)
    plan = make_plan(journal.scan.state(), journal.format.RECORDS)
    if plan.repairs:
        refusal = _one_document(path, plan) if journal.one_document else journal.decoder.refusal(plan)
        plan = replace(plan, refusal=refusal)
    return Session(path, journal, plan)


def _one_document(path: str, plan: Plan) -> Refusal:
    return Refusal(
        "not_append_only",
        f"{path} is one JSON document, not an append-only log: its owner has to add the planned records",
        boundary=plan.boundary.name,
        ids=tuple(owed.tool_call_id for owed in plan.owed),
    )
