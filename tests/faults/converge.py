"""What every interrupted repair has to come to: the log is opened again, and what is missing is planned."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from triage.log.append import text_to_append
from triage.recovery.acknowledge import Answer, Unanswered, answered, missing
from triage.recovery.plan import Plan, Repair
from triage.session import Session, open_session

SAMPLES = Path(__file__).parents[2] / "sample_logs"
WITH_PLAN = [path.name for path in sorted(SAMPLES.iterdir()) if open_session(str(path)).plan.repairs]
NOTE = "geprüft ✓ \U0001f50d"  # a cut inside its characters leaves bytes that are no text
NOW = "2026-05-20T10:00:00.000Z"

Name = tuple[str, object]  # of a repair: its type, and the id of its call or request


def answers(plan: Plan) -> dict[str, Answer]:
    """An answer for each entry of a plan that needs one, and for no other."""
    return {
        owed.key: Answer("deny" if owed.rule == "W1" else "could-not-tell", NOTE, "mara", NOW)
        for owed in plan.owed
        if owed.needs_acknowledgement
    }


def acks(plan: Plan) -> list[str]:
    """The same as arguments of `triage apply`."""
    return [f"--ack={key}={answer.finding}:{answer.note}" for key, answer in answers(plan).items()]


def name(repair: Repair) -> Name:
    return repair.type, repair.data.get("tool_call_id", repair.data.get("request_id"))


@dataclass(frozen=True)
class Owing:
    """A log that owes something: its bytes, the whole plan, and what an append of it would write."""

    log: bytes
    plan: Plan
    text: bytes

    @classmethod
    def of(cls, path: str) -> Owing:
        session = open_session(path)
        repairs = answered(session.plan, answers(session.plan))
        return cls(Path(path).read_bytes(), session.plan, text_to_append(session.journal, repairs, NOW))

    @cached_property
    def ends(self) -> list[int]:
        """Where each record of the text is whole, its newline aside."""
        return [at for at, byte in enumerate(self.text) if byte == ord("\n") and at]

    def landed(self, count: int) -> int:
        """How many records are whole in the first `count` bytes of the text."""
        return bisect_right(self.ends, count)

    def fragment(self, count: int) -> bytes:
        """What stands of a record that is not whole in the first `count` bytes."""
        last = self.text[:count].rpartition(b"\n")[2]
        return b"" if last and self.text[count : count + 1] == b"\n" else last


def converge(path: Path, owing: Owing) -> Session:
    """Open a log that holds `owing.log` and some of `owing.text`, repair it, and check the outcome.

    Returns the session as it was opened after the interruption.
    """
    found = path.read_bytes()
    count = len(found) - len(owing.log)
    assert found == owing.log + owing.text[:count], "bytes that nobody appended"
    expect_the_missing(session := open_session(str(path)), owing, count)
    complete(session, owing)
    return session


def complete(session: Session, owing: Owing) -> None:
    """Repair what a session still owes, and check that the log holds the whole repair then, and once."""
    path = Path(session.path)
    found = path.read_bytes()
    if missing(session.plan, {}):
        try:
            session.apply({})
        except Unanswered:
            pass
        else:
            raise AssertionError("an unknown outcome was passed over")
    session.apply(answers(session.plan))
    text = path.read_bytes()
    assert text.startswith(found), "bytes were lost"
    expect_repaired(text[len(owing.log) :], owing.plan)
    assert open_session(str(path)).plan.repairs == (), "the second plan is not empty"


def expect_the_missing(session: Session, owing: Owing, count: int) -> None:
    """The plan is what has not landed, in order, and asks again only for that."""
    plan, landed = session.plan, owing.landed(count)
    assert [name(repair) for repair in plan.repairs] == [name(r) for r in owing.plan.repairs[landed:]]
    before = Counter(owed.tool_call_id for owed in owing.plan.owed if owed.needs_acknowledgement)
    asked = [owed for owed in plan.owed if owed.needs_acknowledgement]
    torn = _torn_lines(session, owing, count)
    doubtful = [owed for owed in asked if torn & {evidence.line for evidence in owed.evidence}]
    assert not Counter(o.tool_call_id for o in asked) - Counter(o.tool_call_id for o in doubtful) - before
    for line in torn & {evidence.line for owed in doubtful for evidence in owed.evidence}:
        assert line in session.corrupt_lines and re.search(rf"\b{line:,}\b", session.corrupt_in_the_way)


def _torn_lines(session: Session, owing: Owing, count: int) -> set[int]:
    """The lines that an append was cut off in: ours, and the log's own last one, begun on by ours."""
    own = owing.fragment(count)
    ours = {session.journal.lines} if own and b'"type":"turn_end"' not in own else set()
    last = owing.log.count(b"\n") + 1
    theirs = {last} & set(session.corrupt_lines) if count and not owing.log.endswith(b"\n") else set()
    return ours | theirs


def expect_repaired(appended: bytes, plan: Plan) -> None:
    """Each owed call answered exactly once, one turn_end for each open turn; fragments count for nothing."""
    records = list(_records(appended))
    assert Counter(
        record["data"]["tool_call_id"] for record in records if "tool_call_id" in record["data"]
    ) == (Counter(owed.tool_call_id for owed in plan.owed))
    ends = [record for record in records if record["type"] == "turn_end"]
    assert len(ends) == sum(repair.type == "turn_end" for repair in plan.repairs)
    assert Counter(record["type"] for record in records) == Counter(repair.type for repair in plan.repairs)


def _records(appended: bytes) -> Sequence[dict[str, Any]]:
    found = []
    for line in appended.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found
