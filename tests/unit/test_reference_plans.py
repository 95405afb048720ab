"""600 random logs, each with the plan that a reference implementation of the rules gave for it.

No id is used in two turns there. From id 10000 on, turns nest, and dispatches and results cross them.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import codes, event, plan_of, plan_of_text, turn_start, with_repair
from tests.helpers import log as log_of
from tests.property.oracle import Oracle
from triage.recovery.plan import Plan

CASES = Path(__file__).parents[1] / "fixtures" / "cases" / "reference_plans.jsonl"
ROWS = [json.loads(line) for line in CASES.read_bytes().split(b"\n") if line]
Row = dict[str, Any]


def in_reference_words(plan: Plan) -> list[dict[str, Any]]:
    """The repairs as the reference wrote them down: `turn` only where there is one, the name even if null."""
    return [
        {
            "type": repair.type,
            "tool_call_id": repair.data["tool_call_id"],
            "name": repair.data["name"],
            "risk": repair.data["metadata"]["risk"],
        }
        if repair.type == "tool_result"
        else {"type": repair.type, **repair.data}
        for repair in plan.repairs
    ]


def test_all_the_cases_are_there() -> None:
    assert len(ROWS) == 600
    assert sum(row["id"] >= 10000 for row in ROWS) == 100
    assert Counter(bool(row["plan"]) for row in ROWS)[True] > 300


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_a_log_gets_the_plan_of_the_reference(row: Row) -> None:
    plan = plan_of(*row["events"])
    assert in_reference_words(plan) == row["plan"]
    assert [turn.seq for turn in plan.open_turns] == row["open_turns"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_its_repair_leaves_nothing_to_repair_and_adds_no_anomaly(row: Row) -> None:
    text = log_of(*row["events"])
    plan = plan_of_text(text)
    repaired = plan_of_text(with_repair(text, plan.repairs))
    assert (repaired.repairs, repaired.owed, repaired.left) == ((), (), plan.left)
    assert codes(repaired) == codes(plan)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_the_oracle_of_the_property_tests_agrees_with_the_reference(row: Row) -> None:
    """So that a log with ids in several turns, which the reference lacks, may be judged by the oracle."""
    risks = {
        1: "tool_outcome_unknown",
        2: "tool_not_started",
        3: "tool_not_started",
        4: "tool_outcome_unknown",
    }
    planned = [
        (step["type"], step.get("id"), risks.get(step.get("rule", 0)), step.get("steps"), step.get("turn"))
        for step in Oracle(row["events"]).plan()
    ]
    expected = [
        (step["type"], step.get("tool_call_id"), step.get("risk"), step.get("steps"), step.get("turn"))
        for step in row["plan"]
    ]
    assert planned == expected


def test_a_plan_that_differs_would_be_seen() -> None:
    """The comparison is not vacuous: another risk, name, order, count of steps or turn is another list."""
    plan = in_reference_words(plan_of(turn_start(1), event("tool_call", id=3, name="bash")))
    assert plan == [
        {"type": "tool_result", "tool_call_id": "3", "name": "bash", "risk": "tool_outcome_unknown"},
        {"type": "turn_end", "reason": "interrupted", "steps": 0, "turn": 1},
    ]
