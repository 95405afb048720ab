"""What was done to a log, as the log itself tells it: when, by whom, what they found, by which rule."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.faults.child import triage
from tests.faults.converge import NOTE, SAMPLES, WITH_PLAN, Owing, acks, answers, complete
from triage.log import history
from triage.log.append import Refused
from triage.recovery.acknowledge import FINDINGS, Answer
from triage.session import Session, open_session

FIXTURES = Path(__file__).parents[1] / "fixtures"
AGENTS = ("claude", "codex", "copilot", "dsh", "pi")
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ")


def rows(log: Path) -> list[dict[str, Any]]:
    outcome = triage("history", log, "--json")
    assert outcome.code == 0, outcome
    return [json.loads(line) for line in outcome.out.splitlines()]


@pytest.mark.parametrize("name", WITH_PLAN)
def test_each_appended_record_is_listed_with_its_line_rule_and_answer(name: str, tmp_path: Path) -> None:
    log = Path(shutil.copy(SAMPLES / name, tmp_path))
    owing = Owing.of(str(log))
    assert triage("apply", log, "--operator", "mara", *acks(owing.plan)).code == 0
    found = rows(log)
    lines = log.read_bytes().split(b"\n")
    assert [row["type"] for row in found] == [repair.type for repair in owing.plan.repairs]
    answered = [row for row in found if row["type"] == "tool_result"]
    for row, owed in zip(answered, owing.plan.owed, strict=True):
        assert (row["tool_call_id"], row["risk"], row["rule"]) == (owed.tool_call_id, owed.risk, owed.rule)
        asked = owed.needs_acknowledgement
        finding = "deny" if owed.rule == "W1" else "could-not-tell"
        assert (row["finding"], row["operator"], row["note"]) == (
            (finding, "mara", NOTE) if asked else (None,) * 3
        )
    for row in found:
        assert TIME.fullmatch(row["time"]) and json.loads(lines[row["line"] - 1])["type"] == row["type"]


def test_after_a_repair_in_two_parts_both_are_listed_each_with_its_own_operator(log: Path) -> None:
    owing = Owing.of(str(log))
    log.write_bytes(owing.log + owing.text[: owing.ends[1] + 1])
    session = open_session(str(log))
    later = {key: Answer("ran", "", "ben", "2026-05-21T10:00:00.000Z") for key in answers(session.plan)}
    session.apply(later)
    found = rows(log)
    assert [row["type"] for row in found] == ["tool_result"] * 3 + ["turn_end"]
    assert len({row["tool_call_id"] for row in found[:3]}) == 3
    assert [row["operator"] for row in found if row["operator"]] == ["mara"]


def test_a_torn_record_of_a_repair_is_no_repair(log: Path) -> None:
    owing = Owing.of(str(log))
    log.write_bytes(owing.log + owing.text[: owing.ends[0] - 1])
    assert rows(log) == []
    complete(open_session(str(log)), owing)
    assert len(rows(log)) == len(owing.plan.repairs)


def test_the_words_on_screen_name_line_time_call_risk_rule_finding_operator_and_note(log: Path) -> None:
    owing = Owing.of(str(log))
    triage("apply", log, "--operator", "mara", "--ack", "call_0a92=ran:seen in the ledger")
    lines = triage("history", log).out.splitlines()
    assert len(lines) == len(owing.plan.repairs)
    (line,) = [line for line in lines if "call_0a92" in line]
    assert TIME.search(line)
    for word in ("http_post", "tool_outcome_unknown (rule 1)", "ran, by mara", "note: seen in the ledger"):
        assert word in line


def test_names_and_notes_that_attack_a_terminal_are_made_harmless(log: Path) -> None:
    triage("apply", log, "--operator", "\x1b[2Jmara\n", "--ack", "call_0a92=ran:\x1b]0;x\x07\nforged line")
    outcome = triage("history", log)
    assert "\x1b" not in outcome.out and "\x07" not in outcome.out
    assert len(outcome.out.splitlines()) == 4


def test_a_log_without_a_repair_has_no_history(log: Path) -> None:
    assert rows(log) == []
    assert "no repair in this log" in triage("history", log).out


def test_an_agents_own_result_that_quotes_a_repair_is_none(log: Path) -> None:
    quoted = {
        "tool_call_id": "x",
        "content": '{"synthetic": true, "reason": "interrupted"}',
        "metadata": "synthetic",
    }
    with log.open("ab") as file:
        file.write(json.dumps({"seq": 90, "type": "tool_result", "data": quoted}).encode() + b"\n")
    assert rows(log) == []


def repaired(path: Path, finding: str) -> tuple[Session, Session] | None:
    """A log before and after its repair; None where it owes nothing or takes no repair."""
    before = open_session(str(path))
    given = {
        key: Answer(answer.finding if answer.finding == "deny" else finding, NOTE, "mara", answer.at)
        for key, answer in answers(before.plan).items()
    }
    try:
        if before.plan.repairs:
            before.apply(given)
            return before, open_session(str(path))
    except Refused:
        pass
    return None


@pytest.mark.parametrize("finding", FINDINGS)
@pytest.mark.parametrize("agent", AGENTS)
def test_an_answer_that_was_written_into_an_agents_own_log_is_found_there_again(
    agent: str, finding: str, tmp_path: Path
) -> None:
    found = 0
    for fixture in sorted((FIXTURES / agent).glob("*.jsonl")):
        pair = repaired(Path(shutil.copy(fixture, tmp_path)), finding)
        if pair is None:
            continue
        before, after = pair
        past = {p.tool_call_id: p for p in history.repairs_in(after.journal) if p.finding is not None}
        for owed in before.plan.owed:
            if owed.rule != "W1" and owed.needs_acknowledgement and owed.tool_call_id in past:
                one = past[owed.tool_call_id]
                assert (one.finding, one.operator, one.note) == (finding, "mara", NOTE)
                assert one.risk == owed.risk and one.rule in (owed.rule, None)
                found += 1
        assert after.holds(
            before.journal.base, [{"type": r.type, "data": r.data} for r in before.plan.repairs]
        )
    assert found
