"""Opening, repairing and re-planning a log of any format, from records or bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import owed
from triage.contract import plan_row
from triage.log.append import text_to_append
from triage.recovery.acknowledge import Answer, answered
from triage.recovery.plan import Plan
from triage.session import Session, open_session

FIXTURES = Path(__file__).parent.parent / "fixtures"
NOW = "2026-05-20T09:00:00.250Z"


def records_of(folder: str, name: str) -> list[dict[str, Any]]:
    """The records of a fixture."""
    text = (FIXTURES / folder / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def log_of(records: Sequence[Mapping[str, Any]]) -> bytes:
    """The bytes of a log that holds these records, one a line."""
    lines = (json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in records)
    return "".join(line + "\n" for line in lines).encode()


def session_of(folder: Path, log: bytes | Sequence[Mapping[str, Any]], name: str = "log.jsonl") -> Session:
    """The session of a log with this content."""
    path = folder / name
    path.write_bytes(log if isinstance(log, bytes) else log_of(log))
    return open_session(str(path))


def plan_of_log(folder: Path, log: bytes | Sequence[Mapping[str, Any]]) -> Plan:
    return session_of(folder, log).plan


def planned_lines(session: Session) -> list[dict[str, Any]]:
    """The lines that `triage plan --json` shows, parsed."""
    return [json.loads(line) for line in plan_row(session)["lines"]]


def answers_for(plan: Plan, finding: str = "could-not-tell", note: str = "") -> dict[str, Answer]:
    """One answer for each entry that needs a person."""
    return {
        entry.key: Answer("deny" if entry.rule == "W1" else finding, note, "ana", NOW)
        for entry in plan.owed
        if entry.needs_acknowledgement
    }


def appended(session: Session, finding: str = "could-not-tell", note: str = "") -> bytes:
    """The bytes that a repair with answers for every entry appends."""
    repairs = answered(session.plan, answers_for(session.plan, finding, note))
    return text_to_append(session.journal, repairs, NOW)


def appended_lines(session: Session, finding: str = "could-not-tell", note: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in appended(session, finding, note).decode().split("\n") if line]


def applied(session: Session) -> Session:
    """The session after a repair through the one place that writes; its old bytes are still its first."""
    before = Path(session.path).read_bytes()
    session.apply(answers_for(session.plan))
    after = Path(session.path).read_bytes()
    assert after.startswith(before)
    return open_session(session.path)


def assert_converges(folder: Path, log: bytes, *, step: int = 1) -> None:
    """However much of a repair landed, the rest is planned, and then nothing is left."""
    repair = appended(session_of(folder, log))
    assert repair
    for cut in range(0, len(repair), step):
        session = session_of(folder, log + repair[:cut])
        rest = appended(session) if session.plan.repairs else b""
        plan = plan_of_log(folder, log + repair[:cut] + rest)
        assert (plan.repairs, plan.open_turns) == ((), ()), f"cut after {cut} bytes of the repair"


def why_left(plan: Plan, id: str) -> str:
    (entry,) = [entry for entry in plan.left if entry.tool_call_id == id]
    return entry.why


def says_of(plan: Plan, id: str) -> list[str]:
    """What the lines that prove a call's risk say."""
    return [line.says for line in owed(plan, id).evidence]


def corpus(folder: str, pattern: str) -> Iterator[Any]:
    """The real logs of a format, as parameters; one that is skipped where there are none."""
    root = os.environ.get("TRIAGE_CORPUS")
    paths = sorted(Path(root, folder).glob(pattern)) if root else []
    if not paths:
        reason = "TRIAGE_CORPUS does not name a folder of real session logs"
        yield pytest.param(None, marks=pytest.mark.skip(reason=reason), id="no-corpus")
    for path in paths:
        yield pytest.param(path, id=path.name)
